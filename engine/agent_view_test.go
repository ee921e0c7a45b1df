package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
)

// fileReadingModel is a model that reads files side by side and then answers; it keeps its requests.
type fileReadingModel struct {
	files    int
	requests []string
}

func (r *fileReadingModel) Info() model.Info {
	return model.Info{Provider: "test", Name: "gpt-4o", Protocol: model.ProtocolOpenAIChat}
}

func (r *fileReadingModel) Stream(_ context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		r.requests = append(r.requests, string(body))
		if len(r.requests) > 1 {
			_ = yield(model.Delta{Text: "I have read them."}, nil) && yield(model.Delta{Finish: "stop"}, nil)
			return
		}
		for i := range r.files {
			call := &model.ToolCallDelta{Index: i, ID: fmt.Sprintf("call_%d", i), Type: "function", Name: "test_read", Arguments: fmt.Sprintf(`{"file":%d}`, i), Done: true}
			if !yield(model.Delta{ToolCall: call}, nil) {
				return
			}
		}
		yield(model.Delta{Finish: "tool_calls"}, nil)
	}
}

// fileTool is a tool that reads files of 6 000 characters.
type fileTool struct{}

func (fileTool) Spec() continuo.ToolSpec {
	return continuo.ToolSpec{Name: "test.read", Description: "Reads a file.", Parameters: json.RawMessage(`{"type":"object"}`)}
}

func (fileTool) Run(_ context.Context, call tool.Call) tool.Result {
	var in struct{ File int }
	if err := json.Unmarshal([]byte(call.Arguments), &in); err != nil {
		return tool.Failure("%v", err)
	}
	return tool.Result{Outcome: "Read it", Content: fileText(in.File)}
}

func fileText(n int) string {
	var text strings.Builder
	for line := 0; text.Len() < 6000; line++ {
		fmt.Fprintf(&text, "file %d, line %d: what it says there is nowhere else\n", n, line)
	}
	return text.String()
}

// An agent that nobody configured, asked to read six files, is shown six files.
func TestAnAgentSeesTheFilesThatItReads(t *testing.T) {
	m := &fileReadingModel{files: 6}
	e, err := engine.New(continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{Objects: storetest.NewObjects()}), engine.Options{
		Models: map[string]engine.Upstream{"reader": {Model: m}}, Default: "reader", Agents: map[string]engine.Agent{"coder": {ID: "coder"}},
		Tools: tool.Set{fileTool{}}, Policy: tool.Policy{Otherwise: tool.Allow},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(t.Context()) })
	asked := request("s1", "Read all six files.")
	asked.AgentID = "coder"
	chat, err := e.Turns.Chat(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range chat.Events {
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(m.requests) != 2 {
		t.Fatalf("%d requests, want 2", len(m.requests))
	}
	for i := range m.files {
		whole, err := json.Marshal(fileText(i))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(m.requests[1], strings.Trim(string(whole), `"`)) {
			t.Errorf("file %d is not in the second request, which has %d bytes", i, len(m.requests[1]))
		}
	}
}
