package main

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/linediff"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/window"
)

// seesAs is the plan of a role with these verdicts.
func seesAs(at int64, items ...window.PlanItem) *window.Plan {
	return &window.Plan{At: at, Items: items, Role: &window.RolePlan{Name: "a", Kind: "full"}}
}

func seen(seq, through int64, verdict window.Verdict, reason string) window.PlanItem {
	return window.PlanItem{Seq: seq, Through: through, Verdict: verdict, Reason: reason}
}

// The stretches of two plans follow each other without a gap, and each lies in one item of either plan.
func TestCompareRanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	plan := func() *window.Plan {
		p := &window.Plan{At: random.Int64N(40)}
		for next := int64(1); next <= p.At; {
			item := window.PlanItem{Seq: next}
			if last := min(next+random.Int64N(6), p.At); last > next {
				item.Through = last
			}
			p.Items = append(p.Items, item)
			next = lastSeq(item) + 1
		}
		return p
	}
	for range 500 {
		plans, next := [2]*window.Plan{plan(), plan()}, int64(1)
		for part := range compareRanges(plans[0], plans[1]) {
			if part.from != next || part.through < part.from {
				t.Fatalf("behind %d comes %d–%d", next-1, part.from, part.through)
			}
			next = part.through + 1
			for side, item := range part.items {
				switch {
				case item == nil && part.from <= plans[side].At:
					t.Fatalf("%d–%d has no item", part.from, part.through)
				case item != nil && (item.Seq > part.from || lastSeq(*item) < part.through):
					t.Fatalf("%d–%d is said to lie in %d–%d", part.from, part.through, item.Seq, lastSeq(*item))
				}
			}
		}
		if end := max(plans[0].At, plans[1].At); next != end+1 {
			t.Fatalf("the parts end at %d of %d", next-1, end)
		}
	}
}

// comparisonText is the table of two plans; every entry that is named in it begins with its words.
func comparisonText(t *testing.T, left, right *window.Plan, withPlan bool) string {
	t.Helper()
	for seq := int64(1); seq <= right.At; seq++ {
		entry := &continuo.Entry{
			Seq: seq, Role: continuo.Assistant, Author: &continuo.Author{RoleName: "ann", DisplayName: "Ann"},
			Content: continuo.Text("日本語の長い文章 " + term.Number(seq) + strings.Repeat(" and more of it", 20)),
		}
		right.Messages = append(right.Messages, window.Message{Seq: seq, Entry: entry})
	}
	var out bytes.Buffer
	l := &crewContexts{app: &app{console: &console{out: &out}}, plan: withPlan}
	b := newComparisonTable(l, &engine.Comparison{Left: engine.RoleContext{Role: "ann", Plan: left}, Right: engine.RoleContext{Role: "bob", Plan: right}})
	if err := b.print(t.Context(), comparisonWidth); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(out.String(), "\n") {
		if term.Width(line) > comparisonWidth {
			t.Errorf("this line is wider than %d columns: %s", comparisonWidth, line)
		}
	}
	return out.String()
}

// The table says of each entry what either side sees of it. Rows alike are folded, entries that no role sees stay between
// them, and a result of a tool goes with its call.
func TestComparisonTable(t *testing.T) {
	left := seesAs(
		30,
		seen(1, 0, window.Kept, "original_request"), seen(2, 12, window.Dropped, "over_messages"),
		seen(13, 0, window.Kept, "seen"), seen(14, 0, window.Excluded, "ui_only"), seen(15, 0, window.Kept, "seen"),
		seen(16, 0, window.Kept, "seen"), window.PlanItem{Seq: 17, Role: continuo.Tool, Verdict: window.Truncated, Reason: "seen"},
		seen(18, 0, window.Kept, "seen"), seen(19, 0, window.Excluded, "placeholder"), seen(20, 0, window.Kept, "seen"),
		seen(21, 0, window.Kept, "seen"), seen(22, 26, window.Excluded, "seen"), seen(27, 0, window.Excluded, "own_message"),
		seen(28, 0, window.Kept, "new"), seen(29, 30, window.Dropped, "next_turn"),
	)
	right := seesAs(
		28,
		seen(1, 9, window.Summarized, "catch_up"), seen(10, 12, window.Summarized, "notes"), seen(13, 0, window.Kept, "seen"),
		seen(14, 0, window.Excluded, "ui_only"), seen(15, 0, window.Kept, "seen"), seen(16, 0, window.Kept, "seen"),
		window.PlanItem{Seq: 17, Role: continuo.Tool, Verdict: window.Truncated, Reason: "seen"}, seen(18, 0, window.Kept, "seen"),
		seen(19, 0, window.Excluded, "placeholder"), seen(20, 0, window.Kept, "seen"), seen(21, 0, window.Kept, "seen"),
		seen(22, 27, window.Dropped, "before_window"), seen(28, 0, window.Kept, "notes"),
	)
	left.Messages = []window.Message{{Seq: 29, Entry: &continuo.Entry{Seq: 29, Role: continuo.User, Content: continuo.Text("And?")}}}
	got := comparisonText(t, left, right, false)
	want := `Both are shown 8 entries; ann alone 1; bob alone 0.

entry  who  ann              bob            begins
    1  Ann  whole         <  in a catch-up  日本語の長い文章 1 and more of it and more of it and mo…
  2–9       left out      ≠  in a catch-up  8 entries, the first: 日本語の長い文章 2 and more of it…
10–12       left out      ≠  in its notes   3 entries, the first: 日本語の長い文章 10 and more of i…
   13  Ann  whole         │  whole          日本語の長い文章 13 and more of it and more of it and m…
15–20       whole         │  whole          5 entries, the same
   21  Ann  whole         │  whole          日本語の長い文章 21 and more of it and more of it and m…
22–26       not repeated  ≠  left out       5 entries, the first: 日本語の長い文章 22 and more of i…
   27  Ann  not repeated  ≠  left out       日本語の長い文章 27 and more of it and more of it and m…
   28  Ann  whole         │  whole          日本語の長い文章 28 and more of it and more of it and m…
29–30       later         ≠  not yet there  2 entries, the first: And?
Besides, 2 entries that no role is shown: records of the crew, and turns with nothing to add.
`
	if got != want {
		t.Errorf("the table is\n%s", linediffText(want, got))
	}
	right.Messages = nil
	got = comparisonText(t, left, right, true)
	for _, part := range []string{"  whole · original_request    <  in a catch-up · catch_up ", "10–12       left out · over_messages    ≠  in its notes · notes  ", "ui_only 1, placeholder 1"} {
		if !strings.Contains(got, part) {
			t.Errorf("with the reasons it lacks %q:\n%s", part, got)
		}
	}
}

func linediffText(want, got string) string {
	var text strings.Builder
	for _, line := range linediff.Lines(want, got) {
		text.WriteString(map[linediff.Op]string{linediff.Equal: "  ", linediff.Left: "- ", linediff.Right: "+ "}[line.Op] + line.Text + "\n")
	}
	return text.String()
}

// Where a role was made a summary that it is shown, another role never sees it.
func TestComparisonWithOwnSummary(t *testing.T) {
	left := seesAs(1, seen(1, 0, window.Kept, "notes"))
	right := seesAs(1, seen(1, 0, window.Excluded, "seen"))
	if got := comparisonText(t, left, right, false); !strings.Contains(got, "whole  <  left out") {
		t.Errorf("the notes of one role are\n%s", got)
	}
}

// A terminal's lines of a difference end between words, each with its sign; elsewhere lines stay whole.
func TestDifferenceWraps(t *testing.T) {
	words := strings.Repeat("unbreakable ", 12)
	lines := linediff.Lines("same\n"+words, "same\n"+words+"more")
	for _, width := range []int{0, 40} {
		var out bytes.Buffer
		l := &crewContexts{app: &app{console: &console{out: &out, width: width}}}
		l.printDifference(lines)
		got := out.String()
		if strings.Count(got, "unbreakable") != 24 {
			t.Errorf("in %d columns a word is broken:\n%s", width, got)
		}
		for line := range strings.SplitSeq(strings.TrimSpace(got), "\n") {
			if width > 0 && (term.Width(line) > width || !strings.HasPrefix(line, "- ") && !strings.HasPrefix(line, "+ ") && line != "same") {
				t.Errorf("in %d columns stands %q", width, line)
			}
		}
		if rows := strings.Count(got, "\n"); (rows == 3) != (width == 0) {
			t.Errorf("in %d columns there are %d lines:\n%s", width, rows, got)
		}
	}
}
