// Package child runs the programs that answer as models: each in a process group of its own, which is ended
// whole, with an environment that has nothing but what it was given (internal/group). [Answer] is what such models
// have in common as models: a time, and the reason for which an answer ended.
//
// A program is read and written by whoever started it, without goroutines between: a program whose reader is
// slow waits. What it says on stderr is read all along, and the end of it kept for errors. Whatever has ended
// the program, [Process.End] returns when its group is gone.
//
// Pitfalls: on Linux the program is killed when this process ends, however that is; what it has started itself is
// not, and should end when its pipes break. Who leaves the process group is not ended. On systems without process
// groups only the program itself is.
package child
