//go:build linux || darwin || freebsd

package main

import "syscall"

// freeDisk is how many bytes this user can still write to the disk of a folder.
func freeDisk(folder string) (free int64, known bool) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return 0, false
	}
	return int64(disk.Bavail) * int64(disk.Bsize), true
}
