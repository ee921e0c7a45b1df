package server

import (
	"slices"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
)

// waitForState follows a run until it is in a state, and returns its status.
func waitForState(t *testing.T, e *engine.Engine, run continuo.Run, state continuo.RunState) *engine.RunStatus {
	t.Helper()
	for progress, err := range e.Runs.Follow(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if progress.Status != nil && progress.Status.State == state {
			return progress.Status
		}
	}
	t.Fatalf("run %s was never %s", run.ID, state)
	return nil
}

// runKey is the Idempotency-Key that the victim began its run with.
const runKey = "run-once"

// releaseBody begins a run of release, which soon waits for a person.
func releaseBody(version, session string) string {
	return `{"workflow_id": "release", "inputs": {"version": "` + version + `"}, "session_id": "` + session + `"}`
}

// runs begins a run of the victim's that waits for a person.
func (v *victim) runs(e *engine.Engine) {
	v.t.Helper()
	var status engine.RunStatus
	v.askAsOwner("POST", "/api/runs", releaseBody(mark, "runs-"+mark), "Idempotency-Key", runKey).into(201, &status)
	waitForState(v.t, e, status.Run, continuo.RunWaiting)
	v.run = status.Run
}

// hidesRun makes the row of a call about a run: another's is not found.
func hidesRun(method, call, body string) func(*victim) {
	return func(v *victim) { v.hidden(method, "/api/runs/ID"+call, body, v.run.ID, noRunID) }
}

// listsRuns: neither a cursor nor a conversation of another's shows any but one's own.
func (v *victim) listsRuns() {
	v.t.Helper()
	var page struct {
		Data       []continuo.Run
		NextCursor *string `json:"next_cursor"`
	}
	if v.askAsOwner("GET", "/api/runs", "").into(200, &page); len(page.Data) != 1 || page.Data[0].ID != v.run.ID {
		v.t.Errorf("the victim's runs are %+v: the test shows nothing", page.Data)
	}
	cursor := *api.WriteCursor(map[string]any{"started_at": v.run.StartedAt.AddDate(1, 0, 0), "id": v.run.ID})
	for _, query := range []string{"", "?state=waiting", "?workflow_id=release", "?cursor=" + cursor} {
		v.askAsOther("GET", "/api/runs"+query, "").into(200, &page)
		for _, run := range page.Data {
			if run.ProjectID != "thief" {
				v.t.Errorf("the list %s has %+v", query, run)
			}
		}
	}
	v.hidden("GET", "/api/runs?conversation_id=ID", "", v.run.ConversationID, noConversation)
	v.hidden("GET", "/api/runs?conversation_id=ID", "", "runs-"+mark, "runs-nobody")
}

// startsRuns: another's conversation is not found, another's key is free, and another's Idempotency-Key has
// begun nothing.
func (v *victim) startsRuns() {
	v.t.Helper()
	v.hidden("POST", "/api/runs", releaseBody("1", "ID"), v.run.ConversationID, noConversation)
	var began engine.RunStatus
	v.askAsOther("POST", "/api/runs", releaseBody("1", "runs-"+mark), "Idempotency-Key", runKey).into(201, &began)
	if began.ProjectID != "thief" || began.Run.ID == v.run.ID || slices.Contains(append(v.conversations, v.run.ConversationID), began.ConversationID) {
		v.t.Errorf("another's names began %+v", began.Run)
	}
}

// decidesRun approves the victim's run, which others could not.
func (v *victim) decidesRun() {
	v.t.Helper()
	var status engine.RunStatus
	v.askAsOwner("POST", "/api/runs/"+v.run.ID+"/approvals", `{"decision": "reject"}`).into(202, &status)
}
