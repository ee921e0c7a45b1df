package mcpserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
)

// What clients are told of the server, its tools, prompts and templates.
func TestWhatIsOffered(t *testing.T) {
	c := newWorld(t).client("default", nil)
	offered := map[string]any{"capabilities": c.InitializeResult().Capabilities, "instructions": c.InitializeResult().Instructions}
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	prompts, err := c.ListPrompts(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	templates, err := c.ListResourceTemplates(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	offered["tools"], offered["prompts"], offered["templates"] = tools.Tools, prompts.Prompts, templates.ResourceTemplates
	golden(t, "offered.json", offered)
	for _, tool := range tools.Tools {
		if tool.Annotations == nil || tool.Title == "" || len(tool.Description) < 50 || tool.InputSchema == nil || tool.OutputSchema == nil {
			t.Errorf("%s is not described well: %+v", tool.Name, tool)
		}
	}
}

// golden compares JSON with a file of testdata.
func golden(t *testing.T, name string, value any) {
	t.Helper()
	var have bytes.Buffer
	encoder := json.NewEncoder(&have)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, have.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(want, have.Bytes()) {
		t.Errorf("%s is out of date (rewrite with -update): %v\n%s", path, err, have.Bytes())
	}
}

func TestTaskFromMessages(t *testing.T) {
	c := newWorld(t).client("default", nil)
	var made struct {
		ID       string `json:"task_id"`
		Status   string
		Priority string
		History  struct {
			Total     int `json:"total_messages"`
			Truncated int `json:"truncated_count"`
		} `json:"conversation_history"`
		Warnings []struct{ Severity, Message string }
	}
	var messages []string
	for i := range 60 {
		messages = append(messages, fmt.Sprintf(`{"role": "user", "content": "message %d"}`, i))
	}
	messages = append(messages, fmt.Sprintf(`{"role": "assistant", "content": %q}`, strings.Repeat("ü", 151)))
	c.call("create_real_task", `{"description": "Fix it", "priority": "P1", "conversation_history": [`+strings.Join(messages, ",")+`], "deliverables": ["x"]}`, &made)
	if made.Status != "queued" || made.Priority != "P1" || made.History.Total != 50 || made.History.Truncated != 1 {
		t.Errorf("made %+v", made)
	}
	if len(made.Warnings) != 2 || made.Warnings[0].Severity != "medium" || !strings.Contains(made.Warnings[0].Message, "61") || !strings.Contains(made.Warnings[1].Message, `"deliverables"`) {
		t.Errorf("the warnings are %+v", made.Warnings)
	}
	prompt := textOf(c.try("get_task_prompt", fmt.Sprintf(`{"task_id": %q}`, made.ID)))
	if !strings.Contains(prompt, "Fix it") || !strings.Contains(prompt, "message 59") || strings.Contains(prompt, "message 10\n") {
		t.Errorf("the prompt is %s", prompt)
	}
	if resource, err := c.read("continuo://tasks/" + made.ID + "/prompt"); err != nil || resource != prompt {
		t.Errorf("the resource is %q, %v", resource, err)
	}
}

func TestTaskFromConversation(t *testing.T) {
	w := newWorld(t)
	conversation := w.newConversation("default", "s1", "The tap drips", "Which one?", "In the kitchen")
	c := w.client("default", nil)
	id := ""
	for _, history := range []string{fmt.Sprintf("%q", conversation.ID), `{"conversation_id": "s1", "from": 1, "to": 2}`} {
		var made struct {
			ID string `json:"task_id"`
		}
		c.call("create_real_task", `{"description": "Mend the tap", "conversation_history": `+history+`}`, &made)
		prompt := textOf(c.try("get_task_prompt", fmt.Sprintf(`{"task_id": %q}`, made.ID)))
		if !strings.Contains(prompt, "The tap drips") || strings.Contains(prompt, "In the kitchen") != (id == "") {
			t.Errorf("%s: the prompt is %s", history, prompt)
		}
		id = made.ID
	}
	c.fails("create_real_task", `{"description": "x", "conversation_history": "conv_0199c5f0d1a270008000000000000000"}`, "invalid_value", "conversation_history")
}

// Every kind of bad arguments, each with the type and the field that it is refused with.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	conversation := w.newConversation("default", "s1", "Hello", "Hi")
	w.add(conversation, w.openCall())
	c := w.client("default", nil)
	task, agent := c.given("Work"), "agent_0199c5f0d1a270008000000000000000"
	for _, row := range []struct{ tool, arguments, kind, field string }{
		{"create_real_task", `{}`, "missing_field", "description"},
		{"create_real_task", `{"description": 1}`, "type_error", "description"},
		{"create_real_task", `{"description": "x", "priority": "high"}`, "invalid_value", "priority"},
		{"create_real_task", `{"description": "x", "conversation_history": "some text"}`, "type_error", "conversation_history"},
		{"create_real_task", `{"description": "x", "conversation_history": "nokey"}`, "invalid_value", "conversation_history"},
		{"create_real_task", `{"description": "x", "conversation_history": ["text"]}`, "type_error", "conversation_history[0]"},
		{"create_real_task", `{"description": "x", "conversation_history": [{"role": "user", "content": "a"}, {"role": "user"}]}`, "missing_field", "conversation_history[1].content"},
		{"create_real_task", `{"description": "x", "conversation_history": [{"content": "a"}]}`, "missing_field", "conversation_history[0].role"},
		{"create_real_task", `{"description": "x", "conversation_history": [{"role": "system", "content": "a"}]}`, "invalid_value", "conversation_history[0].role"},
		{"create_real_task", `{"description": "x", "idempotency_key": "two words"}`, "invalid_value", "idempotency_key"},
		{"get_real_task_status", `{}`, "missing_field", "task_id"},
		{"get_real_task_status", `{"task_id": 7}`, "type_error", "task_id"},
		{"get_real_task_status", `{"task_id": "task_1"}`, "not_found", ""},
		{"get_real_task_status", `{"task": "task_1"}`, "invalid_value", "task"},
		{"list_real_tasks", `{"status": "done"}`, "invalid_value", "status"},
		{"list_real_tasks", `{"limit": 0}`, "invalid_value", "limit"},
		{"list_real_tasks", `{"limit": 1.5}`, "invalid_value", "limit"},
		{"list_real_tasks", `{"limit": "20"}`, "type_error", "limit"},
		{"list_real_tasks", `{"cursor": "x"}`, "invalid_value", "cursor"},
		{"get_task_prompt", `{"task_id": "` + agent + `"}`, "not_found", ""},
		{"deploy_headless_agent", `{"task_id": "task_1"}`, "not_found", ""},
		{"deploy_headless_agent", `{"task_id": "` + task + `", "agent_type": "nobody"}`, "invalid_value", "agent_type"},
		{"deploy_headless_agent", `{"task_id": "` + task + `", "wait_seconds": 301}`, "invalid_value", "wait_seconds"},
		{"get_agent_output", `{"agent_id": "` + agent + `"}`, "not_found", ""},
		{"get_agent_output", `{"agent_id": "` + agent + `", "limit": 1000000}`, "invalid_value", "limit"},
		{"kill_real_agent", `{"agent_id": "` + agent + `"}`, "not_found", ""},
		{"report_agent_finding", `{"task_id": "` + task + `"}`, "missing_field", "message"},
		{"report_agent_finding", `{"task_id": "` + task + `", "message": "x", "severity": "bad"}`, "invalid_value", "severity"},
		{"report_agent_finding", `{"task_id": "` + task + `", "message": "x", "data": [1]}`, "type_error", "data"},
		{"report_agent_finding", `{"task_id": "` + task + `", "message": "x", "agent_id": "` + agent + `"}`, "invalid_value", "agent_id"},
		{"search_conversations", `{}`, "missing_field", "query"},
		{"search_conversations", `{"query": "..."}`, "invalid_value", "query"},
		{"search_conversations", `{"query": "x", "cursor": "x"}`, "invalid_value", "cursor"},
		{"search_conversations", `{"query": "x", "kind": "people"}`, "invalid_value", "kind"},
		{"search_conversations", `{"query": "x", "from": 2}`, "invalid_value", "from"},
		{"search_conversations", `{"query": "x", "conversation": "nowhere"}`, "not_found", "conversation"},
		{"get_context", `{"conversation": "nowhere"}`, "not_found", ""},
		{"get_context", `{"conversation": "../s1"}`, "not_found", ""},
		{"get_context", `{"conversation": "s1", "view": "all"}`, "invalid_value", "view"},
		{"get_context", `{"conversation": "s1", "at": 99}`, "bad_range", "at"},
		{"get_context", `{"conversation": "s1", "max_chars": -1}`, "invalid_value", "max_chars"},
		{"get_context", `{"conversation": "s1", "system": "yes"}`, "type_error", "system"},
		{"append_message", `{"conversation": "s1", "role": "tool", "content": "x"}`, "invalid_value", "role"},
		{"append_message", `{"conversation": "s1", "role": "user"}`, "missing_field", "content"},
		{"append_message", `{"conversation": "s1", "role": "user", "content": "x"}`, "rule_broken", ""},
		{"append_message", `{"conversation": "s1", "role": "user", "content": "x", "expect_seq": 1}`, "conflict", "expect_seq"},
		{"append_message", `{"conversation": "` + strings.Replace(task, "task_", "conv_", 1) + `", "role": "user", "content": "x"}`, "invalid_value", "conversation"},
		{"append_message", `[1]`, "type_error", ""},
	} {
		c.fails(row.tool, row.arguments, row.kind, row.field)
	}
	refused := c.fails("create_real_task", `{"description": "x", "conversation_history": [{"role": "user", "content": "a"}, 7]}`, "type_error", "conversation_history[1]")
	if refused.Index == nil || *refused.Index != 1 {
		t.Errorf("the index is %v", refused.Index)
	}
	c.call("create_real_task", `{"description": "x", "idempotency_key": "k"}`, nil)
	c.fails("create_real_task", `{"description": "y", "idempotency_key": "k"}`, "idempotency_conflict", "idempotency_key")
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "no_tool"}); err == nil {
		t.Error("a tool that is not there was called")
	}
}

// The status of a task that was redacted with its findings conforms to its schema.
func TestRedactedTask(t *testing.T) {
	w := newWorld(t)
	c := w.client("default", nil)
	id := c.given("Look")
	c.call("report_agent_finding", fmt.Sprintf(`{"task_id": %q, "message": "a secret"}`, id), nil)
	conversation, err := w.log.Find(t.Context(), continuo.Scope{ProjectID: "default"}, strings.Replace(id, "task_", "conv_", 1))
	if err == nil {
		_, err = w.log.Redact(t.Context(), conversation, 1, 2, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	var status struct {
		Status   string
		Findings []struct{ Message string }
	}
	if c.call("get_real_task_status", fmt.Sprintf(`{"task_id": %q}`, id), &status); status.Status != "redacted" || len(status.Findings) != 1 || status.Findings[0].Message != "" {
		t.Errorf("the status is %+v", status)
	}
	c.call("list_real_tasks", `{}`, nil)
}

func TestListOfTasks(t *testing.T) {
	c := newWorld(t).client("default", nil)
	var want []string
	for i := range 7 {
		want = append([]string{c.given(fmt.Sprint("Task ", i))}, want...)
	}
	c.call("deploy_headless_agent", fmt.Sprintf(`{"task_id": %q, "wait_seconds": 300}`, want[3]), nil)
	type page struct {
		Tasks []struct {
			ID     string `json:"task_id"`
			Status string
			Agents int
		}
		NextCursor string `json:"next_cursor"`
	}
	for query, wants := range map[string][]string{
		`"limit": 3`: append([]string{want[3]}, slices.Concat(want[:3], want[4:])...), `"limit": 2, "status": "completed"`: {want[3]}, `"status": "killed"`: nil,
	} {
		var have []string
		for cursor := ""; ; {
			var page page
			arguments := "{" + query
			if cursor != "" {
				arguments += fmt.Sprintf(`, "cursor": %q`, cursor)
			}
			c.call("list_real_tasks", arguments+"}", &page)
			for _, task := range page.Tasks {
				have = append(have, task.ID)
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		if !slices.Equal(have, wants) {
			t.Errorf("%s: listed %v, want %v", query, have, wants)
		}
	}
}

func TestFindings(t *testing.T) {
	c := newWorld(t).client("default", nil)
	id := c.given("Look")
	c.call("report_agent_finding", fmt.Sprintf(`{"task_id": %q, "finding_type": "issue", "severity": "high", "message": "It leaks", "data": {"file": "a.go"}}`, id), nil)
	for i := range 60 {
		c.call("report_agent_finding", fmt.Sprintf(`{"task_id": %q, "message": "thought %d"}`, id, i), nil)
	}
	var status struct {
		Findings []struct{ Message, Severity string }
		Total    int `json:"findings_total"`
	}
	c.call("get_real_task_status", fmt.Sprintf(`{"task_id": %q}`, id), &status)
	if status.Total != 61 || len(status.Findings) != 50 || status.Findings[49].Message != "thought 59" || status.Findings[49].Severity != "medium" {
		t.Errorf("the status is %+v", status)
	}
}

func TestOnceWithAKey(t *testing.T) {
	w := newWorld(t)
	w.newConversation("default", "s1", "Hello")
	c := w.client("default", nil)
	task := c.given("Work")
	for tool, arguments := range map[string]string{
		"create_real_task":      `{"description": "x", "idempotency_key": "k1"}`,
		"deploy_headless_agent": fmt.Sprintf(`{"task_id": %q, "idempotency_key": "k2"}`, task),
		"append_message":        `{"conversation": "s1", "role": "assistant", "content": "Hi", "idempotency_key": "k3"}`,
	} {
		var first, second struct {
			TaskID  string `json:"task_id"`
			AgentID string `json:"agent_id"`
			Seq     int
		}
		c.call(tool, arguments, &first)
		if c.call(tool, arguments, &second); first != second {
			t.Errorf("%s: %+v and then %+v", tool, first, second)
		}
	}
}
