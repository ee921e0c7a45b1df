package e2e

import (
	"strings"
	"testing"
)

// A CLI agent from a third party is given a task with the conversation that led to it, sends the
// history to its model, and its answer comes back.
func TestCLIAgentWorksOnATask(t *testing.T) {
	t.Parallel()
	b := startTaskServer(t)
	sample := b.readConversation()
	task := b.createTask(sample)
	worked := b.call("deploy_headless_agent", map[string]any{"task_id": task, "agent_type": "qwen", "wait_seconds": 300})
	if worked.Status != "completed" {
		t.Fatalf("the agent has %s: %s", worked.Status, worked.Reason)
	}
	if output := b.call("get_agent_output", map[string]any{"agent_id": worked.AgentID}); output.Status != "completed" || output.Output != advice {
		t.Errorf("the agent has %s and said %q", output.Status, output.Output)
	}
	if status := b.call("get_real_task_status", map[string]any{"task_id": task}); status.Status != "completed" || len(status.Agents) != 1 || status.Agents[0].AgentID != worked.AgentID {
		t.Errorf("the task is %+v", status)
	}
	prompt := b.call("get_task_prompt", map[string]any{"task_id": task}).Prompt
	b.checkPrompt(prompt, sample)
	b.checkSent(prompt)
	b.checkConversation(worked, prompt)
}

// checkPrompt compares a task's prompt with the conversation that it was made of.
func (b *taskServer) checkPrompt(prompt string, sample sampleConversation) {
	b.Helper()
	_, history, found := strings.Cut(prompt, "CONVERSATION HISTORY (Leading to This Task):\n")
	if !found || !strings.Contains(prompt, taskDescription) {
		b.Fatalf("the prompt lacks its history or its description:\n%s", prompt)
	}
	for _, message := range sample.userMessages() {
		// The lines of a message are indented by four spaces.
		if whole := "    " + strings.ReplaceAll(message, "\n", "\n    ") + "\n"; !strings.Contains(history, whole) {
			b.Errorf("the history lacks what the user said:\n%s\n\nit is\n%s", whole, history)
		}
	}
	for _, part := range []string{
		`Let me see. called read({"path":"house/kitchen.txt"}) -> Read the notes on the kitchen; search({"words":"washer"}) -> drawer 4: 12 mm, 15 mm`,
		"It may be the washer, or the seat beneath it.", "4 messages",
	} {
		if !strings.Contains(history, part) {
			b.Errorf("the history lacks %q:\n%s", part, history)
		}
	}
}

// checkSent looks for a prompt, whole, in what the agent sent to its model as the user's message.
func (b *taskServer) checkSent(prompt string) {
	b.Helper()
	sent := b.model.requests()
	for _, request := range sent {
		if strings.Contains(request.usersText(), strings.TrimSpace(prompt)) {
			return
		}
	}
	b.Errorf("none of the agent's %d requests to its model has the task's prompt whole", len(sent))
	for _, request := range sent {
		text := request.usersText()
		b.Logf("a request's user says:\n%s", text[:min(len(text), 8000)])
	}
}

// checkConversation looks at an agent's own conversation: it names the task, and has the prompt and the answer.
func (b *taskServer) checkConversation(worked toolAnswer, prompt string) {
	b.Helper()
	var own struct {
		Kind     string `json:"kind"`
		Metadata struct {
			TaskID string `json:"task_id"`
		} `json:"metadata"`
	}
	getJSON(b, b.server.url+"/api/conversations/"+worked.ConversationID, &own)
	if own.Kind != "agent" || own.Metadata.TaskID != worked.TaskID {
		b.Errorf("the agent's conversation is %+v, and its task %s", own, worked.TaskID)
	}
	var page struct {
		Data []struct{ Role, Content string }
	}
	getJSON(b, b.server.url+"/api/conversations/"+worked.ConversationID+"/entries?order=asc", &page)
	if n := len(page.Data); n != 2 || !strings.HasPrefix(strings.TrimSpace(page.Data[0].Content), strings.TrimSpace(prompt)) || page.Data[1].Role != "assistant" || page.Data[1].Content != advice {
		b.Errorf("the agent's conversation has %d entries: %+v", n, page.Data)
	}
}
