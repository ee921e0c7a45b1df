package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/historytest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/storetest"
)

// loose is a store with a bug: it ignores the fencing tokens of updates that come with entries.
type loose struct{ maintenance.Store }

func (l loose) Append(ctx context.Context, batch continuo.Batch) error {
	kept := batch.Turns[:0:0]
	for _, update := range batch.Turns {
		turn, err := l.Turn(ctx, update.ConversationID, update.TurnID)
		if err != nil {
			return err
		}
		if update.Fence = turn.Fence; turn.State == continuo.TurnRunning {
			kept = append(kept, update)
		}
	}
	batch.Turns = kept
	return l.Store.Append(ctx, batch)
}

// contest is a turn that several processes believe to be theirs, with the history of what they did.
type contest struct {
	t            *testing.T
	store        maintenance.Store
	log          *continuo.Log
	conversation continuo.Conversation
	history      *historytest.History
}

const contested = "turn_contested"

func newContest(t *testing.T, store maintenance.Store) *contest {
	t.Helper()
	c := &contest{t: t, store: store, log: continuo.NewLog(store, continuo.LogOptions{}), history: historytest.New()}
	var err error
	if c.conversation, err = c.log.Create(t.Context(), continuo.Conversation{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// begin begins the turn, whose lease has expired at once: its owner is paused for longer than that.
func (c *contest) begin(owner string) continuo.Turn {
	c.t.Helper()
	called := c.history.Now()
	turn, err := storetest.BeginTurn(c.t.Context(), c.store, continuo.Turn{ID: contested, ConversationID: c.conversation.ID, Owner: owner}, time.Nanosecond)
	if err != nil {
		c.t.Fatal(err)
	}
	c.append(turn, continuo.User, "begin", historytest.Operation{Kind: historytest.Begin, Owner: owner, Called: called}, "")
	return turn
}

// take makes another process the owner.
func (c *contest) take(seen continuo.Turn, owner string) (continuo.Turn, error) {
	operation := historytest.Operation{Kind: historytest.Take, Turn: contested, Owner: owner, Called: c.history.Now(), Outcome: historytest.Done}
	turn, err := c.store.TakeTurn(c.t.Context(), seen, owner, time.Nanosecond)
	if err != nil {
		operation.Outcome = historytest.Refused
	}
	c.history.Add(operation)
	return turn, err
}

// send adds an answer with the fencing token that its owner has; a state ends the turn.
func (c *contest) send(turn continuo.Turn, text string, state continuo.TurnState) {
	c.t.Helper()
	operation := historytest.Operation{Kind: historytest.AppendEntry, Owner: turn.Owner, Last: state != "", Called: c.history.Now()}
	c.append(turn, continuo.Assistant, text, operation, state)
}

func (c *contest) append(turn continuo.Turn, role continuo.Role, text string, operation historytest.Operation, state continuo.TurnState) {
	c.t.Helper()
	operation.Turn, operation.Value, operation.Outcome = contested, text, historytest.Done
	update := continuo.TurnUpdate{ConversationID: c.conversation.ID, TurnID: contested, Fence: turn.Fence, State: state}
	_, err := c.log.Append(c.t.Context(), c.conversation.ID, []continuo.Entry{{Role: role, Content: continuo.Text(text)}},
		continuo.AppendOptions{Turn: func([]continuo.Entry) continuo.TurnUpdate { return update }})
	switch {
	case errors.Is(err, continuo.ErrLeaseLost):
		operation.Outcome = historytest.Refused
	case err != nil:
		c.t.Error(err)
	}
	c.history.Add(operation)
}

// verify reads the log and checks the history.
func (c *contest) verify() error {
	c.t.Helper()
	read := historytest.Operation{Kind: historytest.Read, Outcome: historytest.Done, Called: c.history.Now()}
	conversation, err := c.log.Conversation(c.t.Context(), c.conversation.ID)
	if err != nil {
		c.t.Fatal(err)
	}
	for entry, err := range c.log.Read(c.t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			c.t.Fatal(err)
		}
		read.Log = append(read.Log, entry.Content.String())
	}
	c.history.Add(read)
	return historytest.Verify(c.history.Operations())
}

// An owner pauses for longer than its lease and writes when another process has taken its turn. The history of a store
// that ignores the fencing token is found out, whether the turn still runs or has ended; that of a real one is in order.
func TestAPausedOwnersWriteIsDetected(t *testing.T) {
	for name, end := range map[string]continuo.TurnState{"it runs": "", "it has ended": continuo.TurnFinished} {
		for _, ignores := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fences ignored: %t", name, ignores), func(t *testing.T) {
				store := storetest.NewMemory()
				if ignores {
					store = loose{store}
				}
				c := newContest(t, store)
				paused := c.begin("a")
				taken, err := c.take(paused, "b")
				if err != nil {
					t.Fatal(err)
				}
				c.send(taken, "of the new owner", end)
				c.send(paused, "of the paused owner", "")
				if err := c.verify(); (err != nil) != ignores {
					t.Errorf("the checker says: %v", err)
				}
			})
		}
	}
}

// Processes take a turn from each other and write to it at once: each write is the owner's at its moment.
func TestOwnersContendForATurn(t *testing.T) {
	c := newContest(t, storetest.NewMemory())
	c.begin("owner-0")
	var owners sync.WaitGroup
	for i := range 4 {
		owners.Go(func() {
			for n := range 8 {
				seen, err := c.store.Turn(t.Context(), c.conversation.ID, contested)
				if err != nil {
					t.Error(err)
					return
				}
				mine, err := c.take(seen, fmt.Sprintf("owner-%d", i))
				if err == nil {
					c.send(mine, fmt.Sprintf("%d of owner %d", n, i), "")
				}
			}
		})
	}
	owners.Wait()
	if err := c.verify(); err != nil {
		t.Error(err)
	}
}
