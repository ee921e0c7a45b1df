//go:build unix

package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// waitForInput waits until something can be read from a terminal; false where the only way to find out is to read: in
// the background, where reading fails or suspends the program. It looks again each second, since a shell may put the
// program there meanwhile.
func waitForInput(terminal *os.File) bool {
	for inForeground(terminal) {
		ready, err := selectInput(terminal, unix.Timeval{Sec: 1})
		if ready || err != nil {
			return err == nil
		}
	}
	return false
}

// hasInput reports whether something can be read from a terminal now, its end included.
func hasInput(terminal *os.File) bool {
	ready, err := selectInput(terminal, unix.Timeval{})
	return ready && err == nil
}

// selectInput waits for so long. It uses select because poll does not work for terminals on macOS.
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

// inForeground reports whether the program may read a terminal: nobody else does where it is not the one that shells
// hand on.
func inForeground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}
