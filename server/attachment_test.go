package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
)

// TestALargeImageComesThroughByteForByte: an image of a message is in no page of entries, and
// is complete for the model, for a client that requests it, and for a fork.
func TestALargeImageComesThroughByteForByte(t *testing.T) {
	const size = 10 << 20
	letters := bytes.Repeat([]byte("A"), size)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range letters {
		letters[i] += byte(random.IntN(26))
	}
	// The spaces and the escape are bytes of the object; a request has no spaces between its members.
	part := `{ "type": "image_url", "image_url": {"detail": "\u0068igh", "url": "data:image/png;base64,` + string(letters) + `"} }`
	var shown []continuo.Part
	watching := &fakeModel{"gpt-4o", func(_ context.Context, messages []shownMessage, yield func(model.Delta) bool) error {
		shown = messages[len(messages)-1].Content.Parts()
		yield(model.Delta{Text: "A fine image."})
		return nil
	}}
	objects := storetest.NewObjects()
	handler := New(engineWith(t, storetest.NewMemory(), continuo.LogOptions{Objects: objects}, withModel(watching)), Options{})

	var answer chatReply
	ask(t, handler, "POST", "/chat", `{"session_id": "s", "message": [{"type": "text", "text": "What is this?"}, `+part+`]}`).into(200, &answer)
	var packed bytes.Buffer
	if err := json.Compact(&packed, []byte(part)); err != nil {
		t.Fatal(err)
	}
	if len(shown) != 2 || !bytes.Equal(shown[1].Raw, packed.Bytes()) {
		t.Errorf("the model was shown %d parts, and not the image with its %d bytes", len(shown), packed.Len())
	}
	if kept := objectSizes(t, objects); len(kept) != 1 || kept[0] != int64(len(part)) {
		t.Errorf("objects of %d bytes are kept, not one of %d", kept, len(part))
	}
	page := ask(t, handler, "GET", "/api/conversations/s/entries?limit=1000", "")
	entries := entriesOf(t, handler, "s")
	if len(page.body) > 4096 || len(entries) != 2 || len(entries[0].Attachments) != 1 {
		t.Fatalf("a page of %d entries has %d bytes: %.2000s", len(entries), len(page.body), page.body)
	}
	if a := entries[0].Attachments[0]; a.Part != 1 || a.Bytes != int64(len(part)) || a.MediaType != "image/png" {
		t.Errorf("the entry has %+v", a)
	}
	var fork continuo.Conversation
	ask(t, handler, "POST", "/api/conversations/s/fork", "{}").into(201, &fork)
	for _, id := range []string{"s", answer.ConversationID, fork.ID} {
		got := ask(t, handler, "GET", "/api/conversations/"+id+"/entries/1/parts/1", "")
		if got.status != 200 || string(got.body) != `{"data":`+part+"}\n" {
			t.Errorf("part 1 in %s: %d, %d bytes, %.100s", id, got.status, len(got.body), got.body)
		}
	}
}

func objectSizes(t *testing.T, objects continuo.ObjectStore) []int64 {
	t.Helper()
	var sizes []int64
	for info, err := range objects.Objects(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, info.Size)
	}
	return sizes
}

// TestALostAttachmentIsAServerError: the entry and its other parts can be read, and the turn continues without the lost
// part, which has an error of its own until it is restored.
func TestALostAttachmentIsAServerError(t *testing.T) {
	objects := storetest.NewObjects()
	handler := New(engineWith(t, storetest.NewMemory(), continuo.LogOptions{Objects: objects, MaxInlinePart: 1}, withModel(&fakeModel{"gpt-4o", obedient})), Options{})
	ask(t, handler, "POST", "/api/conversations", `{"key": "s"}`)
	ask(t, handler, "POST", "/api/conversations/s/entries", `{"role": "user", "content": [{"type": "text", "text": "Look"}, `+attachedPart+`]}`)
	ask(t, handler, "POST", "/api/conversations/s/entries", `{"role": "assistant", "content": "I see."}`)
	entry := entriesOf(t, handler, "s")[0]
	name := continuo.ObjectName(entry.ConversationID, entry.Attachments[0].ID)
	if err := objects.DeleteObject(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	part := func(n int) *reply {
		return ask(t, handler, "GET", fmt.Sprintf("/api/conversations/s/entries/1/parts/%d", n), "")
	}
	lost := part(1).failed(500, "object_gone", "")
	if strings.Contains(lost.Error.Message, name) || lost.Error.Type != string(api.ServerError) {
		t.Errorf("the error of a lost attachment is %+v", lost.Error)
	}
	if got := part(0); got.status != 200 || string(got.body) != `{"data":{"type":"text","text":"Look"}}`+"\n" {
		t.Errorf("the part beside it: %d %s", got.status, got.body)
	}

	want := []continuo.MissingPart{{Seq: 1, Part: 1, Object: entry.Attachments[0].ID, Problem: continuo.PartGone}}
	var shown struct {
		Plan, Round struct{ Missing []continuo.MissingPart }
	}
	ask(t, handler, "GET", "/api/conversations/s/context", "").into(200, &shown)
	if !equalParts(shown.Plan.Missing, want) {
		t.Errorf("the plan misses %+v, want %+v", shown.Plan.Missing, want)
	}
	if answer := sendMessage(t, handler, "s", "And now?"); !strings.Contains(answer.Response, "And now?") {
		t.Errorf("the turn after the loss: %+v", answer)
	}
	ask(t, handler, "GET", "/api/conversations/s/entries/4/request", "").into(200, &shown)
	if !equalParts(shown.Round.Missing, want) || !equalParts(shown.Plan.Missing, want) {
		t.Errorf("the request misses %+v, want %+v", shown, want)
	}

	if err := objects.PutObject(t.Context(), name, strings.NewReader(strings.Repeat("x", len(attachedPart)))); err != nil {
		t.Fatal(err)
	}
	part(1).failed(500, "internal", "") // another's bytes are never shown
	if err := objects.PutObject(t.Context(), name, strings.NewReader(attachedPart)); err != nil {
		t.Fatal(err)
	}
	if got := part(1); got.status != 200 || !bytes.Contains(got.body, []byte(attachedPart)) {
		t.Errorf("an attachment that was put back: %d %s", got.status, got.body)
	}
}

func equalParts(have, want []continuo.MissingPart) bool {
	return bytes.Equal(rawjson.MustMarshal(have), rawjson.MustMarshal(want))
}

func TestPartsThatThereAreNot(t *testing.T) {
	handler := newServer(t)
	ask(t, handler, "POST", "/api/conversations", `{"key": "s"}`)
	ask(t, handler, "POST", "/api/conversations/s/entries", `{"entries": [{"role": "user", "content": [{"type": "text", "text": "a"}, `+attachedPart+`]},
		{"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]},
		{"role": "tool", "tool_call_id": "c", "content": "b"}]}`)
	for _, test := range []struct {
		path        string
		status      int
		code, param string
		words       string
	}{
		{"1/parts/2", 404, "not_found", "", "a list of 2 parts, counted from 0"},
		{"3/parts/0", 404, "not_found", "", "a text"},
		{"2/parts/0", 404, "not_found", "", "null"},
		{"4/parts/0", 404, "not_found", "", "entry 4"},
		{"1/parts/-1", 400, "invalid_request", "n", "from 0"},
		{"1/parts/first", 400, "invalid_request", "n", `not "first"`},
		{"1/parts/9223372036854775807", 400, "invalid_request", "n", "from 0"},
		{"0/parts/0", 400, "invalid_request", "seq", "from 1"},
		{"x/parts/0", 400, "invalid_request", "seq", `not "x"`},
		{"1/parts/0?whole=1", 400, "invalid_request", "whole", "whole"},
	} {
		got := ask(t, handler, "GET", "/api/conversations/s/entries/"+test.path, "").failed(test.status, test.code, test.param)
		if !strings.Contains(got.Error.Message, test.words) {
			t.Errorf("%s: %q does not say %q", test.path, got.Error.Message, test.words)
		}
	}
	var part struct {
		Data struct{ Type string }
	}
	if ask(t, handler, http.MethodGet, "/api/conversations/s/entries/1/parts/1", "").into(200, &part); part.Data.Type != "image_url" {
		t.Errorf("an inline part: %+v", part)
	}
}
