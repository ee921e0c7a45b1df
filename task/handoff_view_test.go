package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/window"
)

// build builds a plan of a view.
func (l *entries) build(t *testing.T, view task.View) *window.Plan {
	t.Helper()
	in := window.Input{At: int64(len(l.List)), Counter: chars{}}
	plan, err := view.Build(l, in)
	if err != nil {
		t.Fatal(err)
	}
	if totals := plan.Totals; totals.Kept+totals.Summarized+totals.Dropped+totals.Excluded != totals.Entries {
		t.Errorf("totals do not add up: %+v", totals)
	}
	return plan
}

func reasons(plan *window.Plan) []string {
	var reasons []string
	for _, item := range plan.Items {
		reasons = append(reasons, fmt.Sprintf("%d %s %s", max(item.Seq, item.Through), item.Verdict, item.Reason))
	}
	return reasons
}

func TestAHandoffCutsMessagesAndListsCallsInOneLine(t *testing.T) {
	l := &entries{}
	l.Add(continuo.Entry{Role: continuo.System, Content: continuo.Text("You are kind.")})
	l.User(strings.Repeat("ä", 8000))
	l.User(strings.Repeat("ä", 8001))
	l.Assistant(strings.Repeat("ö", 150))
	l.Assistant(strings.Repeat("ö", 151))
	l.Call("found\nmuch", "nothing")
	l.Add(continuo.Entry{Role: continuo.System, Hidden: true, Content: continuo.Text("hidden from all")})
	l.Add(continuo.Entry{Role: continuo.Assistant, Author: &continuo.Author{RoleName: "critic"}, Content: continuo.Text(continuo.Placeholder)})
	l.User(" \n")
	l.Add(continuo.Entry{Role: continuo.System, PartType: continuo.PartResume, Content: continuo.Text("Go on.")})
	l.Add(continuo.Entry{
		Role: continuo.Assistant, Content: continuo.Text("Done."), Reasoning: &continuo.Reasoning{Text: "hm"},
		Vendor: map[string]json.RawMessage{"anthropic": json.RawMessage(`{"content":[{"type":"thinking","thinking":"hm","signature":"s"}]}`)},
	})
	l.Add(continuo.Entry{Role: continuo.User, Content: continuo.Parts(continuo.TextPart("Look:"), continuo.Part{Type: "image_url", Raw: []byte(`{"type":"image_url","image_url":{"url":"x"}}`)})})
	l.User("Now you.")
	plan := l.build(t, task.Limits{}.View())

	want := []string{
		strings.Repeat("ä", 8000), strings.Repeat("ä", 7900) + " ... (truncated, original: 8001 chars)",
		strings.Repeat("ö", 150), strings.Repeat("ö", 150) + " ... (truncated)",
		`called search({"q":"x"}) -> found; search({"q":"x"}) -> nothing`, "Done.", "Look:\n[image]", "Now you.",
	}
	if got := shownTexts(plan); !slices.Equal(got, want) {
		t.Errorf("shown: %q", got)
	}
	wanted := []string{
		"1 excluded system_prompt", "2 kept in_window", "3 truncated over_message_chars", "4 kept in_window", "5 truncated over_message_chars",
		"6 truncated in_one_line", "7 truncated in_one_line", "8 truncated in_one_line", "9 excluded ui_only", "10 excluded placeholder", "11 excluded empty",
		"12 excluded system_prompt", "13 kept in_window", "14 truncated text_only", "15 kept latest_user",
	}
	if got := reasons(plan); !slices.Equal(got, wanted) {
		t.Errorf("verdicts: %q", got)
	}
	messages, system, err := render.Anthropic(plan.Messages, render.Options{Provider: "anthropic"})
	if err != nil || len(system) > 0 || strings.Contains(fmt.Sprintf("%s", messages), "thinking") {
		t.Errorf("for its own vendor: %s, system %q, %v", messages, system, err)
	}
}

func TestAHandoffKeepsTheNewestInOrder(t *testing.T) {
	l := chat(5000)
	plan := l.build(t, task.Limits{}.View())
	if got := shownTexts(plan); len(got) != 50 || got[0] != "question 4950" || got[49] != "answer 4999" {
		t.Errorf("%d messages: %q", len(got), got)
	}
	if plan.Items[0].Through != 4950 || plan.Items[0].Reason != "over_messages" || plan.Window.Start != 4951 || l.Rows > 51 {
		t.Errorf("items begin with %+v, the window with %d; %d rows were read", plan.Items[0], plan.Window.Start, l.Rows)
	}
	if plan.Totals.Kept != 50 || plan.Totals.Dropped != 4950 || plan.Totals.Messages != 50 {
		t.Errorf("totals: %+v", plan.Totals)
	}
}

// What the user asked for last is shown, however much has been done since.
func TestAHandoffAlwaysHasTheNewestUserMessage(t *testing.T) {
	l := chat(30)
	l.User("do much")
	for range 90 {
		l.Call("done")
	}
	plan := l.build(t, task.Limits{}.View())
	got := shownTexts(plan)
	if len(got) != 50 || got[0] != "do much" || !slices.Equal(plan.Window.Pins, []int64{31}) || l.Rows > 103 {
		t.Errorf("%d messages, the first %q, pins %v; %d rows were read", len(got), got[0], plan.Window.Pins, l.Rows)
	}
}

// A message of blanks is none: the one before it is the newest, wherever it is.
func TestAHandoffSkipsABlankMessage(t *testing.T) {
	for answers := range 6 {
		l := &entries{}
		l.User("The real request.")
		l.Assistant("Yes.")
		l.User(" \n")
		for range answers {
			l.Assistant("More.")
		}
		plan := l.build(t, task.Limits{MaxMessages: 3}.View())
		if first := plan.Messages[0].Content.String(); first != "The real request." {
			t.Errorf("behind %d answers the hand-off begins with %q", answers, first)
		}
		next := int64(1)
		for _, item := range plan.Items {
			if item.Seq != next {
				t.Errorf("behind %d answers the plan continues with entry %d after %d: %v", answers, item.Seq, next-1, reasons(plan))
			}
			next = max(item.Seq, item.Through) + 1
		}
	}
}

func TestAHandoffHoldsTheSettingsAndTheLimits(t *testing.T) {
	l := chat(20)
	view := task.Limits{MaxMessages: 4, UserMaxChars: 10, AssistantMaxChars: 3}.View()
	plan := l.build(t, view)
	if got, want := shownTexts(plan), []string{"quest ... (truncated, original: 11 chars)", "ans ... (truncated)"}; !slices.Equal(got, slices.Concat(want, want)) {
		t.Errorf("shown: %q", got)
	}
	view.Limits.Tokens = 20
	if _, err := view.Build(l, window.Input{At: 20, Counter: chars{}}); err != nil {
		t.Error(err)
	}
	view.Limits.Tokens = 5
	if plan, err := view.Build(l, window.Input{At: 20, Counter: chars{}}); err != nil || !strings.HasPrefix(shownTexts(plan)[0], "quest") {
		t.Errorf("the newest user message is over the limit: %v", err)
	}
	in := window.Input{At: 20, Counter: chars{}, Model: "tiny", ModelWindow: 5}
	_, err := view.Build(l, in)
	var overflow *continuo.OverflowError
	if !errors.As(err, &overflow) || overflow.NewestUser.Tokens != plan.Messages[2].Size.Tokens || overflow.ModelWindow != 5 {
		t.Errorf("no room for the newest user message: %v, %+v", err, overflow)
	}
	if (task.Limits{}).View().Hash() == view.Hash() {
		t.Error("other limits have the same hash")
	}
}

// A view that was kept with a request is the same when it is read again.
func TestAHandoffIsReadBack(t *testing.T) {
	view := task.Limits{UserMaxChars: 10, AssistantMaxChars: 3}.View()
	kept, err := json.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	var again task.View
	if err := json.Unmarshal(kept, &again); err != nil || again.Hash() != view.Hash() {
		t.Errorf("%s: %v", kept, err)
	}
	l := chat(20)
	if got := shownTexts(l.build(t, again)); !slices.Equal(got, shownTexts(l.build(t, view))) {
		t.Errorf("shown: %q", got)
	}
}

// addAny appends what a log may hold: messages, calls, failures, and what is never shown.
func (l *entries) addAny(random *rand.Rand) {
	text := func(most int) continuo.Content {
		return continuo.Text(fmt.Sprintf("m%d. ", len(l.List)) + strings.Repeat("wörd\n", random.IntN(most/5+1)))
	}
	failure := &continuo.TurnError{Reason: continuo.ReasonNetwork}
	switch random.IntN(10) {
	case 0, 1:
		l.Add(continuo.Entry{Role: continuo.User, Content: text(200)})
	case 2:
		l.Add(continuo.Entry{Role: continuo.Assistant, Content: text(150), Author: &continuo.Author{RoleName: "guest", DisplayName: "The guest"}})
	case 3:
		l.Add(continuo.Entry{Role: continuo.Assistant, Content: text(4000)})
	case 4:
		l.Call(strings.Repeat("out\n", random.IntN(400)), "")
	case 5:
		l.Add(continuo.Entry{Role: continuo.Assistant, Content: text(50), Error: failure})
	case 6:
		l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(continuo.Placeholder)})
	case 7:
		l.Add(continuo.Entry{Role: continuo.System, Content: continuo.Text("a rule")})
	case 8:
		l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Null(), Error: failure})
	case 9:
		l.Add(continuo.Entry{Role: continuo.System, Hidden: true, Content: text(50)})
	}
}

// A hand-off shows what a task's history of the same conversation keeps.
func TestAHandoffHasTheContextOfATask(t *testing.T) {
	for seed := range uint64(60) {
		c, random := &entries{}, rand.New(rand.NewPCG(seed, 1))
		for range 20 + 20*seed {
			c.addAny(random)
		}
		c.User("and now?")
		view := task.Limits{}.View()
		plan, again := c.build(t, view), c.build(t, view)
		draft := task.Draft{Messages: task.FromEntries(c.List)}
		made, _, err := draft.Shape(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		history := made.Context.ConversationHistory
		if len(history.Messages) != len(plan.Messages) || !slices.Equal(shownTexts(plan), shownTexts(again)) || !slices.Equal(reasons(plan), reasons(again)) {
			t.Fatalf("seed %d: the plan has %d messages, the task %d", seed, len(plan.Messages), len(history.Messages))
		}
		size, cut := continuo.Size{}, 0
		for i, m := range plan.Messages {
			if want := history.Messages[i]; m.Content.String() != want.Content || string(m.Role) != string(want.Role) {
				t.Errorf("seed %d: message %d is %s %q, the task's %s %q", seed, i, m.Role, m.Content, want.Role, want.Content)
			}
			size = size.Add(m.Size)
			measured := continuo.Measure(m.Content, nil, chars{})
			if m.Size.Chars != measured.Chars || m.Size.Tokens < measured.Tokens {
				t.Errorf("seed %d: message %d has the size %+v, measured are %+v", seed, i, m.Size, measured)
			}
		}
		for _, item := range plan.Items {
			if item.Reason == window.ReasonMessageChars {
				cut++
			}
		}
		if totals := plan.Totals; (continuo.Size{Messages: totals.Messages, Chars: totals.Chars, Tokens: totals.Tokens}) != size || cut != history.TruncatedCount {
			t.Errorf("seed %d: totals %+v, sizes %+v; %d are cut, in the task %d", seed, totals, size, cut, history.TruncatedCount)
		}
	}
}

func TestAHandoffIsOfTheNewestWithoutAtAndOfNothingThatIsNotThere(t *testing.T) {
	l := &entries{}
	l.User("one")
	view := task.Limits{}.View()
	plan, err := view.Build(l, window.Input{})
	if err != nil || plan.At != 1 || plan.Totals.Tokens == 0 {
		t.Errorf("without at and counter: %+v, %v", plan, err)
	}
	if _, err := view.Build(l, window.Input{At: 2}); !errors.Is(err, continuo.ErrBadRange) {
		t.Errorf("at 2 of 1: %v", err)
	}
}
