// Package child runs the programs behind models: each in a process group of its own, which is ended as a
// whole, and with only the given environment (internal/group). [Answer] implements what such models share: a
// time limit, and the reason for which an answer ended.
//
// The caller reads and writes the program's pipes directly, without goroutines in between: a slow reader
// blocks the program. Its stderr is read continuously, and the end of it is kept for errors. However the
// program ended, [Process.End] returns when its group is gone.
//
// Pitfalls: on Linux the program is killed when this process ends for any reason; its child processes are
// not, and should end when their pipes break. Processes that leave the process group are not ended. On
// systems without process groups only the program itself is ended.
package child
