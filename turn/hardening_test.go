package turn_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// onDisk puts a house on SQLite.
func onDisk(t *testing.T, h *house) *house {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	h.over(store)
	return h
}

type badTool struct{ echo }

func (badTool) Run(context.Context, tool.Call) tool.Result { return tool.Result{Content: "caf\xe9"} }

func TestToolWithInvalidUTF8(t *testing.T) {
	h := newHouse(t, asks("bad {}"), says("fine"))
	h.runner.Tools = tool.Set{badTool{echo{name: "bad"}}}
	last, err := h.run(context.Background(), turn.Input{Message: continuo.Text("go")})
	if err != nil || last.Kind != turn.Finished {
		t.Errorf("%v %v; entries %d", last.Kind, err, len(h.entries()))
	}
}

type bigTool struct{ echo }

func (bigTool) Run(context.Context, tool.Call) tool.Result {
	return tool.Result{Content: strings.Repeat("x", 33<<20)}
}

func TestToolTooLarge(t *testing.T) {
	h := newHouse(t, asks("bad {}"), says("fine"))
	h.runner.Tools = tool.Set{bigTool{echo{name: "bad"}}}
	last, err := h.run(context.Background(), turn.Input{Message: continuo.Text("go")})
	if err != nil || last.Kind != turn.Finished {
		t.Errorf("%v %v; entries %d", last.Kind, err, len(h.entries()))
	}
}

func TestLeavingEarlyDoesNotPanic(t *testing.T) {
	h := onDisk(t, newHouse(t, says("fine")))
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("panic: %v", p)
		}
	}()
	for event, err := range h.follow(context.Background(), turn.Input{Message: continuo.Text("go")}) {
		t.Log(event.Kind, err)
		break
	}
}

func TestCancelDuringTools(t *testing.T) {
	for _, cause := range []error{nil, turn.ErrInterrupted} {
		h := onDisk(t, newHouse(t, asks("slow {}"), says("fine")))
		ctx, cancel := context.WithCancelCause(context.Background())
		h.runner.Tools = tool.Set{echo{name: "slow", begin: func() { cancel(cause) }}}
		last, err := h.run(ctx, turn.Input{Message: continuo.Text("go")})
		all := h.entries()
		newest := all[len(all)-1]
		if err != nil || newest.Error == nil {
			t.Errorf("cause %v: last %v, err %v; the newest of %d entries is %s, error %v", cause, last.Kind, err, len(all), newest.Role, newest.Error)
		}
	}
}

func TestHiddenOpenCalls(t *testing.T) {
	h := newHouse(t, says("fine"))
	hidden := continuo.Entry{Role: continuo.Assistant, Hidden: true, ToolCalls: []continuo.ToolCall{continuo.FunctionCall("c", "f", "{}")}}
	if _, err := h.log.Append(t.Context(), h.conversation.ID, []continuo.Entry{hidden}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	last, err := h.run(context.Background(), turn.Input{Message: continuo.Text("go")})
	if err != nil || last.Kind != turn.Finished {
		t.Errorf("%v %v", last.Kind, err)
	}
}
