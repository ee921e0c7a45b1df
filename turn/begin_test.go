package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/turn"
)

// beginWith takes the lease of a new turn and appends its input.
func (h *house) beginWith(in turn.Input) (*turn.Journal, error) {
	if h.keeper == nil {
		h.keeper = turn.NewKeeper(turn.KeeperOptions{Log: h.log})
	}
	return h.runner.Begin(context.Background(), h.keeper, continuo.Turn{ID: h.log.NewID("turn"), ConversationID: h.conversation.ID}, in)
}

// callCounter notes which calls of the store a turn makes.
type callCounter struct {
	continuo.Store
	calls []string
}

func (c *callCounter) Conversation(ctx context.Context, id string) (continuo.Conversation, error) {
	c.calls = append(c.calls, "Conversation")
	return c.Store.Conversation(ctx, id)
}

func (c *callCounter) Entries(ctx context.Context, id string, query continuo.EntryQuery) ([]continuo.Entry, error) {
	c.calls = append(c.calls, "Entries")
	return c.Store.Entries(ctx, id, query)
}

func (c *callCounter) Append(ctx context.Context, batch continuo.Batch) error {
	c.calls = append(c.calls, "Append")
	return c.Store.Append(ctx, batch)
}

func TestATurnBeginsWithItsInputInOneCommit(t *testing.T) {
	counter := &callCounter{Store: storetest.NewMemory()}
	h := newHouse(t, textAnswer("Hello."), textAnswer("Again."))
	h.over(counter)
	h.send("first")
	conversation, err := h.log.Conversation(t.Context(), h.conversation.ID)
	if err != nil {
		t.Fatal(err)
	}
	counter.calls = nil
	in := turn.Input{Conversation: conversation, Message: continuo.Text("second"), Mode: continuo.ModeAgent, AgentID: "writer"}
	journal, err := h.beginWith(in)
	if err != nil {
		t.Fatal(err)
	}
	if all := h.entries(); len(all) != 3 || all[2].TurnID != journal.Turn().ID || all[2].AgentID != "writer" {
		t.Errorf("log %q", shapes(all))
	}
	counter.calls = counter.calls[:1] // without the reads of this test
	if err := h.runner.Run(journal, in); err != nil {
		t.Fatal(err)
	}
	if want := []string{"Append", "Append"}; !slices.Equal(counter.calls, want) {
		t.Errorf("the turn made the calls %q, want %q", counter.calls, want)
	}
	var kinds []turn.Kind
	for event, err := range h.keeper.Follow(t.Context(), h.conversation.ID, journal.Turn().ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, event.Kind)
	}
	if kinds[0] != turn.Started || kinds[len(kinds)-1] != turn.Finished {
		t.Errorf("events %q", kinds)
	}
	now, err := h.log.Conversation(t.Context(), h.conversation.ID)
	if err != nil || now.ActiveMode != continuo.ModeAgent || now.ActiveAgent != "writer" {
		t.Errorf("%+v, %v", now, err)
	}
}

// The entry of the input is shown as the store returns it, not as it was given: a replayed request must be equal.
func TestTheFirstRequestEqualsThatOfTheLog(t *testing.T) {
	h := newHouse(t, textAnswer("I see."))
	var content continuo.Content
	if err := json.Unmarshal([]byte(`[ {"type": "text",  "text": "<look & tell>"}, {"detail" :1e2, "type":"x_note", "note":"\u00e9"} ]`), &content); err != nil {
		t.Fatal(err)
	}
	in := turn.Input{Message: content}
	journal, err := h.beginWith(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.runner.Run(journal, in); err != nil {
		t.Fatal(err)
	}
	round := h.entries()[1].Round
	if request, same, err := turn.Replay(t.Context(), h.log, h.conversation, round, turn.ReadWindowView); err != nil || !same {
		t.Errorf("the replayed request is\n%s\nand not\n%s; %v", request.Body, h.model.bodies[0], err)
	}
}

func TestATurnThatBeganWithItsInputIsNotVoid(t *testing.T) {
	for name, end := range map[string]func(h *house, journal *turn.Journal) error{
		"its process is killed": func(h *house, _ *turn.Journal) error {
			other := turn.NewKeeper(turn.KeeperOptions{Log: h.log, Gone: func(string) bool { return true }})
			recovered, err := other.RecoverAll(context.Background())
			if recovered != 1 {
				t.Errorf("recovered %d", recovered)
			}
			return err
		},
		"it is abandoned": func(h *house, journal *turn.Journal) error { return h.keeper.Abandon(journal) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			journal, err := h.beginWith(turn.Input{Message: continuo.Text("hello")})
			if err != nil {
				t.Fatal(err)
			}
			if err := end(h, journal); err != nil {
				t.Fatal(err)
			}
			ended, err := h.log.Turns().Turn(t.Context(), h.conversation.ID, journal.Turn().ID)
			if err != nil || ended.State != continuo.TurnFailed || ended.Reason != continuo.ReasonInterrupted {
				t.Errorf("%+v, %v", ended, err)
			}
			if all := h.entries(); len(all) != 2 || all[0].Content.String() != "hello" || all[1].Error == nil {
				t.Errorf("log %q", shapes(all))
			}
		})
	}
}

func TestATurnDoesNotBeginOnALogThatHasGrown(t *testing.T) {
	h := newHouse(t, textAnswer("Hello."), textAnswer("Yes."))
	stale := h.conversation
	h.send("first")
	in := turn.Input{Conversation: stale, Message: continuo.Text("second")}
	_, err := h.beginWith(in)
	if conflict := new(continuo.ConflictError); !errors.As(err, &conflict) || conflict.Have != 3 {
		t.Errorf("began on a conversation without entries: %v", err)
	}
	if turns, err := h.log.Turns().Turns(t.Context(), continuo.TurnQuery{ConversationID: stale.ID, Limit: 9}); err != nil || len(turns) != 1 {
		t.Errorf("%d turns, %v", len(turns), err)
	}
	in.Conversation = continuo.Conversation{}
	journal, err := h.beginWith(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.runner.Run(journal, in); err != nil || len(h.entries()) != 4 {
		t.Errorf("%v; log %q", err, shapes(h.entries()))
	}
}

// A turn whose process is gone is closed first, and the next one begins behind its end.
func TestATurnBeginsAfterAnInterruptedOne(t *testing.T) {
	h := newHouse(t, textAnswer("Yes."))
	if _, err := h.beginWith(turn.Input{Message: continuo.Text("first")}); err != nil {
		t.Fatal(err)
	}
	h.keeper = turn.NewKeeper(turn.KeeperOptions{Log: h.log, Gone: func(string) bool { return true }})
	in := turn.Input{Message: continuo.Text("second")}
	journal, err := h.beginWith(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.runner.Run(journal, in); err != nil {
		t.Fatal(err)
	}
	all := h.entries()
	if len(all) != 4 || all[1].Error == nil || all[2].Content.String() != "second" || all[3].Content.String() != "Yes." {
		t.Errorf("log %q", shapes(all))
	}
}
