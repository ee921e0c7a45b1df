//go:build unix && !linux

package child

import (
	"os/exec"
	"syscall"
)

// attributes makes a command the leader of a new process group.
func attributes(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
