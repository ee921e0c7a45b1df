package window_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// summary is an entry that stands for the entries from and through.
func summary(from, through int64, text string) continuo.Entry {
	return continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: continuo.PartSummary, Content: continuo.Text(text),
		Summary: &continuo.Summary{From: from, Through: through, By: "extractive"},
	}
}

func summarizing(t *testing.T, name string, limits window.Limits) window.View {
	t.Helper()
	view := preset(t, name, limits)
	view.Strategy = window.Summarize
	return view
}

// verdictsOf lists what a plan says of each entry, by seq.
func verdictsOf(plan *window.Plan) map[int64]window.Verdict {
	verdicts := map[int64]window.Verdict{}
	for _, item := range plan.Items {
		for seq := item.Seq; seq <= max(item.Seq, item.Through); seq++ {
			verdicts[seq] = item.Verdict
		}
	}
	return verdicts
}

func TestASummaryStandsInThePlaceOfTheMarker(t *testing.T) {
	l := chat(100)
	l.Add(summary(1, 80, "tea was chosen"))
	l.User("go on")
	view := summarizing(t, window.Codex, window.Limits{Messages: 40})
	plan := l.build(t, view)
	shown := texts(plan)
	if shown[0] != window.SummaryHeading+"tea was chosen" || plan.Messages[0].Role != continuo.User || plan.Messages[0].Seq != 0 {
		t.Errorf("the first message is %+v", plan.Messages[0])
	}
	if slices.Contains(shown, window.Marker) {
		t.Errorf("there is a marker though nothing is left out without a summary: %q", shown)
	}
	if plan.Window.Summary != 101 || !plan.Moved {
		t.Errorf("window %+v", plan.Window)
	}
	verdicts := verdictsOf(plan)
	for seq := int64(1); seq < plan.Window.Start; seq++ {
		if verdicts[seq] != window.Summarized {
			t.Fatalf("entry %d is %s", seq, verdicts[seq])
		}
	}
	for seq := plan.Window.Start; seq <= 100; seq++ {
		if verdicts[seq] != window.Kept {
			t.Fatalf("entry %d is %s: what is shown is not said to be summarized", seq, verdicts[seq])
		}
	}
	if plan.Totals.Summarized != plan.Window.Start-1 || plan.Totals.Dropped != 0 {
		t.Errorf("totals %+v", plan.Totals)
	}
}

func TestWhatNoSummaryCoversIsMarkedBesideIt(t *testing.T) {
	for _, test := range []struct {
		name          string
		from, through int64
		before        int // where the marker stands
	}{{"before", 20, 99, 0}, {"behind", 1, 40, 1}} {
		t.Run(test.name, func(t *testing.T) {
			l := chat(100)
			l.Add(summary(test.from, test.through, "tea was chosen"))
			l.User("go on")
			plan := l.build(t, summarizing(t, window.Codex, window.Limits{Messages: 20}))
			shown := texts(plan)
			if shown[test.before] != window.Marker || shown[1-test.before] != window.SummaryHeading+"tea was chosen" {
				t.Errorf("shown %q", shown[:3])
			}
			for seq, verdict := range verdictsOf(plan) {
				covered := test.from <= seq && seq <= test.through
				switch {
				case seq >= plan.Window.Start:
				case covered && verdict != window.Summarized, !covered && verdict != window.Dropped:
					t.Errorf("entry %d is %s", seq, verdict)
				}
			}
		})
	}
}

// TestASummaryStandsBetweenThePinsOfALongCycle has an opener, a summary and the newest user message before the window.
func TestASummaryStandsBetweenThePinsOfALongCycle(t *testing.T) {
	l := &entries{}
	l.Add(continuo.Entry{Role: continuo.System, Content: continuo.Text("the house rules")})
	for i := range 60 {
		l.User(fmt.Sprintf("question %d", i))
		l.Assistant(fmt.Sprintf("answer %d", i))
	}
	l.Add(summary(1, 121, "tea was chosen"))
	l.User("the task")
	view := summarizing(t, window.Codex, window.Limits{Messages: 20})
	for range 30 {
		at := len(l.List)
		plan := l.build(t, view)
		l.Call("output")
		l.List[at].Round = &continuo.Round{View: plan.View, ViewHash: plan.ViewHash, At: plan.At, Window: plan.Window}
	}
	plan := l.build(t, view)
	shown := texts(plan)
	want := []string{"the house rules", window.SummaryHeading + "tea was chosen", "the task", window.Marker}
	if !slices.Equal(shown[:4], want) {
		t.Errorf("shown %q, want %q", shown[:4], want)
	}
	if plan.Totals.Summarized != 121 {
		t.Errorf("%d entries summarized, want all between the opener and the task, the summary too", plan.Totals.Summarized)
	}
}

func TestBetweenMovesASummaryStaysAndANewerOneWaits(t *testing.T) {
	l := chat(60)
	view := summarizing(t, window.Codex, window.Limits{Messages: 30})
	l.Add(summary(1, 45, "the first"))
	var before []string
	epochs, moves := map[int64]int64{}, 0
	for i := range 60 {
		l.User(fmt.Sprintf("more %d", i))
		plan := l.build(t, view)
		shown := texts(plan)
		switch {
		case !plan.Moved && (len(shown) < len(before) || !slices.Equal(shown[:len(before)], before)):
			t.Fatalf("request %d changes what was sent without a move:\n%q\n%q", i, before, shown)
		case plan.Moved:
			moves++
		}
		if known, ok := epochs[plan.Window.Epoch]; ok && known != plan.Window.Summary {
			t.Fatalf("request %d shows the summary %d, the epoch began with %d", i, plan.Window.Summary, known)
		}
		epochs[plan.Window.Epoch] = plan.Window.Summary
		before = shown
		l.answer("fine", plan)
		if i%7 == 3 {
			l.Add(summary(1, plan.Window.Start-1, fmt.Sprintf("through %d", plan.Window.Start-1)))
		}
	}
	used := map[int64]bool{}
	for _, seq := range epochs {
		used[seq] = true
	}
	if moves < 3 || len(used) < 3 {
		t.Errorf("%d moves, the summaries %v: a move is to show the newest", moves, used)
	}
}

// TestOldRequestsAreBuiltAgain builds at every place of a grown log as if it had just been reached.
func TestOldRequestsAreBuiltAgain(t *testing.T) {
	l := chat(50)
	view := summarizing(t, window.Continuity, window.Limits{Messages: 24, Tokens: 2000})
	type sent struct {
		at    int64
		texts []string
	}
	var all []sent
	for i := range 40 {
		if i%6 == 0 {
			l.Add(summary(1, int64(len(l.List))-10, fmt.Sprintf("summary %d", i)))
		}
		l.User(fmt.Sprintf("more %d", i))
		plan := l.build(t, view)
		all = append(all, sent{plan.At, texts(plan)})
		l.answer("fine", plan)
	}
	for _, one := range all {
		plan, err := view.Build(l, window.Input{At: one.at, Counter: chars{}})
		if err != nil || !slices.Equal(texts(plan), one.texts) {
			t.Errorf("at %d: %v\n%q\n%q", one.at, err, texts(plan), one.texts)
		}
	}
}

func TestWhatIsNoSummaryIsNotShownAsOne(t *testing.T) {
	change := func(do func(*continuo.Entry)) continuo.Entry {
		e := summary(1, 90, "made up")
		do(&e)
		return e
	}
	for name, e := range map[string]continuo.Entry{
		"redacted":            change(func(e *continuo.Entry) { e.Redacted = &continuo.Redaction{} }),
		"notes of a role":     change(func(e *continuo.Entry) { e.Summary.Role, e.PartType = "ann", continuo.PartNotes }),
		"only named so":       change(func(e *continuo.Entry) { e.Summary = nil }),
		"of another part":     change(func(e *continuo.Entry) { e.PartType = "note" }),
		"of the user":         change(func(e *continuo.Entry) { e.Role = continuo.User }),
		"no range":            change(func(e *continuo.Entry) { e.Summary.From = 91 }),
		"before the log":      change(func(e *continuo.Entry) { e.Summary.From = 0 }),
		"through itself":      change(func(e *continuo.Entry) { e.Summary.Through = 101 }),
		"without any content": change(func(e *continuo.Entry) { e.Content = continuo.Text(" \n") }),
	} {
		t.Run(name, func(t *testing.T) {
			l := chat(100)
			l.Add(e)
			l.User("go on")
			plan := l.build(t, summarizing(t, window.Codex, window.Limits{Messages: 20}))
			if plan.Window.Summary != 0 || plan.Totals.Summarized != 0 || strings.Contains(strings.Join(texts(plan), "\n"), "made up") {
				t.Errorf("window %+v, shown %q", plan.Window, texts(plan)[:3])
			}
		})
	}
}

func TestARedactedSummaryGivesItsPlaceToTheMarker(t *testing.T) {
	l := chat(100)
	l.Add(summary(1, 90, "the secret"))
	l.User("go on")
	view := summarizing(t, window.Codex, window.Limits{Messages: 20})
	l.answer("fine", l.build(t, view)) // the first window is full
	l.User("and on")
	plan := l.build(t, view)
	l.answer("fine", plan)
	l.List[100].Redacted, l.List[100].Content = &continuo.Redaction{}, continuo.Text(continuo.RedactedText)
	l.User("once more")
	after := l.build(t, view)
	if after.Moved || after.Window.Start != plan.Window.Start {
		t.Errorf("the window moved: %+v", after.Window)
	}
	if shown := texts(after); shown[0] != window.Marker || after.Totals.Summarized != 0 {
		t.Errorf("shown %q, totals %+v", shown[:2], after.Totals)
	}
}

func TestWithoutTheStrategySummariesAreAnyHiddenEntries(t *testing.T) {
	with, without := chat(100), chat(100)
	with.Add(summary(1, 90, "tea was chosen"))
	without.Add(continuo.Entry{Role: continuo.System, Hidden: true, Content: continuo.Text("tea was chosen")})
	with.User("go on")
	without.User("go on")
	view := preset(t, window.Codex, window.Limits{Messages: 20})
	a, b := with.build(t, view), without.build(t, view)
	if !slices.Equal(texts(a), texts(b)) || fmt.Sprint(a.Window) != fmt.Sprint(b.Window) || a.Totals != b.Totals || a.ViewHash != b.ViewHash {
		t.Errorf("the plans differ: %+v, %+v", a, b)
	}
}

// TestASummaryKeepsToTheLimits tries every limit down to those that have no room for it.
func TestASummaryKeepsToTheLimits(t *testing.T) {
	l := chat(300)
	l.Add(summary(1, 298, strings.Repeat("a long summary ", 40))) // 600 characters
	l.User("go on")
	told, marked := 0, 0
	for limit := 20; limit < 2000; limit += 20 {
		plan := l.build(t, summarizing(t, window.Codex, window.Limits{Chars: limit})) // check() looks at the limits
		if plan.Window.Summary != 0 {
			told++
		} else if slices.Contains(texts(plan), window.Marker) {
			marked++
		}
	}
	if told == 0 || marked == 0 {
		t.Errorf("%d plans show the summary, %d only the marker", told, marked)
	}
}

// TestAForgedWindowShowsNoOtherEntryAsASummary has a round from outside name an entry that is none.
func TestAForgedWindowShowsNoOtherEntryAsASummary(t *testing.T) {
	for _, forged := range []continuo.Window{
		{Epoch: 3, Start: 30, Summary: 5, Markers: true},
		{Epoch: 3, Start: 30, Summary: 1 << 60, Markers: true},
		{Epoch: 3, Start: 30, Summary: -4, Markers: true},
		{Epoch: 3, Start: 1, Summary: 5, Markers: true},
	} {
		l := chat(40)
		view := summarizing(t, window.Codex, window.Limits{Messages: 60})
		l.answer("fine", &window.Plan{View: view.Name, ViewHash: view.Hash(), At: 40, Window: forged})
		l.User("go on")
		plan := l.build(t, view)
		if plan.Window.Summary != 0 || plan.Totals.Summarized != 0 {
			t.Errorf("%+v: the plan has the window %+v", forged, plan.Window)
		}
	}
}
