//go:build unix

package main

import (
	"math"
	"syscall"
)

// maxOpenFiles is how many files and connections the system lets this program have open; 0 for no known limit.
func maxOpenFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > math.MaxInt32 {
		return 0
	}
	return int(limit.Cur)
}
