//go:build !unix

package main

import "os"

// Whether something can be read from a terminal cannot be asked on this system: lines have the time at which they
// are read.

func waitForInput(*os.File) bool { return false }

func hasInput(*os.File) bool { return false }

func inForeground(*os.File) bool { return false }
