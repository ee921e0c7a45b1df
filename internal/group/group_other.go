//go:build !unix

package group

import (
	"syscall"
	"time"
)

// attributes are none where there are no process groups.
func attributes(bool) *syscall.SysProcAttr { return nil }

// end ends the program only.
func (p *Program) end(time.Duration) {
	_ = p.leader.Kill() // an error says that it is gone
}
