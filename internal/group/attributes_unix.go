//go:build unix && !linux

package group

import "syscall"

// attributes are those of the leader of a new process group. Nothing binds it to this process here.
func attributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
