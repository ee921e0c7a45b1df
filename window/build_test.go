package window_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
	"github.com/continuo-log/continuo/window/windowtest"
)

// chars counts four characters as a token.
type chars = windowtest.Chars

// entries is a log in memory that counts how many rows were read of it.
type entries struct{ windowtest.Log }

func (l *entries) build(t *testing.T, view window.View) *window.Plan {
	t.Helper()
	plan, err := view.Build(l, window.Input{At: int64(len(l.List)), Counter: chars{}})
	if err != nil {
		t.Fatal(err)
	}
	check(t, plan, view)
	return plan
}

// answer appends what a turn would: an assistant entry that records the plan's window.
func (l *entries) answer(text string, plan *window.Plan) {
	l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(text), Round: &continuo.Round{
		View: plan.View, ViewHash: plan.ViewHash, At: plan.At, Window: plan.Window,
	}})
}

// check holds every plan to what holds for all.
func check(t *testing.T, plan *window.Plan, view window.View) {
	t.Helper()
	totals := plan.Totals
	limits := view.Limits
	if limits.Messages > 0 && totals.Messages > limits.Messages || limits.Chars > 0 && totals.Chars > limits.Chars || limits.Tokens > 0 && totals.Tokens > limits.Tokens {
		t.Errorf("the plan takes %d messages, %d chars, %d tokens; the limits are %+v", totals.Messages, totals.Chars, totals.Tokens, limits)
	}
	if totals.Kept+totals.Summarized+totals.Dropped+totals.Excluded != totals.Entries {
		t.Errorf("totals do not add up: %+v", totals)
	}
	next := int64(1)
	for _, item := range plan.Items {
		if item.Seq != next {
			t.Errorf("items leave a gap or overlap at seq %d: found %d", next, item.Seq)
		}
		next = max(item.Seq, item.Through) + 1
	}
	if next != plan.At+1 {
		t.Errorf("items end at %d, the plan at %d", next-1, plan.At)
	}
	open := map[string]bool{}
	for _, m := range plan.Messages {
		for _, call := range m.ToolCalls {
			open[call.ID] = true
		}
		if m.Role == continuo.Tool {
			if !open[m.ToolCallID] {
				t.Errorf("the result of %s stands without its call", m.ToolCallID)
			}
			delete(open, m.ToolCallID)
		}
	}
	if len(open) > 0 {
		t.Errorf("calls without a result: %v", open)
	}
}

func preset(t *testing.T, name string, limits window.Limits) window.View {
	t.Helper()
	view, err := window.DefaultSettings().View(name)
	if err != nil {
		t.Fatal(err)
	}
	view.Limits = limits
	return view
}

func texts(plan *window.Plan) []string {
	var texts []string
	for _, m := range plan.Messages {
		texts = append(texts, m.Content.String())
	}
	return texts
}

func chat(n int) *entries {
	l := &entries{}
	for i := range n {
		if i%2 == 0 {
			l.User(fmt.Sprintf("question %d", i))
		} else {
			l.Assistant(fmt.Sprintf("answer %d", i))
		}
	}
	return l
}

func TestAShortLogIsShownWhole(t *testing.T) {
	for n := range 12 {
		l := chat(n)
		plan := l.build(t, preset(t, window.Codex, window.Limits{Messages: 20, Chars: 10_000, Tokens: 5000}))
		if len(plan.Messages) != n || plan.Window.Start != 1 || plan.Moved {
			t.Errorf("%d messages: shown %d, window %+v, moved %v", n, len(plan.Messages), plan.Window, plan.Moved)
		}
	}
}

func TestContinuityKeepsTheFirstTheNewestAndAMarker(t *testing.T) {
	l := chat(101)
	plan := l.build(t, preset(t, window.Continuity, window.Limits{Messages: 50, Tokens: 6000}))
	shown := texts(plan)
	if shown[0] != "question 0" || shown[1] != window.Marker || shown[len(shown)-1] != "question 100" {
		t.Errorf("shown: %q", shown)
	}
	if len(shown) < 25 {
		t.Errorf("only %d messages shown of a budget of 50", len(shown))
	}
	if plan.Items[0].Reason != "opener" || plan.Items[1].Verdict != window.Dropped || plan.Items[1].Reason != "over_messages" {
		t.Errorf("items: %+v", plan.Items[:3])
	}
}

func TestGroupsAreNotSplit(t *testing.T) {
	l := &entries{}
	for i := range 40 {
		l.User(fmt.Sprintf("do %d", i))
		l.Call("one", "two", "three")
		l.Assistant("done")
	}
	for limit := 5; limit < 60; limit++ {
		l.build(t, preset(t, window.Codex, window.Limits{Messages: limit})) // check() looks for split groups
	}
}

func TestTheNewestUserMessageStaysInALongCycle(t *testing.T) {
	l := chat(20)
	l.User("the task")
	for range 50 {
		l.Call("output")
	}
	plan := l.build(t, preset(t, window.Codex, window.Limits{Messages: 10}))
	if !slices.Contains(texts(plan), "the task") {
		t.Errorf("the newest user message is missing: %q", texts(plan))
	}
	if plan.Cycle != 21 {
		t.Errorf("the cycle began at 21, not %d", plan.Cycle)
	}
}

// Only the model's window makes a build fail.
func TestOverflowNamesTheSizes(t *testing.T) {
	l := chat(4)
	l.User(strings.Repeat("long ", 1000))
	in := window.Input{At: 5, Counter: chars{}, Model: "small", ModelWindow: 1000, Prompt: continuo.Size{Tokens: 300}}
	view := preset(t, window.Codex, window.Limits{})
	_, err := view.Build(l, in)
	var overflow *continuo.OverflowError
	if !errors.As(err, &overflow) || overflow.NewestUser.Chars != 5000 || overflow.Answer != 250 || overflow.Limits.Tokens != 450 {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{
		"the window of the model small has 1000 tokens", "the tools take 300", "250 are held back", "takes 1254 tokens", "1804 tokens in all",
		"models.NAME.context_window",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	if err := view.CheckFits(in, continuo.Text(strings.Repeat("long ", 1000))); !errors.As(err, &overflow) {
		t.Errorf("CheckFits: %v", err)
	}
}

// A setting that the error names changes the outcome, at the value that it names.
func TestOverflowNamesTheSettingThatHelps(t *testing.T) {
	const output, reserve = "lower models.NAME.max_output_tokens", "lower chat.reserved_tokens"
	for name, c := range map[string]struct {
		output, reserve, message int
		want                     string
	}{
		"nothing set":               {0, 4500, 650, reserve + " to 350 or less, shorten"},
		"a small output":            {10, 4500, 650, reserve + " to 350 or less, shorten"},
		"a large output":            {400, 310, 650, output + " to 50 or less, shorten"},
		"both":                      {400, 4500, 650, output + " to 50 or less and chat.reserved_tokens to 350 or less, shorten"},
		"too long for any":          {400, 4500, 800, "tokens in all; shorten the message"},
		"nothing is left to answer": {0, 4500, 700, "tokens in all; shorten the message"},
	} {
		t.Run(name, func(t *testing.T) {
			settings := window.DefaultSettings()
			settings.ChatReserve = c.reserve
			in := window.Input{At: 1, Counter: chars{}, ModelWindow: 1000, Prompt: continuo.Size{Tokens: 300}, Output: c.output}
			l := &entries{}
			l.User(strings.Repeat("long", c.message-4)) // and 4 for the message
			build := func() error {
				view, err := settings.View(window.Codex)
				if err != nil {
					t.Fatal(err)
				}
				_, err = view.Build(l, in)
				return err
			}
			err := build()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), output) {
				in.Output = 50
			}
			if strings.Contains(err.Error(), "chat.reserved_tokens") {
				settings.ChatReserve = 350
			}
			if err := build(); (err == nil) != strings.Contains(c.want, "lower") {
				t.Errorf("with what it names: %v", err)
			}
		})
	}
}

func TestOutputsAreCutDownBeforeOldMessagesGo(t *testing.T) {
	l := &entries{}
	l.User("begin")
	for range 10 {
		l.Call(strings.Repeat("a line of output\n", 200)) // 3 400 characters
	}
	plan := l.build(t, preset(t, window.Codex, window.Limits{Chars: 20_000}))
	verdicts := map[window.Verdict]int{}
	for _, item := range plan.Items {
		verdicts[item.Verdict]++
	}
	if verdicts[window.Dropped] > 0 || verdicts[window.Previewed] == 0 {
		t.Errorf("verdicts: %v", verdicts)
	}
	last := plan.Items[len(plan.Items)-1]
	if last.Verdict != window.Kept {
		t.Errorf("the newest result was cut: %+v", last)
	}
	plan = l.build(t, preset(t, window.Codex, window.Limits{Chars: 9_000}))
	if len(plan.Messages) < 15 {
		t.Errorf("with one-line results more should be left: %d messages", len(plan.Messages))
	}
}

func TestALargeOutputIsPreviewedWithItsPath(t *testing.T) {
	l := &entries{}
	l.User("read it")
	l.Call(strings.Repeat("0123456789\n", 2000))
	plan := l.build(t, preset(t, window.Codex, window.Limits{}))
	shown := plan.Messages[2].Content.String()
	if !strings.HasPrefix(shown, "TOOL_RESULT_PREVIEW (22000 characters") || !strings.HasSuffix(shown, "Full output: @state/logs/tool-results/call_1_0.json") {
		t.Errorf("preview: %s", shown)
	}
	if n := utf8.RuneCountInString(shown); n > 1600 {
		t.Errorf("the preview has %d characters", n)
	}
	l = &entries{}
	l.User("read it")
	l.Call(strings.Repeat("x", 8000))
	if plan := l.build(t, preset(t, window.Codex, window.Limits{})); plan.Items[2].Verdict != window.Kept {
		t.Errorf("8 000 characters are within the limit: %+v", plan.Items[2])
	}
}

func TestBetweenMovesRequestsOnlyGrow(t *testing.T) {
	for _, name := range []string{window.Codex, window.Continuity} {
		view := preset(t, name, window.Limits{Messages: 30, Chars: 9000})
		l := &entries{}
		var before []string
		moves := 0
		for i := range 200 {
			l.User(fmt.Sprintf("question %d", i))
			if i%3 == 0 {
				l.Call(strings.Repeat(fmt.Sprintf("output %d\n", i), i%50*5))
			}
			plan := l.build(t, view)
			now := texts(plan)
			if plan.Moved {
				moves++
			} else if len(now) < len(before) || !slices.Equal(now[:len(before)], before) {
				t.Fatalf("%s: round %d changed what was sent although the window did not move", name, i)
			}
			before = now
			l.answer("answer", plan)
		}
		if moves == 0 || moves > 60 {
			t.Errorf("%s: %d moves in 200 rounds", name, moves)
		}
	}
}

func TestHiddenAndEmptyEntriesAreExcludedWithAReason(t *testing.T) {
	l := &entries{}
	l.User("hello")
	l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("for people"), Hidden: true})
	l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("")})
	l.Add(continuo.Entry{Role: continuo.Tool, ToolCallID: "gone", Content: continuo.Text("late"), Hidden: true, Repairs: []string{"orphan_tool"}})
	l.User("again")
	plan := l.build(t, preset(t, window.Codex, window.Limits{}))
	var reasons []string
	for _, item := range plan.Items {
		reasons = append(reasons, item.Reason)
	}
	if want := []string{"in_window", "ui_only", "empty", "orphan_tool_result", "latest_user"}; !slices.Equal(reasons, want) {
		t.Errorf("reasons %v, want %v", reasons, want)
	}
}

// Only events of a user interface are left out: nothing that somebody said, and no part of a tool group.
func TestCollapsedSystemEntriesAreShownWhereTheViewSaysSo(t *testing.T) {
	l := &entries{}
	l.Add(continuo.Entry{Role: continuo.User, Content: continuo.Text("hello"), IsCollapsed: true})
	l.Add(continuo.Entry{Role: continuo.System, Content: continuo.Text("Two files were opened."), IsCollapsed: true})
	l.Add(continuo.Entry{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{continuo.FunctionCall("a", "look", "{}")}, IsCollapsed: true})
	l.Add(continuo.Entry{Role: continuo.Tool, ToolCallID: "a", Content: continuo.Text("a tree"), IsCollapsed: true})
	l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("I see a tree."), IsCollapsed: true})
	view := preset(t, window.Codex, window.Limits{})
	for shown, want := range map[bool]string{false: "collapsed", true: "in_window"} {
		view.ShowCollapsed = shown
		for _, item := range l.build(t, view).Items {
			isEvent := item.Seq == 2
			if isEvent && item.Reason != want || !isEvent && item.Verdict != window.Kept {
				t.Errorf("shown %t: entry %d is %s (%s)", shown, item.Seq, item.Verdict, item.Reason)
			}
		}
	}
}

func TestAnOpenCallIsAnsweredByThePlan(t *testing.T) {
	l := &entries{}
	l.User("go")
	l.Call("one", "two")
	l.List = l.List[:3] // the second result has not come
	plan := l.build(t, preset(t, window.Codex, window.Limits{}))
	if last := plan.Messages[3]; last.Role != continuo.Tool || last.ToolCallID != "call_1_1" || last.Entry != nil {
		t.Errorf("last message: %+v", last)
	}
}

func TestAFailedAnswerIsShownWithItsError(t *testing.T) {
	l := &entries{}
	l.User("write")
	l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("Once upon"), Error: &continuo.TurnError{Code: continuo.LLMError, Reason: continuo.ReasonTimeout, Retryable: true}})
	l.User("continue")
	plan := l.build(t, preset(t, window.Codex, window.Limits{}))
	if shown := texts(plan)[1]; shown != "Once upon\n\nLLM_ERROR reason=timeout retryable=true\nThe answer took too long." {
		t.Errorf("shown: %q", shown)
	}
}

func TestReplayShowsTheOpenCycleWhole(t *testing.T) {
	l := chat(40)
	l.User("now")
	for range 30 {
		l.Call(strings.Repeat("x", 9000))
	}
	view, _ := window.DefaultSettings().View(window.Replay)
	plan := l.build(t, view)
	if got := len(plan.Messages); got != 15+1+60 {
		t.Errorf("%d messages shown, want 15 of history and the cycle's 61", got)
	}
	for _, item := range plan.Items[1:] {
		if item.Verdict != window.Kept {
			t.Errorf("item %+v", item)
		}
	}
}

func TestTheCostFollowsTheWindow(t *testing.T) {
	for _, name := range []string{window.Codex, window.Continuity, window.Replay} {
		view, _ := window.DefaultSettings().View(name)
		for _, n := range []int{1000, 20_000} {
			l := chat(n)
			plan := l.build(t, view)
			if l.Rows > len(plan.Messages)+60 {
				t.Errorf("%s over %d messages: read %d rows to show %d", name, n, l.Rows, len(plan.Messages))
			}
		}
	}
}

func TestChangingTheModeDoesNotMoveTheWindow(t *testing.T) {
	var hashes []string
	for _, name := range []string{"chat", "agent", "run", "codex"} {
		view, _ := window.DefaultSettings().View(name)
		hashes = append(hashes, view.Hash())
	}
	if len(slices.Compact(hashes)) != 1 {
		t.Errorf("hashes differ: %v", hashes)
	}
}

func TestUnknownViewsAndImpossibleLimitsAreRefused(t *testing.T) {
	if _, err := window.DefaultSettings().View("codec"); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("unknown view: %v", err)
	}
	view := preset(t, window.Codex, window.Limits{Messages: -1})
	if _, err := view.Build(chat(3), window.Input{At: 3, Counter: chars{}}); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("negative limit: %v", err)
	}
	view = preset(t, window.Codex, window.Limits{})
	view.LowWater = 0
	if _, err := view.Build(chat(3), window.Input{At: 3, Counter: chars{}}); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("low water 0: %v", err)
	}
}

// large is an entry whose output is an object; its content shows 3 000 and 2 000 bytes of it.
func large(callID string) continuo.Entry {
	p := continuo.Preview{
		Head: strings.Repeat("head 56789\n", 300)[:3000], Tail: strings.Repeat("tail 56789\n", 200)[:2000],
		Chars: 900_000, Bytes: 1_000_000, Lines: 70_000, Full: "@state/logs/tool-results/" + callID + ".json",
	}
	return continuo.Entry{
		Role: continuo.Tool, ToolCallID: callID, Content: continuo.Text(p.String()), OutputRef: p.Full,
		Output: &continuo.Output{ID: "out_1", Bytes: p.Bytes, Chars: p.Chars, Lines: p.Lines, Head: len(p.Head), Tail: len(p.Tail)},
	}
}

func TestAnOutputBesideTheLogIsPreviewedWithItsTrueSize(t *testing.T) {
	for name, c := range map[string]struct {
		view     string
		limits   window.Limits
		verdict  window.Verdict
		from, to int // characters
	}{
		"a preview as of any output": {window.Codex, window.Limits{}, window.Previewed, 1000, 1600},
		"all that the entry has":     {window.Replay, window.Limits{}, window.Previewed, 5000, 5300},
		"one line":                   {window.Codex, window.Limits{Chars: 400}, window.Truncated, 50, 200},
	} {
		l := &entries{}
		l.User("read it")
		l.Call("x")
		if c.verdict == window.Truncated { // of the open group nothing is cut
			l.Assistant("done")
			l.User("and now?")
		}
		result := large(l.List[2].ToolCallID)
		result.Seq = l.List[2].Seq
		l.List[2] = result
		plan := l.build(t, preset(t, c.view, c.limits))
		if plan.Items[2].Verdict != c.verdict {
			t.Errorf("%s: %+v", name, plan.Items[2])
		}
		shown := plan.Messages[2].Content.String()
		if n := utf8.RuneCountInString(shown); n < c.from || n > c.to || n != plan.Messages[2].Size.Chars {
			t.Errorf("%s: %d characters, counted as %d", name, n, plan.Messages[2].Size.Chars)
		}
		if !strings.Contains(shown, "900000 characters") || !strings.Contains(shown, "Full output: "+result.OutputRef) {
			t.Errorf("%s: %s", name, shown)
		}
		if c.verdict == window.Previewed && !strings.Contains(shown, "1000000 bytes") || strings.Count(shown, "left out") != 1 {
			t.Errorf("%s: %s", name, shown)
		}
	}
}
