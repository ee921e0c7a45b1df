package window_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// researchLog asks for outputs of about 250 tokens each.
func researchLog(rounds int) *entries {
	l := &entries{}
	l.User("Find out")
	for range rounds {
		l.Call(strings.Repeat("found it ", 110))
	}
	l.Assistant("Nothing yet")
	l.User("Go on")
	return l
}

func TestAViewChoosesBetweenMoreMessagesAndWholeOutputs(t *testing.T) {
	view := preset(t, window.Codex, window.Limits{Tokens: 2000})
	short := researchLog(30).build(t, view)
	view.Outputs = window.WholeOutputs
	whole := researchLog(30).build(t, view)
	if short.Totals.Truncated == 0 || whole.Totals.Truncated+whole.Totals.Previewed > 0 {
		t.Errorf("cut down are %d outputs, and %d where whole ones are wanted", short.Totals.Truncated, whole.Totals.Truncated+whole.Totals.Previewed)
	}
	if whole.Totals.Messages < 10 || whole.Totals.Messages >= short.Totals.Messages {
		t.Errorf("whole outputs leave %d messages, short ones %d", whole.Totals.Messages, short.Totals.Messages)
	}
	if whole.ViewHash == short.ViewHash {
		t.Error("the two views share their windows")
	}
}

// Between two moves the window keeps its whole outputs, and the limits hold at each request.
func TestWholeOutputsStayWholeUntilTheNextMove(t *testing.T) {
	view := preset(t, window.Codex, window.Limits{Tokens: 2000})
	view.Outputs, view.LowWater = window.WholeOutputs, 0.5
	l := researchLog(30)
	moves := 0
	for range 40 {
		plan := l.build(t, view)
		if plan.Totals.Truncated+plan.Totals.Previewed > 0 {
			t.Fatalf("%d outputs are cut down", plan.Totals.Truncated+plan.Totals.Previewed)
		}
		if plan.Moved {
			moves++
		}
		l.answer("noted", plan)
		l.User("Go on")
		l.Call(strings.Repeat("found more ", 60))
		l.Assistant("Found")
		l.User("And?")
	}
	if moves < 3 || moves > 25 {
		t.Errorf("the window moved %d times in 40 requests", moves)
	}
}

// Whatever the log and the limits: a view that wants whole outputs shows no short form but of what every request must
// hold, of outputs above the view's limit, and of the opener.
func TestWholeOutputsInAnyLog(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 5))
	for range 300 {
		l := talk(random)
		view := preset(t, window.Codex, window.Limits{Messages: random.IntN(12), Tokens: random.IntN(3) * 300})
		view.Outputs, view.Opener = window.WholeOutputs, window.OpenerNone
		plan, err := view.Build(l, window.Input{At: int64(len(l.List)), Counter: chars{}})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range plan.Items {
			if item.Verdict == window.Truncated {
				t.Errorf("within %+v entry %d is cut down", view.Limits, item.Seq)
			}
		}
		required, around := requiredOf(l, plan), continuo.Size{}
		for _, m := range plan.Messages {
			if !required[m.Seq] {
				around = around.Add(m.Size)
			}
		}
		if view.Limits.Exceeded(around) != "" {
			t.Errorf("%+v around what is required are over %+v", around, view.Limits)
		}
	}
}

func TestAnUnknownChoiceOfOutputsIsRefused(t *testing.T) {
	view := preset(t, window.Codex, window.Limits{})
	view.Outputs = "some"
	if _, err := view.Build(researchLog(1), window.Input{Counter: chars{}}); err == nil || !strings.Contains(err.Error(), "some") {
		t.Errorf("it fails with %v", err)
	}
}
