//go:build unix

package child

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// endGroup ends a leader's group and returns when it is gone: SIGTERM, time to go, SIGKILL, and a while for the
// system to carry that out. The group outlives its leader while one member is left, and so does its number.
func endGroup(leader *os.Process, grace time.Duration) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if isGone(syscall.Kill(-leader.Pid, signal)) || awaitGroup(leader, grace) {
			return
		}
	}
}

// awaitGroup waits until a group is gone, and reports whether it is.
func awaitGroup(leader *os.Process, limit time.Duration) bool {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		select {
		case <-look.C:
			if isGone(syscall.Kill(-leader.Pid, 0)) {
				return true
			}
		case <-late.C:
			return false
		}
	}
}

func isGone(err error) bool { return errors.Is(err, syscall.ESRCH) }

// readRest reads what stands in a pipe already, and io.EOF when nothing does.
func readRest(pipe *os.File, buffer []byte) (int, error) {
	if err := pipe.SetReadDeadline(time.Time{}); err != nil {
		return 0, io.EOF
	}
	defer pipe.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // it was just changed
	raw, err := pipe.SyscallConn()
	if err != nil {
		return 0, io.EOF
	}
	var n int
	var wrong error
	err = raw.Read(func(fd uintptr) bool {
		for {
			if n, wrong = syscall.Read(int(fd), buffer); !errors.Is(wrong, syscall.EINTR) {
				return true
			}
		}
	})
	if err != nil || wrong != nil || n <= 0 {
		return 0, io.EOF
	}
	return n, nil
}
