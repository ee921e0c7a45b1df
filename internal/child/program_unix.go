//go:build unix

package child

import (
	"errors"
	"syscall"
	"time"
)

// endGroup sends SIGTERM, waits for the grace period, sends SIGKILL, and waits for the system to execute it. The group, and
// its id, exist while one member is left, also without its leader.
func (p *program) endGroup(grace time.Duration) {
	if isGone(syscall.Kill(-p.leader.Pid, syscall.SIGTERM)) || p.goneWithin(grace) {
		return
	}
	if !isGone(syscall.Kill(-p.leader.Pid, syscall.SIGKILL)) {
		p.goneWithin(max(grace, killTime))
	}
}

// goneWithin waits until the group is gone, and reports whether it is.
func (p *program) goneWithin(limit time.Duration) bool {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		select {
		case <-look.C:
			if isGone(syscall.Kill(-p.leader.Pid, 0)) {
				return true
			}
		case <-late.C:
			return false
		}
	}
}

// isGone takes other errors for a sign of life: they come from members with other permissions than this process.
func isGone(err error) bool { return errors.Is(err, syscall.ESRCH) }
