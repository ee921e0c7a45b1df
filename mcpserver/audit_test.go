package mcpserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/mcpserver"
	"github.com/continuo-log/continuo/store/storetest"
)

// Tools that change something are in the audit log before their answer; tools, resources and prompts that are read are there
// where reads are recorded. What was said is not.
func TestWhatIsAudited(t *testing.T) {
	for _, reads := range []bool{false, true} {
		store := storetest.NewMemory()
		w := newWorldOver(t, store)
		trail := audit.NewTrail(store, audit.Options{})
		caller := audit.Caller{Origin: audit.OriginMCP}
		w.server = mcpserver.New(w.engine, mcpserver.Options{Audit: trail, AuditReads: reads, Caller: caller})
		conversation, err := w.log.Create(t.Context(), continuo.Conversation{ProjectID: "p", Key: "s"})
		if err != nil {
			t.Fatal(err)
		}
		c := w.client("p", nil)
		call := func(name string, arguments map[string]any) *mcp.CallToolResult {
			t.Helper()
			result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
			if err != nil {
				t.Fatal(err)
			}
			return result
		}
		newest := func() (event audit.Event) {
			t.Helper()
			found, err := store.AuditEvents(t.Context(), audit.Query{Newest: true, Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			if len(found) == 1 {
				event = found[0]
			}
			return event
		}
		call("append_message", map[string]any{"conversation": "s", "role": "user", "content": "the secret word is swordfish"})
		if e := newest(); e.Operation != "mcp.append_message" || e.Status != 200 || e.ProjectID != "p" || e.Origin != audit.OriginMCP || e.ConversationID+e.Target == "" {
			t.Errorf("reads %t: after the answer to a change the newest event is %+v", reads, e)
		}
		call("create_real_task", map[string]any{"description": "Find the swordfish"})
		if e := newest(); e.Operation != "mcp.create_real_task" || e.Status != 200 {
			t.Errorf("reads %t: after the answer to a change the newest event is %+v", reads, e)
		}
		if !call("deploy_headless_agent", map[string]any{"task_id": "task_00000000000000000000000000000000"}).IsError {
			t.Error("an unknown task was accepted")
		}
		if e := newest(); e.Operation != "mcp.deploy_headless_agent" || e.Status != 400 {
			t.Errorf("reads %t: after a refused change the newest event is %+v", reads, e)
		}
		call("get_context", map[string]any{"conversation": "s"})
		call("get_context", map[string]any{"conversation": "s"})
		call("search_conversations", map[string]any{"query": "swordfish"})
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "continuo://conversations/" + conversation.ID}); err != nil {
			t.Log(err) // that it was refused is recorded, too
		}
		trail.Close()
		events, err := store.AuditEvents(t.Context(), audit.Query{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int64{}
		for _, e := range events {
			counts[e.Operation] += e.Count
			if text := fmt.Sprintf("%+v", e); strings.Contains(text, "swordfish") {
				t.Errorf("an event has content: %s", text)
			}
		}
		want := map[string]int64{"mcp.append_message": 1, "mcp.create_real_task": 1, "mcp.deploy_headless_agent": 1}
		if reads {
			want["mcp.get_context"], want["mcp.search_conversations"], want["mcp.resources/read"] = 2, 1, 1
		}
		if fmt.Sprint(counts) != fmt.Sprint(want) {
			t.Errorf("reads %t: recorded are %v, want %v", reads, counts, want)
		}
	}
}
