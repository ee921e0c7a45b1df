package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

// availableMemory is how many bytes this program may use: the least of the machine's memory, the limits of its control
// group and its address space, and GOMEMLIMIT. 0 if unknown.
func availableMemory() int64 {
	limit := debug.SetMemoryLimit(-1)
	if info, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib int64
		if n, _ := fmt.Sscanf(string(info), "MemTotal: %d kB", &kib); n == 1 {
			limit = min(limit, kib<<10)
		}
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bytes > 0 {
			limit = min(limit, bytes)
		}
	}
	var space syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &space) == nil && space.Cur < uint64(limit) {
		limit = int64(space.Cur)
	}
	return limit
}
