package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// records reads all records of a conversation in pages.
func records(t *testing.T, store maintenance.Store, id string, limit int) []maintenance.Record {
	t.Helper()
	var all []maintenance.Record
	after := maintenance.RecordPosition{}
	for {
		page, err := store.Records(t.Context(), id, after, limit)
		noError(t, err)
		if len(page) > limit {
			t.Fatalf("asked for %d records, got %d", limit, len(page))
		}
		if len(page) == 0 {
			return all
		}
		for _, r := range page {
			if comparePositions(r.Position(), after) <= 0 {
				t.Fatalf("the record at %+v comes after %+v", r.Position(), after)
			}
			after = r.Position()
		}
		all = append(all, page...)
	}
}

// family fills a store with conversations of all kinds, and returns their ids, ancestors first.
func family(t *testing.T, store maintenance.Store) []string {
	t.Helper()
	ctx := t.Context()
	busyConversation(t, store, "whole", 5)
	running := begin(t, store, "whole", "t7")
	updateTurn(t, store, updateOf(running, 3, 4, 9))
	noError(t, store.SignalTurn(ctx, "whole", "t7", continuo.TurnSignal{Kind: continuo.SignalAllow, ToolCallID: "c", Asked: 9}))
	noError(t, store.SignalTurn(ctx, "whole", "t7", continuo.TurnSignal{Kind: continuo.SignalCancel}))
	noError(t, store.Redact(ctx, "whole", []continuo.Entry{redacted(entry("whole", 3))}))
	create(t, store, "deleted", 4)
	through := continuo.Segment{ConversationID: "deleted", Through: 3}
	noError(t, store.Create(ctx, forkOf("fork", through), nil))
	appendEntries(t, store, "fork", 4, 6)
	noError(t, store.Create(ctx, forkOf("forks fork", through, continuo.Segment{ConversationID: "fork", Through: 5}), nil))
	noError(t, store.Delete(ctx, "deleted"))
	busyConversation(t, store, "archived", 3)
	noError(t, store.Archive(ctx, seenAs(t, store, "archived", 3), at(60)))
	elsewhere := conversation("Elsewhere")
	elsewhere.ProjectID, elsewhere.Kind = "q", continuo.KindAgent
	noError(t, store.Create(ctx, elsewhere, nil))
	return []string{"whole", "deleted", "fork", "forks fork", "archived", "Elsewhere"}
}

// testRecords copies everything from the reference to the engine and to another reference.
func testRecords(t *testing.T, opener Opener) {
	from, ctx := NewMemory(), t.Context()
	ids := family(t, from)
	engine := open(t, opener)
	again := NewMemory()
	for _, id := range ids {
		for _, r := range records(t, from, id, 3) { // one at a time, the conversation's own first
			noError(t, engine.PutRecords(ctx, id, []maintenance.Record{r}))
		}
		want := leaseless(records(t, from, id, 100))
		same(t, "read back from the engine: "+id, leaseless(records(t, engine, id, 100)), want)
		all := records(t, engine, id, 1)
		noError(t, again.PutRecords(ctx, id, all))
		noError(t, again.PutRecords(ctx, id, all)) // changes nothing
		noError(t, engine.PutRecords(ctx, id, all))
		same(t, "copied from the engine: "+id, leaseless(records(t, again, id, 100)), want)
	}
	engine = open(t, opener)
	for _, limit := range []int{1, 4, 100} {
		sorted := slices.Sorted(slices.Values(ids))
		same(t, "ids", conversationIDs(t, engine, limit), sorted)
	}
	// The copies work as the originals do.
	readLineage(t, engine, "forks fork")
	expectGone(t, engine, "deleted")
	expectError(t, "archived", second(engine.Entries(ctx, "archived", continuo.EntryQuery{From: 1, To: 3, Limit: 3})), continuo.ErrArchived)
	receipt, err := engine.Receipt(ctx, "whole", "r1")
	noError(t, err)
	same(t, "receipt", receipt, continuo.Receipt{Key: "r1", Fingerprint: "f", First: 1, Last: 5})
	running := findTurn(t, engine, "whole", "t7")
	if running.State != continuo.TurnRunning || !running.LeaseExpired || !running.LeaseUntil.IsZero() || running.LastEvent != 9 {
		t.Errorf("a running turn has a lease that was given back: %+v", running)
	}
	taken, err := engine.TakeTurn(ctx, running, "two", long)
	noError(t, err)
	signals, err := engine.UpdateTurn(ctx, updateOf(taken, 10))
	if err != nil || len(signals) != 2 {
		t.Errorf("its signals: %v (%v)", signals, err)
	}
	updateTurn(t, engine, ending(taken, continuo.TurnFinished))
	appendEntries(t, engine, "whole", 6, 6)
	for _, id := range ids {
		if id != "deleted" {
			noError(t, engine.Delete(ctx, id))
		}
	}
	same(t, "ids when all are deleted", conversationIDs(t, engine, 9), []string(nil))
}

// leaseless removes the leases, which a copy does not have.
func leaseless(records []maintenance.Record) []maintenance.Record {
	for _, r := range records {
		if r.Turn != nil {
			r.Turn.LeaseUntil, r.Turn.LeaseExpired = time.Time{}, false
		}
	}
	return records
}

func conversationIDs(t *testing.T, store maintenance.Store, limit int) (all []string) {
	t.Helper()
	after := ""
	for {
		page, err := store.ConversationIDs(t.Context(), after, limit)
		noError(t, err)
		if len(page) > limit {
			t.Fatalf("asked for %d ids, got %d", limit, len(page))
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		after = page[len(page)-1]
	}
}

func testRecordPages(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	busyConversation(t, store, "a", 7)
	whole := records(t, store, "a", 1000)
	for limit := range len(whole) + 1 {
		same(t, fmt.Sprintf("pages of %d", limit+1), records(t, store, "a", limit+1), whole)
	}
	kinds := ""
	for _, r := range whole {
		kinds += fmt.Sprint(r.Position().Kind)
	}
	same(t, "kinds", kinds, "1"+strings.Repeat("2", 7)+"33"+"44"+"55")
	same(t, "records of an unknown conversation", records(t, store, "none", 5), []maintenance.Record(nil))
	for what, err := range map[string]error{
		"Records":         second(store.Records(ctx, "a", maintenance.RecordPosition{}, 0)),
		"ConversationIDs": second(store.ConversationIDs(ctx, "", 0)),
		"BlobHashes":      second(store.BlobHashes(ctx, "", 0)),
	} {
		expectError(t, what+" with a limit of 0", err, continuo.ErrInvalid)
	}
	for _, hash := range []string{"b", "a", "c"} {
		noError(t, store.PutBlob(ctx, hash, []byte(hash)))
	}
	for after, want := range map[string][]string{"": {"a", "b"}, "a": {"b", "c"}, "b": {"c"}, "bb": {"c"}, "c": nil} {
		found, err := store.BlobHashes(ctx, after, 2)
		noError(t, err)
		same(t, "hashes after "+after, append([]string(nil), found...), want)
	}
}

// testLargeRecords reads records that are too many bytes for one page.
func testLargeRecords(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	for seq := int64(1); seq <= 7; seq++ {
		e := entry("a", seq)
		e.Content = continuo.Text(strings.Repeat("x", 1<<20))
		noError(t, store.Append(ctx, continuo.Batch{ConversationID: "a", After: seq - 1, Entries: []continuo.Entry{e}}))
	}
	turn := begin(t, store, "a", "t1")
	for id := int64(1); id <= 3; id++ {
		update := updateOf(turn)
		update.Events = []continuo.TurnEvent{{ID: id, Data: fmt.Appendf(nil, `{"x":"%s"}`, bytes.Repeat([]byte("y"), 1<<20))}}
		updateTurn(t, store, update)
	}
	page, err := store.Records(ctx, "a", maintenance.RecordPosition{}, 1000)
	noError(t, err)
	if len(page) < 2 || len(page) > 7 {
		t.Errorf("a page has %d records of 1 MiB", len(page)-1)
	}
	all := records(t, store, "a", 1000)
	if len(all) != 9 || len(all[8].Turn.Events) != 3 {
		t.Fatalf("%d records", len(all))
	}
	copied := NewMemory()
	noError(t, copied.PutRecords(ctx, "a", all))
	noError(t, store.PutRecords(ctx, "a", records(t, copied, "a", 1000)))
	same(t, "written and read again", leaseless(records(t, store, "a", 1000)), leaseless(all))
}

func testPutRecordsRefused(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	c := busyConversation(t, store, "a", 3)
	before := records(t, store, "a", 100)
	own := func(change func(*maintenance.ConversationRecord)) maintenance.Record {
		record := maintenance.ConversationRecord{Conversation: conversation("b")}
		change(&record)
		return maintenance.Record{Conversation: &record}
	}
	plain := own(func(*maintenance.ConversationRecord) {})
	turn := func(id, conversationID string, state continuo.TurnState, fence int64) maintenance.Record {
		record := maintenance.TurnRecord{Turn: continuo.Turn{ID: id, ConversationID: conversationID, State: state, Fence: fence, StartedAt: day}}
		if state != continuo.TurnRunning {
			record.EndedAt = at(1)
		}
		return maintenance.Record{Turn: &record}
	}
	backward := turn("t", "b", continuo.TurnFinished, 1)
	backward.Turn.Events = []continuo.TurnEvent{event(2), event(1)}
	e := entry("a", 1)
	for what, test := range map[string]struct {
		id      string
		records []maintenance.Record
		want    error
	}{
		"no conversation":          {"b", []maintenance.Record{turn("t", "b", continuo.TurnFinished, 1)}, continuo.ErrNotFound},
		"nothing at all":           {"b", nil, continuo.ErrNotFound},
		"an entry of another":      {"b", []maintenance.Record{plain, {Entry: &e}}, continuo.ErrInvalid},
		"a turn of another":        {"b", []maintenance.Record{plain, turn("t", "a", continuo.TurnFinished, 1)}, continuo.ErrInvalid},
		"another conversation":     {"c", []maintenance.Record{plain}, continuo.ErrInvalid},
		"a record of nothing":      {"b", []maintenance.Record{plain, {}}, continuo.ErrInvalid},
		"events out of order":      {"b", []maintenance.Record{plain, backward}, continuo.ErrInvalid},
		"a turn without a state":   {"b", []maintenance.Record{plain, turn("t", "b", "", 1)}, continuo.ErrInvalid},
		"two running turns":        {"b", []maintenance.Record{plain, turn("t", "b", continuo.TurnRunning, 1), turn("u", "b", continuo.TurnRunning, 2)}, continuo.ErrExists},
		"two turns with one fence": {"b", []maintenance.Record{plain, turn("t", "b", continuo.TurnFinished, 1), turn("u", "b", continuo.TurnFinished, 1)}, continuo.ErrExists},
		"an ancestor that is gone": {"b", []maintenance.Record{own(func(r *maintenance.ConversationRecord) {
			r.Lineage = []continuo.Segment{{ConversationID: "none", Through: 1}}
		})}, continuo.ErrNotFound},
		"a key of another owner":    {"b", []maintenance.Record{own(func(r *maintenance.ConversationRecord) { r.Key = c.Key })}, continuo.ErrExists},
		"a turn that runs already":  {"a", []maintenance.Record{turn("t8", "a", continuo.TurnRunning, 8), turn("t9", "a", continuo.TurnRunning, 9)}, continuo.ErrExists},
		"a conversation of nowhere": {"none", []maintenance.Record{{Receipt: &continuo.Receipt{Key: "k"}}}, continuo.ErrNotFound},
	} {
		if err := store.PutRecords(ctx, test.id, test.records); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want: %v", what, err, test.want)
		}
		expectError(t, "after "+what, second(store.Conversation(ctx, "b")), continuo.ErrNotFound)
	}
	same(t, "the conversation that is there", records(t, store, "a", 100), before)
}

// testRecordsAndDiscards brings a deleted conversation back before its objects have been removed.
func testRecordsAndDiscards(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	busyConversation(t, store, "a", 3)
	all := records(t, store, "a", 100)
	noError(t, store.Redact(ctx, "a", []continuo.Entry{redacted(entry("a", 1))}))
	noError(t, store.PutRecords(ctx, "a", all[1:2]))
	expectDiscards(t, "an entry that came back needs its object", store)
	noError(t, store.Delete(ctx, "a"))
	noError(t, store.PutRecords(ctx, "a", all))
	expectDiscards(t, "a conversation that came back needs its objects", store)
	same(t, "it is whole", records(t, store, "a", 100), all)

	noError(t, store.Archive(ctx, seenAs(t, store, "a", 3), at(70)))
	archived := records(t, store, "a", 100)
	noError(t, store.PutRecords(ctx, "a", all[1:]))
	noError(t, store.Restore(ctx, "a"))
	noError(t, store.PutRecords(ctx, "a", archived[:1]))
	expectDiscards(t, "a conversation that is archived again as it was needs its archive", store)
}
