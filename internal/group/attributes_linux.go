package group

import "syscall"

// attributes are those of the leader of a new process group. A bound one is killed when the thread that forks it
// ends: that is when this process does, because the thread is kept until the program has ended.
func attributes(bound bool) *syscall.SysProcAttr {
	leader := &syscall.SysProcAttr{Setpgid: true}
	if bound {
		leader.Pdeathsig = syscall.SIGKILL
	}
	return leader
}
