package process

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// place names the boot and the pid namespace. It is "" where /proc shows another namespace than the one in
// which this process counts: what it says there is of strangers.
func place() (boot, namespace string) {
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

// startField is the place of the start time after the command's name in /proc/PID/stat; see proc(5), where
// it is field 22.
const startField = 22 - 3

// startOf returns when a process began, "" for one that is not there or only waits to be buried; known
// says that the kernel told.
func startOf(pid string) (start string, known bool) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if errors.Is(err, fs.ErrNotExist) {
		return "", !exists(pid) // /proc may hide the processes of others
	}
	name := strings.LastIndex(string(stat), ") ") // it may have brackets itself
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

// exists reports whether a process may be there: only "no such process" is certain.
func exists(pid string) bool {
	number, err := strconv.Atoi(pid)
	return err != nil || !errors.Is(syscall.Kill(number, 0), syscall.ESRCH)
}
