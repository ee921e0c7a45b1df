//go:build !linux

package main

import (
	"math"
	"runtime/debug"
)

// availableMemory is how many bytes this program may use by GOMEMLIMIT, else 4 GiB: on this system the memory is not
// measured.
func availableMemory() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit
	}
	return 4 << 30
}
