package storetest

import (
	"errors"
	"fmt"
	"math"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/maintenance"
)

// vectorsOf lists a conversation's vectors of a model as text.
func vectorsOf(t *testing.T, store maintenance.Store, id, model string) string {
	t.Helper()
	found, err := store.Vectors(t.Context(), index.VectorQuery{ConversationID: id, Model: model, From: 1, To: math.MaxInt64, Limit: 100})
	noError(t, err)
	text := ""
	for _, v := range found {
		text += fmt.Sprintf("%d%d ", v.Seq, v.Values)
	}
	return text
}

func expectVectors(t *testing.T, store maintenance.Store, id, model, want string) {
	t.Helper()
	if got := vectorsOf(t, store, id, model); got != want {
		t.Errorf("the vectors of %s by %s are %q, want %q", id, model, got, want)
	}
}

// unembedded lists what has no vectors of a model as text.
func unembedded(t *testing.T, store maintenance.Store, model, after string) string {
	t.Helper()
	found, err := store.Unembedded(t.Context(), index.UnembeddedQuery{Model: model, After: after, Limit: 100})
	noError(t, err)
	text := ""
	for _, u := range found {
		text += fmt.Sprintf("%s %d-%d ", u.Conversation.ID, u.Embedded, u.Indexed)
	}
	return text
}

func expectText(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func embed(id, model string, after, through int64, vectors ...index.Vector) index.VectorBatch {
	return index.VectorBatch{ConversationID: id, Model: model, After: after, Through: through, Vectors: vectors}
}

// testVectors: vectors follow the index, and whatever takes entries out of it takes their vectors.
func testVectors(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	for _, id := range []string{"a", "b", "c"} {
		create(t, store, id, 4)
	}
	expectText(t, "nothing is indexed", unembedded(t, store, "m", ""), "")
	for _, id := range []string{"a", "b", "c"} {
		indexEntries(t, store, id, 0, document(1, 10, "apple"), document(3, 30, "pear"))
	}
	expectText(t, "indexed", unembedded(t, store, "m", ""), "a 0-3 b 0-3 c 0-3 ")
	one, three := index.Vector{Seq: 1, Values: []byte{1, 255}}, index.Vector{Seq: 3, Values: []byte{3, 4}}
	for _, id := range []string{"a", "b", "c"} {
		noError(t, store.Embed(ctx, embed(id, "m", 0, 2, one)))
		noError(t, store.Embed(ctx, embed(id, "m", 2, 3, three)))
	}
	expectText(t, "embedded", unembedded(t, store, "m", ""), "")
	expectText(t, "of another model", unembedded(t, store, "n", "a"), "b 0-3 c 0-3 ")
	const both = "3[3 4] 1[1 255] "
	expectVectors(t, store, "a", "m", both)
	expectVectors(t, store, "a", "n", "")

	for name, wrong := range map[string]index.VectorBatch{
		"out of order": embed("a", "m", 3, 4, three), "no model": embed("a", "", 3, 4), "backward": embed("a", "m", 3, 2), "no values": embed("a", "m", 3, 4, index.Vector{Seq: 4}),
	} {
		expectError(t, name, store.Embed(ctx, wrong), continuo.ErrInvalid)
	}
	expectError(t, "nobody", store.Embed(ctx, embed("nobody", "m", 0, 1)), continuo.ErrNotFound)
	for name, early := range map[string]index.VectorBatch{"not at the end": embed("a", "m", 2, 3, three), "not indexed": embed("a", "m", 3, 4)} {
		if err := store.Embed(ctx, early); !errors.As(err, new(*continuo.ConflictError)) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}

	noError(t, store.Embed(ctx, embed("a", "n", 0, 3, three)))
	expectVectors(t, store, "a", "m", "")
	expectVectors(t, store, "a", "n", "3[3 4] ")

	page, err := store.Entries(ctx, "b", continuo.EntryQuery{From: 1, To: 4, Limit: 10})
	noError(t, err)
	noError(t, store.Redact(ctx, "b", []continuo.Entry{redacted(page[0])}))
	expectVectors(t, store, "b", "m", "3[3 4] ")
	noError(t, store.ForgetIndex(ctx, "b"))
	expectVectors(t, store, "b", "m", "")
	indexEntries(t, store, "b", 0, document(1, 10, "apple"), document(3, 30, "pear"))
	noError(t, store.Embed(ctx, embed("b", "m", 0, 3, one, three)))
	expectVectors(t, store, "b", "m", "3[3 4] ") // a redaction while the vector was made

	noError(t, store.Delete(ctx, "c"))
	expectVectors(t, store, "c", "m", "")
	_, err = store.Vectors(ctx, index.VectorQuery{ConversationID: "a", Model: "n"})
	expectError(t, "no limit", err, continuo.ErrInvalid)
}
