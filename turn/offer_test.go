package turn_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// lookup is a tool that can only show what a request leaves out.
type lookup struct{ echo }

func (lookup) Useful(s tool.Situation) bool { return s.Partial }

// offeredTo are the names of the tools in each request that a model got.
func offeredTo(t *testing.T, m *script) []string {
	t.Helper()
	var offered []string
	for _, body := range m.bodies {
		var request openaichat.Request
		if err := json.Unmarshal([]byte(body), &request); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, offer := range request.Tools {
			names = append(names, offer.Function.Name)
		}
		offered = append(offered, strings.Join(names, " "))
	}
	return offered
}

func TestAToolIsOfferedWhereItCanDoSomething(t *testing.T) {
	h := newHouse(t, textAnswer("a1"), textAnswer("a2"), textAnswer("a3"), textAnswer("a4"))
	h.runner.Tools = tool.Set{echo{name: "always"}, lookup{echo{name: "lookup"}}}
	h.limit(window.Limits{Messages: 5})
	for _, message := range []string{"q1", "q2", "q3", "q4"} {
		h.send(message)
	}
	got := offeredTo(t, h.model)
	for i, want := range []string{"always", "always", "always", "always lookup"} {
		if got[i] != want {
			t.Errorf("request %d offers %q, want %q", i+1, got[i], want)
		}
	}
	h.checkReplays()
}

func TestAPreviewBringsTheToolsThatReadIt(t *testing.T) {
	h := newHouse(t, asks("big {}"), textAnswer("seen"))
	h.runner.Tools = tool.Set{flood{}, lookup{echo{name: "lookup"}}}
	h.send("go")
	if got := offeredTo(t, h.model); got[0] != "big" || got[1] != "big lookup" {
		t.Errorf("offered %q", got)
	}
	h.checkReplays()
}

// flood is a tool whose result is shown as a preview.
type flood struct{}

func (flood) Spec() continuo.ToolSpec { return echo{name: "big"}.Spec() }

func (flood) Run(context.Context, tool.Call) tool.Result {
	return tool.Result{Content: strings.Repeat("one line of many\n", 5000)}
}

func TestARunnerThatOffersAllTools(t *testing.T) {
	h := newHouse(t, textAnswer("a1"))
	h.runner.Tools, h.runner.AllTools = tool.Set{lookup{echo{name: "lookup"}}}, true
	h.send("q1")
	if got := offeredTo(t, h.model); got[0] != "lookup" {
		t.Errorf("offered %q", got)
	}
}

// checkReplays makes every request of the log again.
func (h *house) checkReplays() {
	h.t.Helper()
	conversation, err := h.log.Conversation(h.t.Context(), h.conversation.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, entry := range h.entries() {
		if entry.Round == nil {
			continue
		}
		if _, same, err := turn.Replay(h.t.Context(), h.log, conversation, entry.Round, turn.ReadWindowView); err != nil || !same {
			h.t.Errorf("the request of entry %d made again: same %t, %v", entry.Seq, same, err)
		}
	}
}
