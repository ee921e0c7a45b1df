//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// ownTerminal handles what shells do to programs that use a terminal, until the returned function is called: in the
// background nothing can be read, which must not suspend the program; and a program that continues after a suspension
// finds other text on the screen.
func (w *runWatch) ownTerminal() (restore func()) {
	if w.live == nil {
		return func() {}
	}
	w.continued = make(chan os.Signal, 1)
	signal.Ignore(syscall.SIGTTIN)
	signal.Notify(w.continued, syscall.SIGCONT)
	return func() {
		signal.Reset(syscall.SIGTTIN)
		signal.Stop(w.continued)
	}
}
