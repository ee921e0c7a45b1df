// Package child runs programs as children of this process: connectors, agents and MCP servers. Each is in a process
// group of its own, so that its children are ended with it and a Ctrl-C at the terminal reaches this process only, and
// has only the environment that it was given, besides the few variables that programs need to run.
//
// The caller reads and writes the program's pipes directly, without goroutines in between: a slow reader blocks the
// program. Its stderr is read continuously, and the end of it is kept for errors. However the program ended,
// [Process.End] returns when its group is gone.
//
// Pitfalls: on Linux the program is killed when this process ends for any reason, unless it is free; its child
// processes are not, and should end when their pipes break. Processes that leave the process group are not ended. A
// member that has ended counts until its parent has waited for it. On systems without process groups only the program
// itself is ended.
package child
