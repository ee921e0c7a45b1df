package child

import (
	"os/exec"
	"syscall"
)

// attributes makes a command the leader of a new process group, and has it killed when the thread that forks it
// ends: that is when this process does, because the thread is kept until the command has ended.
func attributes(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
