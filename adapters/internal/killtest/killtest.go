// Package killtest kills a process that writes to a store, for the tests of the adapters: each write that it acknowledged must
// be there afterwards.
//
// A test calls Run with a function that writes. Run starts the test's own program again with that test only; there, Run
// writes until the process is killed, and never returns.
package killtest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

const variable = "CONTINUO_KILLTEST_STORE"

// Run returns a store's path, and how many writes to it were acknowledged before the process that made them was killed, at
// least atLeast. Open makes the function that writes i, which is 0 first; it is called in that process only.
func Run(t *testing.T, atLeast int, open func(path string) (write func(i int) error)) (path string, acknowledged int) {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		writeForever(open(path))
	}
	path = filepath.Join(t.TempDir(), "killed.db")
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), variable+"="+path)
	child.Stderr = os.Stderr
	output, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatalf("the process that writes: %s", lines.Text())
		}
		if acknowledged = n + 1; acknowledged == atLeast {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if child.Wait() == nil || acknowledged < atLeast {
		t.Fatalf("the process that writes ended by itself after %d writes", acknowledged)
	}
	return path, acknowledged
}

func writeForever(write func(i int) error) {
	for i := 0; ; i++ {
		if err := write(i); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(i)
	}
}
