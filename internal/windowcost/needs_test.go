package main

import (
	"testing"

	continuo "github.com/continuo-log/continuo"
)

func TestNeedsAreFound(t *testing.T) {
	const line, other = "func parse(text string) (Config, error) {", "return Config{}, errors.New(text)"
	call := func(id, tool, arguments string) continuo.Entry {
		return continuo.Entry{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{continuo.FunctionCall(id, tool, arguments)}}
	}
	result := func(id, text string) continuo.Entry {
		return continuo.Entry{Role: continuo.Tool, ToolCallID: id, Content: continuo.Text(text)}
	}
	needs := needsOf([]continuo.Entry{
		{Role: continuo.User, Content: continuo.Text("fix it")},
		call("1", "read", `{"path":"a.go"}`), result("1", line+"\n"+other),
		call("2", "bash", `{"command":"cat a.go"}`), result("2", line+"\n"+other),
		call("3", "edit", `{"path":"a.go","old":"func parse(text string) (Config, error) {"}`), result("3", "done"),
		call("4", "edit", `{"path":"b.go","old":"func parse(text string) (Config, error) {"}`), result("4", "done"), // it has the line from its own call
		{Role: continuo.Assistant, Content: continuo.Text("It now has:\n" + other)},
	})
	want := map[int]map[string]int{3: {readsAgain: 1}, 5: {edits: 1, quotes: 1}, 9: {quotes: 1}}
	for i := range 10 {
		found := map[string]int{}
		for _, need := range needs[i] {
			found[need.kind]++
		}
		for _, kind := range []string{readsAgain, quotes, edits} {
			if found[kind] != want[i][kind] {
				t.Errorf("step %d: %s %d times, want %d", i, kind, found[kind], want[i][kind])
			}
		}
	}
}
