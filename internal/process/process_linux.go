package process

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// bootAndNamespace returns the ids of the boot and of the pid namespace. They are "" where /proc shows another namespace than this
// process's: its pids are those of other processes.
func bootAndNamespace() (boot, namespace string) {
	if itself, err := os.Readlink("/proc/self"); err != nil || itself != strconv.Itoa(os.Getpid()) {
		return "", ""
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", ""
	}
	namespace, err = os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "", ""
	}
	return strings.TrimSpace(string(id)), namespace
}

// startField is the index of the start time after the command's name in /proc/PID/stat; see proc(5), where it is field
// 22.
const startField = 22 - 3

// startOf returns when a process began, "" for a missing process or a zombie; known says that the kernel gave an answer.
func startOf(pid string) (start string, known bool) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if errors.Is(err, fs.ErrNotExist) {
		return "", !exists(pid) // /proc may hide other users' processes
	}
	name := strings.LastIndex(string(stat), ") ") // the name itself may contain brackets
	if err != nil || name < 0 {
		return "", false
	}
	values := strings.Fields(string(stat[name+2:]))
	if len(values) <= startField {
		return "", false
	}
	if values[0] == "Z" || values[0] == "X" {
		return "", true
	}
	return values[startField], true
}

// exists reports whether a process may exist: only "no such process" is certain.
func exists(pid string) bool {
	number, err := strconv.Atoi(pid)
	return err != nil || !errors.Is(syscall.Kill(number, 0), syscall.ESRCH)
}
