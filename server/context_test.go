package server

import (
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// The context of a run is what its next step is sent; what does not go with it is refused by its name.
func TestTheContextOfARun(t *testing.T) {
	made, handler := newRunServer(t)
	run := startRun(t, handler, "release", `{"version": "1"}`, "s")
	waitForState(t, made, run, continuo.RunWaiting)
	ask(t, handler, "POST", "/chat", `{"session_id": "other", "message": "hello"}`).into(200, &struct{}{})
	path := "/api/conversations/s/context?run_id=" + run.ID
	var shown struct {
		View     string
		Messages []shownMessage
	}
	ask(t, handler, "GET", path+"&system=true&at=1", "").into(200, &shown)
	var names []string
	for _, message := range shown.Messages {
		if message.Role == "system" {
			name, _, _ := strings.Cut(message.Content.String(), "\n")
			names = append(names, name)
		}
	}
	if shown.View != "run" || !strings.HasSuffix(strings.Join(names, " "), "MODE RUN_DIRECTIVE NODE_BRIEF STEP_CONTEXT") {
		t.Errorf("the view %s shows %q", shown.View, names)
	}
	for _, test := range []struct {
		path        string
		status      int
		code, param string
	}{
		{path, 400, "invalid_request", "run_id"}, // it waits for a person
		{path + "&at=99", 400, "bad_range", "at"},
		{path + "&model=worker", 400, "invalid_request", "model"},
		{path + "&crew=team", 400, "invalid_request", "crew"},
		{path + "&view=role:builder", 400, "invalid_request", "view"},
		{path + "&view=codxe", 400, "invalid_request", "view"},
		{"/api/conversations/other/context?run_id=" + run.ID, 404, "not_found", "run_id"},
		{"/api/conversations/s/context?run_id=" + noRunID, 404, "not_found", "run_id"},
		{"/api/conversations/s/context?run_id=", 404, "not_found", "run_id"},
	} {
		ask(t, handler, "GET", test.path, "").failed(test.status, test.code, test.param)
	}
}
