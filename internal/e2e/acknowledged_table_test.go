package e2e

import (
	"fmt"
	"net/http"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

const (
	oneConversation = "/api/conversations/{id}"
	oneRun          = "/api/runs/{run}"
	oneCrew         = "/api/crews/{crew}"
	oneTask         = "/api/tasks/{task}"
	oneFact         = "/api/memory/{fact}"
)

// acknowledgements are the routes that acknowledge a write. The test fails where one has no row.
var acknowledgements = map[string]acknowledgement{
	"POST /chat": {
		prepare: func(s *ackFixture) { s.lingers.Store(true) },
		body:    func(s *ackFixture) any { return map[string]any{"session_id": s.key, "message": "hello " + s.key} },
		header:  []string{"Accept", "text/event-stream"},
		verify: func(s *ackFixture) {
			s.answerContains(oneConversation+"/entries", "hello "+s.key)
			s.turnsEnd(1)
		},
	},
	"POST /api/conversations": {
		body:   func(s *ackFixture) any { return map[string]any{"key": s.key} },
		verify: func(s *ackFixture) { s.answerContains(oneConversation, s.key) },
	},
	"POST /api/conversations/import": {
		body: func(s *ackFixture) any {
			return map[string]any{"key": s.key, "messages": []any{userMessage("imported")}}
		},
		verify: func(s *ackFixture) { s.answerContains(oneConversation+"/entries", "imported") },
	},
	"PATCH " + oneConversation: {
		prepare: (*ackFixture).conversationRoutes,
		body:    func(*ackFixture) any { return map[string]any{"title": "Of tea"} },
		verify:  func(s *ackFixture) { s.answerContains(oneConversation, "Of tea") },
	},
	"DELETE " + oneConversation: {
		prepare: (*ackFixture).conversationRoutes,
		verify: func(s *ackFixture) {
			if status, answer := s.try(http.MethodGet, oneConversation, nil); status != http.StatusNotFound {
				s.t.Errorf("the deleted conversation is answered with %d %v", status, answer)
			}
		},
	},
	"POST " + oneConversation + "/fork": {
		prepare: (*ackFixture).conversationRoutes,
		body:    func(s *ackFixture) any { return map[string]any{"title": "fork of " + s.key} },
		verify:  func(s *ackFixture) { s.answerContains("/api/conversations?limit=100", "fork of "+s.key) },
	},
	"POST " + oneConversation + "/archive": {
		prepare: (*ackFixture).conversationRoutes,
		verify:  func(s *ackFixture) { s.answerContains(oneConversation, "archived_at") },
	},
	"POST " + oneConversation + "/restore": {
		prepare: func(s *ackFixture) {
			s.conversationRoutes()
			s.call(http.MethodPost, oneConversation+"/archive", nil)
		},
		verify: func(s *ackFixture) { s.answerContains(oneConversation+"/entries", "hello") },
	},
	"POST " + oneConversation + "/redact": {
		prepare: (*ackFixture).conversationRoutes,
		body:    func(*ackFixture) any { return map[string]any{"from": 1} },
		verify: func(s *ackFixture) {
			if answer := s.call(http.MethodGet, oneConversation+"/entries", nil); strings.Contains(fmt.Sprint(answer), "hello") {
				s.t.Errorf("the entries still say it: %v", answer)
			}
		},
	},
	"POST " + oneConversation + "/entries": {
		prepare: (*ackFixture).conversationRoutes,
		body:    func(*ackFixture) any { return map[string]any{"entries": []any{userMessage("by hand")}} },
		verify:  func(s *ackFixture) { s.answerContains(oneConversation+"/entries", "by hand") },
	},
	"POST " + oneConversation + "/turns/{turn}/resume": {
		prepare: func(s *ackFixture) {
			s.fails.Store(true)
			s.begins("hello")
			s.turnsEnd(1)
			s.fails.Store(false)
			s.lingers.Store(true)
		},
		body:   func(*ackFixture) any { return map[string]any{} },
		header: []string{"Accept", "text/event-stream"},
		verify: func(s *ackFixture) { s.turnsEnd(2) },
	},
	"POST " + oneConversation + "/turns/{turn}/cancel": {
		prepare: func(s *ackFixture) {
			s.lingers.Store(true)
			s.begins("hello")
		},
		verify: func(s *ackFixture) { s.turnsEnd(1) },
	},
	"POST " + oneConversation + "/turns/{turn}/approvals": {
		prepare: func(s *ackFixture) {
			s.begins("please search")
			s.until("it waits", oneConversation+"/turns/{turn}", func(answer map[string]any) bool { return answer["waiting_for"] != nil })
		},
		body: func(*ackFixture) any { return map[string]any{"tool_call_id": "call_1", "decision": "allow"} },
		verify: func(s *ackFixture) {
			s.turnsEnd(1)
			s.answerContains(oneConversation+"/entries", "tool_call_id:call_1") // the call has its result
		},
	},
	"POST /api/runs": {
		body: ackRun,
		verify: func(s *ackFixture) {
			s.names["run"] = text(s.call(http.MethodPost, "/api/runs", ackRun(s), "Idempotency-Key", s.key), "id")
			s.becomes(oneRun, "state", "finished")
			runs, _ := s.call(http.MethodGet, "/api/runs?limit=100", nil)["data"].([]any)
			if len(runs) != s.number+1 {
				s.t.Errorf("there are %d runs, want one for each kill: %d", len(runs), s.number+1)
			}
		},
	},
	"POST " + oneRun + "/stop": {
		prepare: (*ackFixture).runs,
		verify:  func(s *ackFixture) { s.becomes(oneRun, "state", "stopped") },
	},
	"POST " + oneRun + "/cancel": {
		prepare: (*ackFixture).runs,
		verify:  func(s *ackFixture) { s.becomes(oneRun, "state", "cancelled") },
	},
	"POST " + oneRun + "/resume": {
		prepare: (*ackFixture).runIsStopped,
		verify:  func(s *ackFixture) { s.becomes(oneRun, "state", "finished") },
	},
	"POST " + oneRun + "/set": {
		prepare: (*ackFixture).runIsStopped,
		body: func(*ackFixture) any {
			return map[string]any{"node_id": "only", "outputs": map[string]any{"text": "A word."}}
		},
		verify: func(s *ackFixture) {
			s.becomes(oneRun, "state", "finished")
			s.answerContains(oneConversation+"/entries", string(continuo.RunNodeSet))
		},
	},
	"POST " + oneRun + "/skip": {
		prepare: (*ackFixture).runIsStopped,
		body:    func(*ackFixture) any { return map[string]any{"node_id": "only"} },
		verify: func(s *ackFixture) {
			s.becomes(oneRun, "state", "finished")
			s.answerContains(oneConversation+"/entries", string(continuo.RunNodeSkipped))
		},
	},
	"POST " + oneRun + "/retry": {
		prepare: (*ackFixture).runIsStopped,
		body:    func(*ackFixture) any { return map[string]any{"node_id": "only"} },
		verify: func(s *ackFixture) {
			s.becomes(oneRun, "state", "finished")
			s.answerContains(oneConversation+"/entries", string(continuo.RunNodeRetried))
		},
	},
	"POST " + oneRun + "/approvals": {
		prepare: func(s *ackFixture) {
			s.names["run"] = text(s.call(http.MethodPost, "/api/runs", map[string]any{"workflow_id": "asks", "session_id": s.key}), "id")
			s.becomes(oneRun, "state", "waiting")
		},
		body:   func(*ackFixture) any { return map[string]any{"decision": "approve"} },
		verify: func(s *ackFixture) { s.becomes(oneRun, "state", "finished") },
	},
	"POST " + oneCrew + "/messages": {
		body: func(s *ackFixture) any { return map[string]any{"session_id": s.key, "message": "hello " + s.key} },
		verify: func(s *ackFixture) {
			s.answerContains(oneConversation+"/entries", "hello "+s.key)
			s.crewBecomes("finished")
		},
	},
	"POST " + oneCrew + "/stop": {
		prepare: (*ackFixture).crewRuns,
		body:    ackSession,
		verify:  func(s *ackFixture) { s.crewBecomes("stopped") },
	},
	"POST " + oneCrew + "/resume": {
		prepare: func(s *ackFixture) {
			s.crewRuns()
			s.call(http.MethodPost, oneCrew+"/stop", ackSession(s))
			s.crewBecomes("stopped")
		},
		body:   ackSession,
		verify: func(s *ackFixture) { s.crewBecomes("finished") },
	},
	"POST " + oneCrew + "/reset": {
		prepare: (*ackFixture).crewAnswered,
		body:    ackSession,
		verify:  func(s *ackFixture) { s.crewRestorable(true) },
	},
	"POST " + oneCrew + "/restore": {
		prepare: func(s *ackFixture) {
			s.crewAnswered()
			s.call(http.MethodPost, oneCrew+"/reset", ackSession(s))
			s.crewRestorable(true)
		},
		body:   ackSession,
		verify: func(s *ackFixture) { s.crewRestorable(false) },
	},
	"POST /api/tasks": {
		body: ackTask,
		verify: func(s *ackFixture) {
			s.answerContains("/api/tasks?limit=100", "task of "+s.key)
			s.names["task"] = text(s.call(http.MethodPost, "/api/tasks", ackTask(s), "Idempotency-Key", s.key), "task_id")
			s.answerContains(oneTask, "task of "+s.key)
		},
	},
	"POST " + oneTask + "/agents": {
		prepare: (*ackFixture).task,
		body:    func(*ackFixture) any { return map[string]any{"prompt": "Begin."} },
		verify: func(s *ackFixture) {
			s.names["agent"] = text(s.call(http.MethodPost, oneTask+"/agents", map[string]any{"prompt": "Begin."}, "Idempotency-Key", s.key), "agent_id")
			s.becomes(oneTask+"/agents/{agent}", "status", "completed")
			s.becomes(oneTask, "status", "completed")
		},
	},
	"POST " + oneTask + "/agents/{agent}/kill": {
		prepare: func(s *ackFixture) {
			s.lingers.Store(true)
			s.task()
			s.names["agent"] = text(s.call(http.MethodPost, oneTask+"/agents", map[string]any{"prompt": "Begin."}), "agent_id")
		},
		verify: func(s *ackFixture) { s.becomes(oneTask+"/agents/{agent}", "status", "killed") },
	},
	"POST " + oneTask + "/findings": {
		prepare: (*ackFixture).task,
		body:    func(*ackFixture) any { return map[string]any{"message": "The kettle is empty."} },
		verify:  func(s *ackFixture) { s.answerContains(oneTask, "The kettle is empty.") },
	},
	"POST /api/memory": {
		body: ackFact,
		verify: func(s *ackFixture) {
			again := s.call(http.MethodPost, "/api/memory", ackFact(s), "Idempotency-Key", s.key)
			s.names["fact"] = fmt.Sprint(again["id"])
			s.answerContains(oneFact, ackStatement(s))
			s.knows(ackStatement(s), 1)
		},
	},
	"POST /api/memory/import": {
		prepare: (*ackFixture).exported,
		body:    func(s *ackFixture) any { return s.export },
		verify: func(s *ackFixture) {
			s.knows(ackStatement(s), 1)
			s.call(http.MethodPost, "/api/memory/import", s.export) // adds nothing
			s.knows(ackStatement(s), 1)
		},
	},
	"POST /api/memory/derive": {
		prepare: (*ackFixture).repeated,
		verify:  func(s *ackFixture) { s.knows("repeatedly: Always answer in metric units to "+s.key, 1) },
	},
	"DELETE /api/memory": {
		prepare: (*ackFixture).fact,
		verify:  func(s *ackFixture) { s.knows(ackStatement(s), 0) },
	},
	"DELETE " + oneFact: {
		prepare: (*ackFixture).fact,
		verify: func(s *ackFixture) {
			if status, answer := s.try(http.MethodGet, oneFact, nil); status != http.StatusNotFound {
				s.t.Errorf("the forgotten fact is answered with %d %v", status, answer)
			}
			s.knows(ackStatement(s), 0)
		},
	},
	"POST " + oneFact + "/correct": {
		prepare: (*ackFixture).fact,
		body:    ackCorrection,
		verify: func(s *ackFixture) {
			again := s.call(http.MethodPost, oneFact+"/correct", ackCorrection(s), "Idempotency-Key", s.key)
			if old := s.call(http.MethodGet, oneFact, nil); old["superseded_by"] != again["id"] {
				s.t.Errorf("fact %v corrects %v", again["id"], old)
			}
			s.knows("coffee to "+s.key+".", 1)
		},
	},
	"POST /api/session": {
		prepare: (*ackFixture).keyed,
		body:    func(s *ackFixture) any { return map[string]any{"key": s.apiKey} },
		verify:  func(s *ackFixture) { s.sessionIsOpen(s.cookies, true) },
	},
	"DELETE /api/session": {
		prepare: (*ackFixture).sessionOpened,
		verify:  func(s *ackFixture) { s.sessionIsOpen(s.opened, false) },
	},
	"POST /api/keys": {
		prepare: (*ackFixture).keyed,
		body:    ackKey,
		verify:  func(s *ackFixture) { s.keyIsRevoked(false) },
	},
	"DELETE /api/keys/{key}": {
		prepare: (*ackFixture).keyMade,
		verify: func(s *ackFixture) {
			s.keyIsRevoked(true)
			s.header = []string{"X-Continuo-Key", s.names["secret"]}
			if status, answer := s.try(http.MethodGet, "/api/conversations", nil); status != http.StatusUnauthorized {
				s.t.Errorf("the revoked key is answered with %d %v", status, answer)
			}
		},
	},
	"POST /mcp": {
		prepare: (*ackFixture).conversationRoutes,
		body: func(s *ackFixture) any {
			arguments := map[string]any{"conversation": s.key, "role": "user", "content": "by a tool"}
			return map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": "append_message", "arguments": arguments}}
		},
		header: []string{"Accept", "application/json, text/event-stream"},
		verify: func(s *ackFixture) { s.answerContains(oneConversation+"/entries", "by a tool") },
	},
}

func userMessage(text string) map[string]any { return map[string]any{"role": "user", "content": text} }

func ackRun(s *ackFixture) any { return map[string]any{"workflow_id": "steps", "session_id": s.key} }

func ackSession(s *ackFixture) any { return map[string]any{"session_id": s.key} }

func ackTask(s *ackFixture) any { return map[string]any{"description": "task of " + s.key} }

// conversationRoutes has a turn end.
func (s *ackFixture) conversationRoutes() {
	s.t.Helper()
	s.call(http.MethodPost, "/chat", map[string]any{"session_id": s.key, "message": "hello"})
}

// turnsEnd waits until a conversation has so many turns, none of which runs.
func (s *ackFixture) turnsEnd(count int) {
	s.t.Helper()
	s.until("its turns end", oneConversation+"/turns", func(answer map[string]any) bool {
		turns, _ := answer["data"].([]any)
		return len(turns) == count && !strings.Contains(fmt.Sprint(turns), "state:running")
	})
}

// runs begins a run that does not end while the upstream lingers.
func (s *ackFixture) runs() {
	s.t.Helper()
	s.lingers.Store(true)
	s.names["run"] = text(s.call(http.MethodPost, "/api/runs", ackRun(s)), "id")
}

// runIsStopped begins a run and stops it in its only step.
func (s *ackFixture) runIsStopped() {
	s.t.Helper()
	s.runs()
	s.until("its step begins", oneConversation+"/entries", func(answer map[string]any) bool {
		return strings.Contains(fmt.Sprint(answer), string(continuo.RunNodeBegan))
	})
	s.call(http.MethodPost, oneRun+"/stop", nil)
	s.becomes(oneRun, "state", "stopped")
}

// crewRuns has a role speak while the upstream lingers.
func (s *ackFixture) crewRuns() {
	s.t.Helper()
	s.lingers.Store(true)
	s.call(http.MethodPost, oneCrew+"/messages", map[string]any{"session_id": s.key, "message": "hello"})
	s.crewBecomes("running")
}

func (s *ackFixture) crewAnswered() {
	s.t.Helper()
	s.call(http.MethodPost, oneCrew+"/messages", map[string]any{"session_id": s.key, "message": "hello"})
	s.crewBecomes("finished")
}

func (s *ackFixture) crewBecomes(state string) {
	s.t.Helper()
	s.becomes(oneCrew+"/status?session_id={id}", "state", state)
}

// crewRestorable waits until a crew has a reset that can be taken back, or none.
func (s *ackFixture) crewRestorable(want bool) {
	s.t.Helper()
	s.until(fmt.Sprintf("it can be restored: %t", want), oneCrew+"/status?session_id={id}", func(answer map[string]any) bool {
		return answer["restorable"] == want
	})
}

func (s *ackFixture) task() {
	s.t.Helper()
	s.names["task"] = text(s.call(http.MethodPost, "/api/tasks", ackTask(s)), "task_id")
}
