//go:build unix

package mcptool

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// ownGroup makes a command the leader of a new process group, so that what it starts can be ended with it
// and a Ctrl-C at the terminal is this program's alone.
func ownGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// endGroup ends a leader's group: SIGTERM, time to go, SIGKILL. The group outlives its leader while one
// member is left, and so does its number.
func endGroup(leader *os.Process, grace time.Duration) {
	if syscall.Kill(-leader.Pid, syscall.SIGTERM) != nil {
		return // the group is gone
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	limit := time.NewTimer(grace)
	defer limit.Stop()
	for {
		select {
		case <-look.C:
			if syscall.Kill(-leader.Pid, 0) != nil {
				return
			}
		case <-limit.C:
			_ = syscall.Kill(-leader.Pid, syscall.SIGKILL) // an error says that all are gone
			return
		}
	}
}
