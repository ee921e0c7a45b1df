package main

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
)

// speeches are what the entries of the default session of the example say, by role, with those that broke off.
func speeches(t *testing.T, dir string) (whole, broken map[string]int) {
	t.Helper()
	p := start(t, dir, nil, "conversations", "show", "crew:example", "--all", "--json")
	if code := p.end(); code != 0 {
		t.Fatalf("ended with %d: %s", code, p.stderr)
	}
	var shown struct {
		Entries []struct {
			Role    string          `json:"role"`
			Content string          `json:"content"`
			NodeID  string          `json:"node_id"`
			Error   json.RawMessage `json:"error"`
		} `json:"entries"`
	}
	if err := json.Unmarshal([]byte(p.stdout.String()), &shown); err != nil {
		t.Fatal(err)
	}
	whole, broken = map[string]int{}, map[string]int{}
	for _, entry := range shown.Entries {
		switch {
		case entry.Role != "assistant" || entry.Content == ".....":
		case entry.Error != nil:
			broken[entry.NodeID]++
		default:
			whole[entry.NodeID]++
		}
	}
	return whole, broken
}

// inTime calls try with longer and longer pauses between the words of the demo model, until it reports that a crew still spoke
// when it was acted on: on a busy machine its cycle may be over by then.
func inTime(t *testing.T, try func(t *testing.T, pace string) bool) {
	t.Helper()
	for _, pace := range []string{"20ms", "80ms", "320ms", "2s"} {
		if try(t, "CONTINUO_DEMO_PACE="+pace) {
			return
		}
	}
	t.Error("the crew had always spoken before")
}

// A cycle that Ctrl-C stopped, or whose program was killed, resumes where it stopped: a role that has spoken is not asked
// again, the others are.
func TestCrewResumes(t *testing.T) {
	for name, by := range map[string]struct {
		signal os.Signal
		code   int
	}{"stopped": {os.Interrupt, 130}, "killed": {syscall.SIGKILL, -1}} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, pace string) bool { return resumes(t, by.signal, by.code, pace) })
		})
	}
}

// resumes reports whether the signal came while Builder spoke.
func resumes(t *testing.T, signal os.Signal, wanted int, pace string) bool {
	t.Helper()
	dir := t.TempDir()
	p := start(t, dir, []string{pace}, "crew", "run", "example", "Make a plan for a small garden.")
	p.stdout.wait(t, `Builder:\n  I am`)
	p.signal(signal)
	code := p.end()
	if whole, _ := speeches(t, dir); whole["builder"] > 0 {
		return false
	}
	if code != wanted {
		t.Fatalf("ended with %d, want %d:\n%s", code, wanted, p.stderr)
	}
	if wanted == 130 && !strings.Contains(p.stderr.String(), "stopped; continue with: continuo crew resume example\n") {
		t.Errorf("it says %s", p.stderr)
	}

	p = start(t, dir, nil, "crew", "resume")
	if code := p.end(); code != 0 {
		t.Fatalf("resuming ended with %d:\n%s", code, p.stderr)
	}
	if out := p.stdout.String(); strings.Contains(out, "Planner:") || strings.Count(out, "Reviewer:") != 1 {
		t.Errorf("resuming shows\n%s", out)
	}
	p.stderr.wait(t, "Builder is asked again, attempt 2\n")
	p.stderr.wait(t, "The cycle has ended: Reviewer, who moderates, has nothing to add")
	whole, broken := speeches(t, dir)
	if whole["planner"] != 1 || whole["reviewer"] != 1 || whole["builder"] != 1 {
		t.Errorf("whole answers: %v", whole)
	}
	if len(broken) != 1 || broken["builder"] != 1 {
		t.Errorf("answers that broke off: %v", broken)
	}
	return true
}

// A cycle can be looked on at from another program, which leaves it alone.
func TestCrewIsLookedOnAt(t *testing.T) { inTime(t, isLookedOnAt) }

// isLookedOnAt reports whether the crew still spoke when one of those who look on left.
func isLookedOnAt(t *testing.T, pace string) bool {
	t.Helper()
	dir := t.TempDir()
	running := start(t, dir, []string{pace}, "crew", "run", "example", "Make a plan for a small garden.")
	running.stdout.wait(t, `Planner:\n  I am`)
	looks := start(t, dir, nil, "crew", "run", "--follow")
	looks.stdout.wait(t, `User:\n  Make a plan for a small garden\.\n\nPlanner:\n  I am`)
	leaves := start(t, dir, nil, "crew", "run", "--follow")
	leaves.stdout.wait(t, `Planner:\n  I am`)
	leaves.signal(os.Interrupt)
	code := leaves.end()
	if code == 0 {
		return false
	}
	if code != 130 || !strings.Contains(leaves.stderr.String(), "continues without this program") {
		t.Errorf("leaving ended with %d: %s", code, leaves.stderr)
	}
	for _, p := range []*program{running, looks} {
		if code := p.end(); code != 0 || strings.Count(p.stdout.String(), "Reviewer:") != 1 || strings.Count(p.stdout.String(), "Planner:") != 1 {
			t.Errorf("ended with %d:\n%s\n%s", code, p.stdout, p.stderr)
		}
	}
	return true
}
