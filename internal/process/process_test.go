package process

import (
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

func TestAProcessIsKnownToHaveEndedOnceItHas(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the kernel does not tell here: leases run out instead")
	}
	if Ended(Self()) {
		t.Error("this process counts as ended")
	}
	child := exec.Command("cat")
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(child.Process.Pid)
	start, known := startOf(pid)
	if !known || start == "" {
		t.Fatalf("start of %s: %q, %v", pid, start, known)
	}
	parts := strings.Split(Self(), "/")
	parts[pidField], parts[pidField+1] = pid, start
	other := strings.Join(parts, "/")
	if Ended(other) {
		t.Error("a process that runs counts as ended")
	}
	input.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if !Ended(other) {
		t.Error("a process that has ended counts as running")
	}
}

func TestUnknownProcessesHaveNotEnded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("names have another form here")
	}
	parts := strings.Split(Self(), "/")
	again := append([]string{}, parts...)
	again[pidField+1] = "1" // the same pid, given to another process
	if !Ended(strings.Join(again, "/")) {
		t.Error("a pid that was given out again counts as the old process")
	}
	for part := range pidField {
		elsewhere := append([]string{}, parts...)
		elsewhere[part], elsewhere[pidField+1] = "elsewhere", "1"
		if name := strings.Join(elsewhere, "/"); Ended(name) {
			t.Errorf("%s counts as ended", name)
		}
	}
	for _, name := range []string{"", "host/1/xyz", "a/b/c/d/e/f"} {
		if Ended(name) {
			t.Errorf("%q counts as ended", name)
		}
	}
}
