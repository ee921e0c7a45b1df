package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"pgregory.net/rapid"
)

// named makes an entry name an output.
func named(e continuo.Entry, id string) continuo.Entry {
	e.Output = &continuo.Output{ID: id, Bytes: 6, Chars: 6, Lines: 1, SHA256: "s", PieceBytes: 3, Head: 1}
	return e
}

// putOutput writes an output of two pieces, which tell whose they are.
func putOutput(t *testing.T, store continuo.Store, conversationID, id string) {
	t.Helper()
	for piece := range 2 {
		noError(t, store.PutOutput(t.Context(), conversationID, id, piece, fmt.Appendf(nil, "%s %s %d", conversationID, id, piece)))
	}
}

// expectOutput checks that both pieces are there, or none.
func expectOutput(t *testing.T, store continuo.Store, conversationID, id string, there bool) {
	t.Helper()
	for piece := range 2 {
		got, err := store.OutputPiece(t.Context(), conversationID, id, piece)
		want := fmt.Sprintf("%s %s %d", conversationID, id, piece)
		switch {
		case there && (err != nil || string(got) != want):
			t.Errorf("piece %d of %s: %q (%v), want %q", piece, id, got, err, want)
		case !there && !errors.Is(err, continuo.ErrNotFound):
			t.Errorf("piece %d of %s is still there: %q (%v)", piece, id, got, err)
		}
	}
}

func testOutputs(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 1)
	pieces := [][]byte{[]byte("\x00\xff binary"), {}, bytes.Repeat([]byte("0123456789abcdef"), 1<<16)}
	for range 2 {
		for number, data := range pieces {
			given := bytes.Clone(data)
			noError(t, store.PutOutput(ctx, "a", "out", number, given))
			clear(given) // it is the caller's again
		}
	}
	noError(t, store.PutOutput(ctx, "a", "out", 0, []byte("other bytes change nothing")))
	noError(t, store.PutOutput(ctx, "not yet", "out", 0, []byte("of a conversation that is about to be made")))
	for _, s := range []continuo.Store{store, open(t, opener)} {
		for number, want := range pieces {
			got, err := s.OutputPiece(ctx, "a", "out", number)
			noError(t, err)
			if !bytes.Equal(got, want) {
				t.Errorf("piece %d: got %d bytes, want %d", number, len(got), len(want))
			}
		}
		got, err := s.OutputPiece(ctx, "not yet", "out", 0)
		if err != nil || !strings.HasPrefix(string(got), "of a conversation") {
			t.Errorf("%q (%v)", got, err)
		}
	}
	for what, err := range map[string]error{
		"another piece":        second(store.OutputPiece(ctx, "a", "out", 3)),
		"another output":       second(store.OutputPiece(ctx, "a", "other", 0)),
		"another conversation": second(store.OutputPiece(ctx, "b", "out", 0)),
	} {
		if !errors.Is(err, continuo.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	noError(t, store.DeleteOutput(ctx, "a", "nothing"))
}

// testLooseOutputs is about pieces whose entry never came.
func testLooseOutputs(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 2)
	for _, id := range []string{"loose", "kept", "left"} {
		putOutput(t, store, "a", id)
	}
	putOutput(t, store, "b", "loose")
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "a", After: 2, Entries: []continuo.Entry{named(entry("a", 3), "kept")}}))
	noError(t, store.DeleteOutput(ctx, "a", "loose"))
	noError(t, store.DeleteOutput(ctx, "a", "kept")) // changes nothing: an entry names it
	expectOutput(t, store, "a", "loose", false)
	expectOutput(t, store, "a", "kept", true)
	expectOutput(t, store, "a", "left", true)
	expectOutput(t, store, "b", "loose", true)
	same(t, "the entry", readAll(t, store, "a")[2], named(entry("a", 3), "kept"))
	noError(t, store.Delete(ctx, "a"))
	expectOutput(t, store, "a", "kept", false)
	expectOutput(t, store, "a", "left", false)
	expectOutput(t, store, "b", "loose", true)
}

// testOutputsOfForks deletes a parent whose fork begins with one of its two outputs.
func testOutputsOfForks(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	all := entries("a", 1, 6)
	all[2], all[5] = named(all[2], "early"), named(all[5], "late")
	for _, id := range []string{"early", "late", "loose"} {
		putOutput(t, store, "a", id)
	}
	parent := conversation("a")
	parent.LastSeq = 6
	noError(t, store.Create(ctx, parent, all))
	noError(t, store.Create(ctx, forkOf("b", continuo.Segment{ConversationID: "a", Through: 4}), nil))
	noError(t, store.Delete(ctx, "a"))
	expectOutput(t, store, "a", "early", true)
	expectOutput(t, store, "a", "late", false)
	expectOutput(t, store, "a", "loose", false)
	noError(t, store.Create(ctx, forkOf("c", continuo.Segment{ConversationID: "a", Through: 2}), nil))
	noError(t, store.Delete(ctx, "b"))
	expectOutput(t, store, "a", "early", false)
	noError(t, store.Delete(ctx, "c"))
}

// output writes, reads and removes pieces, as appends do that succeed, fail and are killed.
func (m *model) output(rt *rapid.T) {
	c := m.pick(rt)
	id, piece := outputID(rt), rapid.IntRange(0, 1).Draw(rt, "piece")
	switch rapid.IntRange(0, 3).Draw(rt, "what") {
	case 0:
		_, _ = both(rt, m, "delete output", func(s continuo.Store) (any, error) {
			return nil, s.DeleteOutput(context.Background(), c.ID, id)
		})
	case 1:
		data := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(rt, "data")
		_, _ = both(rt, m, "put output", func(s continuo.Store) (any, error) {
			return nil, s.PutOutput(context.Background(), c.ID, id, piece, data)
		})
	}
	_, _ = both(rt, m, "output", func(s continuo.Store) (string, error) {
		data, err := s.OutputPiece(context.Background(), c.ID, id, piece)
		return string(data), err
	})
}

func outputID(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"o1", "o2"}).Draw(rt, "output")
}
