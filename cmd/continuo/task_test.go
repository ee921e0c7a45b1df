package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/task"
)

// finishes runs the program to its end, which must have a code, and returns its standard output.
func finishes(t *testing.T, dir string, code int, args ...string) string {
	t.Helper()
	p := start(t, dir, nil, args...)
	if got := p.end(); got != code {
		t.Fatalf("%v ended with %d, want %d:\n%s", args, got, code, p.stderr)
	}
	return p.stdout.String()
}

// deployHalf begins a program whose agent says the first half and nothing more.
func deployHalf(t *testing.T) (dir string, p *program) {
	t.Helper()
	dir = t.TempDir()
	realModel(t, dir)
	finishes(t, dir, 0, "task", "create", "--description", "half")
	p = start(t, dir, nil, "task", "deploy")
	p.stdout.wait(t, "the first half")
	return dir, p
}

func TestCtrlCKillsTheAgent(t *testing.T) {
	dir, p := deployHalf(t)
	if shown := finishes(t, dir, 0, "task", "show"); !strings.Contains(shown, "running") {
		t.Errorf("while the agent works it is shown as\n%s", shown)
	}
	p.signal(os.Interrupt)
	if code := p.end(); code != 130 {
		t.Errorf("ended with %d, want 130:\n%s", code, p.stderr)
	}
	if shown := finishes(t, dir, 0, "task", "show", "--json"); strings.Count(shown, `"status": "killed"`) != 2 || !strings.Contains(shown, `"reason": "a person stopped it in the terminal"`) {
		t.Errorf("afterwards task and agent are\n%s", shown)
	}
	if output := finishes(t, dir, 0, "task", "logs"); output != "the first half\n" {
		t.Errorf("what it had said is %q", output)
	}
}

// Another program follows the agent, leaves it alone, and kills it.
func TestAnAgentIsKilledByAnotherProcess(t *testing.T) {
	dir, p := deployHalf(t)
	follower := start(t, dir, nil, "task", "logs", "--follow")
	follower.stdout.wait(t, "the first half")
	follower.signal(os.Interrupt)
	if code := follower.end(); code != 130 {
		t.Errorf("the follower ended with %d, want 130:\n%s", code, follower.stderr)
	}
	if killed := finishes(t, dir, 0, "task", "kill", "--reason", "It runs in circles."); !strings.Contains(killed, " is killed: It runs in circles.") {
		t.Errorf("the kill says %q", killed)
	}
	if shown := finishes(t, dir, 0, "task", "show"); !strings.Contains(shown, "It runs in circles.") {
		t.Errorf("it is shown as\n%s", shown)
	}
	if code := p.end(); code != 130 {
		t.Errorf("ended with %d, want 130:\n%s", code, p.stderr)
	}
	p.stderr.wait(t, "cancelled")
	finishes(t, dir, 3, "task", "kill")
	finishes(t, dir, 4, "task", "kill", agentIn(t, p))
}

// agentIn is the id of the agent that a program has deployed.
func agentIn(t *testing.T, p *program) string {
	t.Helper()
	id, _, ok := strings.Cut(p.stderr.String(), " (main) works on ")
	if !ok {
		t.Fatalf("no agent is named in\n%s", p.stderr)
	}
	return id
}

// A program that is gone has left an agent that is queued for a server, which a person can end.
func TestAgentOfAnEndedProgram(t *testing.T) {
	dir, p := deployHalf(t)
	_ = p.Process.Kill()
	p.end()
	if shown := finishes(t, dir, 0, "task", "show"); !strings.Contains(shown, "queued") || strings.Contains(shown, "running") {
		t.Errorf("it is shown as\n%s", shown)
	}
	finishes(t, dir, 0, "task", "kill")
	if shown := finishes(t, dir, 0, "task", "show"); !strings.Contains(shown, "failed") {
		t.Errorf("it is shown as\n%s", shown)
	}
}

// In a narrow terminal a list leaves room for what the tasks are about, and its ids still name one task each.
func TestAListOfTasksInANarrowTerminal(t *testing.T) {
	const about = "Mend the login of the shop"
	var found []engine.TaskStatus
	for _, id := range []string{"task_01a200065fbf7001974904b39a290399", "task_01a200065fbf7003aa7c40b806e70368", "task_01a2000688537000a2cd8b5a6b16ba75"} {
		found = append(found, engine.TaskStatus{ListItem: engine.ListedTask{ID: id, State: engine.TaskCompleted, Task: task.Task{Description: about, Priority: task.P2}}})
	}
	for width, whole := range map[int]bool{80: false, 200: true} {
		var out bytes.Buffer
		a := &app{console: &console{out: &out, width: width}}
		a.printTasks(found, true)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")[1:]
		for i, line := range lines {
			fields := strings.Fields(line)
			names := func(status engine.TaskStatus) bool { return strings.HasPrefix(status.ID, fields[1]) }
			if !names(found[i]) || slices.IndexFunc(found, names) != i || whole != (fields[1] == found[i].ID) || term.Width(line) > width || !strings.Contains(line, "Mend the login of") {
				t.Errorf("%d columns: %s", width, line)
			}
		}
	}
}
