// Package process names the running process so that other processes on the same machine can determine, with certainty,
// that it has ended: a turn that a killed program left can then be recovered at once, without waiting for its lease to
// expire.
//
// A name is "HOST/BOOT/NAMESPACE/PID/START", with the kernel's boot id, the pid's namespace, and the tick of the
// system's clock at which the process began: a reused pid does not match. Where the kernel does not give these (on
// other systems than Linux) names are unique, but no process is known to have ended.
package process

import (
	"crypto/rand"
	"os"
	"strconv"
	"strings"
)

// self never changes while the process runs.
var self = name()

// Self names this process.
func Self() string { return self }

// Ended reports whether a named process has certainly ended: it ran on this machine, since its last boot, where its pid
// is visible, and no longer exists. False means unknown.
func Ended(name string) bool {
	mine, theirs := strings.Split(self, "/"), strings.Split(name, "/")
	if len(mine) != fields || len(theirs) != fields {
		return false
	}
	for i := range pidField {
		if mine[i] != theirs[i] {
			return false
		}
	}
	start, known := startOf(theirs[pidField])
	return known && start != theirs[pidField+1]
}

// The parts of a name.
const (
	pidField = 3
	fields   = 5
)

func name() string {
	host, _ := os.Hostname()
	pid := strconv.Itoa(os.Getpid())
	boot, namespace := bootAndNamespace()
	start, known := startOf(pid)
	if boot == "" || namespace == "" || !known || start == "" {
		return strings.ReplaceAll(host, "/", "_") + "/" + pid + "/" + rand.Text()
	}
	return strings.Join([]string{strings.ReplaceAll(host, "/", "_"), boot, namespace, pid, start}, "/")
}
