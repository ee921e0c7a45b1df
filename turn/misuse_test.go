package turn_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

func TestAKeeperNeedsALog(t *testing.T) {
	defer func() {
		if message := fmt.Sprint(recover()); !strings.Contains(message, "KeeperOptions.Log") {
			t.Errorf("it panicked with %q", message)
		}
	}()
	turn.NewKeeper(turn.KeeperOptions{})
}

func TestATurnGetsAnID(t *testing.T) {
	h := newHouse(t, textAnswer("hello"))
	keeper := turn.NewKeeper(turn.KeeperOptions{Log: h.log})
	journal, err := keeper.Begin(t.Context(), continuo.Turn{ConversationID: h.conversation.ID})
	if err != nil {
		t.Fatal(err)
	}
	if id := journal.Turn().ID; !strings.HasPrefix(id, "turn_") {
		t.Errorf("its id is %q", id)
	}
	if err := h.runner.Run(journal, turn.Input{Message: continuo.Text("hi")}); err != nil {
		t.Error(err)
	}
	if _, err := keeper.Begin(t.Context(), continuo.Turn{}); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("a turn of no conversation: %v", err)
	}
}

// A turn that cannot run leaves nothing in the log and nothing in its way.
func TestAnInvalidRunnerStartsNoTurn(t *testing.T) {
	for name, spoil := range map[string]func(*turn.Runner){
		"without a model":              func(r *turn.Runner) { r.Model = nil },
		"without a view":               func(r *turn.Runner) { r.View = nil },
		"with a view of no definition": func(r *turn.Runner) { r.View = window.View{} },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, textAnswer("hello"))
			runner := *h.runner
			spoil(&runner)
			journal := h.begin(t.Context())
			if err := runner.Run(journal, turn.Input{Message: continuo.Text("hi")}); !errors.Is(err, continuo.ErrInvalid) {
				t.Errorf("got %v", err)
			}
			if n := len(h.entries()); n != 0 {
				t.Errorf("it left %d entries", n)
			}
			h.send("hi")
		})
	}
}

func TestARunnerWithoutALogHasItsKeepers(t *testing.T) {
	h := newHouse(t, textAnswer("hello"))
	h.runner.Log = nil
	h.send("hi")
	if entries := h.entries(); len(entries) != 2 || entries[1].Content.String() != "hello" {
		t.Errorf("got %v", entries)
	}
}

func TestAJournalRunsOnce(t *testing.T) {
	h := newHouse(t, textAnswer("hello"), textAnswer("hello again"))
	journal := h.begin(t.Context())
	in := turn.Input{Message: continuo.Text("hi")}
	if err := h.runner.Run(journal, in); err != nil {
		t.Fatal(err)
	}
	if err := h.runner.Run(journal, in); !errors.Is(err, continuo.ErrNotRunning) {
		t.Errorf("run again: %v", err)
	}
	if err := h.keeper.Abandon(journal); !errors.Is(err, continuo.ErrNotRunning) {
		t.Errorf("abandoned after it ran: %v", err)
	}
	if n := len(h.entries()); n != 2 {
		t.Errorf("there are %d entries", n)
	}
	journal = h.begin(context.Background())
	if err := h.keeper.Abandon(journal); err != nil {
		t.Fatal(err)
	}
	if err := h.runner.Run(journal, in); !errors.Is(err, continuo.ErrNotRunning) {
		t.Errorf("run after it was abandoned: %v", err)
	}
}

// A Conversation value does not grow with the log.
func TestARequestHasWhatWasAppendedSinceTheConversationWasRead(t *testing.T) {
	h := newHouse(t)
	info := model.Info{Provider: "openai", Name: "gpt-4o", Protocol: model.ProtocolOpenAIChat}
	h.append("What grows here?", "Carrots.")
	read, err := h.log.Conversation(t.Context(), h.conversation.ID)
	if err != nil {
		t.Fatal(err)
	}
	fork, err := h.log.Fork(t.Context(), h.conversation.ID, 0, continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	h.append("An important question.")
	if _, err := h.log.Append(t.Context(), fork.ID, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("An important question.")}}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	h.conversation, err = h.log.Conversation(t.Context(), h.conversation.ID)
	if err != nil {
		t.Fatal(err)
	}
	want, err := turn.Build(t.Context(), h.log, h.conversation, 3, h.runner.View, continuo.Envelope{Model: "gpt-4o"}, info)
	if err != nil || !strings.Contains(string(want.Body), "important") {
		t.Fatalf("%+v, %v", want, err)
	}
	values := map[string]continuo.Conversation{"created": {ID: read.ID}, "read before": read, "fork": fork, "current": h.conversation}
	for name, value := range values {
		for _, at := range []int64{0, 3} {
			t.Run(fmt.Sprintf("%s at %d", name, at), func(t *testing.T) {
				request, err := turn.Build(t.Context(), h.log, value, at, h.runner.View, continuo.Envelope{}, info)
				if err != nil || string(request.Body) != string(want.Body) || request.Plan.At != 3 {
					t.Errorf("got %+v, %v, want %s", request, err, want.Body)
				}
				plan, err := turn.Plan(t.Context(), h.log, value, at, h.runner.View, continuo.Envelope{}, info)
				if err != nil || plan.At != 3 || plan.Totals.Kept != 3 {
					t.Errorf("plan %+v, %v", plan, err)
				}
				plan, err = h.runner.View.Build(turn.Source{Log: h.log, Conversation: value}, window.Input{At: at})
				if err != nil || plan.At != 3 || plan.Totals.Kept != 3 {
					t.Errorf("of the source: plan %+v, %v", plan, err)
				}
			})
		}
		if _, err := turn.Build(t.Context(), h.log, value, 4, h.runner.View, continuo.Envelope{}, info); !errors.Is(err, continuo.ErrBadRange) {
			t.Errorf("%s at 4: %v", name, err)
		}
	}
	past, err := turn.Build(t.Context(), h.log, h.conversation, 1, h.runner.View, continuo.Envelope{}, info)
	if err != nil || past.Plan.At != 1 || strings.Contains(string(past.Body), "important") {
		t.Errorf("at 1: %+v, %v", past, err)
	}
}

func TestASourceShowsAllThatThereIs(t *testing.T) {
	h := newHouse(t)
	h.append("one", "two", "three")
	source := turn.Source{Log: h.log, Conversation: continuo.Conversation{ID: h.conversation.ID, LastSeq: 1}}
	read := func(entries iter.Seq2[*continuo.Entry, error]) (texts []string) {
		for entry, err := range entries {
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, entry.Content.String())
		}
		return texts
	}
	if got := read(source.Forward(1)); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("forward: %q", got)
	}
	if got := read(source.Forward(3)); !slices.Equal(got, []string{"three"}) {
		t.Errorf("forward from 3: %q", got)
	}
	if got := read(source.Backward(99)); !slices.Equal(got, []string{"three", "two", "one"}) {
		t.Errorf("backward: %q", got)
	}
	if entry, err := source.LatestUser(3); err != nil || entry.Seq != 3 {
		t.Errorf("latest user: %+v, %v", entry, err)
	}
	for _, err := range (turn.Source{}).Backward(1) {
		if !errors.Is(err, continuo.ErrInvalid) {
			t.Errorf("an empty source: %v", err)
		}
	}
}

func TestARoundWithoutASeqIsNotReplayed(t *testing.T) {
	h := newHouse(t, textAnswer("hello"))
	h.send("hi")
	round := *h.entries()[1].Round
	round.At = 0
	if _, _, err := turn.Replay(t.Context(), h.log, h.conversation, &round, turn.ReadWindowView); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestAnUnknownProtocolIsRefusedWithTheKnownOnes(t *testing.T) {
	h := newHouse(t)
	h.append("hi")
	for _, protocol := range []string{"", "openai"} {
		_, err := turn.Build(t.Context(), h.log, h.conversation, 0, h.runner.View, continuo.Envelope{}, model.Info{Name: "m", Protocol: protocol})
		if !errors.Is(err, continuo.ErrInvalid) || !strings.Contains(err.Error(), model.ProtocolOpenAIChat) {
			t.Errorf("protocol %q: %v", protocol, err)
		}
	}
}

// append adds messages to the log: the user's and answers by turns.
func (h *house) append(texts ...string) {
	h.t.Helper()
	for i, text := range texts {
		role := []continuo.Role{continuo.User, continuo.Assistant}[i%2]
		if _, err := h.log.Append(h.t.Context(), h.conversation.ID, []continuo.Entry{{Role: role, Content: continuo.Text(text)}}, continuo.AppendOptions{}); err != nil {
			h.t.Fatal(err)
		}
	}
}
