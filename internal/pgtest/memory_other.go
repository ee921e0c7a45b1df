//go:build !linux

package pgtest

// memoryFolder returns "": no such folder is known on this system.
func memoryFolder() string { return "" }
