//go:build unix

package term

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// waitForInput waits until a terminal has input; false where only a read can tell: in the background, where reading
// fails or suspends the program. It checks again each second, since a shell may move the program to the background in
// the meantime.
func waitForInput(terminal *os.File) bool {
	for inForeground(terminal) {
		ready, err := selectInput(terminal, unix.Timeval{Sec: 1})
		if ready || err != nil {
			return err == nil
		}
	}
	return false
}

// hasInput reports whether a terminal has input now, its end included.
func hasInput(terminal *os.File) bool {
	ready, err := selectInput(terminal, unix.Timeval{})
	return ready && err == nil
}

// selectInput waits for at most the given time. It uses select because poll does not work for terminals on macOS.
func selectInput(terminal *os.File, wait unix.Timeval) (ready bool, err error) {
	var files unix.FdSet
	file := int(terminal.Fd())
	files.Set(file)
	n, err := unix.Select(file+1, &files, nil, nil, &wait)
	if errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return n > 0, err
}

// inForeground reports whether the program may read a terminal. A terminal that is not its controlling one has no other
// reader.
func inForeground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}
