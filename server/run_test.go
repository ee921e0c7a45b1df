package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/workflow"
)

// Every bad body of POST /api/runs is refused with a status, a code and the field at fault, and begins nothing.
func TestRunsRefuse(t *testing.T) {
	_, handler := newRunServer(t)
	for _, test := range []struct {
		name, body  string
		status      int
		code, param string
		message     string // part of the message
	}{
		{"nothing", ``, 400, "invalid_json", "", "empty"},
		{"a cut body", `{"workflow_id": "rep`, 400, "invalid_json", "", "byte"},
		{"a list", `["report"]`, 400, "invalid_request", "", "object"},
		{"no workflow", `{}`, 400, "invalid_request", "workflow_id", "GET /api/workflows"},
		{"null", `{"workflow_id": null}`, 400, "invalid_request", "workflow_id", ""},
		{"a number", `{"workflow_id": 5}`, 400, "invalid_request", "workflow_id", "must be a string"},
		{"an unknown field", `{"workflow_id": "report", "input": {}}`, 400, "invalid_request", "input", "did you mean inputs?"},
		{"an unknown workflow", `{"workflow_id": "reprot"}`, 404, "not_found", "workflow_id", "did you mean report?"},
		{"another unknown workflow", `{"workflow_id": "zzzzzzzzzz"}`, 404, "not_found", "workflow_id", "allowed: plain, release, report"},
		{"a path", `{"workflow_id": "../workflows/report"}`, 404, "not_found", "workflow_id", ""},
		{"a workflow that is not right", `{"workflow_id": "broken"}`, 422, "workflow_invalid", "workflow_id", "broken.yaml:6:"},
		{"inputs that are a list", `{"workflow_id": "report", "inputs": ["tea"]}`, 400, "invalid_request", "inputs", "object"},
		{"inputs that are text", `{"workflow_id": "report", "inputs": "tea"}`, 400, "invalid_request", "inputs", "object"},
		{"an input twice", `{"workflow_id": "report", "inputs": {"topic": "tea", "topic": "milk"}}`, 400, "invalid_request", "inputs", "once"},
		{"no inputs", `{"workflow_id": "report"}`, 400, "invalid_request", "inputs", "topic"},
		{"null inputs", `{"workflow_id": "report", "inputs": null}`, 400, "invalid_request", "inputs", "topic"},
		{"an input missing", `{"workflow_id": "report", "inputs": {"pages": 3}}`, 400, "invalid_request", "inputs", "topic"},
		{"an input of another type", `{"workflow_id": "report", "inputs": {"topic": 5}}`, 400, "invalid_request", "inputs", "topic"},
		{"a part of a page", `{"workflow_id": "report", "inputs": {"topic": "tea", "pages": 1.5}}`, 400, "invalid_request", "inputs", "pages"},
		{"an unknown input", `{"workflow_id": "report", "inputs": {"topic": "tea", "sise": 3}}`, 400, "invalid_request", "inputs", "sise"},
		{"half a character", `{"workflow_id": "report", "inputs": {"topic": "\ud83d"}}`, 400, "invalid_utf8", "", "byte"},
		{"a blank message", `{"workflow_id": "report", "inputs": {"topic": "tea"}, "message": " \n"}`, 400, "invalid_request", "message", ""},
		{"a message of parts", `{"workflow_id": "report", "inputs": {"topic": "tea"}, "message": []}`, 400, "invalid_request", "message", "string"},
		{"session blank", `{"workflow_id": "report", "inputs": {"topic": "tea"}, "session_id": " "}`, 400, "invalid_request", "session_id", ""},
		{"session path", `{"workflow_id": "report", "inputs": {"topic": "tea"}, "session_id": "../x"}`, 400, "invalid_request", "session_id", ""},
		{"session id unknown", `{"workflow_id": "report", "inputs": {"topic": "tea"}, "session_id": "` + noConversation + `"}`, 404, "not_found", "session_id", ""},
		{"stream text", `{"workflow_id": "report", "inputs": {"topic": "tea"}, "stream": "yes"}`, 400, "invalid_request", "stream", "true or false"},
	} {
		t.Run(test.name, func(t *testing.T) {
			failure := ask(t, handler, "POST", "/api/runs", test.body).failed(test.status, test.code, test.param)
			if !strings.Contains(failure.Error.Message, test.message) || strings.Contains(failure.Error.Message, "testdata") {
				t.Errorf("the message %q does not say %q, or names a folder", failure.Error.Message, test.message)
			}
		})
	}
	good := `{"workflow_id": "report", "inputs": {"topic": "tea"}}`
	ask(t, handler, "POST", "/api/runs", good, "Idempotency-Key", "two words").failed(400, "invalid_request", "Idempotency-Key")
	ask(t, handler, "POST", "/api/runs?x=1", good).failed(400, "invalid_request", "x")
	var page api.List[continuo.Run]
	if ask(t, handler, "GET", "/api/runs", "").into(200, &page); len(page.Data) != 0 {
		t.Errorf("refused requests began %+v", page.Data)
	}
}

const noRunID = "run_0199c5f0d1a270008000000000000000"

func TestRunQueriesAreChecked(t *testing.T) {
	_, handler := newRunServer(t)
	ask(t, handler, "POST", "/api/conversations", `{"key": "s"}`)
	ask(t, handler, "POST", "/api/conversations", `{"key": "packed"}`)
	ask(t, handler, "POST", "/api/conversations/packed/archive", "").into(200, &struct{}{})
	for _, test := range []struct {
		target      string
		status      int
		code, param string
	}{
		{"/api/runs?limit=0", 400, "invalid_request", "limit"},
		{"/api/runs?limit=101", 400, "invalid_request", "limit"},
		{"/api/runs?state=done", 400, "invalid_request", "state"},
		{"/api/runs?state=", 400, "invalid_request", "state"},
		{"/api/runs?workflow_id=", 400, "invalid_request", "workflow_id"},
		{"/api/runs?workflow_id=a%00b", 400, "invalid_request", "workflow_id"},
		{"/api/runs?workflow=report", 400, "invalid_request", "workflow"},
		{"/api/runs?cursor=x", 400, "invalid_request", "cursor"},
		{"/api/runs?conversation_id=nobody", 404, "not_found", "conversation_id"},
		{"/api/runs?conversation_id=%00", 404, "not_found", "conversation_id"},
		{"/api/runs?conversation_id=packed", 409, "archived", "conversation_id"},
		{"/api/runs/" + noRunID, 404, "not_found", ""},
		{"/api/runs/%00", 404, "not_found", ""},
		{"/api/runs/" + strings.Repeat("x", 5000), 404, "not_found", ""},
		{"/api/runs/" + noRunID + "?x=1", 400, "invalid_request", "x"},
		{"/api/runs/" + noRunID + "/events", 404, "not_found", ""},
		{"/api/runs/" + noRunID + "/events?after=-1", 400, "invalid_request", "after"},
		{"/api/workflows?limit=1", 400, "invalid_request", "limit"},
		{"/api/workflows/reprot", 404, "not_found", ""},
		{"/api/workflows/broken", 422, "workflow_invalid", ""},
		{"/api/workflows/..%2Fworkflows%2Freport", 404, "not_found", ""},
	} {
		t.Run(test.target[:min(len(test.target), 60)], func(t *testing.T) {
			ask(t, handler, "GET", test.target, "").failed(test.status, test.code, test.param)
		})
	}
	for _, id := range []string{"x", "-1", "1.5", "/end", "3/end/end", "3 /end", "99999999999999999999"} {
		ask(t, handler, "GET", "/api/runs/"+noRunID+"/events", "", "Last-Event-ID", id).failed(400, "invalid_request", "Last-Event-ID")
	}
	for _, query := range []string{"", "?conversation_id=s", "?workflow_id=gone", "?state=running&limit=1"} {
		var page api.List[continuo.Run]
		if ask(t, handler, "GET", "/api/runs"+query, "").into(200, &page); page.Data == nil || len(page.Data) != 0 || page.HasMore {
			t.Errorf("%s: %+v", query, page)
		}
	}
}

// The calls that change a run refuse bad bodies before they look for it.
func TestRunChangesRefuse(t *testing.T) {
	_, handler := newRunServer(t)
	for _, test := range []struct{ call, body, code, param string }{
		{"resume", `{"model": "x"}`, "invalid_request", "model"},
		{"resume", `[]`, "invalid_request", ""},
		{"stop", `{"reason": 5}`, "invalid_request", "reason"},
		{"stop", `{"why": "x"}`, "invalid_request", "why"},
		{"cancel", `{"reason": "x"}`, "invalid_request", "reason"},
		{"cancel", `{`, "invalid_json", ""},
		{"approvals", `{"decision": true}`, "invalid_request", "decision"},
		{"approvals", `{"decision": "approve", "node": "x"}`, "invalid_request", "node"},
	} {
		ask(t, handler, "POST", "/api/runs/"+noRunID+"/"+test.call, test.body).failed(400, test.code, test.param)
	}
	for _, call := range []string{"set", "retry", "skip", "approvals"} { // these need a body
		ask(t, handler, "POST", "/api/runs/"+noRunID+"/"+call, "").failed(400, "invalid_json", "")
	}
	ask(t, handler, "POST", "/api/runs/"+noRunID+"/approvals", `{"decision": "approve"}`).failed(404, "not_found", "")
	for _, call := range []string{"resume", "stop", "cancel"} {
		ask(t, handler, "POST", "/api/runs/"+noRunID+"/"+call, "").failed(404, "not_found", "")
		ask(t, handler, "POST", "/api/runs/"+noRunID+"/"+call+"?x=1", "").failed(400, "invalid_request", "x")
	}
}

// Errors of runs have statuses and codes of their own, wherever they come from.
func TestRunProblems(t *testing.T) {
	broken := &workflow.Problems{List: []workflow.Problem{
		{File: "/home/somebody/workflows/report.yaml", Line: 3, Column: 5, Message: "unknown key"},
		{File: "/home/somebody/workflows/report.yaml", Line: 4, Column: 1, Message: "no brief"},
	}}
	for _, test := range []struct {
		err     error
		status  int
		code    string
		message string
	}{
		{fmt.Errorf("run r: %w", engine.ErrRunOver), 409, "run_over", "run r: the run is over"},
		{fmt.Errorf("run r: %w", engine.ErrRunWaits), 409, "run_waiting", "run r: the run waits"},
		{fmt.Errorf("workflow report: %w", broken), 422, "workflow_invalid", "report.yaml:3:5: unknown key; and 1 more"},
	} {
		p := api.ProblemOf(test.err)
		body, err := p.MarshalJSON()
		if err != nil || p.Status != test.status || p.Code != test.code || !strings.Contains(p.Message, test.message) || strings.Contains(string(body), "somebody") {
			t.Errorf("%v: %d %s %v", test.err, p.Status, body, err)
		}
	}
}

// The list of runs is paged, the newest first, each run once, and narrowed by what it is asked for.
func TestRunsAreListed(t *testing.T) {
	made, handler := newRunServer(t)
	var want []string
	for i := range 5 {
		workflow, inputs, state := "plain", `{}`, continuo.RunFinished
		if i%2 == 1 {
			workflow, inputs, state = "release", `{"version": "1"}`, continuo.RunWaiting
		}
		run := startRun(t, handler, workflow, inputs, fmt.Sprintf("s%d", i/2))
		waitForState(t, made, run, state)
		want = append([]string{run.ID}, want...)
	}
	for query, runs := range map[string][]string{
		"?limit=2":                              want,
		"?limit=1&state=waiting":                {want[1], want[3]},
		"?limit=100&state=finished":             {want[0], want[2], want[4]},
		"?limit=1&workflow_id=plain":            {want[0], want[2], want[4]},
		"?limit=1&conversation_id=s0":           {want[3], want[4]},
		"?conversation_id=s0&workflow_id=plain": {want[4]},
		"?conversation_id=s2&state=cancelled":   nil,
	} {
		var have []string
		for target := "/api/runs" + query; target != ""; {
			var page api.List[continuo.Run]
			ask(t, handler, "GET", target, "").into(200, &page)
			for _, run := range page.Data {
				have = append(have, run.ID)
			}
			if target = ""; page.HasMore {
				target = "/api/runs" + query + "&cursor=" + *page.NextCursor
			}
		}
		if !slices.Equal(have, runs) {
			t.Errorf("%s lists\n%v, not\n%v", query, have, runs)
		}
	}
}

// Under an Idempotency-Key a run begins once, in the conversation that is named or in the one that it began.
func TestRunsBeginOnce(t *testing.T) {
	_, handler := newRunServer(t)
	for _, session := range []string{`, "session_id": "s"`, ""} {
		begin := func(key, more string) *reply {
			return ask(t, handler, "POST", "/api/runs", `{"workflow_id": "plain"`+session+more+`}`, "Idempotency-Key", key)
		}
		var first, again, other engine.RunStatus
		begin("k", "").into(201, &first)
		if begin("k", "").into(201, &again); first.Run.ID != again.Run.ID {
			t.Errorf("the key began %s and %s", first.Run.ID, again.Run.ID)
		}
		begin("k", `, "message": "Now!"`).failed(409, "idempotency_conflict", "Idempotency-Key")
		if begin("other", "").into(201, &other); first.Run.ID == other.Run.ID {
			t.Error("another key gave the same run")
		}
	}
}
