package view_test

import (
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/window"
)

// crewHistory lets four roles talk for so many rounds, each with the same view, and returns which share of the bytes of their
// requests extends the role's request before, and how large a request is on average. Summaries are made as the engine
// makes them.
func crewHistory(tb testing.TB, view crewview.View, rounds, answerChars int) (share float64, size int) {
	tb.Helper()
	l := &entries{}
	l.User("Write the program that we spoke of, and keep to the plan.")
	roles := make([]crewview.View, 4)
	for i := range roles {
		roles[i] = view
		roles[i].Role.Name = fmt.Sprint("role", i)
		roles[i].Name = "role:" + roles[i].Role.Name
	}
	build := func(view crewview.View) *window.Plan {
		plan, err := view.Build(l, window.Input{At: int64(len(l.List)), Counter: chars{}})
		if err != nil {
			tb.Fatal(err)
		}
		return plan
	}
	before, windows := make([]string, len(roles)), make([]continuo.Window, len(roles))
	var bytes, extended, requests int
	for round := range rounds {
		for i := range roles {
			role := &roles[i]
			for plan, tries := build(*role), 0; plan.Role.Lacks != nil && tries < 3; plan, tries = build(*role), tries+1 {
				e := l.catchUp(plan, *role)
				e.Content = continuo.Text(strings.Repeat("What was said before. ", 90))
				if e.PartType == continuo.PartNotes {
					role.Role.Notes = e.Seq
				}
			}
			turnID := fmt.Sprintf("turn_%d_%d", round, i)
			if round%7 == 3 && view.RecallShare > 0 {
				l.Add(continuo.Entry{
					Role: continuo.System, Hidden: true, PartType: continuo.PartRecall, WorkflowID: continuo.CrewWorkflow("team"),
					Recall: &continuo.Recall{Role: role.Role.Name, Items: []continuo.RecallItem{{Seq: 1}}}, Content: continuo.Text(fmt.Sprintf("recalled in round %d for %s", round, role.Name)),
				})
			}
			l.asks(role.Role.Name, turnID)
			plan := build(*role)
			var text strings.Builder
			for _, m := range plan.Messages {
				text.WriteString(string(m.Role) + ": " + m.Content.String() + "\n")
			}
			request := text.String()
			if plan.Role.Waiting > 0 {
				tb.Fatalf("round %d of %s: %+v", round, role.Name, plan.Role)
			}
			bytes, requests = bytes+len(request), requests+1
			if view.RecallShare > 0 && !plan.Moved && round > 0 && plan.Window.Epoch == windows[i].Epoch {
				if shared := commonPrefix(before[i], request); shared < len(before[i]) {
					tb.Fatalf("round %d of %s: the request does not extend the one before, which continues %q", round, role.Name, before[i][shared:])
				}
			}
			windows[i] = plan.Window
			extended += commonPrefix(before[i], request)
			before[i] = request
			answer := fmt.Sprintf("Answer %d of %s: ", round, role.Role.Name)
			l.concludes(role.Role.Name, turnID, answer+strings.Repeat("x", answerChars-len(answer))).Round = roundOf(plan)
			role.Role.Cursor = plan.Role.Through
		}
	}
	return float64(extended) / float64(bytes), bytes / requests
}

func commonPrefix(x, y string) int {
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	return n
}

// crewViews are the views of roles with the settings that Continuo ships with, and the least share of a request that
// extends the request before. A delta repeats nothing but the request of the user.
var crewViews = []struct {
	name   string
	kind   crewview.Kind
	newest int
	least  float64
}{
	{"full", crewview.Full, 0, 0.95},
	{"window 200", crewview.Window, 200, 0.93},
	{"window 20", crewview.Window, 20, 0.5},
	{"summary", crewview.Summary, 20, 0.93},
	{"memory", crewview.Memory, 0, 0.93},
	{"delta", crewview.Delta, 0, 0.05},
}

func crewView(kind crewview.Kind, newest int, messages bool) crewview.View {
	return roleView(kind, func(v *crewview.View) {
		v.Limits.Chars, v.LowWater, v.PreviewChars = 120_000, 0.6, 1200
		v.Role.Newest, v.Role.Messages = newest, messages
	})
}

// Also with blocks of recalled entries.
func TestRecallsOfRolesExtendTheirRequests(t *testing.T) {
	for _, of := range crewViews {
		if of.kind == crewview.Delta {
			continue
		}
		view := crewView(of.kind, of.newest, true)
		view.RecallShare, view.Limits.Chars = 0.25, 20_000
		crewHistory(t, view, 60, 300)
	}
}

// Between two moves of a role's window its requests only grow at the end.
func TestRequestsOfRolesExtendTheOnesBefore(t *testing.T) {
	for _, of := range crewViews {
		for form, messages := range map[string]bool{"messages": true, "text": false} {
			if !messages && of.kind != crewview.Full {
				continue // it is measured in the same way
			}
			t.Run(of.name+" as "+form, func(t *testing.T) {
				share, size := crewHistory(t, crewView(of.kind, of.newest, messages), 80, 300)
				t.Logf("%.1f %% of a request of %d bytes extend the one before", 100*share, size)
				if share < of.least {
					t.Errorf("want at least %.0f %%", 100*of.least)
				}
			})
		}
	}
}

func BenchmarkRequestsOfRoles(b *testing.B) {
	for _, of := range crewViews {
		for _, answer := range []int{300, 4000} {
			b.Run(fmt.Sprintf("%s/answers-of-%d", strings.ReplaceAll(of.name, " ", "-"), answer), func(b *testing.B) {
				for b.Loop() {
					share, size := crewHistory(b, crewView(of.kind, of.newest, true), 300, answer)
					b.ReportMetric(100*share, "%shared")
					b.ReportMetric(float64(size), "B/request")
				}
			})
		}
	}
}
