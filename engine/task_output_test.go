package engine_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
)

// fedModel is a model that says what it is given, one request after another; a finish ends the request.
type fedModel struct{ deltas chan model.Delta }

func (f fedModel) Info() model.Info {
	return model.Info{Provider: "fed", Name: "gpt-4o", Protocol: model.ProtocolOpenAIChat}
}

func (f fedModel) Stream(ctx context.Context, _ []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for {
			select {
			case delta := <-f.deltas:
				if !yield(delta, nil) || delta.Finish != "" {
					return
				}
			case <-ctx.Done():
				yield(model.Delta{}, ctx.Err())
				return
			}
		}
	}
}

// emit gives the model what it says next, and returns when that is kept.
func (f fedModel) emit(deltas ...model.Delta) {
	for _, delta := range deltas {
		f.deltas <- delta
	}
	time.Sleep(time.Second) // in a bubble: until it was flushed
	synctest.Wait()
}

// between is a store that does something before one of the reads to come.
type between struct {
	continuo.Store
	left int // reads until then; 0 for never
	do   func()
}

func (b *between) read() {
	if b.left == 0 {
		return
	}
	if b.left--; b.left == 0 {
		b.do()
	}
}

func (b *between) Conversation(ctx context.Context, id string) (continuo.Conversation, error) {
	b.read()
	return b.Store.Conversation(ctx, id)
}

func (b *between) Entries(ctx context.Context, id string, query continuo.EntryQuery) ([]continuo.Entry, error) {
	b.read()
	return b.Store.Entries(ctx, id, query)
}

func (b *between) Turn(ctx context.Context, conversationID, id string) (continuo.Turn, error) {
	b.read()
	return b.Store.Turn(ctx, conversationID, id)
}

func (b *between) TurnEvents(ctx context.Context, conversationID, id string, after int64, limit int) ([]continuo.TurnEvent, error) {
	b.read()
	return b.Store.TurnEvents(ctx, conversationID, id, after, limit)
}

// Whatever an agent does between two reads of those that its output is made of: what was shown before is shown, nothing
// is shown twice, and one that is completed is shown with all that it has said.
func TestAnAgentsOutputGoesWithItsState(t *testing.T) {
	call := model.Delta{ToolCall: &model.ToolCallDelta{ID: "c", Type: "function", Name: "step", Arguments: "{}", Done: true}}
	for name, act := range map[string]struct {
		deltas []model.Delta
		whole  string
	}{
		"it ends":                       {[]model.Delta{{Text: " Second."}, {Finish: "stop"}}, "First. Second."},
		"it calls a tool, and talks on": {[]model.Delta{call, {Finish: "tool_calls"}, {Text: "Second."}}, "First.\n\n[calls step {}]\n\nSecond."},
		"it calls a tool, and ends": {
			[]model.Delta{call, {Finish: "tool_calls"}, {Text: "Second."}, {Finish: "stop"}},
			"First.\n\n[calls step {}]\n\nSecond.",
		},
	} {
		for reads, acted := 1, true; acted; reads++ {
			t.Run(fmt.Sprintf("%s before read %d", name, reads), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fed, store := fedModel{make(chan model.Delta)}, &between{Store: storetest.NewMemory()}
					e := newRunEngine(t, store, nil, func(o *engine.Options) {
						o.Models = map[string]engine.Upstream{"scripted": {Model: fed}}
						o.Tools, o.Policy = tool.Set{&counted{name: "step"}}, tool.Policy{Otherwise: tool.Allow}
					})
					agent := deploy(t, e, createTask(t, e, "Try", "").ID, "")
					fed.emit(model.Delta{Text: "First."})
					store.left, store.do = reads, func() { fed.emit(act.deltas...) }
					output, err := e.Tasks.Output(t.Context(), continuo.Scope{ProjectID: "default"}, agent.ID, 0, 0)
					if acted = store.left == 0; !acted {
						store.left = 0
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					if !strings.HasPrefix(output.Output, "First.") || !strings.HasPrefix(act.whole, output.Output) || output.State == engine.TaskCompleted && output.Output != act.whole {
						t.Errorf("it is %s and has said %q", output.State, output.Output)
					}
				})
			})
		}
	}
}
