//go:build unix

package child

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// readRest reads the data left in a pipe, and returns io.EOF when it is empty.
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
