package turn_test

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/interchange"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// watched is an object store that notes what is read.
type watched struct {
	continuo.ObjectStore
	before func() // runs before each read

	mu   sync.Mutex
	read []string
}

func (w *watched) ReadObject(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	w.mu.Lock()
	w.read = append(w.read, name)
	w.mu.Unlock()
	if w.before != nil {
		w.before()
	}
	return w.ObjectStore.ReadObject(ctx, name, offset, length)
}

// offloaded is a log that keeps every part that is no text as an object, and inline one that keeps none.
func offloaded(objects continuo.ObjectStore) *continuo.Log {
	return continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{Counter: token.O200k(), MaxInlinePart: 1, Objects: objects})
}

func inline() *continuo.Log {
	return continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{Counter: token.O200k()})
}

func imported(t *testing.T, log *continuo.Log, entries []continuo.Entry) continuo.Conversation {
	t.Helper()
	conversation, err := log.Import(t.Context(), continuo.Conversation{}, entries)
	if err != nil {
		t.Fatal(err)
	}
	return conversation
}

func built(t *testing.T, log *continuo.Log, conversation continuo.Conversation, view window.View, info model.Info) *turn.Request {
	t.Helper()
	request, err := turn.Build(t.Context(), log, conversation, conversation.LastSeq, view, continuo.Envelope{Model: info.Name, MaxOutputTokens: 100}, info)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// readers are who is shown a conversation: vendors' data goes to the vendor of that name only.
var readers = []model.Info{
	{Provider: "openai", Name: "gpt-4o", Protocol: model.ProtocolOpenAIChat},
	{Provider: "anthropic", Name: "claude", Protocol: model.ProtocolAnthropic},
	{Provider: "other", Name: "other", Protocol: model.ProtocolAnthropic},
	{Provider: "plain", Name: "plain", Protocol: model.ProtocolOpenAIChat + model.TranscriptSuffix},
}

func unlimited(t *testing.T, name string) window.View {
	t.Helper()
	view, err := window.DefaultSettings().View(name)
	if err != nil {
		t.Fatal(err)
	}
	view.Limits = window.Limits{}
	return view
}

// compare builds requests from a log with attachments and from one without, and wants the same bytes. It
// returns how many attachments the requests hold.
func compare(t *testing.T, entries []continuo.Entry) (shown int) {
	t.Helper()
	objects := &watched{ObjectStore: storetest.NewObjects()}
	with, without := offloaded(objects), inline()
	kept, whole := imported(t, with, entries), imported(t, without, entries)
	for _, info := range readers {
		for _, name := range []string{window.Codex, window.Continuity} {
			objects.read = nil
			got, want := built(t, with, kept, unlimited(t, name), info), built(t, without, whole, unlimited(t, name), info)
			if string(got.Body) != string(want.Body) {
				t.Fatalf("%s, %s: the request is\n%.2000s\nwant\n%.2000s", info.Provider, name, got.Body, want.Body)
			}
			isLost := func(part continuo.MissingPart) bool { return part.Problem != continuo.PartUnsupported }
			if slices.ContainsFunc(got.Plan.Missing, isLost) {
				t.Errorf("%+v are missing", got.Plan.Missing)
			}
			shown += len(objects.read)
		}
	}
	return shown
}

func content(t *testing.T, list string) continuo.Content {
	t.Helper()
	var content continuo.Content
	if err := json.Unmarshal([]byte(list), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

const (
	image    = `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo=","detail":"low"}}`
	block    = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`
	sound    = `{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}}`
	document = "{ \"type\": \"file\",\n \"file\": {\"filename\": \"a.pdf\", \"file_data\": \"data:application\\/pdf;base64,JVBERi0=\"}}"
	unknown  = `{"type":"of nobody","x":1.0}`
	thinking = `{"type":"thinking","thinking":"hm","signature":"s"}`
	texts    = `{"type":"text","text":"see"}`
)

func TestARequestIsTheSameWhereverItsAttachmentsAre(t *testing.T) {
	call := continuo.Entry{
		Role: continuo.Assistant, Content: content(t, "["+thinking+","+texts+"]"), ToolCalls: []continuo.ToolCall{continuo.FunctionCall("c", "look", "{}")},
		Vendor: map[string]json.RawMessage{"anthropic": json.RawMessage(`{"content":[` + thinking + `,` + texts + `,{"type":"tool_use","id":"c","name":"look","input":{}}]}`)},
	}
	failed := continuo.Entry{
		Role: continuo.Assistant, Content: content(t, "["+texts+","+image+"]"),
		Error: &continuo.TurnError{Code: continuo.LLMError, Reason: continuo.ReasonNetwork, Message: "broke off"},
	}
	entries := []continuo.Entry{
		{Role: continuo.User, Content: content(t, "["+image+","+texts+","+block+","+sound+","+document+","+unknown+"]")},
		call,
		{Role: continuo.Tool, ToolCallID: "c", Content: content(t, "["+texts+","+image+","+block+","+document+"]")},
		failed,
		{
			Role: continuo.User, Content: content(t, "["+image+"]"),
			Vendor: map[string]json.RawMessage{"anthropic": json.RawMessage(`{"content":[` + block + `]}`)},
		},
	}
	if shown := compare(t, entries); shown == 0 {
		t.Error("no request had an attachment")
	}
}

// TestRecordedImagesAreSentAsTheyCame does so with what real programs sent.
func TestRecordedImagesAreSentAsTheyCame(t *testing.T) {
	folder := cmp.Or(os.Getenv("CONTINUO_DATA"), filepath.Join("..", "..", "shared", "data"))
	shown := 0
	for _, name := range []string{"wire-openai", "anthropic-native"} {
		packed, err := os.Open(filepath.Join(folder, name+".jsonl.gz"))
		if err != nil {
			t.Skipf("SKIPPED: there are no shared conversations: set CONTINUO_DATA to their folder (%v)", err)
		}
		defer packed.Close()
		lines, err := gzip.NewReader(packed)
		if err != nil {
			t.Fatal(err)
		}
		for document, err := range interchange.Read(name, lines, interchange.Options{}) {
			if err != nil {
				continue // of a line: other tests are about those
			}
			media := slices.ContainsFunc(document.Entries, func(e continuo.Entry) bool {
				return slices.ContainsFunc(e.Content.Parts(), func(p continuo.Part) bool { return !p.IsText() })
			})
			if media {
				shown += compare(t, document.Entries)
			}
		}
	}
	t.Logf("%d attachments were read", shown)
	if shown == 0 {
		t.Error("no conversation has an attachment")
	}
}

// looking is a house whose log keeps images aside, after a turn about one.
func looking(t *testing.T, answers ...[]any) (*house, *watched) {
	h, objects := newHouse(t, answers...), &watched{ObjectStore: storetest.NewObjects()}
	h.log = offloaded(objects)
	h.conversation, h.runner.Log = imported(t, h.log, nil), h.log
	last, err := h.run(t.Context(), turn.Input{Message: content(t, "["+texts+","+image+"]")})
	if err != nil || last.Kind != turn.Finished {
		t.Fatalf("%+v (%v)", last, err)
	}
	return h, objects
}

// replayed makes the request of an entry again.
func (h *house) replayed(seq int64) (body string, same bool) {
	h.t.Helper()
	conversation, err := h.log.Conversation(h.t.Context(), h.conversation.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	request, same, err := turn.Replay(h.t.Context(), h.log, conversation, h.entries()[seq-1].Round, turn.ReadWindowView)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(request.Body), same
}

// TestALostAttachmentNeverBreaksAConversation takes the object away and puts another in its place.
func TestALostAttachmentNeverBreaksAConversation(t *testing.T) {
	h, objects := looking(t, textAnswer("A picture."), textAnswer("I cannot see it."), textAnswer("Still not."), textAnswer("Now I can."))
	user := h.entries()[0]
	attachment := user.Attachments[0]
	name := continuo.ObjectName(h.conversation.ID, attachment.ID)
	put := func(data string) {
		if err := objects.PutObject(t.Context(), name, strings.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	if body, same := h.replayed(2); !same || body != h.model.bodies[0] || !strings.Contains(body, "iVBOR") {
		t.Errorf("the request was %s and is made again as %s", h.model.bodies[0], body)
	}
	if err := objects.DeleteObject(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	size := fmt.Sprintf(" (image/png, %d bytes)", len(image))
	gone, unreadable := size+` is missing]"`, size+` cannot be read]"`
	text := `{"type":"text","text":"[image_url: left out, because the attachment ` + attachment.ID
	if last := h.send("And now?"); last.Kind != turn.Finished || !strings.Contains(h.model.bodies[1], text+gone) {
		t.Errorf("%+v after %s", last, h.model.bodies[1])
	}
	put(strings.Repeat("x", len(image)))
	if last := h.send("And now?"); last.Kind != turn.Finished || !strings.Contains(h.model.bodies[2], text+unreadable) {
		t.Errorf("%+v after %s", last, h.model.bodies[2])
	}
	if body, same := h.replayed(2); same || !strings.Contains(body, text+unreadable) {
		t.Errorf("a request that cannot be made again is said to be %s", body)
	}
	put(image)
	if last := h.send("And now?"); last.Kind != turn.Finished || h.model.bodies[3][:len(h.model.bodies[0])/2] != h.model.bodies[0][:len(h.model.bodies[0])/2] {
		t.Errorf("%+v after %s", last, h.model.bodies[3])
	}
	for seq, problem := range map[int64]continuo.PartProblem{2: "", 4: continuo.PartGone, 6: continuo.PartUnreadable, 8: ""} {
		body, same := h.replayed(seq)
		if !same || body != h.model.bodies[seq/2-1] {
			t.Errorf("the request of entry %d is made again as %s", seq, body)
		}
		missing := h.entries()[seq-1].Round.Missing
		want := []continuo.MissingPart{{Seq: 1, Part: 1, Object: attachment.ID, Problem: problem}}
		if problem == "" {
			want = nil
		}
		for i := range missing {
			missing[i].Err = nil
		}
		if !slices.Equal(missing, want) {
			t.Errorf("entry %d went without %+v, want %+v", seq, missing, want)
		}
	}
}

// TestOnlyWhatIsShownIsRead bounds the view, and looks at plans.
func TestOnlyWhatIsShownIsRead(t *testing.T) {
	objects := &watched{ObjectStore: storetest.NewObjects()}
	log := offloaded(objects)
	var entries []continuo.Entry
	for range 20 {
		entries = append(entries, continuo.Entry{Role: continuo.User, Content: content(t, "["+image+"]")})
	}
	conversation := imported(t, log, entries)
	view := unlimited(t, window.Codex)
	view.Limits.Messages = 5
	plan, err := turn.Plan(t.Context(), log, conversation, conversation.LastSeq, view, continuo.Envelope{}, readers[0])
	if err != nil || len(objects.read) != 0 {
		t.Fatalf("a plan reads %v (%v)", objects.read, err)
	}
	shown := 0
	for _, message := range plan.Messages {
		if message.Entry != nil {
			shown++
		}
	}
	built(t, log, conversation, view, readers[0])
	if len(objects.read) != shown || shown > 5 || shown == 0 {
		t.Errorf("%d objects are read for %d messages", len(objects.read), shown)
	}
	objects.read = nil
	built(t, log, conversation, view, readers[3])
	if len(objects.read) != 0 {
		t.Errorf("a transcript, which names images, reads %v", objects.read)
	}
}

// TestObjectsAreReadAFewAtATime wants several reads to run side by side, and not all.
func TestObjectsAreReadAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := &watched{ObjectStore: storetest.NewObjects()}
		log := offloaded(objects)
		conversation := imported(t, log, []continuo.Entry{{Role: continuo.User, Content: content(t, "["+strings.Repeat(image+",", 9)+image+"]")}})
		open := make(chan struct{})
		objects.before = func() { <-open }
		view, done := unlimited(t, window.Codex), make(chan *turn.Request)
		go func() {
			request, err := turn.Build(t.Context(), log, conversation, 1, view, continuo.Envelope{}, readers[0])
			if err != nil {
				t.Error(err)
			}
			done <- request
		}()
		synctest.Wait()
		if n := len(objects.read); n != 4 {
			t.Errorf("%d of 10 objects are read at once", n)
		}
		close(open)
		if request := <-done; request != nil && strings.Count(string(request.Body), "iVBOR") != 10 {
			t.Errorf("the request is %s", request.Body)
		}
	})
}

func TestACancelledRequestIsNotBuiltWithoutItsAttachments(t *testing.T) {
	objects := &watched{ObjectStore: storetest.NewObjects()}
	log := offloaded(objects)
	conversation := imported(t, log, []continuo.Entry{{Role: continuo.User, Content: content(t, "["+image+"]")}})
	ctx, cancel := context.WithCancel(t.Context())
	objects.before = cancel
	_, err := turn.Build(ctx, log, conversation, 1, unlimited(t, window.Codex), continuo.Envelope{}, readers[0])
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it is built: %v", err)
	}
}

// TestAPartOutsideThePlanIsNotAttached attaches to messages that were cut in other ways than today's views cut.
func TestAPartOutsideThePlanIsNotAttached(t *testing.T) {
	objects := &watched{ObjectStore: storetest.NewObjects()}
	log := offloaded(objects)
	conversation := imported(t, log, []continuo.Entry{{Role: continuo.User, Content: content(t, "["+image+","+texts+"]")}})
	for entry, err := range log.Read(t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		damaged := entry
		damaged.Attachments = []continuo.Attachment{{Part: -1}, {Part: 2}}
		plan := &window.Plan{Messages: []window.Message{
			{Content: content(t, "["+texts+"]"), Entry: &entry},
			{Content: continuo.Text("see"), Entry: &entry},
			{Content: continuo.Parts(), Entry: &entry},
			{Content: damaged.Content, Entry: &damaged},
			{Content: content(t, "["+image+","+texts+","+texts+"]"), Entry: &damaged},
			{Content: continuo.Text("a marker")},
		}}
		want := slices.Clone(plan.Messages)
		if err := turn.Attach(t.Context(), log, plan); err != nil || len(objects.read) > 0 || len(plan.Missing) > 0 || !reflect.DeepEqual(plan.Messages, want) {
			t.Errorf("%v is read for %+v (%v)", objects.read, plan.Messages, err)
		}
	}
}
