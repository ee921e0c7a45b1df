package pgtest

import "syscall"

const (
	sharedMemory = "/dev/shm"
	tmpfs        = 0x01021994 // statfs(2)
	// enoughMemory is the required free space there: several servers, with all that tests write.
	enoughMemory = 4 << 30
)

// memoryFolder returns a folder in memory with much room, "" if there is none. The start of a cluster and a clone are
// slow because they create hundreds of files, which takes a disk's file system ten times as long.
func memoryFolder() string {
	var info syscall.Statfs_t
	if err := syscall.Statfs(sharedMemory, &info); err != nil || int64(info.Type) != tmpfs { //nolint:unconvert // 32 bits elsewhere
		return ""
	}
	if info.Bavail*uint64(info.Bsize) < enoughMemory {
		return ""
	}
	return sharedMemory
}
