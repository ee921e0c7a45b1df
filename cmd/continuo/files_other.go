//go:build !unix

package main

// maxOpenFiles is the system's limit of open files and connections for this program; 0 if unknown.
func maxOpenFiles() int { return 0 }
