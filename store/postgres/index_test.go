package postgres

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/maintenance"
)

// The words of an entry are read, then a person redacts it, then the words reach the index: they must not stay.
func TestTermsOfAnEntryThatIsRedactedMeanwhileAreNotIndexed(t *testing.T) {
	store := openAt(t, newDatabase(t, 0), Options{})
	defer store.Close()
	ctx := t.Context()
	createAt(t, store, "a")
	appendAt(t, store, "a", 1)
	appendAt(t, store, "a", 2)

	redaction, err := store.pool.Begin(ctx)
	must(t, err)
	_, err = lock(ctx, redaction, "a")
	must(t, err)
	indexed := make(chan error, 1)
	go func() {
		documents := []index.Document{{Seq: 1, Added: 1, Terms: []string{"secret"}}, {Seq: 2, Added: 2, Terms: []string{"known"}}}
		indexed <- store.Index(ctx, index.Batch{ConversationID: "a", Through: 2, Documents: documents})
	}()
	awaitLock(t, store) // all words are written, but for the last step
	_, err = redaction.Exec(ctx, `UPDATE continuo.entries SET redacted = true WHERE conversation_id = 'a' AND seq = 1`)
	must(t, err)
	must(t, redaction.Commit(ctx))
	must(t, <-indexed)

	for term, want := range map[string]int{"secret": 0, "known": 1} {
		found, err := store.Hits(ctx, index.HitQuery{ProjectID: "p", Terms: []index.Term{{Text: term}}, Limit: 9})
		if err != nil || len(found) != want {
			t.Errorf("%s: found %v, %v; want %d places", term, found, err, want)
		}
	}
}

// awaitLock returns when a session waits for a lock of the database.
func awaitLock(t *testing.T, s *Store) {
	t.Helper()
	for waits := false; !waits; {
		must(t, s.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits))
	}
}

func TestAppendsDoNotWaitForAnIndexing(t *testing.T) {
	store := openAt(t, newDatabase(t, 0), Options{})
	defer store.Close()
	ctx := t.Context()
	createAt(t, store, "a")
	appendAt(t, store, "a", 1)
	batch := index.Batch{ConversationID: "a", Through: 1, Documents: []index.Document{{Seq: 1, Terms: []string{"word"}}}}
	other, err := store.pool.Begin(ctx)
	must(t, err)
	must(t, putDocuments(ctx, other, batch, "p"))
	indexed := make(chan error, 1)
	go func() { indexed <- store.Index(ctx, batch) }()
	awaitLock(t, store) // it writes words and waits for the other one
	appendAt(t, store, "a", 2)
	must(t, other.Rollback(ctx))
	must(t, <-indexed)
}

// Of several indexers of the same entries at the same time one succeeds; the others receive a conflict.
func TestOneOfSeveralIndexesTheSameEntries(t *testing.T) {
	store := openAt(t, newDatabase(t, 0), Options{})
	defer store.Close()
	createAt(t, store, "a")
	appendAt(t, store, "a", 1)
	const count = 8
	errs := make(chan error, count)
	for i := range count {
		go func() {
			documents := []index.Document{{Seq: 1, Added: int64(i), Terms: []string{"word"}}}
			errs <- store.Index(t.Context(), index.Batch{ConversationID: "a", Through: 1, Documents: documents})
		}()
	}
	done := 0
	for range count {
		var conflict *continuo.ConflictError
		if err := <-errs; err == nil {
			done++
		} else if !errors.As(err, &conflict) || conflict.Have != 2 {
			t.Errorf("an indexing failed with %v", err)
		}
	}
	if done != 1 {
		t.Errorf("%d did it", done)
	}
}

func TestRecordsComeInPagesOfSomeMegabytes(t *testing.T) {
	store := openAt(t, newDatabase(t, 0), Options{})
	defer store.Close()
	ctx := t.Context()
	createAt(t, store, "a")
	text := continuo.Text(strings.Repeat("word ", 300_000))
	const count = 7
	records := []maintenance.Record{}
	for seq := range int64(count) {
		entry := continuo.Entry{ID: fmt.Sprint("e", seq), ConversationID: "a", Seq: seq + 1, Role: continuo.User, CreatedAt: sometime, Content: text}
		records = append(records, maintenance.Record{Entry: &entry})
	}
	for i := range count {
		turn := maintenance.TurnRecord{Turn: continuo.Turn{ID: fmt.Sprint("t", i), ConversationID: "a", State: continuo.TurnFailed, Fence: int64(i + 1), StartedAt: sometime, EndedAt: sometime}}
		turn.Events = []continuo.TurnEvent{{ID: 3, Data: fmt.Appendf(nil, `{"a":%q}`, text.String())}}
		records = append(records, maintenance.Record{Turn: &turn})
	}
	must(t, store.PutRecords(ctx, "a", records))
	var after maintenance.RecordPosition
	var kinds [5]int
	for {
		page, err := store.Records(ctx, "a", after, 1000)
		must(t, err)
		if len(page) == 0 {
			break
		}
		if len(page) > 4 { // a large one may begin at the last byte of a page
			t.Errorf("a page has %d records of 1.5 MB each", len(page))
		}
		for i := range page {
			after = page[i].Position()
			kinds[after.Kind]++
		}
	}
	if kinds != [5]int{0, 1, count, 0, count} {
		t.Errorf("records by kind: %v", kinds)
	}
}
