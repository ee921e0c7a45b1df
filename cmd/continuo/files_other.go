//go:build !unix

package main

// maxOpenFiles is how many files and connections the system lets this program have open; 0 for no known limit.
func maxOpenFiles() int { return 0 }
