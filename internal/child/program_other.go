//go:build !unix

package child

import (
	"syscall"
	"time"
)

// attributes returns nil: there are no process groups here.
func attributes(bool) *syscall.SysProcAttr { return nil }

// endGroup ends the program only.
func (p *program) endGroup(time.Duration) {
	_ = p.leader.Kill() // an error means that it is gone
}
