package child

import (
	"os"
	"runtime"
	"syscall"
)

// onAnotherThread runs something on a thread that ends with it, and tells it the thread's number.
func onAnotherThread(run func(thread int)) {
	runtime.LockOSThread() // for good: the thread ends with the goroutine
	if syscall.Gettid() == os.Getpid() {
		other := make(chan struct{})
		go func() { defer close(other); onAnotherThread(run) }()
		<-other // the first thread never ends
		runtime.UnlockOSThread()
		return
	}
	run(syscall.Gettid())
}
