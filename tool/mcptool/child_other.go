//go:build !unix

package mcptool

import (
	"os"
	"os/exec"
	"time"
)

// ownGroup does nothing where there are no process groups.
func ownGroup(*exec.Cmd) {}

// endGroup ends the process only.
func endGroup(leader *os.Process, _ time.Duration) {
	_ = leader.Kill() // an error says that it is gone
}
