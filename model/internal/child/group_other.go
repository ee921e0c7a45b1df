//go:build !unix

package child

import (
	"io"
	"os"
	"os/exec"
	"time"
)

// attributes does nothing where there are no process groups.
func attributes(*exec.Cmd) {}

// endGroup ends the process only.
func endGroup(leader *os.Process, _ time.Duration) {
	_ = leader.Kill() // an error says that it is gone
}

// readRest has nothing left where reads have no deadlines.
func readRest(*os.File, []byte) (int, error) { return 0, io.EOF }
