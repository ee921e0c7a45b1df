package window_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// views are the presets that requests are built by.
var views = []string{window.Codex, window.Continuity, window.Replay}

// words is a text of so many tokens.
func words(tokens int) string { return strings.TrimSpace(strings.Repeat("wor ", tokens)) }

// A limit bounds the history around the newest user message and the open group, which are whole whatever the limit.
func TestWhatAPersonJustSaidIsWholeInEveryViewAndBudget(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 2))
	for range 600 {
		l := talk(random)
		limits := window.Limits{Messages: random.IntN(12), Chars: random.IntN(3) * 900, Tokens: random.IntN(3) * 300}
		for _, name := range views {
			view := preset(t, name, limits)
			plan, err := view.Build(l, window.Input{At: int64(len(l.List)), Counter: chars{}})
			if err != nil {
				t.Fatalf("%s within %+v: %v", name, limits, err)
			}
			required := requiredOf(l, plan)
			for seq := range required {
				if !slices.ContainsFunc(plan.Messages, func(m window.Message) bool {
					return m.Seq == seq && m.Content.String() == l.List[seq-1].Content.String()
				}) {
					t.Fatalf("%s within %+v: entry %d is not whole: %q", name, limits, seq, texts(plan))
				}
			}
			checkAround(t, name, limits, plan, required)
		}
	}
}

// talk is a random log that ends with a user message or with an open group.
func talk(random *rand.Rand) *entries {
	l := &entries{}
	for range 1 + random.IntN(12) {
		l.User(words(1 + random.IntN(100)))
		for range random.IntN(3) {
			l.Call(words(1+random.IntN(60)), words(1+random.IntN(60)))
		}
		l.Assistant(words(1 + random.IntN(40)))
	}
	l.User(words(1 + random.IntN(400)))
	for range random.IntN(3) {
		l.Call(words(1+random.IntN(300)), words(1+random.IntN(300)))
	}
	return l
}

// requiredOf returns the seqs that a request must hold: of the newest user message, of the group that stands last, and
// in the view replay of the whole cycle.
func requiredOf(l *entries, plan *window.Plan) map[int64]bool {
	required := map[int64]bool{}
	user, _ := l.LatestUser(plan.At)
	from := plan.At + 1
	if last := l.List[plan.At-1]; last.Role == continuo.Tool {
		for from = plan.At; l.List[from-1].Role == continuo.Tool; from-- {
			continue
		}
		if plan.View == window.Replay {
			from = user.Seq
		}
	}
	for seq := from; seq <= plan.At; seq++ {
		required[seq] = true
	}
	required[user.Seq] = true
	return required
}

// checkAround holds a plan to its limits: as a whole, or, where what is required is over a limit, in what is around it.
func checkAround(t *testing.T, name string, limits window.Limits, plan *window.Plan, required map[int64]bool) {
	t.Helper()
	var total, needed continuo.Size
	for _, m := range plan.Messages {
		total = total.Add(m.Size)
		if required[m.Seq] {
			needed = needed.Add(m.Size)
		}
	}
	within := func(what string, limit, total, needed int) {
		if limit > 0 && total > limit && (needed <= limit || total-needed > limit) {
			t.Errorf("%s within %+v: %d %s are shown, of which %d are required", name, limits, total, what, needed)
		}
	}
	within("messages", limits.Messages, total.Messages, needed.Messages)
	within("characters", limits.Chars, total.Chars, needed.Chars)
	within("tokens", limits.Tokens, total.Tokens, needed.Tokens)
}

func TestTheModelsWindowBoundsEverything(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 3))
	for range 400 {
		l := talk(random)
		for _, name := range views {
			in := window.Input{At: int64(len(l.List)), Counter: chars{}, ModelWindow: 300 + random.IntN(2000), Prompt: continuo.Size{Tokens: 100}, Output: random.IntN(100)}
			plan, err := preset(t, name, window.Limits{Messages: 5, Tokens: 100}).Build(l, in)
			if overflow := new(continuo.OverflowError); errors.As(err, &overflow) {
				if sum := overflow.Prompt.Tokens + overflow.Answer + overflow.Messages().Tokens; sum <= in.ModelWindow {
					t.Errorf("%s: the parts of the overflow are %d of %d tokens: %v", name, sum, in.ModelWindow, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if taken := in.Prompt.Tokens + plan.Totals.Tokens + in.Output; taken > in.ModelWindow {
				t.Errorf("%s: %d tokens in a window of %d", name, taken, in.ModelWindow)
			}
		}
	}
}

func TestASmallModelWindowIsEnoughForAHello(t *testing.T) {
	settings := window.DefaultSettings()
	for _, size := range []int{1024, 2048, 4096, 8192} {
		for _, name := range views {
			view, err := settings.View(name)
			if err != nil {
				t.Fatal(err)
			}
			l := &entries{}
			l.User("hello")
			in := window.Input{At: 1, Counter: chars{}, ModelWindow: size, Prompt: continuo.Size{Tokens: 450}}
			if plan, err := view.Build(l, in); err != nil || len(plan.Messages) != 1 {
				t.Errorf("%s in a window of %d: %v", name, size, err)
			}
		}
	}
}

// The tokens of the view continuity are the model's, unless somebody has set them.
func TestContinuityFollowsTheModelsWindow(t *testing.T) {
	l := &entries{}
	for range 20 {
		l.User(words(1000))
		l.Assistant("noted")
	}
	l.User("and now?")
	settings := window.DefaultSettings()
	for _, c := range []struct {
		follows bool
		window  int
		limit   int
	}{{true, 0, 6000}, {true, 128_000, 123_500}, {true, 8192, 6144}, {false, 128_000, 6000}, {false, 8192, 6000}} {
		settings.ChatFollowsWindow = c.follows
		view, _ := settings.View(window.Continuity)
		plan, err := view.Build(l, window.Input{At: int64(len(l.List)), Counter: chars{}, ModelWindow: c.window})
		if err != nil {
			t.Fatal(err)
		}
		if plan.Limits.Tokens != c.limit || plan.Totals.Tokens > c.limit {
			t.Errorf("a window of %d, followed %t: the limit is %d, %d are shown", c.window, c.follows, plan.Limits.Tokens, plan.Totals.Tokens)
		}
	}
}

func TestTheFirstMessageStaysAsLongAsItFits(t *testing.T) {
	l := &entries{}
	l.User(words(5000))
	view := preset(t, window.Continuity, window.Limits{Messages: 50, Tokens: 6000})
	for i := range 60 {
		plan := l.build(t, view)
		if plan.Messages[0].Seq != 1 {
			t.Fatalf("round %d begins with %q", i, plan.Messages[0].Content.String())
		}
		l.answer(words(20), plan)
		l.User(words(20))
	}
	l.User(words(2000))
	if plan := l.build(t, view); plan.Messages[0].Content.String() != window.Marker {
		t.Errorf("both do not fit: the plan begins with %d", plan.Messages[0].Seq)
	}
}

// A model that is not told of a gap takes the message behind it for an answer to the one before it.
func TestAGapIsMarkedWhereTheMarkerFits(t *testing.T) {
	for limit, want := range map[int]string{
		1: "question 10",
		2: window.Marker + "|question 10",
		3: "question 0|" + window.Marker + "|question 10",
		4: "question 0|" + window.Marker + "|answer 9|question 10",
	} {
		plan := chat(11).build(t, preset(t, window.Continuity, window.Limits{Messages: limit}))
		if got := strings.Join(texts(plan), "|"); got != want {
			t.Errorf("%d messages: %s", limit, got)
		}
	}
}

func TestTheFirstWindowFillsToTheLimit(t *testing.T) {
	l := chat(914)
	l.User("and now?")
	for _, name := range []string{window.Codex, window.Continuity} {
		view := preset(t, name, window.Limits{Messages: 80})
		first := l.build(t, view)
		if first.Totals.Messages != 80 {
			t.Errorf("%s: the first request shows %d messages", name, first.Totals.Messages)
		}
		l.answer("fine", first)
		l.User("go on")
		if second := l.build(t, view); !second.Moved || second.Totals.Messages > 50 {
			t.Errorf("%s: the next one moved %t and shows %d messages", name, second.Moved, second.Totals.Messages)
		}
	}
}

// What shortens an entry must not make it larger.
func TestAShortenedFormIsNeverLarger(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 6))
	for range 300 {
		l := &entries{}
		l.User("read")
		for range 12 {
			l.Call(words(random.IntN(80)), words(random.IntN(1500)), strings.Repeat("x", random.IntN(300)))
			for i := range 3 { // a name is part of a message in either form, and no part of its content
				l.List[len(l.List)-1-i].Name = strings.Repeat("n", random.IntN(2)*random.IntN(80))
			}
		}
		view := preset(t, window.Codex, window.Limits{Tokens: 400 + random.IntN(9000)})
		view.ToolOutputChars, view.PreviewChars = 1+random.IntN(4000), 1+random.IntN(2000)
		view.OmitToolResults = random.IntN(4) == 0
		plan, err := view.Build(l, window.Input{At: int64(len(l.List)), Counter: chars{}})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range plan.Items {
			shortened := item.Verdict == window.Previewed || item.Verdict == window.Truncated
			if shortened && (item.After.Tokens > item.Before.Tokens || item.After.Chars > item.Before.Chars) {
				t.Errorf("entry %d, %s: %+v became %+v", item.Seq, item.Verdict, *item.Before, *item.After)
			}
		}
	}
}

func TestTheLeadInCounts(t *testing.T) {
	l := &entries{}
	l.Assistant("Hi")
	l.User("ok")
	view := preset(t, window.Replay, window.Limits{Messages: 2})
	in := window.Input{At: 2, Counter: chars{}, LeadIn: "(goes on)"}
	plan, err := view.Build(l, in)
	if err != nil || strings.Join(texts(plan), "|") != "ok" {
		t.Fatalf("2 messages: %q, %v", texts(plan), err)
	}
	view.Limits.Messages = 3
	plan, err = view.Build(l, in)
	if err != nil || strings.Join(texts(plan), "|") != "(goes on)|Hi|ok" || plan.Totals.Messages != 3 {
		t.Fatalf("3 messages: %q, %v", texts(plan), err)
	}
	l.Assistant("fine") // nothing needs to stand in front of the user's message
	view.Limits.Messages = 2
	in.At = 3
	if plan, err = view.Build(l, in); err != nil || strings.Join(texts(plan), "|") != "ok|fine" {
		t.Fatalf("2 messages: %q, %v", texts(plan), err)
	}
	for n := range 30 {
		l := &entries{}
		l.Assistant("Hi")
		for i := range n {
			l.User(fmt.Sprint("question ", i))
			l.Call("out")
			l.Assistant("answer")
		}
		for _, name := range views {
			view := preset(t, name, window.Limits{Messages: 2 + n%7})
			plan, err := view.Build(l, window.Input{At: int64(len(l.List)), Counter: chars{}, LeadIn: "(goes on)"})
			if err != nil {
				t.Fatal(err)
			}
			if plan.Totals.Messages > view.Limits.Messages || plan.Messages[0].Role == continuo.Assistant {
				t.Errorf("%s, %d messages: %q", name, view.Limits.Messages, texts(plan))
			}
		}
	}
}

func TestAFoldedRangeHasItsSize(t *testing.T) {
	l := &entries{}
	for range 3 {
		l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("for people"), Hidden: true})
	}
	l.User("hello")
	item := l.build(t, preset(t, window.Codex, window.Limits{})).Items[0]
	if item.Through != 3 || item.Before == nil || *item.Before != (continuo.Size{Messages: 3, Chars: 30, Tokens: 9}) {
		t.Errorf("items begin with %+v", item)
	}
}

func TestWhatFitsCanBeBuilt(t *testing.T) {
	v := defaultView(t, window.Continuity)
	l := &entries{}
	l.User("hi")
	l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("hello"), Round: &continuo.Round{Provider: "p", Model: "m", EstimatedTokens: 100, Usage: &continuo.Usage{InputTokens: 200}}})
	text := strings.Repeat("abcd", 4000) // 4 000 of 6 000 tokens
	in := window.Input{Counter: chars{}, Provider: "p", Model: "m", Estimated: true}
	if err := v.CheckFits(in, continuo.Text(text)); err != nil {
		t.Fatal(err)
	}
	l.User(text)
	in.At = 3
	if _, err := v.Build(l, in); err != nil {
		t.Errorf("CheckFits let it through, Build refuses: %v", err)
	}
}
