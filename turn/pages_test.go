package turn_test

import (
	"iter"
	"runtime"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/turn"
)

// TestReadersOfATurnShareItsEvents has readers read a large turn in step, and compares what they allocate with what one
// reader does. Each page is decoded once for all of them.
func TestReadersOfATurnShareItsEvents(t *testing.T) {
	var answer []any
	for range 400 {
		answer = append(answer, model.Delta{Text: strings.Repeat("a large turn ", 2000)})
	}
	h := newHouse(t, append(answer, model.Delta{Finish: "stop"}))
	journal := h.begin(t.Context())
	id := journal.Turn().ID
	if err := h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}); err != nil {
		t.Fatal(err)
	}
	elsewhere := turn.NewKeeper(turn.KeeperOptions{Log: h.log})
	one := allocated(t, func() { readInStep(t, elsewhere, h.conversation.ID, id, 1) })
	many := allocated(t, func() { readInStep(t, elsewhere, h.conversation.ID, id, 40) })
	t.Logf("1 reader allocates %d KiB, 40 readers allocate %d KiB", one>>10, many>>10)
	if many > 3*one {
		t.Errorf("40 readers allocate %.1f times what one does", float64(many)/float64(one))
	}
}

// allocated is how many bytes work allocates.
func allocated(t *testing.T, work func()) uint64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// readInStep has n readers follow a turn to its end, one event each in turn.
func readInStep(t *testing.T, keeper *turn.Keeper, conversationID, id string, n int) {
	t.Helper()
	nexts := make([]func() (turn.Event, error, bool), n)
	for i := range nexts {
		next, stop := iter.Pull2(keeper.Follow(t.Context(), conversationID, id, 0))
		defer stop()
		nexts[i] = next
	}
	for seen := int64(0); ; {
		for i, next := range nexts {
			event, err, more := next()
			if err != nil || !more {
				t.Fatal(err, more)
			}
			if i > 0 && event.ID != seen {
				t.Fatalf("reader %d sees event %d, the others see %d", i, event.ID, seen)
			}
			if seen = event.ID; event.IsEnd() && i == n-1 {
				return
			}
		}
	}
}

// account is the memory of a request.
type account struct{ taken, peak int64 }

func (a *account) Take(bytes int64) error {
	a.taken += bytes
	a.peak = max(a.peak, a.taken)
	return nil
}

// TestPagesTakeMemory: while a reader reads a page, its request's memory has the events and their entries; in the end
// nothing is left.
func TestPagesTakeMemory(t *testing.T) {
	const large = 2 << 20
	h := newHouse(t, []any{model.Delta{Text: strings.Repeat("a", large)}, model.Delta{Finish: "stop"}})
	journal := h.begin(t.Context())
	if err := h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}); err != nil {
		t.Fatal(err)
	}
	for _, stop := range []turn.Kind{turn.Started, turn.Finished} {
		elsewhere := turn.NewKeeper(turn.KeeperOptions{Log: h.log})
		memory := &account{}
		for event, err := range elsewhere.Follow(continuo.WithMemory(t.Context(), memory), h.conversation.ID, journal.Turn().ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if event.Kind == turn.Answered && memory.taken < large {
				t.Errorf("%d bytes are taken for an answer of %d", memory.taken, large)
			}
			if event.Kind == stop {
				break
			}
		}
		if memory.taken != 0 || memory.peak == 0 {
			t.Errorf("stopped at %s: %d bytes are left, there were %d", stop, memory.taken, memory.peak)
		}
	}
}
