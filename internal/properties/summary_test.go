package properties

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/window"
)

// summaryOf is an entry that stands for the first entries of a conversation, such as a turn appends it.
func summaryOf(t testing.TB, entries []continuo.Entry, through, at int64) continuo.Entry {
	t.Helper()
	var answer strings.Builder
	for _, e := range entries[:through] {
		if !e.Hidden && e.Role != continuo.Tool {
			fmt.Fprintf(&answer, "%s: %s\n", e.Role, e.Content.String())
		}
	}
	text, err := task.Extractive{}.Summarize(t.Context(), answer.String(), 400)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(text) == "" {
		text = "Nothing was said."
	}
	return continuo.Entry{
		Seq: at, Role: continuo.System, Hidden: true, PartType: continuo.PartSummary, Content: continuo.Text(text),
		Summary: &continuo.Summary{From: 1, Through: through, By: "extractive"},
	}
}

// withSummary is the first entries of a conversation with a summary of their first half in front of the newest user
// message; nil where there is no room for one.
func withSummary(t testing.TB, s *stored, at int64) *stored {
	newest, err := s.LatestUser(at)
	if err != nil || newest.Seq < 3 {
		return nil
	}
	before := newest.Seq - 1
	with := &stored{name: s.name, entries: append([]continuo.Entry{}, s.entries[:before]...)}
	with.entries = append(with.entries, summaryOf(t, s.entries, max(before/2, 1), newest.Seq))
	for _, e := range s.entries[before:at] {
		e.Seq++
		with.entries = append(with.entries, e)
	}
	return with
}

// TestEveryPrefixBuildsAValidRequestWithASummary holds plans that show summaries to the laws of all plans.
func TestEveryPrefixBuildsAValidRequestWithASummary(t *testing.T) {
	var builds, shown atomic.Int64
	step := 1201
	if long() {
		step = 7
	}
	for _, file := range dataFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl.gz"), func(t *testing.T) {
			t.Parallel()
			turn := 0
			for document := range documents(t, file) {
				s := numbered(t, document)
				if s == nil {
					continue
				}
				each(s, &turn, step, func(at int64) {
					with := withSummary(t, s, at)
					if with == nil {
						return
					}
					for _, name := range []string{window.Codex, window.Continuity} {
						for _, limits := range budgets[:len(budgets)-1] { // without a limit nothing is summarized
							builds.Add(1)
							if trySummary(t, with, name, limits) {
								shown.Add(1)
							}
						}
					}
				})
			}
		})
	}
	t.Cleanup(func() { t.Logf("%d builds, %d of them show the summary", builds.Load(), shown.Load()) })
}

// trySummary builds one request and holds it to the laws. It reports whether it shows the summary.
func trySummary(t *testing.T, s *stored, name string, limits window.Limits) bool {
	view, err := window.DefaultSettings().View(name)
	if err != nil {
		t.Fatal(err)
	}
	view.Limits, view.Strategy = limits, window.Summarize
	at := int64(len(s.entries))
	where := fmt.Sprintf("%s at %d, %s within %+v, with a summary", s.name, at, name, limits)
	plan, err := view.Build(s, window.Input{At: at, Counter: token.O200k(), Provider: "openai"})
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return false
	}
	checkLimits(t, where, s, plan, view.Limits)
	checkNewestUser(t, where, s, at, plan)
	checkRendered(t, where, plan)
	shown := 0
	for _, m := range plan.Messages {
		if m.Entry != nil && m.Entry.Summary != nil {
			shown++
		}
	}
	totals := plan.Totals
	switch {
	case totals.Kept+totals.Summarized+totals.Dropped+totals.Excluded != totals.Entries:
		t.Errorf("%s: the totals do not add up: %+v", where, totals)
	case shown > 1, (shown == 1) != (plan.Window.Summary != 0), (shown == 1) != (totals.Summarized > 0):
		t.Errorf("%s: %d summaries are shown, the window is %+v, %d entries are summarized", where, shown, plan.Window, totals.Summarized)
	}
	return shown == 1
}

// checkGrowthWithSummaries replays a conversation with a summary made whenever the window would move past entries that
// none covers, as turns do.
func checkGrowthWithSummaries(t *testing.T, s *stored) {
	view, err := window.DefaultSettings().View(window.Codex)
	if err != nil {
		t.Fatal(err)
	}
	total := continuo.Size{}
	for _, e := range s.entries {
		total = total.Add(continuo.Size{Messages: 1, Chars: e.Chars, Tokens: e.Tokens + 4})
	}
	view.Limits, view.Strategy = window.Limits{Messages: total.Messages / 5, Tokens: total.Tokens / 5}, window.Summarize
	build := func(log *stored) *window.Plan {
		plan, err := view.Build(log, window.Input{At: int64(len(log.entries)), Counter: token.O200k()})
		if err != nil {
			t.Fatalf("%s at %d: %v", s.name, len(log.entries), err)
		}
		return plan
	}
	log, made, shown := &stored{name: s.name}, 0, 0
	var g growth
	var before []byte
	for _, entry := range s.entries {
		if entry.Role == continuo.Assistant && !entry.Hidden && len(log.entries) > 0 {
			plan := build(log)
			if plan.Moved && plan.Totals.Dropped > 0 {
				at := int64(len(log.entries)) + 1
				log.entries = append(log.entries, summaryOf(t, log.entries, plan.Window.Start-1, at))
				made++
				plan = build(log)
			}
			if plan.Window.Summary != 0 {
				shown++
			}
			now := historyBytes(t, plan)
			g.add(before, now, plan.Moved)
			before = now
			entry.Round = &continuo.Round{View: plan.View, ViewHash: plan.ViewHash, At: plan.At, Window: plan.Window}
		}
		entry.Seq = int64(len(log.entries)) + 1
		log.entries = append(log.entries, entry)
	}
	t.Logf("%s: %d requests, %d moves, %d summaries made, %d requests show one, %.1f %% of the bytes extend the request before",
		s.name, g.requests, g.moves, made, shown, g.share()*100)
	if g.broken > 0 {
		t.Errorf("%s: %d requests changed earlier bytes without a move", s.name, g.broken)
	}
	if g.moves == 0 || g.moves > g.requests/3 || shown == 0 {
		t.Errorf("%s: %d moves in %d requests, %d show a summary", s.name, g.moves, g.requests, shown)
	}
}
