package window_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// output is a text of so many characters in lines of 50 that no other name has.
func output(name string, chars int) string {
	var text strings.Builder
	for i := range chars / 50 {
		fmt.Fprintf(&text, "%-49s\n", fmt.Sprintf("%s has this in its line %d", name, i))
	}
	return text.String()
}

// step builds a request, and appends the call that answers it and its result.
func (l *entries) step(t *testing.T, view window.View, tool, arguments, result string, failed bool) *window.Plan {
	t.Helper()
	plan := l.build(t, view)
	id := fmt.Sprintf("call_%d", len(l.List))
	l.Add(continuo.Entry{
		Role: continuo.Assistant, Content: continuo.Null(), ToolCalls: []continuo.ToolCall{continuo.FunctionCall(id, tool, arguments)},
		Round: &continuo.Round{View: plan.View, ViewHash: plan.ViewHash, At: plan.At, Window: plan.Window},
	})
	entry := continuo.Entry{Role: continuo.Tool, ToolCallID: id, Content: continuo.Text(result)}
	if failed {
		entry.PartType = continuo.PartToolError
	}
	l.Add(entry)
	return plan
}

// reading is a log whose next request moves the window: entry 3 has what entry 7 has again, entry 5 nothing else has.
func reading(t *testing.T, view window.View) *entries {
	l := &entries{}
	l.User("look")
	l.step(t, view, "read", `{"path":"a"}`, output("a", 2000), false)
	l.step(t, view, "read", `{"path":"b"}`, output("b", 2000), false)
	l.step(t, view, "cat", `{"file":"a"}`, output("a", 2000), false)
	l.step(t, view, "read", `{"path":"c"}`, output("c", 2000), false)
	if plan := l.step(t, view, "read", `{"path":"d"}`, output("d", 2000), false); plan.Moved || plan.Totals.Previewed+plan.Totals.Truncated > 0 {
		t.Fatalf("the window has moved to %+v", plan.Window)
	}
	return l
}

func readingView(t *testing.T) window.View {
	view := preset(t, window.Codex, window.Limits{Tokens: 2600})
	view.LowWater, view.Priced = 0.9, false
	return view
}

func TestWhatWasReadAgainIsGivenUpFirst(t *testing.T) {
	view := readingView(t)
	plan := reading(t, view).build(t, view)
	if !plan.Moved {
		t.Fatal("the window does not move")
	}
	wantItem(t, plan, 3, window.Truncated, "read_again")
	for _, seq := range []int64{5, 7, 9} {
		wantItem(t, plan, seq, window.Kept, "in_window")
	}
	view.ByUse = false
	byAge := reading(t, view).build(t, view)
	wantItem(t, byAge, 3, window.Previewed, "over_tokens")
	wantItem(t, byAge, 5, window.Previewed, "over_tokens")
	if plan.Window.Start != byAge.Window.Start {
		t.Errorf("the window begins at %d, and at %d by age", plan.Window.Start, byAge.Window.Start)
	}
}

// What is read again after the move is given up by the next move only: until then, requests grow at the end.
func TestNothingIsGivenUpWhileTheWindowStands(t *testing.T) {
	view := readingView(t)
	view.LowWater = 0.5
	l := reading(t, view)
	before := l.step(t, view, "read", `{"path":"d"}`, output("d", 500), false)
	for !before.Moved {
		before = l.step(t, view, "read", `{"path":"d"}`, output("d", 500), false)
	}
	for range 3 {
		plan := l.step(t, view, "read", `{"path":"d"}`, output("d", 100), false)
		if plan.Moved {
			t.Fatal("the window moved")
		}
		if was, is := texts(before), texts(plan); len(is) <= len(was) || !slices.Equal(was, is[:len(was)]) {
			t.Errorf("the request\n%q\ndoes not extend\n%q", is, was)
		}
		before = plan
	}
}

func TestAFailedCallIsPreviewedOnceItSucceeded(t *testing.T) {
	for name, c := range map[string]struct {
		retried string
		verdict window.Verdict
		reason  string
	}{
		"the same file":  {`{"path":"a","text":"2"}`, window.Previewed, "failed_call"},
		"another file":   {`{"path":"b","text":"2"}`, window.Kept, "in_window"},
		"no JSON object": {`path a`, window.Kept, "in_window"},
	} {
		t.Run(name, func(t *testing.T) {
			view := preset(t, window.Codex, window.Limits{Tokens: 3300})
			view.LowWater, view.Priced = 0.9, false
			l := &entries{}
			l.User("change it")
			l.step(t, view, "list", `{}`, output("list", 4000), false)
			l.step(t, view, "edit", `{"path":"a","text":"1"}`, output("failure", 4000), true)
			l.step(t, view, "edit", c.retried, "done", false)
			l.step(t, view, "read", `{"path":"a"}`, output("a", 4000), false)
			plan := l.step(t, view, "read", `{"path":"b"}`, output("b", 2000), false)
			if plan.Moved {
				t.Fatal("the window has moved")
			}
			plan = l.build(t, view)
			wantItem(t, plan, 5, c.verdict, c.reason)
			if c.verdict == window.Previewed {
				wantItem(t, plan, 3, window.Kept, "in_window")
			}
		})
	}
}

func TestAnImageIsLeftOutOnceItWasAnswered(t *testing.T) {
	image := continuo.Parts(continuo.TextPart("what is this?"), continuo.Part{Type: "image_url", Raw: []byte(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`)})
	view := preset(t, window.Codex, window.Limits{Tokens: 3900})
	view.LowWater, view.Priced = 0.9, false
	l := &entries{}
	ask := func(answer string) *window.Plan {
		plan := l.build(t, view)
		l.answer(answer, plan)
		return plan
	}
	l.Add(continuo.Entry{Role: continuo.User, Content: image})
	ask("a cat on a red chair")
	l.User(strings.Repeat("and then? ", 300))
	ask("it sleeps")
	l.Add(continuo.Entry{Role: continuo.User, Content: image})
	plan := ask("the same cat")
	wantItem(t, plan, 1, window.Truncated, "image_described")
	wantItem(t, plan, 5, window.Kept, "latest_user")
	parts := plan.Messages[0].Content.Parts()
	if len(parts) != 2 || parts[0].Text != "what is this?" || !strings.HasPrefix(parts[1].Text, "[Image left out") {
		t.Errorf("the message has %+v", parts)
	}
}

// A request that is rebuilt gives up what it gave up, whatever was redacted since.
func TestARebuiltRequestGivesUpTheSame(t *testing.T) {
	view := readingView(t)
	l := reading(t, view)
	plan := l.build(t, view)
	l.List[6].Content = continuo.Text("[redacted]")
	again, err := view.Build(l, window.Input{At: plan.At, Counter: chars{}, Recorded: &plan.Window})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.Window, plan.Window) {
		t.Errorf("the window is rebuilt as %+v, not as %+v", again.Window, plan.Window)
	}
	wantItem(t, again, 3, window.Truncated, "read_again")
}
