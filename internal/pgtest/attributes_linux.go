package pgtest

import "syscall"

const supported = true

// attributes makes a child run as the account, and makes the kernel send it a signal when the thread that forked it
// ends: that is when this process does, if the goroutine that starts the child is locked to its thread until the child
// has ended.
func attributes(a *account, last syscall.Signal) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Pdeathsig: last}
	if a != nil {
		attributes.Credential = &syscall.Credential{Uid: a.user, Gid: a.group}
	}
	return attributes
}
