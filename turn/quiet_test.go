package turn_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/turn"
)

// timedWrites notes when events were written without an entry, since the test began.
type timedWrites struct {
	continuo.Store
	mu    sync.Mutex
	began time.Time
	at    []time.Duration
}

func (w *timedWrites) UpdateTurn(ctx context.Context, update continuo.TurnUpdate) ([]continuo.TurnSignal, error) {
	w.mu.Lock()
	if len(update.Events) > 0 {
		w.at = append(w.at, time.Since(w.began))
	}
	w.mu.Unlock()
	return w.Store.UpdateTurn(ctx, update)
}

// What has arrived of an answer together is written together: with the answer, where its end has come too. An upstream that
// stops within an event has what came before written soon.
func TestDeltasThatComeTogether(t *testing.T) {
	pause := func(context.Context) { time.Sleep(time.Second) }
	for name, test := range map[string]struct {
		answer []any
		want   []time.Duration
	}{
		"a whole answer": {
			answer: []any{model.Delta{Text: "one ", More: true}, model.Delta{Text: "two", More: true}, model.Delta{Finish: "stop"}},
		},
		"one after the other": {
			answer: []any{model.Delta{Text: "one "}, pause, model.Delta{Text: "two"}, pause, model.Delta{Finish: "stop"}},
			want:   []time.Duration{0, time.Second},
		},
		"two, a pause, and the end": {
			answer: []any{model.Delta{Text: "one ", More: true}, model.Delta{Text: "two"}, pause, model.Delta{Finish: "stop"}},
			want:   []time.Duration{0},
		},
		"more that does not come": {
			answer: []any{model.Delta{Text: "one ", More: true}, pause, model.Delta{Finish: "stop"}},
			want:   []time.Duration{10 * time.Millisecond},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &timedWrites{Store: storetest.NewMemory(), began: time.Now()}
				h := newHouse(t, test.answer)
				h.over(store)
				if last := h.send("go"); last.Kind != turn.Finished {
					t.Fatalf("the turn ended with %s", last.Kind)
				}
				if !slices.Equal(store.at, test.want) {
					t.Errorf("events were written after %v, want %v", store.at, test.want)
				}
			})
		})
	}
}
