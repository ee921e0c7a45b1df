package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An agent whose model never answers is ended with all of its processes.
func TestCLIAgentIsKilled(t *testing.T) {
	t.Parallel()
	b := startTaskServer(t)
	task := b.createTask(b.readConversation())
	agent := b.call("deploy_headless_agent", map[string]any{"task_id": task, "agent_type": "qwen", "prompt": "And " + silentMarker + "."})
	select {
	case <-b.model.silent:
	case <-time.After(startTime):
		t.Fatalf("the agent does not ask its model: %+v", b.call("get_agent_output", map[string]any{"agent_id": agent.AgentID}))
	}
	at := b.processes(noGroup)
	if len(at) < 2 {
		t.Errorf("the agent has the processes %v: a test of its group wants several", at)
	}
	group := noGroup
	for _, process := range at {
		if group = process.group; group == syscall.Getpgrp() || group == b.groupOfServer() {
			t.Fatalf("the agent's process %+v is in a group that is not its own", process)
		}
	}
	if killed := b.call("kill_real_agent", map[string]any{"agent_id": agent.AgentID, "reason": "it takes too much of it"}); killed.Status != "killed" {
		t.Errorf("the agent that was killed has %s", killed.Status)
	}
	b.waitGone(group)
	if status := b.call("get_real_task_status", map[string]any{"task_id": task}); status.Status != "killed" {
		t.Errorf("the task has %s", status.Status)
	}
}

// waitGone waits until neither a group nor the agent has a process any more. A group is asked to end, and killed after 2 s.
func (b *taskServer) waitGone(group int) {
	b.Helper()
	late := time.After(patience)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		left := b.processes(group)
		if len(left) == 0 {
			return
		}
		select {
		case <-again.C:
		case <-late:
			b.Errorf("of the agent are left %+v", left)
			for _, process := range left {
				_ = syscall.Kill(process.id, syscall.SIGKILL) // it may have ended
			}
			return
		}
	}
}

// noGroup is the number of no process group; 0 has the kernel's.
const noGroup = -1

// agentProcess is a process that runs.
type agentProcess struct {
	id, group int
	name      string
}

// processes are those that have the agent's home in their environment, which it has for itself, and those of a group.
func (b *taskServer) processes(group int) (found []agentProcess) {
	b.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		b.Fatalf("there are no processes in /proc: %v", err)
	}
	for _, stat := range stats {
		process, runs := readProcess(stat)
		if !runs {
			continue
		}
		environment, _ := os.ReadFile(filepath.Join(filepath.Dir(stat), "environ")) // of a stranger it cannot be read
		own := bytes.Contains(append([]byte{0}, environment...), []byte("\x00HOME="+b.home+"\x00"))
		if own || process.group == group {
			found = append(found, process)
		}
	}
	return found
}

// readProcess reads a stat file of /proc; a process that has ended and that was not reaped does not run.
func readProcess(stat string) (process agentProcess, runs bool) {
	text, err := os.ReadFile(stat)
	if err != nil {
		return process, false // it has ended
	}
	// PID (NAME) STATE PARENT GROUP ...; a name may have anything in it
	before, after, _ := strings.Cut(string(text), " (")
	end := strings.LastIndex(after, ") ")
	if end < 0 {
		return process, false
	}
	process.name = after[:end]
	process.id, _ = strconv.Atoi(before)
	var state string
	var parent int
	if _, err := fmt.Sscan(after[end+2:], &state, &parent, &process.group); err != nil {
		return process, false
	}
	return process, state != "Z" && state != "X"
}

// groupOfServer is the process group of the server.
func (b *taskServer) groupOfServer() int {
	b.Helper()
	group, err := syscall.Getpgid(b.server.pid)
	if err != nil {
		b.Fatal(err)
	}
	return group
}
