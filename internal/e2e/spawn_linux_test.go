package e2e

import (
	"os/exec"
	"syscall"
)

// bind has the kernel kill the program when the thread that starts it ends.
func bind(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
