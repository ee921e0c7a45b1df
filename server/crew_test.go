package server

import (
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
)

func TestRolesAnswerInTurn(t *testing.T) {
	_, handler := newCrewServer(t)
	frames := sendToCrew(t, handler, "team", "s", "Plant a tree.")
	want := "user: Plant a tree.\nPlanner: We dig a hole.\nBuilder: I dug.\nJudge: Go on.\nPlanner: We water it.\nBuilder: .....\nJudge: .....\n"
	if have := textOf(t, frames); have != want {
		t.Errorf("it was said\n%s, not\n%s", have, want)
	}
	end := endOf(t, frames)
	if end.State != continuo.RunFinished || !strings.Contains(end.Reason, "Judge") || end.SessionID != "s" || end.Next != "planner" {
		t.Errorf("the crew rests as %+v", end)
	}
	var status engine.CrewStatus
	if ask(t, handler, "GET", "/api/crews/team/status?session_id=s", "").into(200, &status); status.RunID != end.RunID || status.LastSeq != end.LastSeq {
		t.Errorf("the status is %+v, the end was %+v", status, end)
	}
	for i, answers := range []int{2, 1, 1} {
		if role := status.Roles[i]; role.Answers != answers || role.Cursor == 0 || role.CursorID == "" {
			t.Errorf("the state of the role is %+v", role)
		}
	}
	entries := entriesOf(t, handler, "s")
	checkLog(t, entries)
	if entries[0].Author != nil {
		t.Errorf("the person is %+v", entries[0].Author)
	}
}

func TestCrewMessagesAndTheirErrors(t *testing.T) {
	_, handler := newCrewServer(t)
	ask(t, handler, "POST", "/api/crews/team/messages", `{"message": [{"type": "text", "text": "Plant a tree."}], "author": {"display_name": "Ann"}}`).into(202, &struct{}{})
	waitForIdleCrew(t, handler, "team", "crew:team") // the session by default
	if author := entriesOf(t, handler, "crew:team")[0].Author; author == nil || *author != (continuo.Author{DisplayName: "Ann"}) {
		t.Errorf("the person is %+v", author)
	}
}

// Every bad body is refused with a status, a code and the field at fault, and nothing is said.
func TestMessagesToCrewsRefuse(t *testing.T) {
	_, handler := newCrewServer(t)
	ask(t, handler, "POST", "/api/conversations", `{"key": "packed"}`)
	ask(t, handler, "POST", "/api/conversations/packed/archive", "").into(200, &struct{}{})
	for _, test := range []struct {
		crew, body  string
		status      int
		code, param string
		message     string // part of the message
	}{
		{"team", ``, 400, "invalid_json", "", "empty"},
		{"team", `["x"]`, 400, "invalid_request", "", "object"},
		{"team", `{}`, 400, "invalid_request", "message", "with visible text"},
		{"team", `{"message": "\u200b\u2800"}`, 400, "invalid_request", "message", "with visible text"},
		{"team", `{"message": " \n"}`, 400, "invalid_request", "message", "with visible text"},
		{"team", `{"message": 5}`, 400, "invalid_request", "message", ""},
		{"team", `{"message": "x", "mesage": "y"}`, 400, "invalid_request", "mesage", "did you mean message?"},
		{"team", `{"message": "x", "session_id": "../x"}`, 400, "invalid_request", "session_id", "key"},
		{"team", `{"message": "x", "session_id": "` + noConversation + `"}`, 404, "not_found", "session_id", ""},
		{"team", `{"message": "x", "session_id": "packed"}`, 409, "archived", "session_id", ""},
		{"team", `{"message": "x", "author": "Ann"}`, 400, "invalid_request", "author", "object"},
		{"team", `{"message": "x", "author": {"display_name": " "}}`, 400, "invalid_request", "author", "64"},
		{"team", `{"message": "x", "author": {"display_name": "` + strings.Repeat("x", 65) + `"}}`, 400, "invalid_request", "author", "64"},
		{"team", `{"message": "x", "author": {"display_name": 5}}`, 400, "invalid_request", "author", "must be a string"},
		{"team", `{"message": "x", "author": {"role_name": "planner"}}`, 400, "invalid_request", "author", `unknown field "role_name"`},
		{"taem", `{"message": "x"}`, 404, "not_found", "", "did you mean team?"},
		{"zzzzzzzz", `{"message": "x"}`, 404, "not_found", "", "allowed: away, pair, team, tooled"},
		{"..%2Fcrews%2Fteam", `{"message": "x"}`, 404, "not_found", "", ""},
		{"broken", `{"message": "x"}`, 422, "crew_invalid", "", "broken.yaml:4:"},
		{"away", `{"message": "x"}`, 400, "invalid_request", "", "nowhere"},
	} {
		t.Run(test.crew+" "+test.body[:min(len(test.body), 60)], func(t *testing.T) {
			failure := ask(t, handler, "POST", "/api/crews/"+test.crew+"/messages", test.body).failed(test.status, test.code, test.param)
			if message := failure.Error.Message; !strings.Contains(message, test.message) || strings.Contains(message, "testdata") || strings.Contains(message, "123:secret") {
				t.Errorf("the message %q does not say %q, or says too much", message, test.message)
			}
		})
	}
	ask(t, handler, "POST", "/api/crews/team/messages", `{"message": "x"}`, "Idempotency-Key", "two words").failed(400, "invalid_request", "Idempotency-Key")
	ask(t, handler, "POST", "/api/crews/team/messages?x=1", `{"message": "x"}`).failed(400, "invalid_request", "x")
	var page api.List[continuo.Conversation]
	if ask(t, handler, "GET", "/api/conversations", "").into(200, &page); len(page.Data) != 0 {
		t.Errorf("refused messages began %+v", page.Data)
	}
}

func TestCrewQueriesAreChecked(t *testing.T) {
	_, handler := newCrewServer(t)
	sendToCrew(t, handler, "team", "s", "Plant a tree.")
	ask(t, handler, "POST", "/api/conversations", `{"key": "empty"}`)
	ask(t, handler, "POST", "/api/conversations", `{"key": "packed"}`)
	ask(t, handler, "POST", "/api/conversations/packed/archive", "").into(200, &struct{}{})
	for _, test := range []struct {
		target      string
		status      int
		code, param string
	}{
		{"?limit=1", 400, "invalid_request", "limit"},
		{"/zzz", 404, "not_found", ""},
		{"/broken", 422, "crew_invalid", ""},
		{"/zzz/status", 404, "not_found", ""},
		{"/team/status", 404, "not_found", "session_id"}, // it has not been in its own session
		{"/team/status?session_id=empty", 404, "not_found", "session_id"},
		{"/team/status?session_id=nobody", 404, "not_found", "session_id"},
		{"/pair/status?session_id=s", 404, "not_found", "session_id"},
		{"/team/status?session_id=packed", 409, "archived", "session_id"},
		{"/team/status?session_id=%00", 400, "invalid_request", "session_id"},
		{"/team/status?session=s", 400, "invalid_request", "session"},
		{"/team/events?session_id=nobody", 404, "not_found", "session_id"},
		{"/team/events?session_id=s&after=-1", 400, "invalid_request", "after"},
		{"/team/rounds?session_id=s", 400, "invalid_request", "role"},
		{"/team/rounds?session_id=s&role=plannr", 400, "invalid_request", "role"},
		{"/team/rounds?session_id=nobody&role=planner", 404, "not_found", "session_id"},
		{"/team/context?session_id=s", 400, "invalid_request", "role"},
		{"/team/context?session_id=s&role=plannr", 400, "invalid_request", "role"},
		{"/team/context?session_id=s&role=planner&at=0", 400, "invalid_request", "at"},
		{"/team/context?session_id=s&role=planner&at=99", 400, "bad_range", "at"},
		{"/team/context?session_id=s&role=planner&format=xml", 400, "invalid_request", "format"},
		{"/team/context?session_id=s&role=planner&request=1", 404, "not_found", "request"},
		{"/team/context?session_id=s&role=planner&request=99", 400, "bad_range", "request"},
		{"/team/context?session_id=s&role=planner&request=3&at=2", 400, "invalid_request", "request"},
		{"/team/context?session_id=s&role=planner&request=3&format=openai", 400, "invalid_request", "format"},
		{"/team/context?session_id=s&role=builder&request=3", 404, "not_found", "request"}, // it is the planner's
		{"/team/compare?session_id=s&other_role=builder", 400, "invalid_request", "role"},
		{"/team/compare?session_id=s&role=planner&other_role=", 400, "invalid_request", "other_role"},
		{"/team/compare?session_id=s&role=planner&other_role=x", 400, "invalid_request", "other_role"},
		{"/team/compare?session_id=s&role=x&other_role=planner", 400, "invalid_request", "role"},
		{"/team/compare?session_id=s&role=planner&at=99", 400, "bad_range", "at"},
		{"/team/compare?session_id=s&role=planner&other_at=99", 400, "bad_range", "other_at"},
		{"/team/compare?session_id=s&role=planner&other_request=1", 404, "not_found", "other_request"},
		{"/team/compare?session_id=s&role=planner&other_request=3&other_at=3", 400, "invalid_request", "other_request"},
		{"/team/compare?session_id=nobody&role=planner", 404, "not_found", "session_id"},
	} {
		t.Run(test.target, func(t *testing.T) {
			ask(t, handler, "GET", "/api/crews"+test.target, "").failed(test.status, test.code, test.param)
		})
	}
	for _, id := range []string{"x", "-1", "/end", "3/end/end"} {
		ask(t, handler, "GET", "/api/crews/team/events?session_id=s", "", "Last-Event-ID", id).failed(400, "invalid_request", "Last-Event-ID")
	}
	for _, call := range []string{"stop", "resume", "reset", "restore"} {
		at := "/api/crews/team/" + call
		ask(t, handler, "POST", at, `{"session": "s"}`).failed(400, "invalid_request", "session")
		ask(t, handler, "POST", at, `{"session_id": "nobody"}`).failed(404, "not_found", "session_id")
		ask(t, handler, "POST", at, "").failed(404, "not_found", "session_id")
		ask(t, handler, "POST", at+"?x=1", "").failed(400, "invalid_request", "x")
		ask(t, handler, "POST", "/api/crews/zzz/"+call, "").failed(404, "not_found", "")
	}
	ask(t, handler, "POST", "/api/crews/team/stop", `{"session_id": "s", "reason": "`+strings.Repeat("x", 501)+`"}`).failed(400, "invalid_request", "reason")
	ask(t, handler, "POST", "/api/crews/team/resume", `{"session_id": "s"}`).failed(409, "no_cycle", "")
	ask(t, handler, "POST", "/api/crews/team/restore", `{"session_id": "s"}`).failed(409, "no_cycle", "")
}

// Tokens are names of variables, whatever a file says.
func TestCrewsAreShown(t *testing.T) {
	_, handler := newCrewServer(t)
	t.Setenv("PLANNER_TOKEN", "123:secret")
	for _, target := range []string{"", "/team", "/broken"} {
		if body := string(ask(t, handler, "GET", "/api/crews"+target, "").body); strings.Contains(body, "123:secret") {
			t.Errorf("%s tells a token: %s", target, body)
		}
	}
	var shown struct {
		Roles []struct {
			BotToken string `json:"bot_token"`
		}
	}
	if ask(t, handler, "GET", "/api/crews/team", "").into(200, &shown); shown.Roles[0].BotToken != "PLANNER_TOKEN" {
		t.Errorf("shown is %+v", shown)
	}
}

// Under an Idempotency-Key a message is said once, also when its cycle has ended since.
func TestCrewsHearAMessageOnce(t *testing.T) {
	_, handler := newCrewServer(t)
	first := endOf(t, sendToCrew(t, handler, "team", "s", "Plant a tree.", "Idempotency-Key", "k"))
	var again engine.CrewStatus
	ask(t, handler, "POST", "/api/crews/team/messages", `{"session_id": "s", "message": "Plant a tree."}`, "Idempotency-Key", "k").into(202, &again)
	if again.RunID != first.RunID || again.LastSeq != first.LastSeq {
		t.Errorf("the key gave %+v, then %+v", first, again)
	}
	ask(t, handler, "POST", "/api/crews/team/messages", `{"session_id": "s", "message": "Plant two."}`, "Idempotency-Key", "k").failed(409, "idempotency_conflict", "Idempotency-Key")
	if second := endOf(t, sendToCrew(t, handler, "team", "s", "Plant a tree.", "Idempotency-Key", "other")); second.RunID == first.RunID {
		t.Error("another key said nothing")
	}
}

// A crew that is stopped says nothing more until it is resumed, and takes nothing up that a role had begun.
func TestACrewIsStoppedAndResumed(t *testing.T) {
	gate := newGate()
	handler := New(newEngine(t, withCrews(withModel(gate.model()))), Options{}).(*server)
	ask(t, handler, "POST", "/api/crews/pair/messages", `{"session_id": "s", "message": "Go."}`).into(202, &struct{}{})
	within(t, "the turn of a role", gate.reached)
	var status engine.CrewStatus
	if ask(t, handler, "GET", "/api/crews/pair/status?session_id=s", "").into(200, &status); status.Speaking != "one" || status.TurnID == "" || status.State != continuo.RunRunning {
		t.Errorf("the state of the crew is %+v", status)
	}
	ask(t, handler, "POST", "/api/crews/pair/stop", `{"session_id": "s", "reason": "Lunch."}`).into(202, &status)
	if stopped := waitForIdleCrew(t, handler, "pair", "s"); stopped.State != continuo.RunStopped || stopped.Next != "one" {
		t.Errorf("the crew was stopped as %+v", stopped)
	}
	close(gate.open)
	ask(t, handler, "POST", "/api/crews/pair/resume", `{"session_id": "s"}`).into(202, &struct{}{})
	if ended := waitForIdleCrew(t, handler, "pair", "s"); ended.State != continuo.RunFinished || !strings.Contains(ended.Reason, "max_rounds") {
		t.Errorf("the crew rests as %+v", ended)
	}
	var answers []string
	for _, entry := range entriesOf(t, handler, "s") {
		if entry.Role == continuo.Assistant && entry.Error == nil {
			answers = append(answers, entry.Author.RoleName+" "+entry.Content.String())
		}
	}
	if !slices.Equal(answers, []string{"one Once upon a time", "two Once upon a time"}) {
		t.Errorf("it was said %q", answers)
	}
}

// Behind a reset no role sees what was said before, until it is taken back. Under a key both are done once.
func TestACrewIsResetAndRestored(t *testing.T) {
	_, handler := newCrewServer(t)
	sendToCrew(t, handler, "team", "s", "Plant a tree.")
	sees := func() string {
		t.Helper()
		return string(ask(t, handler, "GET", "/api/crews/team/context?session_id=s&role=builder", "").body)
	}
	if !strings.Contains(sees(), "Plant a tree.") {
		t.Fatalf("the builder sees %s", sees())
	}
	change := func(call, key string) (status engine.CrewStatus) {
		t.Helper()
		ask(t, handler, "POST", "/api/crews/team/"+call, `{"session_id": "s"}`, "Idempotency-Key", key).into(202, &status)
		return status
	}
	reset := change("reset", "a")
	if again := change("reset", "a"); !reset.Restorable || reset.Since == 0 || again.LastSeq != reset.LastSeq {
		t.Errorf("the crew was reset as %+v, then %+v", reset, again)
	}
	if have := textOf(t, sendToCrew(t, handler, "team", "s", "And a bush.")); !strings.Contains(have, "Planner: We dig a hole.") || strings.Contains(sees(), "Plant a tree.") {
		t.Errorf("behind the reset was said\n%s; the builder sees %s", have, sees())
	}
	restored := change("restore", "b")
	if again := change("restore", "b"); restored.Restorable || restored.Since != 0 || again.LastSeq != restored.LastSeq {
		t.Errorf("the crew was restored as %+v, then %+v", restored, again)
	}
	if !strings.Contains(sees(), "Plant a tree.") || !strings.Contains(sees(), "And a bush.") {
		t.Errorf("the builder sees %s", sees())
	}
	checkLog(t, entriesOf(t, handler, "s"))
}

// The calls of runs know nothing of crews' cycles.
func TestCyclesAreNoRuns(t *testing.T) {
	_, handler := newCrewServer(t)
	cycle := endOf(t, sendToCrew(t, handler, "team", "s", "Plant a tree."))
	var page api.List[continuo.Run]
	for _, query := range []string{"", "?conversation_id=s", "?state=finished"} {
		if ask(t, handler, "GET", "/api/runs"+query, "").into(200, &page); len(page.Data) != 0 {
			t.Errorf("%q lists %+v", query, page.Data)
		}
	}
	for _, call := range []string{"", "/events"} {
		ask(t, handler, "GET", "/api/runs/"+cycle.RunID+call, "").failed(404, "not_found", "")
	}
	for _, call := range []string{"resume", "stop", "cancel"} {
		ask(t, handler, "POST", "/api/runs/"+cycle.RunID+"/"+call, "").failed(404, "not_found", "")
	}
	ask(t, handler, "POST", "/api/runs/"+cycle.RunID+"/approvals", `{"decision": "approve"}`).failed(404, "not_found", "")
}
