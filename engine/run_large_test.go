package engine_test

import (
	"regexp"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/tool/fs"
)

// smallScriptedModel is a scriptedModel with a small context window.
type smallScriptedModel struct{ *scriptedModel }

func (a smallScriptedModel) Info() model.Info {
	info := a.scriptedModel.Info()
	info.ContextWindow = 32_000
	return info
}

const longChain = `
id: report
nodes:
  a: {brief: x}
  b: {brief: x}
  c: {brief: x}
  d: {brief: x}
  e: {brief: x}
edges: [a -> b, b -> c, c -> d, d -> e]
`

// Five steps whose answers have 40 000 characters each fit into a model of 32 000 tokens, and what a step is not shown of
// the others it can read.
func TestStepsWithLargeOutputsFitIntoASmallModel(t *testing.T) {
	answer := strings.Repeat("many words of an answer. ", 1600)
	m := &scriptedModel{answer: func(stepRequest) (string, error) { return answer, nil }}
	e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) {
		o.Models = map[string]engine.Upstream{"scripted": {Model: smallScriptedModel{m}}}
		o.Workflows = newWorkflowSource(t, longChain)
	})
	run := startRun(t, e, "s1")
	if status := awaitRun(t, e, run); status.State != continuo.RunFinished {
		t.Fatalf("the run is %s: %s", status.State, status.Reason)
	}
	sent := m.requests()
	last := strings.Join(sent[len(sent)-1].system, "\n")
	paths := regexp.MustCompile(`Full output: (@state/\S+)`).FindAllStringSubmatch(last, -1)
	if len(sent) != 5 || len(paths) != 4 {
		t.Fatalf("%d requests, and the last one names %q", len(sent), paths)
	}
	conversation, err := e.Log.Conversation(t.Context(), run.ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		arguments := string(rawjson.MustMarshal(map[string]any{"path": path[1], "from_byte": 39_000}))
		read := fs.Read{Roots: fs.Roots{Log: e.Log}}.Run(t.Context(), tool.Call{Conversation: conversation, Arguments: arguments})
		if read.Failed || !strings.Contains(read.Content, "many words of an answer") {
			t.Errorf("%s: %+v", path[1], read)
		}
	}
}

// What a step writes below @state/files is there for the steps after it, and says so in the log.
func TestAFileOfAStepIsReadByTheNext(t *testing.T) {
	m := &scriptedModel{answer: func(a stepRequest) (string, error) {
		if a.step == "a" && strings.HasPrefix(a.messages[len(a.messages)-1], "user: ") {
			return `call fs_write {"path":"@state/files/notes/a.md","content":"tea is warm"}`, nil
		}
		return "done", nil
	}}
	e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) {
		o.Tools, o.Policy = tool.Set{fs.Write{}}, tool.Policy{Otherwise: tool.Allow}
		o.Workflows = newWorkflowSource(t, "id: report\nnodes: {a: {brief: x}, b: {brief: x}}\nedges: [a -> b]\n")
	})
	run := startRun(t, e, "s1")
	if status := awaitRun(t, e, run); status.State != continuo.RunFinished {
		t.Fatalf("the run is %s: %s", status.State, status.Reason)
	}
	conversation, err := e.Log.Conversation(t.Context(), run.ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	call := tool.Call{Conversation: conversation, Arguments: `{"path":"@state/files/notes/a.md"}`}
	if read := (fs.Read{Roots: fs.Roots{Log: e.Log}}).Run(t.Context(), call); read.Failed || read.Content != "tea is warm" {
		t.Errorf("%+v", read)
	}
}
