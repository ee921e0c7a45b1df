package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
)

// What another project has is not found, in the same words as what nobody has.
func TestProjectsAreApart(t *testing.T) {
	const mark = "xyzzy"
	w := newWorld(t)
	owner, thief := w.client("victim", nil), w.client("thief", nil)
	conversation := w.newConversation("victim", "key-"+mark, mark, "a secret "+mark)
	w.calls(conversation, "call_"+mark, mark)
	task := owner.given("about " + mark)
	var agent output
	owner.call("deploy_headless_agent", fmt.Sprintf(`{"task_id": %q, "wait_seconds": 300}`, task), &agent)
	own := thief.given("mine")
	nobody := "0199c5f0d1a270008000000000000000"
	for _, row := range []struct{ tool, arguments, id, none string }{
		{"create_real_task", `{"description": "x", "conversation_history": "ID"}`, conversation.ID, "conv_" + nobody},
		{"get_real_task_status", `{"task_id": "ID"}`, task, "task_" + nobody},
		{"get_task_prompt", `{"task_id": "ID"}`, task, "task_" + nobody},
		{"deploy_headless_agent", `{"task_id": "ID"}`, task, "task_" + nobody},
		{"get_agent_output", `{"agent_id": "ID", "wait_seconds": 5}`, agent.ID, "agent_" + nobody},
		{"report_agent_finding", `{"task_id": "ID", "message": "I was here"}`, task, "task_" + nobody},
		{"report_agent_finding", `{"task_id": "` + own + `", "message": "x", "agent_id": "ID"}`, agent.ID, "agent_" + nobody},
		{"kill_real_agent", `{"agent_id": "ID"}`, agent.ID, "agent_" + nobody},
		{"search_conversations", `{"query": "secret", "conversation": "ID"}`, conversation.ID, "conv_" + nobody},
		{"get_context", `{"conversation": "ID"}`, conversation.ID, "conv_" + nobody},
		{"get_context", `{"conversation": "ID"}`, "key-" + mark, "key-nobody"},
		{"append_message", `{"conversation": "ID", "role": "user", "content": "I was here"}`, conversation.ID, "conv_" + nobody},
	} {
		got, want := thief.try(row.tool, strings.ReplaceAll(row.arguments, "ID", row.id)), thief.try(row.tool, strings.ReplaceAll(row.arguments, "ID", row.none))
		if !got.IsError || strings.ReplaceAll(resultText(t, got), row.id, row.none) != resultText(t, want) {
			t.Errorf("%s %s: %s; of what nobody has: %s", row.tool, row.id, resultText(t, got), resultText(t, want))
		}
	}
	for tool, arguments := range map[string]string{"list_real_tasks": `{}`, "search_conversations": `{"query": "` + mark + `"}`} {
		if text := resultText(t, thief.try(tool, arguments)); strings.Contains(text, mark) && !strings.Contains(tool, "search") || strings.Contains(text, conversation.ID) || strings.Contains(text, task) {
			t.Errorf("%s tells of the victim: %s", tool, text)
		}
		if text := resultText(t, owner.try(tool, arguments)); !strings.Contains(text, mark) {
			t.Errorf("%s tells the victim nothing, so the test shows nothing: %s", tool, text)
		}
	}
	for _, uri := range []string{
		"continuo://conversations/" + conversation.ID, "continuo://conversations/key-" + mark, "continuo://conversations/" + conversation.ID + "/transcript",
		"continuo://conversations/" + conversation.ID + "/tool-results/call_" + mark, "continuo://tasks/" + task + "/prompt", "continuo://conversations/" + agent.conversation(),
	} {
		if text, err := thief.read(uri); err == nil || !strings.Contains(err.Error(), "Resource not found") {
			t.Errorf("%s: %s, %v", uri, text, err)
		}
		if _, err := owner.read(uri); err != nil {
			t.Errorf("%s is not there for the victim: %v", uri, err)
		}
	}
	for resource, err := range thief.Resources(t.Context(), nil) {
		if err != nil || !strings.Contains(resource.URI, own) {
			t.Errorf("listed is %v, %v", resource, err)
		}
	}
	complete := &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: "continuo://conversations/{id}/tool-results/{call}"}, Argument: mcp.CompleteParamsArgument{Name: "id"}}
	if found, err := thief.Complete(t.Context(), complete); err != nil || len(found.Completion.Values) > 0 {
		t.Errorf("completed was %v, %v", found, err)
	}
	complete.Argument.Name, complete.Context = "call", &mcp.CompleteContext{Arguments: map[string]string{"id": conversation.ID}}
	if found, err := thief.Complete(t.Context(), complete); err != nil || len(found.Completion.Values) > 0 {
		t.Errorf("completed was %v, %v", found, err)
	}
	for _, name := range []string{"hand_off", "resume"} {
		if got, err := thief.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name, Arguments: map[string]string{"conversation": conversation.ID}}); err == nil {
			t.Errorf("%s gave %v", name, got)
		}
	}
}

func (o output) conversation() string { return strings.Replace(o.ID, "agent_", "conv_", 1) }

// resultText is everything of a result.
func resultText(t *testing.T, result *mcp.CallToolResult) string {
	t.Helper()
	data, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func jsonText(text string) any { return json.RawMessage(text) }

// Searches and lists are narrowed to a user, and searches to metadata; a client that is bound to a user reaches nobody else's.
func TestListsAndSearchesOfUsers(t *testing.T) {
	w := newWorld(t)
	all, bob := w.client("p", nil), w.clientIn(continuo.Scope{ProjectID: "p", UserID: "bob"}, nil, "")
	for _, user := range []string{"ada", "bob", ""} {
		made, err := w.log.Create(t.Context(), continuo.Conversation{
			ProjectID: "p", UserID: user, Key: "of-" + user + "x", Title: "a pelican", Metadata: json.RawMessage(`{"plan": "pro", "user": "` + user + `", "seats": 3, "trial": true}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		w.add(made, continuo.Entry{Role: continuo.User, Content: continuo.Text("the pelican of " + user)})
	}
	var found struct {
		Matches []struct {
			Key string
			Seq int64
		}
	}
	for arguments, want := range map[string]int{
		`{"query": "pelican", "role": "user"}`:                                                                               3,
		`{"query": "pelican", "role": "user", "user_id": "ada"}`:                                                             1,
		`{"query": "pelican", "role": "user", "user_id": "carol"}`:                                                           0,
		`{"query": "pelican", "role": "user", "metadata": {"plan": "pro", "seats": 3, "trial": true}}`:                       3,
		`{"query": "pelican", "role": "user", "metadata": {"plan": "pro", "user": "bob"}}`:                                   1,
		`{"query": "pelican", "role": "user", "metadata": {"plan": "pro", "user": "bob"}, "user_id": "ada", "kind": "user"}`: 0,
		`{"query": "pelican", "role": "user", "metadata": {"plan": "free"}}`:                                                 0,
	} {
		found.Matches = nil
		if all.call("search_conversations", arguments, &found); len(found.Matches) != want {
			t.Errorf("%s: %d matches, want %d: %+v", arguments, len(found.Matches), want, found.Matches)
		}
	}
	found.Matches = nil
	if bob.call("search_conversations", `{"query": "pelican", "role": "user"}`, &found); len(found.Matches) != 1 || found.Matches[0].Key != "of-bobx" {
		t.Errorf("bob finds %+v", found.Matches)
	}
	type listed struct {
		Tasks []struct {
			UserID string `json:"user_id"`
		}
	}
	var made struct {
		UserID string `json:"user_id"`
	}
	all.call("create_real_task", `{"description": "x", "user_id": "ada", "conversation_history": "of-adax"}`, &made)
	bob.call("create_real_task", `{"description": "x"}`, nil)
	all.call("create_real_task", `{"description": "x"}`, nil)
	for user, want := range map[string]int{`{"user_id": "ada"}`: 1, `{"user_id": "bob"}`: 1, `{}`: 3} {
		var tasks listed
		if all.call("list_real_tasks", user, &tasks); made.UserID != "ada" || len(tasks.Tasks) != want {
			t.Errorf("%s: %+v, want %d; %+v", user, tasks, want, made)
		}
	}
	bob.fails("list_real_tasks", `{"user_id": "ada"}`, "other_user", "user_id")
	bob.fails("search_conversations", `{"query": "pelican", "user_id": "ada"}`, "other_user", "user_id")
	bob.fails("create_real_task", `{"description": "x", "user_id": "ada"}`, "other_user", "user_id")
	all.fails("create_real_task", `{"description": "x", "user_id": "bob", "conversation_history": "of-adax"}`, "invalid_value", "conversation_history")
	all.fails("list_real_tasks", `{"user_id": "a\u0001"}`, "invalid_value", "user_id")
	all.fails("search_conversations", `{"query": "x", "user_id": ""}`, "invalid_value", "user_id")
	all.fails("search_conversations", `{"query": "x", "metadata": ["plan"]}`, "type_error", "metadata")
	all.fails("search_conversations", `{"query": "x", "metadata": {"plan": {}}}`, "invalid_value", "metadata")
	all.fails("search_conversations", `{"query": "x", "conversation": "of-adax", "metadata": {"plan": "pro"}}`, "invalid_value", "conversation")
}

// TestASearchLeavesOutWhatAClientDeleted: a model reads the matches.
func TestASearchLeavesOutWhatAClientDeleted(t *testing.T) {
	w := newWorld(t)
	made, err := w.log.Create(t.Context(), continuo.Conversation{ProjectID: "default", Key: "deleted"})
	if err != nil {
		t.Fatal(err)
	}
	w.add(made, continuo.Entry{Role: continuo.User, Content: continuo.Text("a cormorant")}, continuo.Entry{Role: continuo.User, Content: continuo.Text("another cormorant")})
	w.add(made, continuo.DeletionOf(1, "item"))
	var found struct {
		Matches []struct{ Seq int64 }
	}
	if w.client("default", nil).call("search_conversations", `{"query": "cormorant"}`, &found); len(found.Matches) != 1 || found.Matches[0].Seq != 2 {
		t.Errorf("found %+v", found.Matches)
	}
}
