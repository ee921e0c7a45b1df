package window_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

func TestARolesOwnTurnStandsBehindTheText(t *testing.T) {
	l := &entries{}
	l.user("the request")
	l.asks("builder", "turn_1")
	l.call(strings.Repeat("a line of output\n", 300))
	l.list[2].TurnID, l.list[2].Author, l.list[3].TurnID = "turn_1", &continuo.Author{RoleName: "builder"}, "turn_1"
	l.user("more, meanwhile")
	view := roleView(window.RoleFull, func(v *window.View) { v.PreviewChars = 300 })
	text, plan := l.shown(t, view)
	expect(t, text, "User: the request")
	expectVerdicts(t, plan, "1 kept new", "2 excluded ui_only", "3 kept open_group", "4 kept open_group", "5 excluded after_ask")
	if len(plan.Messages) != 3 || plan.Messages[2].Role != continuo.Tool || plan.Cycle != plan.Messages[0].Seq || plan.Role.Through != 2 {
		t.Errorf("%d messages, cycle %d, %+v", len(plan.Messages), plan.Cycle, plan.Role)
	}
	for limit, want := range map[int]continuo.Verdict{2000: continuo.Previewed, 300: continuo.Truncated} {
		view.Limits.Chars = limit
		if _, plan = l.shown(t, view); plan.Items[3].Verdict != want {
			t.Errorf("at %d characters: %v", limit, verdicts(plan))
		}
	}
	view.Limits.Chars = 100
	var overflow *continuo.OverflowError
	if _, err := window.Build(l, view, window.Input{At: 5, Counter: chars{}}); !errors.As(err, &overflow) || overflow.OpenGroup.Messages == 0 {
		t.Errorf("got %v", err)
	}
	// Of a longer turn the oldest groups go, and the newest stays.
	for range 20 {
		l.call("output")
		for i := range 2 {
			l.list[len(l.list)-1-i].TurnID, l.list[len(l.list)-1-i].Author = "turn_1", &continuo.Author{RoleName: "builder"}
		}
	}
	view.Limits.Chars = 300
	_, plan = l.shown(t, view)
	if last := plan.Messages[len(plan.Messages)-1]; last.Content.String() != "output" || !strings.HasPrefix(plan.Messages[1].Content.String(), "[MORE]") {
		t.Errorf("shown: %q", texts(plan))
	}
	// When the turn is over there is no ask any more.
	l.concludes("builder", "turn_1", "done")
	text, plan = l.shown(t, roleView(window.RoleDelta, cursorAt(2), remembers))
	expect(t, text, "[ORIGINAL REQUEST]\nUser: the request\n[END REQUEST]\n\nUser: more, meanwhile")
	if plan.Role.Through != int64(len(l.list)) || plan.Cycle != 0 {
		t.Errorf("%+v", plan.Role)
	}
}

func TestTheTextDoesNotChangeWhileTheTurnGoesOn(t *testing.T) {
	l := &entries{}
	for i := range 40 {
		l.user(fmt.Sprintf("message %d: %s", i, strings.Repeat("x", 50)))
	}
	l.asks("builder", "turn_1")
	view := roleView(window.RoleFull, func(v *window.View) { v.Limits.Tokens, v.LowWater, v.PreviewChars = 800, 0.6, 200 })
	build := func() *continuo.Plan {
		plan, err := window.Build(l, view, window.Input{At: int64(len(l.list)), Counter: chars{}, Estimated: true, Provider: "p", Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		checkRole(t, plan, view)
		return plan
	}
	first := build()
	for range 12 {
		l.call(strings.Repeat("output\n", 100))
		l.list[len(l.list)-2].TurnID, l.list[len(l.list)-1].TurnID = "turn_1", "turn_1"
		// The provider counts more than was estimated: that is for the turn's own messages to make good.
		l.list[len(l.list)-2].Round = &continuo.Round{Provider: "p", Model: "m", Usage: &continuo.Usage{InputTokens: 600}, EstimatedTokens: 500}
		plan := build()
		if plan.Messages[0].Content.String() != first.Messages[0].Content.String() || plan.Role.Through != first.Role.Through {
			t.Fatalf("the text changed, or the cursor's place: %+v to %+v", first.Role, plan.Role)
		}
		if plan.Totals.Tokens > 800*500/600 {
			t.Errorf("%d tokens although the provider counts a fifth more", plan.Totals.Tokens)
		}
	}
}

// The known failure: a watermark that was set to the log's end moved past messages that had never been shown.
func TestAFloodIsShownInParts(t *testing.T) {
	for _, kind := range []window.RoleKind{window.RoleDelta, window.RoleFull, window.RoleWindow, window.RoleSummary, window.RoleMemory} {
		l := &entries{}
		l.user("the request")
		cursor, turns := int64(1), 0
		for i := range 300 { // between two turns
			if i == 150 {
				l.user("in the middle of it")
			}
			l.says("other", fmt.Sprintf("flood %d, %s.", i, strings.Repeat("x", i%90)))
		}
		var all []string
		for waiting := 1; waiting > 0; turns++ {
			turnID := fmt.Sprint("turn_", turns)
			ask := l.asks("builder", turnID)
			text, plan := l.shown(t, roleView(kind, cursorAt(cursor), charsAtMost(2000), remembers, newest(3)))
			for i := range 300 {
				if strings.Contains(text, fmt.Sprintf("flood %d,", i)) {
					all = append(all, fmt.Sprintf("flood %d", i))
				}
			}
			if !strings.Contains(text, "the request") || !strings.Contains(text, "in the middle of it") && turns == 0 {
				t.Errorf("%s: turn %d is shown\n%s", kind, turns, text)
			}
			if waiting = plan.Role.Waiting; waiting > 0 && (plan.Role.News == 0 || plan.Role.Through >= ask.Seq || !strings.Contains(text, fmt.Sprint("[MORE] ", waiting, " newer message"))) {
				t.Fatalf("%s: turn %d: %+v in\n%s", kind, turns, plan.Role, text)
			}
			cursor = plan.Role.Through
			l.concludes("builder", turnID, "noted")
		}
		slices.Sort(all)
		if len(all) < 300 || kind == window.RoleDelta && len(all) != 300 || len(slices.Compact(all)) != 300 || turns < 5 {
			t.Errorf("%s: %d of the flood's 300 messages were shown in %d turns", kind, len(all), turns)
		}
	}
}

func TestOneMessageThatDoesNotFitIsShownAsHeadAndTail(t *testing.T) {
	l := &entries{}
	l.user("the request")
	l.says("other", "begin "+strings.Repeat("middle ", 2000)+"end")
	l.says("other", "behind it")
	text, plan := l.shown(t, roleView(window.RoleDelta, cursorAt(1), remembers, charsAtMost(1000)))
	if !strings.Contains(text, "begin middle") || !strings.Contains(text, "middle end") || !strings.Contains(text, "characters left out") || len(text) < 800 {
		t.Errorf("shown: %s", text)
	}
	expectVerdicts(t, plan, "1 kept original_request", "2 truncated new", "3 dropped next_turn")
	if plan.Role.Through != 2 || plan.Role.Waiting != 1 {
		t.Errorf("%+v", plan.Role)
	}
}

func TestTheOriginalRequestIsCutToAQuarter(t *testing.T) {
	l := &entries{}
	l.user("first words " + strings.Repeat("of many ", 1000) + "last words")
	l.user("short")
	text, plan := l.shown(t, roleView(window.RoleDelta, cursorAt(1), remembers, charsAtMost(2000)))
	if !strings.HasPrefix(text, "[ORIGINAL REQUEST]\nUser: first words") || !strings.Contains(text, "last words\n[END REQUEST]\n\nUser: short") || len(text) > 550 {
		t.Errorf("shown: %s", text)
	}
	expectVerdicts(t, plan, "1 truncated original_request", "2 kept new")
}

func TestTheNewestUserMessageIsNeverCut(t *testing.T) {
	l := &entries{}
	l.user("the request")
	l.says("other", strings.Repeat("long ", 400))
	l.user("whole " + strings.Repeat("word ", 100))
	text, _ := l.shown(t, roleView(window.RoleFull, charsAtMost(900)))
	if !strings.HasSuffix(text, "User: "+l.list[2].Content.String()) {
		t.Errorf("shown: %s", text)
	}
	// What is before it is cut, and nothing waits.
	text, plan := l.shown(t, roleView(window.RoleDelta, cursorAt(1), remembers, charsAtMost(900)))
	if !strings.HasSuffix(text, "User: "+l.list[2].Content.String()) || plan.Role.Waiting != 0 || plan.Role.Through != 3 || strings.Contains(text, "[MORE]") {
		t.Errorf("%+v: %s", plan.Role, text)
	}
	var overflow *continuo.OverflowError
	if _, err := window.Build(l, roleView(window.RoleFull, charsAtMost(400)), window.Input{At: 3, Counter: chars{}}); !errors.As(err, &overflow) || overflow.NewestUser.Chars < 500 {
		t.Errorf("got %v", err)
	}
}

func TestAnOpenGroupOfOthersWaits(t *testing.T) {
	l := &entries{}
	l.user("the request")
	l.call("one", "two")
	l.list = l.list[:3]
	_, plan := l.shown(t, roleView(window.RoleDelta))
	expectVerdicts(t, plan, "1 kept new", "2-3 dropped next_turn")
	if plan.Role.Through != 1 || plan.Role.Waiting != 1 {
		t.Errorf("%+v", plan.Role)
	}
}

func TestADeltaReadsFewRows(t *testing.T) {
	l := &entries{}
	for i := range 50_000 {
		l.says("other", fmt.Sprint("message ", i))
		if i == 3 {
			l.user("the request")
		}
	}
	for kind, most := range map[window.RoleKind]int{window.RoleDelta: 20, window.RoleWindow: 60, window.RoleFull: 200} {
		l.rows = 0
		text, plan := l.shown(t, roleView(kind, cursorAt(int64(len(l.list)-3)), newest(20), charsAtMost(4000)))
		if l.rows > most || plan.Totals.RowsRead > int64(l.rows) || !strings.Contains(text, "the request") {
			t.Errorf("%s: %d rows were read (%d told) for\n%s", kind, l.rows, plan.Totals.RowsRead, text)
		}
	}
}
