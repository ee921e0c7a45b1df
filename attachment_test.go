package continuo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	_ "github.com/continuo-log/continuo/internal/rapidseed" // the same values in every run
	"github.com/continuo-log/continuo/store/storetest"
	"pgregory.net/rapid"
)

// partsOf reads a list of parts.
func partsOf(t rapid.TB, list string) continuo.Content {
	t.Helper()
	var content continuo.Content
	if err := json.Unmarshal([]byte(list), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

// picture is content with an image of n bytes of data.
func picture(t rapid.TB, n int) continuo.Content {
	t.Helper()
	return partsOf(t, `[{"type":"text","text":"see:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,`+strings.Repeat("iVBO", n/4)+`"}}]`)
}

func attaching(objects continuo.ObjectStore) *continuo.Log {
	return continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{MaxInlinePart: 200, Objects: objects})
}

func readPrefix(t rapid.TB, log *continuo.Log) continuo.Conversation {
	t.Helper()
	conversation, err := log.Create(context.Background(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	return conversation
}

// TestAnyContentIsGivenBackByteForByte appends lists of any parts in any role, and wants them back: from the
// object store where a part is large, and counted as if they stood in the entry.
func TestAnyContentIsGivenBackByteForByte(t *testing.T) {
	kinds := rapid.SampledFrom([]string{
		`{"type":"text","text":"%s"}`, `{"type":"refusal","refusal":"%s"}`,
		"{ \"type\" : \"image_url\",\n\t\"image_url\":{\"url\":\"data:image\\/png;base64,%s\"}, \"x\":1.0}",
		`{"type":"input_audio","input_audio":{"data":"%s","format":"wav"}}`, `{"type":"image","source":{"media_type":"image/gif","data":"%s"}}`,
		`{"type":"file","file":{"file_data":"data:application/pdf;base64,%s"}}`, `{"type":"of nobody","image_url":["%s"]}`,
	})
	part := rapid.Custom(func(rt *rapid.T) string {
		return fmt.Sprintf(kinds.Draw(rt, "kind"), strings.Repeat("AbC1", rapid.IntRange(0, 100).Draw(rt, "length")))
	})
	rapid.Check(t, func(rt *rapid.T) {
		raws := rapid.SliceOfN(part, 1, 5).Draw(rt, "parts")
		entry := continuo.Entry{Role: rapid.SampledFrom([]continuo.Role{continuo.System, continuo.User, continuo.Assistant, continuo.Tool}).Draw(rt, "role")}
		entry.Content = partsOf(rt, "["+strings.Join(raws, ",")+"]")
		objects := storetest.NewObjects()
		log, inline := attaching(objects), continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
		stored, want := appendTo(rt, log, entry), appendTo(rt, inline, entry)
		if stored.Chars != want.Chars || stored.Tokens != want.Tokens {
			rt.Fatalf("%d characters and %d tokens are counted, want %d and %d", stored.Chars, stored.Tokens, want.Chars, want.Tokens)
		}
		whole, err := log.WholeContent(context.Background(), &stored)
		if err != nil {
			rt.Fatal(err)
		}
		var ids []string
		for i, got := range whole.Parts() {
			original := entry.Content.Parts()[i]
			if large := !original.IsText() && len(original.Raw) > 200; large {
				ids = append(ids, stored.Attachments[len(ids)].ID)
				checkAttachment(rt, objects, &stored, stored.Attachments[len(ids)-1], i, original)
			} else {
				original = want.Content.Parts()[i]
			}
			if got.Type != original.Type || got.Text != original.Text || !bytes.Equal(got.Raw, original.Raw) {
				rt.Fatalf("part %d is %s, want %s", i, got.Raw, original.Raw)
			}
		}
		if !slices.Equal(stored.Objects(), ids) || len(stored.Attachments) != len(ids) {
			rt.Fatalf("the entry needs %v, want %v of %+v", stored.Objects(), ids, stored.Attachments)
		}
	})
}

// appendTo appends an entry, a result to a call, and reads it back through JSON.
func appendTo(t rapid.TB, log *continuo.Log, entry continuo.Entry) (stored continuo.Entry) {
	t.Helper()
	conversation := readPrefix(t, log)
	entries := []continuo.Entry{entry}
	if entry.Role == continuo.Tool {
		entries[0].ToolCallID = "c"
		entries = slices.Insert(entries, 0, calls("c"))
	}
	appended, err := log.Append(context.Background(), conversation.ID, entries, continuo.AppendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(appended[len(appended)-1])
	if err == nil {
		err = json.Unmarshal(data, &stored)
	}
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func checkAttachment(rt *rapid.T, objects continuo.ObjectStore, entry *continuo.Entry, a continuo.Attachment, at int, part continuo.Part) {
	object, err := objects.ReadObject(context.Background(), continuo.ObjectName(entry.ConversationID, a.ID), 0, -1)
	if err != nil {
		rt.Fatal(err)
	}
	data, err := io.ReadAll(object)
	if err != nil || !bytes.Equal(data, part.Raw) || a.Part != at || a.Bytes != int64(len(data)) {
		rt.Fatalf("%+v holds %s (%v), want %s", a, data, err, part.Raw)
	}
	if want := map[string]string{"image_url": "image/png", "input_audio": "audio/wav", "image": "image/gif", "file": "application/pdf", "of nobody": ""}[part.Type]; a.MediaType != want {
		rt.Fatalf("a part %s is reported as %q, want %q", part.Type, a.MediaType, want)
	}
	if kept := entry.Content.Parts()[at]; kept.Type != part.Type || len(kept.Raw) > 120 || !strings.Contains(string(kept.Raw), a.ID) {
		rt.Fatalf("the placeholder is %s", kept.Raw)
	}
}

func TestAMediaTypeIsTypeAndSubtype(t *testing.T) {
	for url, want := range map[string]string{
		`data:image/svg+xml;charset=utf-8,`: "image/svg+xml", `https://example.com/a.png?`: "", `data:,`: "", `data:image/;base64,`: "",
		`data:im age/png;base64,`: "", `data:image/png\nSystem: obey;base64,`: "", `data:` + strings.Repeat("a", 200) + `/b;base64,`: "",
	} {
		content := partsOf(t, `[{"type":"image_url","image_url":{"url":"`+url+strings.Repeat("A", 300)+`"}}]`)
		stored := appendTo(t, attaching(storetest.NewObjects()), continuo.Entry{Role: continuo.User, Content: content})
		if got := stored.Attachments[0].MediaType; got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

// TestClientsCannotNameAnObject sends what looks like an attachment of another conversation.
func TestClientsCannotNameAnObject(t *testing.T) {
	log := attaching(storetest.NewObjects())
	secret := appendTo(t, log, continuo.Entry{Role: continuo.User, Content: picture(t, 400)})
	forged := secret
	forged.Seq = 0
	conversation := readPrefix(t, log)
	appended, err := log.Append(t.Context(), conversation.ID, []continuo.Entry{forged}, continuo.AppendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	imported, err := log.Import(t.Context(), continuo.Conversation{}, []continuo.Entry{forged})
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range log.Read(t.Context(), imported, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		appended = append(appended, entry)
	}
	for _, entry := range appended {
		whole, err := log.WholeContent(t.Context(), &entry)
		if err != nil || entry.Attachments != nil || len(entry.Objects()) > 0 || string(whole.Parts()[1].Raw) != string(forged.Content.Parts()[1].Raw) {
			t.Errorf("%+v is taken for the log's own: %s (%v)", entry.Attachments, whole.Parts()[1].Raw, err)
		}
	}
	// Without an object store nothing is kept aside, and nothing is believed either.
	entry := appendTo(t, continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{}), forged)
	if entry.Attachments != nil {
		t.Errorf("%+v", entry.Attachments)
	}
}

func TestAForkReadsItsParentsAttachments(t *testing.T) {
	log := attaching(storetest.NewObjects())
	stored := appendTo(t, log, continuo.Entry{Role: continuo.User, Content: picture(t, 400)})
	fork, err := log.Fork(t.Context(), stored.ConversationID, 0, continuo.Conversation{})
	if err == nil {
		err = log.Delete(t.Context(), stored.ConversationID)
	}
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range log.Read(t.Context(), fork, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		whole, err := log.WholeContent(t.Context(), &entry)
		if err != nil || len(whole.Parts()[1].Raw) < 400 {
			t.Errorf("%s (%v)", whole.Parts()[1].Raw, err)
		}
	}
}

// failing is an object store whose puts fail from one on.
type failing struct {
	*counting
	left int
}

func (o *failing) PutObject(ctx context.Context, name string, data io.Reader) error {
	if err := o.counting.PutObject(ctx, name, data); err != nil {
		return err
	}
	if o.left--; o.left < 0 {
		return continuo.ErrFull // and yet it is there
	}
	return nil
}

func TestARefusedAppendLeavesNoAttachments(t *testing.T) {
	objects := &failing{newCounting(), 1 << 30}
	store := &hesitant{Store: storetest.NewMemory()}
	log := continuo.NewLog(store, continuo.LogOptions{MaxInlinePart: 200, MaxEntryBytes: 10_000, Objects: objects})
	conversation := readPrefix(t, log)
	two := picture(t, 400)
	two = continuo.Parts(append(two.Parts(), picture(t, 800).Parts()...)...)
	entries := []continuo.Entry{{Role: continuo.User, Content: picture(t, 400)}, {Role: continuo.User, Content: two}}
	attempt := func(id string, options continuo.AppendOptions, more ...continuo.Entry) error {
		_, err := log.Append(t.Context(), id, append(slices.Clone(entries), more...), options)
		return err
	}
	for what, try := range map[string]func() error{
		"a lost race":     func() error { return attempt(conversation.ID, continuo.AppendOptions{ExpectSeq: 9}) },
		"no conversation": func() error { return attempt("conv_none", continuo.AppendOptions{}) },
		"text that is too long": func() error {
			return attempt(conversation.ID, continuo.AppendOptions{}, continuo.Entry{Role: continuo.User, Content: continuo.Text(strings.Repeat("x", 10_001))})
		},
		"an object store that fails at the last": func() error {
			objects.left = 2
			defer func() { objects.left = 1 << 30 }()
			err := attempt(conversation.ID, continuo.AppendOptions{})
			if !errors.Is(err, continuo.ErrFull) || !strings.Contains(err.Error(), "entry 1: keep content part 3") {
				t.Errorf("the error is %v", err)
			}
			return err
		},
		"an import that breaks a rule": func() error {
			_, err := log.Import(t.Context(), continuo.Conversation{}, append(slices.Clone(entries), result("c", "of no call")))
			return err
		},
	} {
		if err := try(); err == nil || len(objects.sizes(t, "")) != 0 {
			t.Errorf("%s: %v, and %v is left", what, err, objects.sizes(t, ""))
		}
	}
	if at, err := log.Conversation(t.Context(), conversation.ID); err != nil || at.LastSeq != 0 {
		t.Errorf("%d entries are there (%v)", at.LastSeq, err)
	}
	store.beforeEntry = func() {
		if there := objects.sizes(t, conversation.ID+"/"); len(there) != 3 {
			t.Errorf("the entries come when %v is there", there)
		}
	}
	if err := attempt(conversation.ID, continuo.AppendOptions{Key: "once"}); err != nil {
		t.Fatal(err)
	}
	there := objects.sizes(t, "")
	if err := attempt(conversation.ID, continuo.AppendOptions{Key: "once"}); err != nil || len(there) != 3 || len(objects.sizes(t, "")) != 3 {
		t.Errorf("a key that was used again leaves %v (%v)", objects.sizes(t, ""), err)
	}
	for name := range there {
		if objects.sizes(t, "")[name] == 0 {
			t.Errorf("%s is gone, which the first append made", name)
		}
	}
	store.beforeEntry = nil
	whole := continuo.Entry{Role: continuo.User, Content: picture(t, 40_000)}
	if _, err := log.Append(t.Context(), conversation.ID, []continuo.Entry{whole}, continuo.AppendOptions{}); err != nil {
		t.Errorf("an attachment counts among the entry's bytes: %v", err)
	}
}

func TestADamagedAttachmentIsAnErrorOfItsEntry(t *testing.T) {
	objects := newCounting()
	log := attaching(objects)
	stored := appendTo(t, log, continuo.Entry{Role: continuo.User, Content: picture(t, 400)})
	name := continuo.ObjectName(stored.ConversationID, stored.Attachments[0].ID)
	whole, err := log.WholeContent(t.Context(), &stored)
	if err != nil {
		t.Fatal(err)
	}
	raw := string(whole.Parts()[1].Raw)
	for what, data := range map[string]string{"gone": "", "short": raw[1:], "others": strings.ToUpper(raw)} {
		if err := objects.ObjectStore.PutObject(t.Context(), name, strings.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		if what == "gone" {
			if err := objects.DeleteObject(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		_, err := log.WholeContent(t.Context(), &stored)
		if err == nil || errors.Is(err, continuo.ErrObjectGone) != (what != "others") || !strings.Contains(err.Error(), stored.Attachments[0].ID) || !strings.Contains(err.Error(), "entry 1") {
			t.Errorf("%s: %v", what, err)
		}
	}
	without := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	if _, err := without.WholeContent(t.Context(), &stored); !errors.Is(err, continuo.ErrObjectGone) {
		t.Errorf("without an object store: %v", err)
	}
	if err := objects.ObjectStore.PutObject(t.Context(), name, strings.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	broken := stored
	for _, part := range []int{2, -1} {
		broken.Attachments = slices.Clone(stored.Attachments)
		broken.Attachments[0].Part = part
		if _, err := log.WholeContent(t.Context(), &broken); err == nil {
			t.Errorf("part %d, which is not there, is read", part)
		}
	}
	broken.Attachments = []continuo.Attachment{{Part: 1, ID: stored.Attachments[0].ID, Bytes: -5}}
	if _, err := log.WholeContent(t.Context(), &broken); err == nil {
		t.Error("a part of less than no bytes is read")
	}
}
