package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

func beginTurn(t *testing.T, store *Store, conversationID, id string) continuo.Turn {
	t.Helper()
	turn, err := storetest.BeginTurn(t.Context(), store, continuo.Turn{ID: id, ConversationID: conversationID, Owner: "one"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

func TestLeasesRunByTheClockOfTheStore(t *testing.T) {
	now := sometime
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{Now: func() time.Time { return now }})
	defer store.Close()
	newConversation(t, store, "a", 0)
	turn := beginTurn(t, store, "a", "t1")
	expect := func(after time.Duration, expired bool) {
		t.Helper()
		now = sometime.Add(after)
		if found, err := store.Turn(t.Context(), "a", "t1"); err != nil || found.LeaseExpired != expired || !found.StartedAt.Equal(sometime) {
			t.Errorf("after %v: %+v, %v; want that expired is %v", after, found, err, expired)
		}
	}
	expect(0, false)
	expect(time.Minute-1, false)
	expect(time.Minute, true)
	update := continuo.TurnUpdate{ConversationID: "a", TurnID: "t1", Fence: turn.Fence, Lease: time.Second}
	if _, err := store.UpdateTurn(t.Context(), update); err != nil {
		t.Fatal(err)
	}
	expect(time.Minute+time.Second-1, false)
	expect(time.Minute+time.Second, true)
	update.State = continuo.TurnFinished
	if _, err := store.UpdateTurn(t.Context(), update); err != nil {
		t.Fatal(err)
	}
	if found, err := store.Turn(t.Context(), "a", "t1"); err != nil || !found.EndedAt.Equal(now) {
		t.Errorf("it ended at %v, want %v; %v", found.EndedAt, now, err)
	}
}

// TestWhatIsPrunedOrDeletedLeavesNoRows counts the rows of a turn whose conversation a fork begins with.
func TestWhatIsPrunedOrDeletedLeavesNoRows(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{})
	defer store.Close()
	ctx := t.Context()
	newConversation(t, store, "a", 1)
	fork := continuo.Conversation{ID: "b", ProjectID: "p", ParentID: "a", ForkSeq: 1, LastSeq: 1, Lineage: []continuo.Segment{{ConversationID: "a", Through: 1}}}
	if err := store.Create(ctx, fork, nil); err != nil {
		t.Fatal(err)
	}
	for i, state := range []continuo.TurnState{continuo.TurnFinished, continuo.TurnVoid, ""} {
		turn := beginTurn(t, store, "a", fmt.Sprint("t", i))
		if err := store.SignalTurn(ctx, "a", turn.ID, continuo.TurnSignal{Kind: continuo.SignalCancel}); err != nil {
			t.Fatal(err)
		}
		event := continuo.TurnEvent{ID: 1, Data: []byte(`{}`)}
		if _, err := store.UpdateTurn(ctx, continuo.TurnUpdate{ConversationID: "a", TurnID: turn.ID, Fence: turn.Fence, Events: []continuo.TurnEvent{event}, State: state}); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what, want string) {
		t.Helper()
		var turns, events, signals int
		err := store.read(ctx, func(conn *connection) error {
			return conn.row(`SELECT (SELECT count(*) FROM turns), (SELECT count(*) FROM turn_events), (SELECT count(*) FROM turn_signals)`,
				nil, &turns, &events, &signals)
		})
		if got := fmt.Sprint(turns, events, signals); err != nil || got != want {
			t.Errorf("%s there are %s turns, events and signals, want %s; %v", what, got, want, err)
		}
	}
	expect("at first", "3 3 3")
	if pruned, err := store.PruneTurnEvents(ctx, time.Now().Add(time.Hour), 9); err != nil || pruned != 2 {
		t.Errorf("pruned %d; %v", pruned, err)
	}
	expect("after pruning", "3 1 1")
	if err := store.Delete(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	expect("after the deletion", "0 0 0")
}

// TestAFullDiskRefusesATurnWithItsEntries has a batch fail halfway for another reason than a verdict.
func TestAFullDiskRefusesATurnWithItsEntries(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{maxPages: 100})
	defer store.Close()
	newConversation(t, store, "a", 0)
	turn := beginTurn(t, store, "a", "t1")
	batch := continuo.Batch{
		ConversationID: "a", Entries: someEntries("a", 1, 1, strings.Repeat("large", 1<<18)),
		Turns: []continuo.TurnUpdate{{ConversationID: "a", TurnID: "t1", Fence: turn.Fence, State: continuo.TurnFinished}},
	}
	if err := store.Append(t.Context(), batch); !errors.Is(err, continuo.ErrFull) {
		t.Errorf("a batch that does not fit: %v", err)
	}
	expectLast(t, store, "a", 0)
	if found, err := store.Turn(t.Context(), "a", "t1"); err != nil || found != turn {
		t.Errorf("the turn is %+v, want %+v; %v", found, turn, err)
	}
	batch.Entries = someEntries("a", 1, 1, "small")
	if err := store.Append(t.Context(), batch); err != nil {
		t.Error(err)
	}
	expectLast(t, store, "a", 1)
}
