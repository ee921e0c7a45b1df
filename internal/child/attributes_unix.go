//go:build unix && !linux

package child

import "syscall"

// attributes are those of the leader of a new process group. On this system nothing binds it to this process.
func attributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
