package e2e

import (
	"os/exec"
	"runtime"
	"testing"
)

// spawn starts a program that ends with the test binary, however that ends: a program that a test has stopped
// (SIGSTOP) would otherwise stay on the machine. The channel is closed when the program has ended. The thread that
// starts it waits for it, because the kernel binds a child to the thread that made it.
func spawn(t testing.TB, command *exec.Cmd) (ended chan struct{}) {
	t.Helper()
	bind(command)
	started := make(chan error)
	ended = make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // callers read command.ProcessState
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	return ended
}
