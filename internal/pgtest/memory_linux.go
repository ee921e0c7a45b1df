package pgtest

import "syscall"

const (
	sharedMemory = "/dev/shm"
	tmpfs        = 0x01021994 // statfs(2)
	// enoughMemory is what has to be free there: several servers, with all that tests write.
	enoughMemory = 4 << 30
)

// memoryFolder returns a folder in memory with much room, "" if there is none. What costs time in a cluster's
// start and in a clone is that there are hundreds of files to create, which takes a disk's file system ten times
// as long.
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
