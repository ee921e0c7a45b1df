//go:build !(linux || darwin || freebsd)

package main

// freeDisk returns false: this system is not asked.
func freeDisk(string) (free int64, known bool) { return 0, false }
