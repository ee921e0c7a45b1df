//go:build unix

package fs

import "syscall"

// withoutWaiting keeps an open from waiting for the other end of a named pipe.
const withoutWaiting = syscall.O_NONBLOCK
