package storetest

import (
	"context"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
	"pgregory.net/rapid"
)

func prefixHash(n byte) continuo.PrefixHash { return continuo.PrefixHash{0: 1, 15: n} }

// prefixes makes one prefix for each seq.
func prefixes(id string, session int64, seqs ...int64) []continuo.Prefix {
	var made []continuo.Prefix
	for _, seq := range seqs {
		made = append(made, continuo.Prefix{ConversationID: id, Seq: seq, Hash: prefixHash(byte(seq)), IDs: -seq, System: 1<<62 + 1, Session: session})
	}
	return made
}

func findPrefixes(t *testing.T, store maintenance.Store, query continuo.PrefixQuery) []continuo.Prefix {
	t.Helper()
	if query.ProjectID == "" {
		query.ProjectID = "p"
	}
	if query.Limit == 0 {
		query.Limit = 9
	}
	found, of, err := store.Prefixes(t.Context(), query)
	noError(t, err)
	seen := map[string]bool{}
	for _, p := range found {
		seen[p.ConversationID] = true
	}
	for _, c := range of {
		now, err := store.Conversation(t.Context(), c.ID)
		noError(t, err)
		same(t, "the conversation of a prefix", c, now)
	}
	same(t, "the number of conversations", len(of), len(seen))
	return append([]continuo.Prefix{}, found...)
}

func testPrefixes(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	for _, id := range []string{"a", "b", "c"} {
		create(t, store, id, 0)
	}
	other := conversation("d")
	other.ProjectID = "q"
	noError(t, store.Create(ctx, other, nil))
	a, b, d := prefixes("a", 0, 1, 2), prefixes("b", 7, 1, 2, 3), prefixes("d", 0, 1)
	more := continuo.Prefix{ConversationID: "b", Seq: 3, Hash: prefixHash(1), Session: 7}
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "a", Entries: entries("a", 1, 2), Prefixes: a}))
	turn := continuo.TurnBegin{Turn: continuo.Turn{ID: "t1", ConversationID: "b", Owner: "o"}, Lease: at(60).Sub(at(0))}
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "b", Entries: entries("b", 1, 1), Prefixes: b[:1], Begin: &turn}))
	update := updateOf(turn.Begun, 1)
	noError(t, store.Append(ctx, continuo.Batch{
		ConversationID: "b", After: 1, Entries: entries("b", 2, 3), Prefixes: append(b[1:], more), Turns: []continuo.TurnUpdate{update},
	}))
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "d", Entries: entries("d", 1, 1), Prefixes: d}))
	for _, s := range []maintenance.Store{store, open(t, opener)} {
		same(t, "the newest conversation first, and its greatest seq",
			findPrefixes(t, s, continuo.PrefixQuery{Hashes: []continuo.PrefixHash{prefixHash(1)}}), []continuo.Prefix{more, b[0], a[0]})
		same(t, "in the order of the hashes", findPrefixes(t, s, continuo.PrefixQuery{
			Hashes: []continuo.PrefixHash{prefixHash(3), prefixHash(9), prefixHash(2)}, Limit: 1,
		}), []continuo.Prefix{b[2], b[1]})
		same(t, "of a session", findPrefixes(t, s, continuo.PrefixQuery{Hashes: []continuo.PrefixHash{prefixHash(2)}, Session: 7}), b[1:2])
		same(t, "of another project", findPrefixes(t, s, continuo.PrefixQuery{ProjectID: "q", Hashes: []continuo.PrefixHash{prefixHash(1)}}), d)
		same(t, "of nothing", findPrefixes(t, s, continuo.PrefixQuery{}), []continuo.Prefix{})
	}
	_, _, err := store.Prefixes(ctx, continuo.PrefixQuery{ProjectID: "p", Hashes: []continuo.PrefixHash{prefixHash(1)}})
	expectError(t, "no limit", err, continuo.ErrInvalid)
	expectError(t, "of another conversation", store.Append(ctx, continuo.Batch{ConversationID: "a", After: 2, Entries: entries("a", 3, 3), Prefixes: b[:1]}), continuo.ErrInvalid)
	conflict := store.Append(ctx, continuo.Batch{ConversationID: "a", After: 1, Entries: entries("a", 2, 3), Prefixes: prefixes("a", 0, 3)})
	if conflict == nil {
		t.Error("a stale append went through")
	}
	same(t, "of a refused batch", findPrefixes(t, store, continuo.PrefixQuery{Hashes: []continuo.PrefixHash{prefixHash(3)}}), b[2:])
}

func testPrefixesRemoved(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	for _, id := range []string{"a", "b"} {
		create(t, store, id, 0)
		noError(t, store.Append(ctx, continuo.Batch{ConversationID: id, Entries: entries(id, 1, 4), Prefixes: prefixes(id, 0, 1, 2, 3, 4)}))
	}
	early, late := forkOf("f2", continuo.Segment{ConversationID: "a", Through: 2}), forkOf("f3", continuo.Segment{ConversationID: "a", Through: 3})
	noError(t, store.Create(ctx, early, nil))
	noError(t, store.Create(ctx, late, nil))
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "f2", After: 2, Entries: entries("f2", 3, 3), Prefixes: prefixes("f2", 0, 3)}))
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "f3", After: 3, Entries: entries("f3", 4, 4), Prefixes: prefixes("f3", 0, 4)}))
	find := func() (ids []string) {
		for n := byte(1); n <= 4; n++ {
			for _, p := range findPrefixes(t, store, continuo.PrefixQuery{Hashes: []continuo.PrefixHash{prefixHash(n)}}) {
				ids = append(ids, string('0'+rune(n))+p.ConversationID)
			}
		}
		return ids
	}
	same(t, "all", find(), []string{"1b", "1a", "2b", "2a", "3f2", "3b", "3a", "4f3", "4b", "4a"})
	all := readAll(t, store, "a")
	noError(t, store.Redact(ctx, "a", []continuo.Entry{redacted(all[2])}))
	same(t, "after a redaction", find(), []string{"1b", "1a", "2b", "2a", "3f2", "3b", "4b"})
	whole := records(t, store, "b", 100)
	noError(t, store.Archive(ctx, seenAs(t, store, "b", 4), at(77)))
	same(t, "while archived", find(), []string{"1a", "2a", "3f2"})
	noError(t, store.PutArchived(ctx, "b", at(77), whole[1:]))
	noError(t, store.Restore(ctx, "b"))
	same(t, "restored", find(), []string{"1b", "1a", "2b", "2a", "3f2", "3b", "4b"})
	noError(t, store.Delete(ctx, "a"))
	same(t, "deleted", find(), []string{"1b", "2b", "3f2", "3b", "4b"})
}

// drawPrefixes makes prefixes for entries of a batch.
func (m *model) drawPrefixes(rt *rapid.T, batch continuo.Batch) (made []continuo.Prefix) {
	for i := range batch.Entries {
		if rapid.Bool().Draw(rt, "prefix") {
			p := prefixes(batch.ConversationID, rapid.Int64Range(0, 2).Draw(rt, "session"), batch.Entries[i].Seq)[0]
			p.Hash = prefixHash(rapid.ByteRange(1, 4).Draw(rt, "hash"))
			made = append(made, p)
		}
	}
	return made
}

func (m *model) prefixes(rt *rapid.T) {
	query := continuo.PrefixQuery{ProjectID: m.project, Session: rapid.Int64Range(0, 2).Draw(rt, "session"), Limit: rapid.IntRange(1, 4).Draw(rt, "limit")}
	for range rapid.IntRange(0, 3).Draw(rt, "hashes") {
		query.Hashes = append(query.Hashes, prefixHash(rapid.ByteRange(1, 4).Draw(rt, "hash")))
	}
	_, _ = both(rt, m, "prefixes", func(s maintenance.Store) ([]continuo.Prefix, error) {
		found, _, err := s.Prefixes(context.Background(), query)
		return append([]continuo.Prefix{}, found...), err
	})
}
