package server

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/engine"
)

// What a role sees by its view, by its crew's call and by the conversation's, is what it was sent.
func TestWhatARoleSees(t *testing.T) {
	_, handler := newCrewServer(t)
	sendToCrew(t, handler, "team", "s", "Plant a tree.")
	var rounds struct{ Data []engine.RoleRound }
	ask(t, handler, "GET", "/api/crews/team/rounds?session_id=s&role=builder", "").into(200, &rounds)
	if len(rounds.Data) != 2 || rounds.Data[0].Placeholder || !rounds.Data[1].Placeholder || rounds.Data[1].Cursor <= rounds.Data[0].Cursor {
		t.Fatalf("the rounds are %+v", rounds.Data)
	}
	first := mustJSON(t, rounds.Data[0].Seq)
	var sent struct {
		Same bool
		Body struct{ Messages []shownMessage }
	}
	ask(t, handler, "GET", "/api/crews/team/context?session_id=s&role=builder&request="+first, "").into(200, &sent)
	var texts []string
	for _, message := range sent.Body.Messages {
		if message.Role != "system" {
			texts = append(texts, message.Role+" "+message.Content.String())
		}
	}
	if !sent.Same || !slices.Equal(texts, []string{"user User: Plant a tree.", "user Assistant (Planner): We dig a hole."}) {
		t.Errorf("it was sent %+v", sent)
	}
	at := mustJSON(t, rounds.Data[0].At)
	type seen struct {
		View     string
		Messages []shownMessage
		Plan     struct {
			Role *struct{ Name, Kind string }
		}
	}
	var own, general seen
	ask(t, handler, "GET", "/api/crews/team/context?session_id=s&role=builder&at="+at, "").into(200, &own)
	if got := last(own.Messages).Content.String(); got != last(sent.Body.Messages).Content.String() || own.Messages[0].Role != "system" {
		t.Errorf("at that place it sees %q, and was sent %q", got, last(sent.Body.Messages).Content.String())
	}
	if role := own.Plan.Role; role == nil || role.Name != "builder" || role.Kind != "window" || own.View != "role:builder" {
		t.Errorf("the plan is %+v of the view %s", role, own.View)
	}
	for _, crew := range []string{"", "&crew=team"} {
		ask(t, handler, "GET", "/api/conversations/s/context?view=role:builder&system=true&at="+at+crew, "").into(200, &general)
		if mustJSON(t, general) != mustJSON(t, own) {
			t.Errorf("by its crew it sees %+v, by the conversation %+v", own, general)
		}
	}
	for _, test := range []struct {
		query       string
		status      int
		code, param string
	}{
		{"view=role:", 400, "invalid_request", "view"},
		{"view=role:x", 400, "invalid_request", "view"},
		{"view=role:builder&crew=zzz", 404, "not_found", "crew"},
		{"view=role:builder&crew=..", 404, "not_found", "crew"},
		{"view=codex&crew=team", 400, "invalid_request", "crew"},
		{"view=role:builder&model=actor", 400, "invalid_request", "model"},
		{"view=role:builder&at=99", 400, "bad_range", "at"},
	} {
		ask(t, handler, "GET", "/api/conversations/s/context?"+test.query, "").failed(test.status, test.code, test.param)
	}
	sendMessage(t, handler, "plain", "hello")
	ask(t, handler, "GET", "/api/conversations/plain/context?view=role:builder", "").failed(404, "not_found", "view")
}

func mustJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Two roles are compared, or one role in two rounds, or at two times; the lines together make both texts.
func TestTwoRolesAreCompared(t *testing.T) {
	_, handler := newCrewServer(t)
	sendToCrew(t, handler, "team", "s", "Plant a tree.")
	var rounds struct{ Data []engine.RoleRound }
	ask(t, handler, "GET", "/api/crews/team/rounds?session_id=s&role=planner", "").into(200, &rounds)
	first, second := mustJSON(t, rounds.Data[0].Seq), mustJSON(t, rounds.Data[1].Seq)
	for _, test := range []struct {
		query       string
		left, right []string // lines that only the one has, besides those that name the role
	}{
		{"role=planner", nil, nil},
		{"role=planner&other_role=builder", []string{"You are Planner.", "say We dig a hole.", "say We water it.", "", "[MORE] Nothing was said since."}, []string{"You are Builder.", "say I dug."}},
		{
			"role=planner&request=" + first + "&other_request=" + second, nil,
			[]string{"", "Assistant (Planner): We dig a hole.", "", "Assistant (Builder): I dug.", "", "Assistant (Judge): Go on."},
		},
		{"role=planner&request=" + second + "&other_at=" + mustJSON(t, rounds.Data[1].At), nil, nil},
	} {
		var comparison engine.Comparison
		ask(t, handler, "GET", "/api/crews/team/compare?session_id=s&"+test.query, "").into(200, &comparison)
		lines := map[string][]string{}
		for _, line := range comparison.Lines {
			if rules := strings.Contains(line.Text, "one of the agents of a crew") || strings.HasPrefix(line.Text, "- "); !rules {
				lines[string(line.Op)] = append(lines[string(line.Op)], line.Text)
			}
		}
		if mustJSON(t, lines["left"]) != mustJSON(t, test.left) || mustJSON(t, lines["right"]) != mustJSON(t, test.right) {
			t.Errorf("%s: only left %q, only right %q", test.query, lines["left"], lines["right"])
		}
		for _, side := range []engine.RoleContext{comparison.Left, comparison.Right} {
			if !strings.HasPrefix(side.Text, "You are ") || !strings.Contains(side.Text, "\n\nUser: Plant a tree.") || side.Plan == nil || side.At == 0 {
				t.Errorf("%s: a side is %+v", test.query, side)
			}
		}
	}
}

// In the middle of its turn a role sees the calls of the turn too.
func TestASightHasTheOpenTurn(t *testing.T) {
	_, handler := newCrewServer(t)
	sendToCrew(t, handler, "tooled", "s", "Forge a nail.")
	var rounds struct{ Data []engine.RoleRound }
	ask(t, handler, "GET", "/api/crews/tooled/rounds?session_id=s&role=smith", "").into(200, &rounds)
	if len(rounds.Data) != 2 || rounds.Data[0].Calls != 1 || rounds.Data[1].Calls != 0 {
		t.Fatalf("the rounds are %+v", rounds.Data)
	}
	query := "role=smith&request=" + mustJSON(t, rounds.Data[0].Seq) + "&other_request=" + mustJSON(t, rounds.Data[1].Seq)
	var comparison engine.Comparison
	ask(t, handler, "GET", "/api/crews/tooled/compare?session_id=s&"+query, "").into(200, &comparison)
	var more []string
	for _, line := range comparison.Lines {
		switch line.Op {
		case "left":
			t.Errorf("the first round alone has the line %q", line.Text)
		case "right":
			more = append(more, line.Text)
		}
	}
	want := []string{"", `[call] {"name": "test_upper", "args": {"text": "iron"}}`, "", "[result] Wrote it", "", "IRON"}
	if mustJSON(t, more) != mustJSON(t, want) {
		t.Errorf("the second round has the lines %q more, not %q", more, want)
	}
}
