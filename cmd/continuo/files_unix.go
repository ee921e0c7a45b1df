//go:build unix

package main

import (
	"math"
	"syscall"
)

// maxOpenFiles is the system's limit of open files and connections for this program; 0 if unknown.
func maxOpenFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > math.MaxInt32 {
		return 0
	}
	return int(limit.Cur)
}
