package storetest

import (
	"errors"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/maintenance"
)

// busyConversation makes a conversation with everything that can be archived.
func busyConversation(t *testing.T, store maintenance.Store, id string, last int64) continuo.Conversation {
	t.Helper()
	ctx := t.Context()
	c := conversation(id)
	c.Kind, c.Key, c.Metadata = continuo.KindTask, "key of "+id, []byte(`{"a":1.0}`)
	noError(t, store.Create(ctx, c, nil))
	turn := begin(t, store, id, "t1")
	end := updateOf(turn, 1, 5)
	end.State, end.End.Usage.InputTokens = continuo.TurnFailed, 7
	noError(t, store.SignalTurn(ctx, id, "t1", continuo.TurnSignal{Kind: continuo.SignalDeny, Reason: "no"}))
	made := entries(id, 1, last)
	made[0] = withObject(made[0], "o1")
	noError(t, store.Append(ctx, continuo.Batch{
		ConversationID: id, Entries: made, Turns: []continuo.TurnUpdate{end},
		Receipts: []continuo.Receipt{{Key: "r1", Fingerprint: "f", First: 1, Last: last}, {Key: "r0", Fingerprint: "g", First: 1, Last: 1}},
		Prefixes: prefixes(id, 7, 1, last),
	}))
	updateTurn(t, store, ending(begin(t, store, id, "t0"), continuo.TurnVoid))
	found, err := store.Conversation(ctx, id)
	noError(t, err)
	return found
}

func testArchive(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	c := busyConversation(t, store, "a", 4)
	mark := continuo.Receipt{Key: "mark quoted 1", Fingerprint: "mark b"}
	_, err := store.AdvanceReceipt(ctx, "a", mark)
	noError(t, err)
	whole := records(t, store, "a", 100)
	noError(t, store.Archive(ctx, seenAs(t, store, "a", 4), at(77)))
	c.ArchivedAt = at(77)
	expectArchived(t, store, c)
	expectArchived(t, open(t, opener), c)
	same(t, "the records that are left", records(t, store, "a", 100), []maintenance.Record{{Conversation: &maintenance.ConversationRecord{Conversation: c}}, {Receipt: &mark}})
	expectDiscards(t, "objects stay", store)

	title := "changed while archived"
	changed, err := store.Update(ctx, "a", continuo.ConversationChange{Title: &title, UpdatedAt: at(80)})
	noError(t, err)
	c.Title, c.UpdatedAt = title, at(80)
	same(t, "changed", changed, c)
	expectError(t, "restored too soon", store.Restore(ctx, "a"), continuo.ErrInvalid)
	for i, r := range whole[1:] {
		if i == 3 {
			expectError(t, "without its last entry", store.Restore(ctx, "a"), continuo.ErrInvalid)
		}
		expectError(t, "of another archive", store.PutArchived(ctx, "a", at(76), []maintenance.Record{r}), continuo.ErrInvalid)
		noError(t, store.PutArchived(ctx, "a", at(77), []maintenance.Record{r}))
	}
	expectError(t, "appended too soon", store.Append(ctx, continuo.Batch{ConversationID: "a", After: 4, Entries: entries("a", 5, 5)}), continuo.ErrArchived)
	noError(t, store.Restore(ctx, "a"))
	noError(t, store.Restore(ctx, "a")) // succeeds and changes nothing
	c.ArchivedAt = time.Time{}
	restored := records(t, store, "a", 100)
	same(t, "its own record", restored[0].Conversation.Conversation, c)
	same(t, "all others", restored[1:], whole[1:])
	expectError(t, "records that come late", store.PutArchived(ctx, "a", at(77), whole[1:]), continuo.ErrInvalid)
	same(t, "listed", listKind(t, store, c.Kind, 9), []string{"a"})
	appendEntries(t, store, "a", 5, 5)
	updateTurn(t, store, ending(begin(t, store, "a", "t9"), continuo.TurnFinished))
	expectDiscards(t, "objects are there again, and the archive is of no use", store, continuo.ObjectName("a", maintenance.ArchiveObject(at(77))))
}

// expectArchived checks that an archived conversation is found and listed, and otherwise unchanged.
func expectArchived(t *testing.T, store maintenance.Store, c continuo.Conversation) {
	t.Helper()
	ctx := t.Context()
	found, err := store.Conversation(ctx, c.ID)
	noError(t, err)
	same(t, "by id", found, c)
	found, err = store.ConversationByKey(ctx, c.ProjectID, c.Key)
	noError(t, err)
	same(t, "by key", found, c)
	for _, archived := range []bool{false, true} {
		page, err := store.Conversations(ctx, continuo.ConversationQuery{ProjectID: c.ProjectID, Kind: c.Kind, Archived: archived, Limit: 9})
		noError(t, err)
		for _, listed := range page {
			if !archived && listed.ID == c.ID || archived && listed.ArchivedAt.IsZero() {
				t.Errorf("%s is listed among those where archived is %v", listed.ID, archived)
			}
		}
		if archived && len(page) == 0 {
			t.Error("it is not listed among the archived")
		}
	}
	last := c.LastSeq
	for what, err := range map[string]error{
		"Append":        store.Append(ctx, continuo.Batch{ConversationID: c.ID, After: last, Entries: entries(c.ID, last+1, last+1)}),
		"stale Append":  store.Append(ctx, continuo.Batch{ConversationID: c.ID, After: last + 3, Entries: entries(c.ID, last+4, last+4)}),
		"BeginTurn":     second(BeginTurn(ctx, store, continuo.Turn{ID: "t5", ConversationID: c.ID}, long)),
		"Redact":        store.Redact(ctx, c.ID, []continuo.Entry{redacted(entry(c.ID, last))}),
		"Archive again": store.Archive(ctx, seenAs(t, store, c.ID, last), at(78)),
		"Entries":       second(store.Entries(ctx, c.ID, continuo.EntryQuery{From: 1, To: last, Limit: 9})),
		"the newest":    second(store.Entries(ctx, c.ID, continuo.EntryQuery{From: 1, To: 1 << 40, Limit: 1, Backward: true})),
		"users":         second(store.Entries(ctx, c.ID, continuo.EntryQuery{From: 1, To: last, Limit: 9, UsersOnly: true})),
		"Index":         store.Index(ctx, index.Batch{ConversationID: c.ID, After: c.ForkSeq, Through: last}),
		"a fork":        store.Create(ctx, forkOf("fork", continuo.Segment{ConversationID: c.ID, Through: last}), nil),
	} {
		expectError(t, what, err, continuo.ErrArchived)
	}
	expectError(t, "a receipt", second(store.Receipt(ctx, c.ID, "r1")), continuo.ErrNotFound)
	expectError(t, "a turn", second(store.Turn(ctx, c.ID, "t1")), continuo.ErrNotFound)
	unindexed, err := store.Unindexed(ctx, index.UnindexedQuery{ConversationID: c.ID, Limit: 1})
	if err != nil || len(unindexed) != 0 {
		t.Errorf("it is not indexed: %v (%v)", unindexed, err)
	}
	sameEntries(t, "no entries were asked for", read(t, store, c.ID, continuo.EntryQuery{From: last + 1, To: last + 9, Limit: 9}), nil)
}

func testArchiveRefused(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 3)
	running := begin(t, store, "a", "t1")
	var conflict *continuo.ConflictError
	if err := store.Archive(ctx, seenAs(t, store, "a", 2), at(9)); !errors.As(err, &conflict) || *conflict != (continuo.ConflictError{Want: 3, Have: 4}) {
		t.Errorf("at another seq: %v", err)
	}
	expectError(t, "while a turn runs", store.Archive(ctx, seenAs(t, store, "a", 3), at(9)), continuo.ErrBusy)
	expectError(t, "an unknown one", store.Archive(ctx, seenAs(t, store, "none", 0), at(9)), continuo.ErrNotFound)
	expectError(t, "restore an unknown one", store.Restore(ctx, "none"), continuo.ErrNotFound)
	updateTurn(t, store, ending(running, continuo.TurnFinished))
	create(t, store, "gone", 1)
	noError(t, store.Create(ctx, forkOf("b", continuo.Segment{ConversationID: "gone", Through: 1}), nil))
	noError(t, store.Delete(ctx, "gone"))
	expectError(t, "a deleted one", store.Archive(ctx, seenAs(t, store, "gone", 1), at(9)), continuo.ErrNotFound)
	expectError(t, "restore a deleted one", store.Restore(ctx, "gone"), continuo.ErrNotFound)
	noError(t, store.Restore(ctx, "a"))
	sameEntries(t, "entries", readAll(t, store, "a"), entries("a", 1, 3))
}

// testArchiveForks archives a conversation in the middle of its family.
func testArchiveForks(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	root := continuo.Segment{ConversationID: "root", Through: 2}
	create(t, store, "root", 3)
	noError(t, store.Create(ctx, forkOf("a", root), nil))
	appendEntries(t, store, "a", 3, 8)
	noError(t, store.Create(ctx, forkOf("long", root, continuo.Segment{ConversationID: "a", Through: 6}), nil))
	noError(t, store.Create(ctx, forkOf("short", root, continuo.Segment{ConversationID: "a", Through: 4}), nil))
	noError(t, store.Archive(ctx, seenAs(t, store, "a", 8), at(50)))
	kept := func(last int64) {
		t.Helper()
		own := entries("a", 3, last)
		first, err := own[0].MarshalJSON()
		noError(t, err)
		room := int64(len(first)) // for one
		for _, query := range []continuo.EntryQuery{
			{From: 1, To: last, Limit: 99},
			{From: 3, To: last, Limit: 99},
			{From: 1, To: 99, Limit: int(last) - 2},
			{From: 1, To: 99, Limit: 99, MaxBytes: room},
			{From: last, To: last, Limit: 1},
			{From: 1, To: last, Limit: 99, Backward: true},
			{From: 1, To: last, Limit: 99, UsersOnly: true},
			{From: last - 1, To: last - 1, Limit: 99},
		} {
			got, err := store.Entries(ctx, "a", query)
			noError(t, err)
			if len(got) == 0 && !query.UsersOnly || len(got) > len(own) {
				t.Errorf("%+v: %d entries", query, len(got))
			}
		}
		sameEntries(t, "the entries that forks begin with", read(t, store, "a", continuo.EntryQuery{From: 1, To: last, Limit: 99}), own)
		for _, query := range []continuo.EntryQuery{
			{From: 1, To: last + 1, Limit: 99},
			{From: last + 1, To: last + 1, Limit: 1},
			{From: 1, To: 99, Limit: 99},
			{From: 1, To: last + 1, Limit: 1, Backward: true},
			{From: 1, To: last + 1, Limit: 1, Backward: true, MaxBytes: 1},
			{From: 1, To: 99, Limit: 99, UsersOnly: true},
			{From: 1, To: 99, Limit: 99, OutputRef: outputRef(3)},
			{From: 1, To: 99, Limit: 1, OutputRef: outputRef(99)},
		} {
			if got, err := store.Entries(ctx, "a", query); !errors.Is(err, continuo.ErrArchived) || len(got) > 0 {
				t.Errorf("%+v: %v (%v), want ErrArchived", query, seqs(got), err)
			}
		}
		expectError(t, "a fork of what is kept aside", store.Create(ctx, forkOf("no", root, continuo.Segment{ConversationID: "a", Through: last + 1}), nil), continuo.ErrArchived)
	}
	kept(6)
	noError(t, store.Create(ctx, forkOf("more", root, continuo.Segment{ConversationID: "a", Through: 5}), nil))
	noError(t, store.Delete(ctx, "more"))
	readLineage(t, store, "long")
	noError(t, store.Delete(ctx, "long"))
	kept(4)
	var left []maintenance.Record
	for _, e := range entries("a", 5, 8) {
		left = append(left, maintenance.Record{Entry: &e})
	}
	noError(t, store.PutRecords(ctx, "a", left))
	noError(t, store.Restore(ctx, "a"))
	readLineage(t, store, "a")
	noError(t, store.Archive(ctx, seenAs(t, store, "a", 8), at(51)))
	noError(t, store.Delete(ctx, "a"))
	expectGone(t, store, "a")
	readLineage(t, store, "short")
	noError(t, store.Delete(ctx, "short"))
	sameEntries(t, "when all are deleted", readAll(t, store, "a"), nil)
}

// testArchiveDeleted deletes an archived conversation, whose objects are still there.
func testArchiveDeleted(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	for _, id := range []string{"alone", "forked"} {
		c := conversation(id)
		c.LastSeq = 3
		all := entries(id, 1, 3)
		all[0], all[1], all[2] = withObject(all[0], "o1"), withObject(all[1], "o2"), withObject(all[2], "o1")
		noError(t, store.Create(ctx, c, all))
	}
	noError(t, store.Create(ctx, forkOf("fork", continuo.Segment{ConversationID: "forked", Through: 1}), nil))
	for _, id := range []string{"alone", "forked"} {
		noError(t, store.Archive(ctx, seenAs(t, store, id, 3), at(9)))
	}
	expectDiscards(t, "archived", store)
	for _, id := range []string{"alone", "forked"} {
		noError(t, store.Delete(ctx, id))
		expectGone(t, store, id)
		late := entry(id, 3)
		expectError(t, "a record that comes late", store.PutArchived(ctx, id, at(9), []maintenance.Record{{Entry: &late}}), continuo.ErrNotFound)
	}
	expectDiscards(t, "deleted", store, "alone/", "forked/o2", continuo.ObjectName("forked", maintenance.ArchiveObject(at(9))))
	noError(t, store.Delete(ctx, "fork"))
	expectDiscards(t, "deleted with its fork", store, "forked/", "fork/")
}

// testArchiveOfRedacted checks that an archiving does not store the earlier form of entries that were
// redacted after the conversation was read.
func testArchiveOfRedacted(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 1)
	seen := seenAs(t, store, "a", 1)
	redacted := entry("a", 1)
	redacted.Content, redacted.Redacted = continuo.Text(continuo.RedactedText), &continuo.Redaction{At: at(500)}
	noError(t, store.Redact(ctx, "a", []continuo.Entry{redacted}))
	var conflict *continuo.ConflictError
	if err := store.Archive(ctx, seen, at(600)); !errors.As(err, &conflict) {
		t.Errorf("archived as it was seen before the redaction: %v", err)
	}
	now := seenAs(t, store, "a", 1)
	same(t, "UpdatedAt after the redaction", now.UpdatedAt, at(500))
	noError(t, store.Redact(ctx, "a", []continuo.Entry{redacted})) // by a machine whose clock is behind
	if err := store.Archive(ctx, now, at(600)); !errors.As(err, &conflict) {
		t.Errorf("archived as it was seen before a redaction by another clock: %v", err)
	}
	now = seenAs(t, store, "a", 1)
	same(t, "UpdatedAt after another redaction", now.UpdatedAt, at(500).Add(1))
	noError(t, store.Archive(ctx, now, at(600)))
}

// seenAs returns a conversation with another LastSeq.
func seenAs(t *testing.T, store maintenance.Store, id string, last int64) continuo.Conversation {
	t.Helper()
	seen, err := store.Conversation(t.Context(), id)
	if errors.Is(err, continuo.ErrNotFound) {
		seen, err = continuo.Conversation{ID: id}, nil
	}
	noError(t, err)
	seen.LastSeq = last
	return seen
}
