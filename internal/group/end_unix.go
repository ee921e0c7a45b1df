//go:build unix

package group

import (
	"errors"
	"syscall"
	"time"
)

// end is SIGTERM, time to go, SIGKILL, and a while for the system to carry that out. The group outlives its leader
// while one member is left, and so does its number.
func (p *Program) end(grace time.Duration) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if isGone(syscall.Kill(-p.leader.Pid, signal)) || p.goneWithin(grace) {
			return
		}
	}
}

// goneWithin waits until the group is gone, and reports whether it is.
func (p *Program) goneWithin(limit time.Duration) bool {
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

// isGone takes other errors for a sign of life: they tell of members with other rights than this process.
func isGone(err error) bool { return errors.Is(err, syscall.ESRCH) }
