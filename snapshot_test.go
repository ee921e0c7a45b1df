package continuo_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

// readCounter counts the reads of a store.
type readCounter struct {
	continuo.Store
	reads int
}

func (r *readCounter) Conversation(ctx context.Context, id string) (continuo.Conversation, error) {
	r.reads++
	return r.Store.Conversation(ctx, id)
}

func (r *readCounter) Entries(ctx context.Context, id string, query continuo.EntryQuery) ([]continuo.Entry, error) {
	r.reads++
	return r.Store.Entries(ctx, id, query)
}

func readAll(t *testing.T, log *continuo.Log, conversation continuo.Conversation, r continuo.Range) []continuo.Entry {
	t.Helper()
	var all []continuo.Entry
	for entry, err := range log.Read(t.Context(), conversation, r) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry)
	}
	return all
}

// Reading with a snapshot yields what reading without it does: of a fork with 3 inherited and 5 own entries, of which the
// snapshot has some and which it got by an append.
func TestASnapshotReplacesReads(t *testing.T) {
	store := &readCounter{Store: storetest.NewMemory()}
	log := continuo.NewLog(store, continuo.LogOptions{})
	parent, err := log.Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, log, parent.ID, continuo.AppendOptions{}, userEntry("1"), userEntry("2"), userEntry("3"))
	fork, err := log.Fork(t.Context(), parent.ID, 0, continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, log, fork.ID, continuo.AppendOptions{}, userEntry("4"), userEntry("5"), userEntry("6"))
	if fork, err = log.Conversation(t.Context(), fork.ID); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 2, 64} {
		snapshot, err := log.Snapshot(t.Context(), fork, limit)
		if err != nil || len(snapshot.Entries()) != min(limit, int(fork.LastSeq)-3) {
			t.Fatalf("%d entries, %v", len(snapshot.Entries()), err)
		}
		stored := mustAppend(t, log, fork.ID, continuo.AppendOptions{Snapshot: snapshot}, continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("<&>"), Reasoning: &continuo.Reasoning{Text: "r"}})
		snapshot = snapshot.With(stored)
		now := snapshot.Conversation
		if now.LastSeq != stored[0].Seq {
			t.Errorf("the snapshot ends at %d", now.LastSeq)
		}
		for from := range now.LastSeq + 2 {
			for to := range now.LastSeq + 2 {
				for _, backward := range []bool{false, true} {
					r := continuo.Range{From: from, To: to, Backward: backward}
					want := readAll(t, log, now, r)
					store.reads = 0
					r.Snapshot = snapshot
					if got := readAll(t, log, now, r); !reflect.DeepEqual(got, want) {
						t.Errorf("limit %d, range %+v: %v, want %v", limit, r, got, want)
					}
					if from >= snapshot.Entries()[0].Seq && store.reads != 0 {
						t.Errorf("limit %d, range %+v: %d reads", limit, r, store.reads)
					}
				}
			}
		}
		if fork, err = log.Conversation(t.Context(), fork.ID); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASnapshotDoesNotSpanOtherEntries(t *testing.T) {
	a, b, id := twoLogs(t)
	conversation, err := a.Conversation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := a.Snapshot(t.Context(), conversation, 64)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, b, id, continuo.AppendOptions{}, userEntry("of another process"))
	stored := mustAppend(t, a, id, continuo.AppendOptions{Snapshot: snapshot}, userEntry("three"))
	if stored[0].Seq != 3 || snapshot.With(stored) != nil {
		t.Errorf("entry %d, snapshot %+v", stored[0].Seq, snapshot.With(stored))
	}
	_, err = a.Append(t.Context(), id, []continuo.Entry{userEntry("x")}, continuo.AppendOptions{Snapshot: snapshot, ExpectSeq: 2})
	if conflict := new(continuo.ConflictError); !errors.As(err, &conflict) || conflict.Have != 4 {
		t.Errorf("an append behind an old snapshot: %v", err)
	}
}

// A log that does not have the end of a conversation in memory takes it from the snapshot, with its open calls.
func TestAnAppendTakesTheEndFromASnapshot(t *testing.T) {
	store := &readCounter{Store: storetest.NewMemory()}
	first := continuo.NewLog(store, continuo.LogOptions{})
	c, err := first.Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, first, c.ID, continuo.AppendOptions{}, userEntry("one"), continuo.Entry{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{continuo.FunctionCall("c1", "f", "{}")}})
	log := continuo.NewLog(store, continuo.LogOptions{})
	if c, err = log.Conversation(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	snapshot, err := log.Snapshot(t.Context(), c, 64)
	if err != nil {
		t.Fatal(err)
	}
	store.reads = 0
	mustAppend(t, log, c.ID, continuo.AppendOptions{Snapshot: snapshot}, continuo.Entry{Role: continuo.Tool, ToolCallID: "c1", Hidden: false, Content: continuo.Text("r"), OutputRef: continuo.FilesFolder + "x"})
	if store.reads != 0 {
		t.Errorf("the append made %d reads", store.reads)
	}
}

// A turn and its first entries are one commit, whatever else is appended at the same time.
func TestATurnBeginsInAnAppend(t *testing.T) {
	store := storetest.NewMemory()
	log := continuo.NewLog(store, continuo.LogOptions{})
	c, err := log.Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	begin := func(id string, entries ...continuo.Entry) (continuo.Turn, []continuo.Entry, error) {
		var begin *continuo.TurnBegin
		stored, err := log.Append(t.Context(), c.ID, entries, continuo.AppendOptions{Begin: func([]continuo.Entry) *continuo.TurnBegin {
			begin = &continuo.TurnBegin{Turn: continuo.Turn{ID: id, ConversationID: c.ID}, Lease: time.Hour}
			return begin
		}})
		if err != nil {
			return continuo.Turn{}, nil, err
		}
		return begin.Begun, stored, nil
	}
	const appends = 20
	done := make(chan error)
	for i := range appends {
		go func() {
			_, err := log.Append(context.Background(), c.ID, []continuo.Entry{userEntry(fmt.Sprint(i))}, continuo.AppendOptions{})
			done <- err
		}()
	}
	for i := range appends {
		go func() {
			begun, stored, err := begin(fmt.Sprint("turn_", i), userEntry("begin"))
			switch {
			case errors.Is(err, continuo.ErrBusy):
				err = nil
			case err == nil && (begun.State != continuo.TurnRunning || len(stored) != 1):
				err = fmt.Errorf("begun %+v with %d entries", begun, len(stored))
			}
			done <- err
		}()
	}
	for range 2 * appends {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	turns, err := store.Turns(t.Context(), continuo.TurnQuery{ConversationID: c.ID, Limit: 99})
	if err != nil || len(turns) != 1 {
		t.Errorf("%d turns began, %v", len(turns), err)
	}
	if c, err = log.Conversation(t.Context(), c.ID); err != nil || c.LastSeq != appends+1 {
		t.Errorf("%d entries, %v", c.LastSeq, err)
	}
	if _, err := store.UpdateTurn(t.Context(), continuo.TurnUpdate{ConversationID: c.ID, TurnID: turns[0].ID, Fence: turns[0].Fence, State: continuo.TurnVoid}); err != nil {
		t.Fatal(err)
	}
	if begun, stored, err := begin("turn_alone"); err != nil || len(stored) != 0 || begun.ID != "turn_alone" {
		t.Errorf("a turn without entries: %+v, %d entries, %v", begun, len(stored), err)
	}
	_, err = log.Append(t.Context(), c.ID, nil, continuo.AppendOptions{Key: "k", Begin: func([]continuo.Entry) *continuo.TurnBegin { return nil }})
	if !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("with an idempotency key: %v", err)
	}
}
