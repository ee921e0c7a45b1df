package turn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
)

func TestAKeeperNeedsALog(t *testing.T) {
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "KeeperOptions.Log") {
			t.Errorf("it panicked with %q", said)
		}
	}()
	turn.NewKeeper(turn.KeeperOptions{})
}

func TestATurnGetsAnID(t *testing.T) {
	h := newHouse(t, says("hello"))
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
func TestARunnerThatCannotRunBeginsNothing(t *testing.T) {
	for name, spoil := range map[string]func(*turn.Runner){
		"without a model": func(r *turn.Runner) { r.Model = nil },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, says("hello"))
			runner := *h.runner
			spoil(&runner)
			journal := h.begin(t.Context())
			if err := runner.Run(journal, turn.Input{Message: continuo.Text("hi")}); !errors.Is(err, continuo.ErrInvalid) {
				t.Errorf("got %v", err)
			}
			if n := len(h.entries()); n != 0 {
				t.Errorf("it left %d entries", n)
			}
			h.say("hi")
		})
	}
}

func TestARunnerWithoutALogHasItsKeepers(t *testing.T) {
	h := newHouse(t, says("hello"))
	h.runner.Log = nil
	h.say("hi")
	if entries := h.entries(); len(entries) != 2 || entries[1].Content.String() != "hello" {
		t.Errorf("got %v", entries)
	}
}

func TestAJournalRunsOnce(t *testing.T) {
	h := newHouse(t, says("hello"), says("hello again"))
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
