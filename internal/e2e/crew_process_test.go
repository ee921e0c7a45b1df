//go:build linux

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// processesWith are those that have a variable in their environment, such as HOME=/x, and those of groups.
func processesWith(t *testing.T, variable string, groups map[int]bool) (found []agentProcess) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		t.Fatalf("there are no processes in /proc: %v", err)
	}
	for _, stat := range stats {
		environment, _ := os.ReadFile(filepath.Join(filepath.Dir(stat), "environ")) // of a stranger it cannot be read
		own := bytes.Contains(append([]byte{0}, environment...), []byte("\x00"+variable+"\x00"))
		if process, runs := readProcess(stat); runs && (own || groups[process.group]) {
			found = append(found, process)
		}
	}
	return found
}

// checkNoProcesses checks that no process is left that can ask a role server, and none of some groups. Those
// that were killed may take a moment.
func checkNoProcesses(t *testing.T, cast string, groups map[int]bool) {
	t.Helper()
	late := time.After(patience)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		remaining := processesWith(t, upstreamVariable+"="+cast, groups)
		if len(remaining) == 0 {
			return
		}
		select {
		case <-again.C:
		case <-late:
			t.Errorf("of the crew are left the processes %+v", remaining)
			for _, process := range remaining {
				_ = syscall.Kill(process.id, syscall.SIGKILL) // it may have ended
			}
			return
		}
	}
}
