package turn_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/token"
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
	h.log = continuo.NewLog(store, continuo.LogOptions{Counter: token.O200k()})
	h.conversation, err = h.log.Create(context.Background(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	h.runner.Log = h.log
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
	for event, err := range h.runner.Run(context.Background(), turn.Input{ConversationID: h.conversation.ID, Message: continuo.Text("go")}) {
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

func TestRetryOfABrokenTurnAfterAnother(t *testing.T) {
	h := newHouse(t, says("answer to b"), says("answer to a"))
	// turn a: its user entry got in, then the program was killed: what begin() writes
	ctx, cancel := context.WithCancel(context.Background())
	func() {
		defer func() { _ = recover() }() // the panic of TestLeavingEarlyDoesNotPanic
		for range h.runner.Run(ctx, turn.Input{ConversationID: h.conversation.ID, Message: continuo.Text("question a"), Key: "a"}) {
			panic("killed")
		}
	}()
	cancel()
	all := h.entries()
	t.Logf("%d entries after the kill", len(all))
	h.say("question b")
	last, err := h.run(context.Background(), turn.Input{Message: continuo.Text("question a"), Key: "a"})
	t.Log(last.Kind, err)
	for i, b := range h.model.bodies {
		t.Log(i, b)
	}
	body := h.model.bodies[len(h.model.bodies)-1]
	if i, j := strings.LastIndex(body, `"role":"assistant"`), strings.LastIndex(body, `"role":"user"`); i > j {
		t.Errorf("the request ends with the assistant's words")
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

func TestModeChangeAndKey(t *testing.T) {
	h := newHouse(t, says("fine"), says("again"))
	in := turn.Input{Message: continuo.Text("go"), Key: "k", Mode: continuo.ModeChat}
	if _, err := h.run(context.Background(), in); err != nil {
		t.Fatal(err)
	}
	in.Mode = continuo.ModeAgent
	last, err := h.run(context.Background(), in)
	if err != nil || last.Entry.Content.String() != "fine" {
		t.Errorf("%v %v", last.Kind, err)
	}
}
