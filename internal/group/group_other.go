//go:build !unix

package group

import (
	"syscall"
	"time"
)

// attributes returns nil: there are no process groups here.
func attributes(bool) *syscall.SysProcAttr { return nil }

// end ends the program only.
func (p *Program) end(time.Duration) {
	_ = p.leader.Kill() // an error means that it is gone
}
