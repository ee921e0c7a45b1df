// Continuo from the command line. This is the only package that imports all others: it reads the settings, builds
// store, log, models and engine, and has a file for each command.
//
// Results go to standard output, notes and progress to standard error, so that output can be piped. exit.go has the one
// table of exit codes.
package main

import (
	"context"
	"os"
	"runtime/debug"

	// Where a system has no certificate authorities, as an image with nothing but the program, these are used.
	_ "golang.org/x/crypto/x509roots/fallback"
)

func main() { os.Exit(runProcess()) }

// runProcess runs the command line of this process and returns its exit code.
func runProcess() int {
	collectLater()
	c := newConsole(os.Stdin, os.Stdout, os.Stderr, os.Environ())
	err := run(context.Background(), c, os.Args[1:], os.Environ())
	if err == nil {
		err = c.lost()
	}
	report(c, err)
	return exitCode(err)
}

// startHeap is the percentage by which the heap may grow between two runs of the garbage collector until the program
// serves: otherwise it runs several times at the start, while nothing has become garbage.
const startHeap = 800

// collectLater has the garbage collector run less often, unless the environment says how often (GOGC).
func collectLater() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(startHeap)
	}
}

// collectAsUsual ends collectLater.
func collectAsUsual() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(100)
	}
}
