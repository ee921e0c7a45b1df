//go:build !linux

package pgtest

// memoryFolder is not known here.
func memoryFolder() string { return "" }
