// Continuo from the command line. This is the only package that knows every other one: it reads the
// settings, puts store, log, models and engine together, and gives each command a file of its own.
//
// Results go to standard output, notes and progress to standard error, so that output can be piped.
// exit.go has the one table of exit codes.
package main

import (
	"context"
	"os"
)

func main() { os.Exit(runProcess()) }

// runProcess runs the command line of this process and returns its exit code.
func runProcess() int {
	c := newConsole(os.Stdin, os.Stdout, os.Stderr, os.Environ())
	err := run(context.Background(), c, os.Args[1:], os.Environ())
	if err == nil {
		err = c.lost()
	}
	report(c, err)
	return exitCode(err)
}
