package server

import (
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
)

// Ids of tasks and agents that do not exist.
const (
	noTaskID  = "task_0199c5f0d1a270008000000000000000"
	noAgentID = "agent_0199c5f0d1a270008000000000000000"
)

// taskKey is the Idempotency-Key that the victim's task and its agent were started with.
const taskKey = "task-once"

// tasks gives a task away, with the victim's s1, and has an agent work on it.
func (v *victim) tasks(e *engine.Engine, source string) {
	v.t.Helper()
	body := `{"description": "find ` + mark + `", "conversation_history": "` + source + `"}`
	v.askAsOwner("POST", "/api/tasks", body, "Idempotency-Key", taskKey).into(201, &v.task)
	v.askAsOwner("POST", "/api/tasks/"+v.task.ID+"/agents", "", "Idempotency-Key", taskKey).into(201, &v.agent)
	waitForText(v.t, e, v.agent)
	v.askAsOwner("POST", "/api/tasks/"+v.task.ID+"/findings", `{"message": "it is `+mark+`"}`)
}

// hidesTask makes the row of a call about a task: another's is not found.
func hidesTask(method, call, body string) func(*victim) {
	return func(v *victim) { v.hidden(method, "/api/tasks/ID"+call, body, v.task.ID, noTaskID) }
}

// hidesAgent makes the row of a call about an agent: another's is not found, nor is it one of the thief's task.
func hidesAgent(method, call, body string) func(*victim) {
	return func(v *victim) {
		v.t.Helper()
		v.hidden(method, "/api/tasks/ID/agents/"+v.agent.ID+call, body, v.task.ID, noTaskID)
		v.hidden(method, "/api/tasks/"+v.task.ID+"/agents/ID"+call, body, v.agent.ID, noAgentID)
		var own engine.TaskStatus
		v.askAsOther("POST", "/api/tasks", `{"description": "mine"}`, "Idempotency-Key", "of-the-thief").into(201, &own)
		v.hidden(method, "/api/tasks/"+own.ID+"/agents/ID"+call, body, v.agent.ID, noAgentID)
	}
}

// givesTasks: another's conversation explains nothing, and another's Idempotency-Key has begun nothing.
func (v *victim) createsTasks() {
	v.t.Helper()
	for _, id := range append(v.conversations, v.task.ConversationID, v.agent.ConversationID) {
		body := func(id string) string { return `{"description": "x", "conversation_history": "` + id + `"}` }
		v.askAsOther("POST", "/api/tasks", body(id)).failed(400, "invalid_value", "conversation_history")
		v.askAsOther("POST", "/api/tasks", body(noConversation)).failed(400, "invalid_value", "conversation_history")
	}
	var made engine.TaskStatus
	v.askAsOther("POST", "/api/tasks", `{"description": "mine"}`, "Idempotency-Key", taskKey).into(201, &made)
	if made.ID == v.task.ID {
		v.t.Errorf("another's Idempotency-Key gave %+v", made)
	}
	var agent engine.DeployedAgent
	v.askAsOther("POST", "/api/tasks/"+made.ID+"/agents", "", "Idempotency-Key", taskKey).into(201, &agent)
	if agent.ID == v.agent.ID || agent.TaskID != made.ID {
		v.t.Errorf("another's Idempotency-Key gave %+v", agent)
	}
}

// listsTasks: neither a cursor nor a kind shows what is another's.
func (v *victim) listsTasks() {
	v.t.Helper()
	var page api.List[engine.TaskStatus]
	if v.askAsOwner("GET", "/api/tasks", "").into(200, &page); len(page.Data) != 1 || page.Data[0].ID != v.task.ID {
		v.t.Errorf("the victim's tasks are %+v: the test shows nothing", page.Data)
	}
	cursor := *api.WriteCursor(map[string]any{"updated_at": v.task.UpdatedAt.AddDate(1, 0, 0), "id": v.task.ConversationID})
	for _, target := range []string{"/api/tasks", "/api/tasks?status=completed", "/api/tasks?cursor=" + cursor, "/api/conversations?kind=task", "/api/conversations?kind=agent&cursor=" + cursor} {
		v.askAsOther("GET", target, "")
	}
}
