//go:build !(linux || darwin || freebsd)

package main

// freeDisk does not know how to ask this system.
func freeDisk(string) (free int64, known bool) { return 0, false }
