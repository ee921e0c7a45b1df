package engine_test

import (
	"context"
	"iter"
	"strings"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/tool/search"
)

const seeker = `
id: trio
roles:
  - {role_name: cid, display_name: Cid, model: seeks, system_prompt: You are Cid.}
`

// searchingModel is a model that searches the conversation for a word before each answer, and repeats what it found.
type searchingModel struct {
	mu    sync.Mutex
	found []string
}

func (*searchingModel) Info() model.Info {
	return model.Info{Provider: "test", Name: "seeks", Protocol: model.ProtocolOpenAIChat}
}

func (m *searchingModel) Stream(_ context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		_, result, ok := strings.Cut(string(body), `"role":"tool"`)
		if !ok {
			call := &model.ToolCallDelta{ID: "c", Name: "conversation_search", Arguments: `{"query":"swordfish","role":"user"}`, Done: true}
			_ = yield(model.Delta{ToolCall: call}, nil) && yield(model.Delta{Finish: "tool_calls"}, nil)
			return
		}
		m.mu.Lock()
		m.found = append(m.found, result)
		m.mu.Unlock()
		_ = yield(model.Delta{Text: "Searched."}, nil) && yield(model.Delta{Finish: "stop"}, nil)
	}
}

// What was said before a reset is out of the reach of a role's tools, after two resets too, and comes back with the
// restore that brings it back.
func TestAResetHoldsForTheToolsOfARole(t *testing.T) {
	seeks := &searchingModel{}
	store := storetest.NewMemory()
	log := continuo.NewLog(store, continuo.LogOptions{})
	e := newCrewEngineOver(t, log, &scriptedRoles{}, newCrewSource(t, seeker), func(o *engine.Options) {
		o.Models["seeks"], o.Default = engine.Upstream{Model: seeks}, "seeks"
		o.Policy = tool.Policy{Otherwise: tool.Allow}
		o.Tools = tool.Set{struct{ tool.Tool }{search.Tool{Log: log, Index: store}}} // offered in every situation
	})
	finds := func(text string, want bool) {
		t.Helper()
		awaitEndOfCycle(t, e, sendMessage(t, e, text).RunID)
		if newest := seeks.found[len(seeks.found)-1]; strings.Contains(newest, "word is swordfish") != want {
			t.Errorf("after %q the search found %s", text, newest)
		}
	}
	change := func(change func(context.Context, engine.CrewSession, string) (*engine.CrewStatus, error)) {
		t.Helper()
		if _, err := change(t.Context(), testSession, ""); err != nil {
			t.Fatal(err)
		}
	}
	finds("The word is swordfish.", true)
	change(e.Crews.Reset)
	finds("What was it?", false)
	change(e.Crews.Reset)
	finds("And now?", false)
	change(e.Crews.Restore)
	finds("After one restore?", false)
	change(e.Crews.Restore)
	finds("After both?", true)
}
