//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// ownTerminal prepares for what shells do to programs that use a terminal, until the function is called that it
// returns: in the background nothing can be read, which is no reason to be suspended; and who was suspended
// and goes on finds other text on the screen.
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
