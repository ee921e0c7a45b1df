//go:build !unix

package main

// ownTerminal has nothing to prepare on this system.
func (w *runWatch) ownTerminal() (restore func()) { return func() {} }
