package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/turn"
)

// worksUntilStopped writes that it works, and runs until it is stopped; asked to be quick, it ends at once.
func worksUntilStopped(ctx context.Context, shown []shownMessage, yield func(model.Delta) bool) error {
	if strings.Contains(shown[len(shown)-1].Content.String(), "Be quick.") {
		yield(model.Delta{Text: "It is größer."})
		return nil
	}
	yield(model.Delta{Text: "I work. "})
	<-ctx.Done()
	return ctx.Err()
}

// newTaskServer makes a server whose only agent works until it is stopped. A project may have two at once.
func newTaskServer(t *testing.T) (*engine.Engine, *server) {
	t.Helper()
	options := withModel(&fakeModel{"gpt-4o", worksUntilStopped})
	options.MaxAgents = 2
	made := newEngine(t, options)
	return made, New(made, Options{}).(*server)
}

func createTask(t *testing.T, handler *server, body string) engine.TaskStatus {
	t.Helper()
	var made engine.TaskStatus
	ask(t, handler, "POST", "/api/tasks", body).into(201, &made)
	return made
}

// deployTo sets an agent to work, and returns its path too.
func deployTo(t *testing.T, handler *server, given engine.TaskStatus, body string) (agent engine.DeployedAgent, path string) {
	t.Helper()
	ask(t, handler, "POST", "/api/tasks/"+given.ID+"/agents", body).into(201, &agent)
	return agent, "/api/tasks/" + given.ID + "/agents/" + agent.ID
}

// waitForText waits until an agent has produced text, or has ended.
func waitForText(t *testing.T, e *engine.Engine, agent engine.DeployedAgent) {
	t.Helper()
	for event, err := range e.Turns.Follow(t.Context(), continuo.Turn{ConversationID: agent.ConversationID, ID: agent.TurnID}, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind == turn.TextDelta && strings.HasPrefix(event.Text, "I work") {
			return
		}
	}
}

// exerciseTasks deploys agents, reads their output and kills them.
func exerciseTasks(t *testing.T) {
	t.Helper()
	made, handler := newTaskServer(t)
	agent, path := deployTo(t, handler, createTask(t, handler, `{"description": "a"}`), "")
	waitForText(t, made, agent)
	ask(t, handler, "GET", path, "").into(200, &struct{}{})
	ask(t, handler, "GET", path+"/output", "").into(200, &struct{}{})
	ask(t, handler, "POST", path+"/kill", "").into(202, &struct{}{})
}

func TestAnAgentWorksAndIsKilled(t *testing.T) {
	made, handler := newTaskServer(t)
	given := createTask(t, handler, `{"description": "Measure"}`)
	agent, path := deployTo(t, handler, given, `{"agent_type": "only"}`)
	if agent.State != engine.TaskRunning || agent.TaskID != given.ID || agent.Type != "only" {
		t.Errorf("deployed is %+v", agent)
	}
	waitForText(t, made, agent)
	quick, quickPath := deployTo(t, handler, given, `{"prompt": "Be quick."}`)
	waitForText(t, made, quick)

	var output engine.AgentOutput
	ask(t, handler, "GET", quickPath+"/output", "").into(200, &output)
	if output.Output != "It is größer." || output.Total != 13 || output.State != engine.TaskCompleted || output.EndedAt.IsZero() {
		t.Errorf("the output is %+v", output)
	}
	for query, want := range map[string]string{"?from=6&limit=3": "grö", "?from=-4": "ßer.", "?from=13": "", "?from=99": "", "?from=-99&limit=2": "It"} {
		if ask(t, handler, "GET", quickPath+"/output"+query, "").into(200, &output); output.Output != want {
			t.Errorf("%s gives %q, want %q", query, output.Output, want)
		}
	}

	var now engine.TaskStatus
	ask(t, handler, "GET", "/api/tasks/"+given.ID, "").into(200, &now)
	if now.State != engine.TaskRunning || len(now.Agents) != 2 || now.Agents[0].ID != agent.ID || now.Agents[1].State != engine.TaskCompleted {
		t.Errorf("the task is %+v", now)
	}
	var found engine.Finding
	ask(t, handler, "POST", "/api/tasks/"+given.ID+"/findings", `{"message": "It is slow.", "agent_id": "`+agent.ID+`"}`).into(201, &found)
	if found.AgentID != agent.ID || found.Type != "insight" || found.Severity != "medium" || found.Seq == 0 {
		t.Errorf("found is %+v", found)
	}

	var killed engine.DeployedAgent
	ask(t, handler, "POST", path+"/kill", `{"reason": "enough"}`).into(202, &killed)
	if killed.State != engine.TaskKilled || killed.ID != agent.ID || killed.Reason != "enough" {
		t.Errorf("killed is %+v", killed)
	}
	ask(t, handler, "POST", path+"/kill", "").failed(409, "not_running", "")
	ask(t, handler, "GET", "/api/tasks/"+given.ID, "").into(200, &now)
	if now.State != engine.TaskCompleted || len(now.Findings) != 1 { // the newest of those that are over
		t.Errorf("the task is %+v", now)
	}
}

func TestAKeyDeploysOnce(t *testing.T) {
	made, handler := newTaskServer(t)
	given := createTask(t, handler, `{"description": "Measure"}`)
	var one, two engine.DeployedAgent
	ask(t, handler, "POST", "/api/tasks/"+given.ID+"/agents", `{"prompt": "Be quick."}`, "Idempotency-Key", "k").into(201, &one)
	waitForText(t, made, one)
	ask(t, handler, "POST", "/api/tasks/"+given.ID+"/agents", `{"prompt": "Be quick."}`, "Idempotency-Key", "k").into(201, &two)
	if one.ID != two.ID {
		t.Errorf("one key deployed %s and %s", one.ID, two.ID)
	}
}

func TestTooManyAgents(t *testing.T) {
	_, handler := newTaskServer(t)
	given := createTask(t, handler, `{"description": "Measure"}`)
	for range 2 {
		deployTo(t, handler, given, "")
	}
	ask(t, handler, "POST", "/api/tasks/"+given.ID+"/agents", "").failed(429, "too_many_agents", "")
	var now engine.TaskStatus
	if ask(t, handler, "GET", "/api/tasks/"+given.ID, "").into(200, &now); len(now.Agents) != 2 {
		t.Errorf("the task has the agents %+v", now.Agents)
	}
}

// Every bad body is refused with the code of its kind and the part at fault, and keeps nothing.
func TestTasksRefuse(t *testing.T) {
	_, handler := newTaskServer(t)
	given := createTask(t, handler, `{"description": "Measure"}`)
	other := createTask(t, handler, `{"description": "Measure again"}`)
	agent, _ := deployTo(t, handler, other, "")
	of := "/api/tasks/" + given.ID
	ask(t, handler, "POST", "/api/conversations", `{"key": "packed"}`)
	ask(t, handler, "POST", "/api/conversations/packed/entries", `{"role": "user", "content": "a"}`)
	var packed continuo.Conversation
	ask(t, handler, "POST", "/api/conversations/packed/archive", "").into(200, &packed)
	for _, test := range []struct {
		method, target, body string
		status               int
		code, param          string
	}{
		{"POST", "/api/tasks", ``, 400, "invalid_json", ""},
		{"POST", "/api/tasks", `["x"]`, 400, "invalid_request", ""},
		{"POST", "/api/tasks", `{"description": "x", "description": "y"}`, 400, "invalid_request", "description"},
		{"POST", "/api/tasks", `{"description": "x", "success": ["y"]}`, 400, "invalid_request", "success"},
		{"POST", "/api/tasks", `{"description": "\ud83d"}`, 400, "invalid_utf8", ""},
		{"POST", "/api/tasks", `{}`, 400, "missing_field", "description"},
		{"POST", "/api/tasks", `{"description": 5}`, 400, "type_error", "description"},
		{"POST", "/api/tasks", `{"description": "x", "priority": "P9"}`, 400, "invalid_value", "priority"},
		{"POST", "/api/tasks", `{"description": "x", "constraints": "y"}`, 400, "type_error", "constraints"},
		{"POST", "/api/tasks", `{"description": "x", "relevance": 2}`, 400, "invalid_value", "relevance"},
		{"POST", "/api/tasks", `{"description": "x", "conversation_history": "hello you"}`, 400, "type_error", "conversation_history"},
		{"POST", "/api/tasks", `{"description": "x", "conversation_history": ["hello"]}`, 400, "type_error", "conversation_history[0]"},
		{"POST", "/api/tasks", `{"description": "x", "conversation_history": [{"role": "user"}]}`, 400, "missing_field", "conversation_history[0].content"},
		{"POST", "/api/tasks", `{"description": "x", "conversation_history": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}, {"role": "boss", "content": "c"}]}`, 400, "invalid_value", "conversation_history[2].role"},
		{"POST", "/api/tasks", `{"description": "x", "conversation_history": [{"role": "user", "content": "a", "attachments": [{"type": "film", "url": "https://example.com"}]}]}`, 400, "invalid_value", "conversation_history[0].attachments[0].type"},
		{"POST", "/api/tasks", `{"description": "x", "conversation_history": "` + noConversation + `"}`, 400, "invalid_value", "conversation_history"},
		{"POST", "/api/tasks", `{"description": "x", "conversation_history": {"conversation_id": "` + given.ConversationID + `", "to": 9}}`, 400, "invalid_value", "conversation_history"},
		{"POST", "/api/tasks", `{"description": "x", "conversation_history": "` + packed.ID + `"}`, 409, "archived", "conversation_history"},
		{"POST", "/api/tasks?key=x", `{"description": "x"}`, 400, "invalid_request", "key"},
		{"GET", "/api/tasks?status=", ``, 400, "invalid_request", "status"},
		{"GET", "/api/tasks?status=done", ``, 400, "invalid_request", "status"},
		{"GET", "/api/tasks?limit=101", ``, 400, "invalid_request", "limit"},
		{"GET", "/api/tasks?cursor=x", ``, 400, "invalid_request", "cursor"},
		{"GET", "/api/tasks/" + given.ConversationID, ``, 404, "not_found", ""},
		{"GET", "/api/tasks/" + strings.Replace(agent.ID, "agent_", "task_", 1), ``, 404, "not_found", ""},
		{"POST", of + "/agents", `{"agent_type": "nobody"}`, 400, "invalid_value", "agent_type"},
		{"POST", of + "/agents", `{"agent": "only"}`, 400, "invalid_request", "agent"},
		{"GET", of + "/agents/" + agent.ID, ``, 404, "not_found", ""},
		{"GET", of + "/agents/" + agent.ID + "/output", ``, 404, "not_found", ""},
		{"POST", of + "/agents/" + agent.ID + "/kill", ``, 404, "not_found", ""},
		{"POST", of + "/agents/" + agent.ID + "/kill", `{"reason": "` + strings.Repeat("ä", 501) + `"}`, 400, "invalid_request", "reason"},
		{"GET", of + "/agents/" + agent.ID + "/output?from=x", ``, 400, "invalid_request", "from"},
		{"GET", of + "/agents/" + agent.ID + "/output?limit=0", ``, 400, "invalid_request", "limit"},
		{"POST", of + "/findings", ``, 400, "invalid_value", "message"},
		{"POST", of + "/findings", `{"message": "x", "finding_type": "joke"}`, 400, "invalid_value", "finding_type"},
		{"POST", of + "/findings", `{"message": "x", "data": [1]}`, 400, "invalid_value", "data"},
		{"POST", of + "/findings", `{"message": "x", "agent_id": "` + agent.ID + `"}`, 400, "invalid_value", "agent_id"},
		{"POST", "/api/tasks/task_1/findings", `{"message": "x"}`, 404, "not_found", ""},
		{"POST", "/chat", `{"session_id": "` + given.ConversationID + `", "message": "x"}`, 400, "invalid_request", "session_id"},
		{"POST", "/chat", `{"session_id": "` + agent.ConversationID + `", "message": "x"}`, 400, "invalid_request", "session_id"},
		{"POST", "/api/conversations/" + given.ConversationID + "/entries", `{"role": "user", "content": "x"}`, 400, "invalid_request", ""},
	} {
		ask(t, handler, test.method, test.target, test.body).failed(test.status, test.code, test.param)
	}
	ask(t, handler, "POST", "/api/tasks", `{"description": "x"}`, "Idempotency-Key", "two words").failed(400, "invalid_request", "Idempotency-Key")
	var page api.List[engine.TaskStatus]
	if ask(t, handler, "GET", "/api/tasks", "").into(200, &page); len(page.Data) != 2 {
		t.Errorf("what was refused is kept: %+v", page.Data)
	}
	var now engine.TaskStatus
	if ask(t, handler, "GET", of, "").into(200, &now); len(now.Findings)+len(now.Agents) != 0 {
		t.Errorf("what was refused is kept: %+v", now)
	}
}

// The pages of a list have each task once, in order, whatever the limit, and a status leaves others out.
func TestTasksAreListedInPages(t *testing.T) {
	made, handler := newTaskServer(t)
	var all, completed []string
	for i := range 7 {
		given := createTask(t, handler, fmt.Sprintf(`{"description": "Task %d", "background_context": "long"}`, i))
		if i%3 == 0 {
			agent, _ := deployTo(t, handler, given, `{"prompt": "Be quick."}`)
			waitForText(t, made, agent)
			completed = append(completed, given.ID)
		}
		all = append(all, given.ID)
	}
	slices.Reverse(all)
	slices.Reverse(completed)
	for limit := 1; limit <= 8; limit++ {
		for query, want := range map[string][]string{"": all, "&status=completed": completed, "&status=blocked": nil} {
			var have []string
			next := ""
			for {
				var page api.List[engine.TaskStatus]
				ask(t, handler, "GET", fmt.Sprintf("/api/tasks?limit=%d%s%s", limit, query, next), "").into(200, &page)
				for _, status := range page.Data {
					if have = append(have, status.ID); !status.Task.Context.IsZero() || status.Task.Description == "" {
						t.Errorf("the list has %+v", status.Task)
					}
				}
				if page.HasMore != (page.NextCursor != nil) || len(page.Data) > limit {
					t.Fatalf("a page is %+v", page)
				}
				if !page.HasMore {
					break
				}
				next = "&cursor=" + *page.NextCursor
			}
			if !slices.Equal(have, want) {
				t.Errorf("pages of %d%s are %v, want %v", limit, query, have, want)
			}
		}
	}
}

// A redacted task is marked as redacted, in its status and in lists, and an empty prompt is refused.
func TestARedactedTaskHasNoPrompt(t *testing.T) {
	_, handler := newTaskServer(t)
	given := createTask(t, handler, `{"description": "The secret work"}`)
	ask(t, handler, "POST", "/api/conversations/"+given.ConversationID+"/redact", `{"from": 1, "to": 1}`).into(200, &struct{}{})
	ask(t, handler, "GET", "/api/tasks/"+given.ID+"/prompt", "").failed(400, "invalid_value", "task_id")
	var now engine.TaskStatus
	if ask(t, handler, "GET", "/api/tasks/"+given.ID, "").into(200, &now); now.State != engine.TaskRedacted {
		t.Errorf("it is %s", now.State)
	}
	var page api.List[engine.TaskStatus]
	if ask(t, handler, "GET", "/api/tasks?status=redacted", "").into(200, &page); len(page.Data) != 1 {
		t.Errorf("listed are %+v", page.Data)
	}
	if ask(t, handler, "GET", "/api/tasks?status=gone", "").into(200, &page); len(page.Data) != 0 {
		t.Errorf("gone are %+v", page.Data)
	}
}

// A search finds messages without the copies that tasks and agents have of them, unless the request asks for these.
func TestASearchFindsPeoplesWords(t *testing.T) {
	made, handler := newTaskServer(t)
	given := createTask(t, handler, `{"description": "Find the needle"}`)
	agent, _ := deployTo(t, handler, given, `{"prompt": "Be quick."}`)
	waitForText(t, made, agent)
	ask(t, handler, "POST", "/api/conversations", `{"key": "mine"}`)
	ask(t, handler, "POST", "/api/conversations/mine/entries", `{"role": "user", "content": "a needle"}`)
	for query, want := range map[string]string{"": "a needle", "&kind=user": "a needle", "&kind=agent": "Find the needle", "&kind=all&role=user": "a needle", "&conversation=" + agent.ConversationID + "&role=user": "Find the needle"} {
		var page searchReply
		ask(t, handler, "GET", "/api/search?q=needle"+query, "").into(200, &page)
		if len(page.Data) == 0 || !strings.Contains(page.Data[0].Snippet.Text, want) || query == "" && len(page.Data) != 1 {
			t.Errorf("%q finds %+v", query, page.Data)
		}
	}
	ask(t, handler, "GET", "/api/search?q=needle&kind=people", "").failed(400, "invalid_request", "kind")
}
