package main

import (
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/window"
)

// TestOrigins tells steps, agents and runs apart, and leaves no column where there are none.
func TestOrigins(t *testing.T) {
	step := &continuo.Entry{Role: continuo.Assistant, RunID: "run_0001", NodeID: "review", AgentID: "ada"}
	other := &continuo.Entry{Role: continuo.Assistant, RunID: "run_0002", NodeID: "review"}
	entry := &continuo.Entry{Role: continuo.User, AgentID: "ada"}
	of := newOrigins(false)
	of.see(step)
	for entry, want := range map[*continuo.Entry]string{step: "review @ada", entry: "", {Role: continuo.Assistant, AgentID: "bob"}: "@bob"} {
		if got := of.cell(entry); got != want {
			t.Errorf("one run: %q, want %q", got, want)
		}
	}
	of.see(other)
	if a, b := of.cell(step), of.cell(other); a != "review …0001 @ada" || b != "review …0002" {
		t.Errorf("two runs: %q and %q", a, b)
	}

	list := term.NewTable(false, "role", "of", ">tokens")
	list.Add("user", "", "7")
	list.DropEmpty(1)
	if got := strings.Join(list.Lines(0), "\n"); got != "role  tokens\nuser       7" {
		t.Errorf("an empty column left\n%s", got)
	}
}

// TestPlaceText says where a request is in the log, also one that a message would get that is not in it.
func TestPlaceText(t *testing.T) {
	for _, test := range []struct {
		at, last int64
		want     string
	}{{500, 915, "entry 500 of 915"}, {371, 369, "entry 371, 369 are in the log"}} {
		if got := placeText(test.at, test.last); got != test.want {
			t.Errorf("%d, %d: %q; want %q", test.at, test.last, got, test.want)
		}
	}
}

// TestContextLine counts what a model could have been shown: the record of a run is neither a message nor left out.
func TestContextLine(t *testing.T) {
	plan := &window.Plan{Totals: window.PlanTotals{Entries: 10, Kept: 4, Dropped: 1, Excluded: 5}, Items: []window.PlanItem{
		{Seq: 1, Verdict: window.Excluded, Reason: "system_prompt"},
		{Seq: 2, Verdict: window.Dropped, Reason: "over_tokens"},
		{Seq: 3, Through: 5, Verdict: window.Excluded, Reason: uiOnly},
		{Seq: 6, Verdict: window.Excluded, Reason: uiOnly},
	}}
	if got := contextLine(plan); !strings.HasPrefix(got, "4 of 6 messages · ") || !strings.Contains(got, " · 2 left out · ") {
		t.Error(got)
	}
	recalled := &window.Plan{Totals: window.PlanTotals{Entries: 28, Recalled: 14, Dropped: 14}}
	if got := contextLine(recalled); !strings.HasPrefix(got, "14 of 28 messages · ") {
		t.Errorf("the view recall: %s", got)
	}
	plan.Items = nil
	if got := contextLine(plan); !strings.HasPrefix(got, "4 of 5 messages · ") || !strings.Contains(got, " · 1 left out · ") {
		t.Error(got)
	}
}
