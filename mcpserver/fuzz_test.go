package mcpserver_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// FuzzCall calls every tool with arguments of any kind: each answers as its schema says, and nothing goes wrong inside.
func FuzzCall(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `7`, `"x"`, `{"task_id": {"a": []}}`, `{"conversation": "s1", "at": 1e400}`, `{"conversation": "s1", "max_chars": 9223372036854775808}`,
		`{"description": "\u0000\ud800", "conversation_history": [{"role": "user", "content": {"a": 1}}]}`, `{"query": "\"", "limit": -0.0}`,
		`{"conversation": "s1", "role": "user", "content": "\u0000"}`, `{"agent_id": "agent_../../x", "from": -9007199254740993, "wait_seconds": 0}`,
		`{"description": "x", "description": "y", "conversation_history": ` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, arguments string) {
		if !json.Valid([]byte(arguments)) || strings.Contains(arguments, "wait_seconds") && !strings.Contains(arguments, `"wait_seconds": 0`) {
			return
		}
		w := newWorld(t)
		w.newConversation("default", "s1", "Hello", "Hi")
		c := w.client("default", nil)
		for name := range c.schemas {
			result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			c.check(name, result)
			if text := textOf(result); result.IsError && strings.HasPrefix(text, "internal") {
				t.Errorf("%s: %s", name, text)
			}
		}
	})
}

// Requests that are no calls of tools are refused as well, and the server goes on.
func TestHostileRequests(t *testing.T) {
	w := newWorld(t)
	conversation := w.newConversation("default", "s1", "Hello")
	c := w.client("default", nil)
	long := strings.Repeat("x", 100_000)
	for i, err := range []error{
		second(c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: long})),
		second(c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "\x00"})),
		second(c.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: long})),
		second(c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "resume", Arguments: map[string]string{"conversation": long}})),
		second(c.CallTool(t.Context(), &mcp.CallToolParams{Name: long})),
	} {
		if err == nil || len(err.Error()) > 250_000 {
			t.Errorf("request %d: %.200v", i, err)
		}
	}
	uris := slices.Repeat([]string{"continuo://conversations/" + conversation.ID}, 3)
	for _, uri := range uris { // to the same one again and again
		if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.read("continuo://conversations/s1"); err != nil {
		t.Errorf("the server does not go on: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }
