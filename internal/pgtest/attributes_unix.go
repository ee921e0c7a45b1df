//go:build unix && !linux

package pgtest

import "syscall"

const supported = true

// attributes makes a child run as the account. On this system nothing signals the end of this process to it.
func attributes(a *account, _ syscall.Signal) *syscall.SysProcAttr {
	if a == nil {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.user, Gid: a.group}}
}
