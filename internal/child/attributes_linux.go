package child

import "syscall"

// attributes are those of the leader of a new process group. The kernel kills a bound leader when the thread that
// forked it ends: that is when this process does, because the thread is kept until the program has ended.
func attributes(bound bool) *syscall.SysProcAttr {
	leader := &syscall.SysProcAttr{Setpgid: true}
	if bound {
		leader.Pdeathsig = syscall.SIGKILL
	}
	return leader
}
