package continuo_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
	"pgregory.net/rapid"
)

// counting is an object store that counts reads and can fail.
type counting struct {
	continuo.ObjectStore
	reads   int
	failPut error
}

func newCounting() *counting { return &counting{ObjectStore: storetest.NewObjects()} }

func (o *counting) PutObject(ctx context.Context, name string, data io.Reader) error {
	if o.failPut != nil {
		return o.failPut
	}
	return o.ObjectStore.PutObject(ctx, name, data)
}

func (o *counting) ReadObject(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	o.reads++
	return o.ObjectStore.ReadObject(ctx, name, offset, length)
}

// sizes lists the objects of a conversation, or of all, with their bytes.
func (o *counting) sizes(t *testing.T, prefix string) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	for info, err := range o.Objects(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		found[info.Name] = info.Size
	}
	return found
}

// hesitant is a store whose appends can fail.
type hesitant struct {
	continuo.Store
	failAppend  error
	beforeEntry func() // runs before an append reaches the store
}

func (s *hesitant) Append(ctx context.Context, batch continuo.Batch) error {
	if s.beforeEntry != nil {
		s.beforeEntry()
	}
	if s.failAppend != nil {
		return s.failAppend
	}
	return s.Store.Append(ctx, batch)
}

// calling makes a conversation with an open call.
func calling(t rapid.TB, log *continuo.Log) continuo.Conversation {
	t.Helper()
	conversation, err := log.Create(context.Background(), continuo.Conversation{})
	if err == nil {
		_, err = log.Append(context.Background(), conversation.ID, []continuo.Entry{calls("c")}, continuo.AppendOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return conversation
}

// TestAnyOutputIsReadBackInAnyRange appends any text under any limits, and reads it from the log.
func TestAnyOutputIsReadBackInAnyRange(t *testing.T) {
	texts := rapid.OneOf(
		rapid.StringMatching(`([a-zé語\n]{0,6}(line [0-9]\r?\n)?){0,40}`),
		rapid.Map(rapid.String(), func(s string) string { return strings.ToValidUTF8(s, "?") }),
		rapid.Map(rapid.IntRange(0, 3000), func(n int) string { return strings.Repeat("one long line 語", n/17) }),
	)
	rapid.Check(t, func(rt *rapid.T) {
		text := texts.Draw(rt, "text")
		options := continuo.LogOptions{
			MaxInlineOutput: rapid.IntRange(1, 300).Draw(rt, "limit"), Objects: storetest.NewObjects(),
		}
		log := continuo.NewLog(storetest.NewMemory(), options)
		conversation := calling(rt, log)
		if _, err := log.Append(context.Background(), conversation.ID, []continuo.Entry{result("c", text)}, continuo.AppendOptions{}); err != nil {
			rt.Fatal(err)
		}
		conversation, err := log.Conversation(context.Background(), conversation.ID)
		if err != nil {
			rt.Fatal(err)
		}
		if rapid.Bool().Draw(rt, "read through a fork") {
			parent := conversation.ID
			if conversation, err = log.Fork(context.Background(), parent, 0, continuo.Conversation{}); err != nil {
				rt.Fatal(err)
			}
			if err := log.Delete(context.Background(), parent); err != nil {
				rt.Fatal(err)
			}
		}
		entry, err := log.EntryByOutputRef(context.Background(), conversation, "@state/logs/tool-results/c.json")
		if err != nil {
			rt.Fatal(err)
		}
		checkRanges(rt, log, &entry, text)
		if large := len(text) > options.MaxInlineOutput; large != (entry.Output != nil) {
			rt.Fatalf("%d bytes with a limit of %d are kept as %+v", len(text), options.MaxInlineOutput, entry.Output)
		}
		checkPreview(rt, &entry, text, options.MaxInlineOutput)
	})
}

func checkRanges(rt *rapid.T, log *continuo.Log, entry *continuo.Entry, text string) {
	output := log.Output(context.Background(), entry)
	if output.Size() != int64(len(text)) {
		rt.Fatalf("the output has %d bytes, want %d", output.Size(), len(text))
	}
	for range 4 {
		begin := rapid.IntRange(0, len(text)).Draw(rt, "begin")
		length := rapid.IntRange(0, len(text)+2).Draw(rt, "length")
		into := make([]byte, length)
		n, err := output.ReadAt(into, int64(begin))
		want := text[begin:min(len(text), begin+length)]
		if string(into[:n]) != want || n < length && !errors.Is(err, io.EOF) || n == length && err != nil && !errors.Is(err, io.EOF) {
			rt.Fatalf("%d bytes from %d: %q (%v), want %q", length, begin, into[:n], err, want)
		}
	}
	whole, err := log.WholeContent(context.Background(), entry)
	if err != nil || !whole.IsText() || whole.String() != text {
		rt.Fatalf("the whole is %q (%v), want %q", whole.String(), err, text)
	}
}

func checkPreview(rt *rapid.T, entry *continuo.Entry, text string, limit int) {
	shown := entry.Content.String()
	preview, ok := entry.Preview()
	if !ok {
		if shown != text {
			rt.Fatalf("a small output is shown as %q", shown)
		}
		return
	}
	if !utf8.ValidString(shown) || entry.Chars != utf8.RuneCountInString(shown) {
		rt.Fatalf("the preview is no UTF-8 or not counted: %d characters, %q", entry.Chars, shown)
	}
	if !strings.HasPrefix(text, preview.Head) || !strings.HasSuffix(text, preview.Tail) || len(preview.Head)+len(preview.Tail) > limit {
		rt.Fatalf("head %q and tail %q of %q", preview.Head, preview.Tail, text)
	}
	if preview.String() != shown || preview.Full != entry.OutputRef {
		rt.Fatalf("the preview %+v is shown as %q", preview, shown)
	}
	if preview.Chars != utf8.RuneCountInString(text) || preview.Bytes != int64(len(text)) || preview.Lines != strings.Count(text, "\n")+1 {
		rt.Fatalf("the true size of %q is not reported: %+v", text, preview)
	}
	// A cut is after a line end, unless that would leave out more than half of what fits.
	if head := preview.Head; head != "" && !strings.HasSuffix(head, "\n") && strings.Contains(text[len(head)/2+1:len(head)], "\n") {
		rt.Fatalf("the head %q is cut in a line", head)
	}
	if tail := preview.Tail; tail != "" && !strings.HasSuffix(strings.TrimSuffix(text, tail), "\n") && strings.Contains(tail[:len(tail)/2], "\n") {
		rt.Fatalf("the tail %q is cut in a line", tail)
	}
}

func TestAListOfTextsIsOffloaded(t *testing.T) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{MaxInlineOutput: 20, Objects: storetest.NewObjects()})
	conversation := calling(t, log)
	var content continuo.Content
	const list = `[{"type":"text","text":"the first part\n"},{"cache_control":{"x":1.0},"type":"text","text":""},{"type":"text","text":"the \"third\" part"}]`
	if err := json.Unmarshal([]byte(list), &content); err != nil {
		t.Fatal(err)
	}
	stored, err := log.Append(t.Context(), conversation.ID, []continuo.Entry{{Role: continuo.Tool, ToolCallID: "c", Content: content}}, continuo.AppendOptions{})
	if err != nil || stored[0].Output == nil {
		t.Fatalf("%+v (%v)", stored, err)
	}
	whole, err := log.WholeContent(t.Context(), &stored[0])
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(whole); err != nil || string(got) != list {
		t.Errorf("got %s (%v)\nwant %s", got, err, list)
	}
	text, err := io.ReadAll(log.Output(t.Context(), &stored[0]))
	if err != nil || string(text) != content.String() {
		t.Errorf("the text is %q (%v)", text, err)
	}
}

func TestWhatModelsMustSeeStaysInTheEntry(t *testing.T) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{MaxInlineOutput: 20, Objects: storetest.NewObjects()})
	conversation := calling(t, log)
	image := continuo.Part{Type: "image_url", Raw: json.RawMessage(`{"type":"image_url","image_url":{"url":"data:"}}`)}
	content := continuo.Parts(image, continuo.TextPart(strings.Repeat("x", 100)))
	stored, err := log.Append(t.Context(), conversation.ID, []continuo.Entry{{Role: continuo.Tool, ToolCallID: "c", Content: content}}, continuo.AppendOptions{})
	if err != nil || stored[0].Output != nil || !stored[0].Content.IsParts() {
		t.Errorf("%+v (%v)", stored, err)
	}
	long := continuo.Entry{Role: continuo.User, Content: continuo.Text(strings.Repeat("x", 100)), Output: &continuo.Output{ID: "of nobody"}}
	stored, err = log.Append(t.Context(), conversation.ID, []continuo.Entry{long}, continuo.AppendOptions{})
	if err != nil || stored[0].Output != nil || len(stored[0].Content.String()) != 100 {
		t.Errorf("%+v (%v)", stored, err)
	}
}

func TestObjectsComeBeforeTheirEntryAndGoWithoutIt(t *testing.T) {
	store, objects := &hesitant{Store: storetest.NewMemory()}, newCounting()
	log := continuo.NewLog(store, continuo.LogOptions{MaxInlineOutput: 20, Objects: objects})
	conversation := calling(t, log)
	large := strings.Repeat("0123456789", 5)
	attempt := func(id string, options continuo.AppendOptions) error {
		_, err := log.Append(t.Context(), conversation.ID, []continuo.Entry{result(id, large)}, options)
		return err
	}
	refused := map[string]func() error{
		"an answer of no call": func() error { return attempt("other", continuo.AppendOptions{}) },
		"a lost race":          func() error { return attempt("c", continuo.AppendOptions{ExpectSeq: 9}) },
		"no conversation": func() error {
			_, err := log.Append(t.Context(), "conv_none", []continuo.Entry{result("c", large)}, continuo.AppendOptions{})
			return err
		},
		"an import that breaks a rule": func() error {
			_, err := log.Import(t.Context(), continuo.Conversation{}, []continuo.Entry{result("c", large)})
			return err
		},
		"an object that cannot be written": func() error {
			objects.failPut = continuo.ErrFull
			defer func() { objects.failPut = nil }()
			return attempt("c", continuo.AppendOptions{})
		},
	}
	for what, try := range refused {
		if err := try(); err == nil || len(objects.sizes(t, "")) != 0 {
			t.Errorf("%s: %v, and %v is left", what, err, objects.sizes(t, ""))
		}
	}
	store.failAppend = errors.New("the store does not know whether it is durable")
	if err := attempt("c", continuo.AppendOptions{}); err == nil || len(objects.sizes(t, "")) != 1 {
		t.Errorf("an object that an entry may name was removed: %v, %v", err, objects.sizes(t, ""))
	}
	for name := range objects.sizes(t, "") {
		_ = objects.DeleteObject(t.Context(), name)
	}
	store.failAppend = nil
	store.beforeEntry = func() {
		there := objects.sizes(t, conversation.ID+"/")
		for _, size := range there {
			if len(there) != 1 || size != 50 {
				t.Errorf("the entry comes when %v is there", there)
			}
		}
		if len(there) == 0 {
			t.Error("the entry comes before its object")
		}
	}
	for range 2 {
		if err := attempt("c", continuo.AppendOptions{Key: "once"}); err != nil {
			t.Fatal(err)
		}
	}
	if left := objects.sizes(t, ""); len(left) != 1 {
		t.Errorf("a key that was used again leaves %v", left)
	}
}

func TestReadingALargeOutputHoldsOneStretch(t *testing.T) {
	objects := newCounting()
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{MaxInlineOutput: 20, Objects: objects})
	conversation := calling(t, log)
	stored, err := log.Append(t.Context(), conversation.ID, []continuo.Entry{result("c", strings.Repeat("0123456789abcdef", 5<<16))}, continuo.AppendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	objects.reads = 0
	output := log.Output(t.Context(), &stored[0])
	for offset := range int64(30) {
		if n, err := output.ReadAt(make([]byte, 1), offset*100_000); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if objects.reads != 3 {
		t.Errorf("%d reads for 30 bytes of the first 3 MiB", objects.reads)
	}
}

func TestADamagedOutputIsNotedAndNotGuessed(t *testing.T) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{MaxInlineOutput: 20, Objects: storetest.NewObjects()})
	conversation := calling(t, log)
	stored, err := log.Append(t.Context(), conversation.ID, []continuo.Entry{result("c", strings.Repeat("0123456789", 5))}, continuo.AppendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	gone, other := stored[0], stored[0]
	changed := *other.Output
	changed.SHA256 = strings.Repeat("0", 64)
	other.Output = &changed
	longer := *gone.Output
	longer.Bytes += 20
	gone.Output = &longer
	if _, err := log.WholeContent(t.Context(), &other); err == nil {
		t.Error("other bytes are taken for the output")
	}
	if _, err := log.WholeContent(t.Context(), &gone); !errors.Is(err, continuo.ErrObjectGone) {
		t.Errorf("an object that is too short: %v", err)
	}
}

// nowhere keeps no objects.
type nowhere struct{ continuo.ObjectStore }

func (nowhere) PutObject(_ context.Context, _ string, data io.Reader) error {
	_, err := io.Copy(io.Discard, data)
	return err
}

// TestALargeOutputIsNotCopied appends 64 MiB and bounds what is allocated for it, freed or not.
func TestALargeOutputIsNotCopied(t *testing.T) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{Objects: nowhere{}})
	conversation := calling(t, log)
	text := strings.Repeat("0123456789 a line of it\n", 64<<20/24)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := log.Append(t.Context(), conversation.ID, []continuo.Entry{result("c", text)}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if size := after.TotalAlloc - before.TotalAlloc; size > 4<<20 {
		t.Errorf("%d bytes were allocated for an output of %d", size, len(text))
	}
}
