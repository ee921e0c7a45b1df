package storetest

import (
	"errors"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// redacted returns the replacement of an entry that a person redacted.
func redacted(e continuo.Entry) continuo.Entry {
	e.Content, e.Output = continuo.Text("removed"), nil
	e.Redacted = &continuo.Redaction{At: at(99), Reason: "a secret"}
	return e
}

// ofTurn makes an entry belong to a turn.
func ofTurn(e continuo.Entry, turnID string) continuo.Entry {
	e.TurnID = turnID
	return e
}

func testRedact(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	all := entries("a", 1, 6)
	c := conversation("a")
	c.LastSeq = 6
	noError(t, store.Create(ctx, c, all))
	noError(t, store.Create(ctx, forkOf("b", continuo.Segment{ConversationID: "a", Through: 4}), nil))
	for _, seq := range []int{3, 4} {
		all[seq-1] = redacted(all[seq-1])
	}
	hidden := redacted(all[0])
	hidden.Hidden, hidden.OutputRef = true, outputRef(50)
	all[0] = hidden
	noError(t, store.Redact(ctx, "a", []continuo.Entry{all[0], all[2], all[3]}))
	c.UpdatedAt, c.Revision = all[0].Redacted.At, 1
	for _, s := range []maintenance.Store{store, open(t, opener)} {
		sameEntries(t, "entries", readAll(t, s, "a"), all)
		got, err := s.Conversation(ctx, "a")
		noError(t, err)
		same(t, "the conversation", got, c)
	}
	// Queries match the new entry.
	sameEntries(t, "users", read(t, store, "a", continuo.EntryQuery{From: 1, To: 6, Limit: 9, UsersOnly: true}), all[3:4])
	sameEntries(t, "by ref", read(t, store, "a", continuo.EntryQuery{From: 1, To: 6, Limit: 9, OutputRef: outputRef(50)}), all[:1])
	appendEntries(t, store, "a", 7, 7)
	// A deleted conversation's entries can be redacted while a fork begins with them.
	noError(t, store.Delete(ctx, "a"))
	all[1] = redacted(all[1])
	noError(t, store.Redact(ctx, "a", all[1:2]))
	sameEntries(t, "through the fork", read(t, store, "a", continuo.EntryQuery{From: 1, To: 4, Limit: 9}), all[:4])
	expectError(t, "an entry that went with it", store.Redact(ctx, "a", all[4:5]), continuo.ErrNotFound)
}

// testRevisions checks that a reader who knows a revision knows that stored entries have not changed since.
func testRevisions(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	known := map[int64]string{}
	check := func(what string, changes bool) {
		t.Helper()
		c, err := store.Conversation(ctx, "a")
		noError(t, err)
		revision, err := store.Revision(ctx, "a")
		noError(t, err)
		if revision != c.Revision {
			t.Fatalf("after %s the revision is %d, and that of the conversation's row %d", what, revision, c.Revision)
		}
		if before, isKnown := known[c.Revision]; isKnown == changes {
			t.Fatalf("after %s the revision is %d, known from %q of %v", what, c.Revision, before, known)
		}
		if changes {
			known[c.Revision] = what
		}
	}
	create(t, store, "a", 3)
	check("the creation", true)
	appendEntries(t, store, "a", 4, 5)
	title := "another"
	_, err := store.Update(ctx, "a", continuo.ConversationChange{Title: &title, UpdatedAt: at(9)})
	noError(t, err)
	check("an append and an update", false)
	kept := records(t, store, "a", 100)
	noError(t, store.Redact(ctx, "a", []continuo.Entry{redacted(entry("a", 1))}))
	check("a redaction", true)
	noError(t, store.Redact(ctx, "a", []continuo.Entry{redacted(entry("a", 2))}))
	check("another redaction", true)
	noError(t, store.PutRecords(ctx, "a", kept))
	check("a restoration of the records", true)
	noError(t, store.PutRecords(ctx, "a", kept[1:2]))
	check("a restoration of one entry", true)
	noError(t, store.Delete(ctx, "a"))
	_, err = store.Revision(ctx, "a")
	expectError(t, "the revision of a deleted conversation", err, continuo.ErrNotFound)
	noError(t, store.PutRecords(ctx, "a", kept))
	check("a restoration of the deleted conversation", true)
	appendEntries(t, store, "a", 6, 6)
	check("an append", false)
	c, err := store.Conversation(ctx, "a")
	noError(t, err)
	noError(t, store.Archive(ctx, c, at(20)))
	_, err = store.Revision(ctx, "a")
	expectError(t, "the revision of an archived conversation", err, continuo.ErrArchived)
}

func testRedactRefused(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	all := entries("a", 1, 3)
	all[2] = ofTurn(all[2], "t2")
	c := conversation("a")
	c.LastSeq = 3
	noError(t, store.Create(ctx, c, all))
	create(t, store, "b", 3)
	other := redacted(all[1])
	other.ID = "another"
	later := redacted(entry("a", 4))
	for what, entries := range map[string][]continuo.Entry{
		"another id":       {redacted(all[0]), other},
		"a seq that comes": {redacted(all[0]), later},
	} {
		expectError(t, what, store.Redact(ctx, "a", entries), continuo.ErrNotFound)
	}
	expectError(t, "an unknown conversation", store.Redact(ctx, "none", []continuo.Entry{redacted(entry("none", 1))}), continuo.ErrNotFound)
	expectError(t, "entries of another conversation", store.Redact(ctx, "b", []continuo.Entry{redacted(all[0])}), continuo.ErrInvalid)
	running := begin(t, store, "a", "t2")
	err := store.Redact(ctx, "a", []continuo.Entry{redacted(all[0]), redacted(all[2])})
	var busy *continuo.BusyError
	if !errors.As(err, &busy) || busy.Turn.ID != "t2" {
		t.Errorf("while its turn runs: %v", err)
	}
	sameEntries(t, "entries after what was refused", readAll(t, store, "a"), all)
	noError(t, store.Redact(ctx, "a", []continuo.Entry{redacted(all[0])})) // of another turn
	updateTurn(t, store, ending(running, continuo.TurnFinished))
	noError(t, store.Redact(ctx, "a", []continuo.Entry{redacted(all[2])}))
}

// testRedactTurns redacts an entry, and with it the events of its turn.
func testRedactTurns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 1)
	made := entries("a", 2, 3)
	for i, id := range []string{"t1", "t2"} {
		turn := begin(t, store, "a", id)
		noError(t, store.SignalTurn(ctx, "a", id, continuo.TurnSignal{Kind: continuo.SignalDeny, Reason: "secret"}))
		end := updateOf(turn, 1, 2)
		end.State = continuo.TurnFinished
		noError(t, store.Append(ctx, continuo.Batch{
			ConversationID: "a", After: int64(i) + 1, Entries: []continuo.Entry{ofTurn(made[i], id)}, Turns: []continuo.TurnUpdate{end},
		}))
	}
	before := findTurn(t, store, "a", "t1")
	noError(t, store.Redact(ctx, "a", []continuo.Entry{redacted(ofTurn(made[0], "t1"))}))
	before.LastEvent = 0
	same(t, "the turn stays", findTurn(t, store, "a", "t1"), before)
	for id, want := range map[string]int{"t1": 0, "t2": 2} {
		events, err := store.TurnEvents(ctx, "a", id, 0, 9)
		noError(t, err)
		if len(events) != want {
			t.Errorf("%s has %d events, want %d", id, len(events), want)
		}
	}
	for _, r := range records(t, store, "a", 100) {
		if r.Turn != nil && len(r.Turn.Signals) != len(r.Turn.Events)/2 {
			t.Errorf("turn %s has the signals %v", r.Turn.ID, r.Turn.Signals)
		}
	}
}

// discards lists the names to remove, and confirms their removal.
func discards(t *testing.T, store maintenance.Store) []string {
	t.Helper()
	var all []string
	for {
		names, err := store.Discards(t.Context(), 2)
		noError(t, err)
		if len(names) == 0 {
			return all
		}
		all = append(all, names...)
		noError(t, store.Discarded(t.Context(), append(names, "nothing/of the kind")))
	}
}

func expectDiscards(t *testing.T, what string, store maintenance.Store, want ...string) {
	t.Helper()
	got := map[string]int{}
	for _, name := range discards(t, store) {
		got[name]++
	}
	wanted := map[string]int{}
	for _, name := range want {
		wanted[name]++
	}
	same(t, what, got, wanted)
}

// testDiscards tests objects that several entries and forks need.
func testDiscards(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	all := entries("a", 1, 6)
	for seq, id := range map[int]string{1: "early", 2: "both", 3: "once", 5: "both", 6: "late"} {
		all[seq-1] = withObject(all[seq-1], id)
	}
	parent := conversation("a")
	parent.LastSeq = 5
	noError(t, store.Create(ctx, parent, all[:5]))
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "a", After: 5, Entries: all[5:]}))
	create(t, store, "other", 1)
	noError(t, store.Create(ctx, forkOf("b", continuo.Segment{ConversationID: "a", Through: 4}), nil))
	noError(t, store.Create(ctx, forkOf("c", continuo.Segment{ConversationID: "a", Through: 1}), nil))
	expectDiscards(t, "as long as all is there", store)

	noError(t, store.Redact(ctx, "a", []continuo.Entry{redacted(all[2]), redacted(all[1]), withObject(redacted(all[0]), "early")}))
	expectDiscards(t, "after a redaction", store, "a/once")
	noError(t, store.Delete(ctx, "a"))
	expectDiscards(t, "when only forks need entries", open(t, opener), "a/both", "a/late")
	noError(t, store.Delete(ctx, "b"))
	expectDiscards(t, "when fewer do", store, "b/")
	noError(t, store.Delete(ctx, "c"))
	noError(t, store.Delete(ctx, "other"))
	first, err := store.Discards(ctx, 1)
	noError(t, err)
	if len(first) != 1 || first[0] == "other/" {
		t.Errorf("the oldest first, not %v", first)
	}
	expectDiscards(t, "when all are deleted", store, "a/", "c/", "other/")
	expectError(t, "a limit of 0", second(store.Discards(ctx, 0)), continuo.ErrInvalid)
	noError(t, store.Discarded(ctx, nil))
}
