//go:build !unix

package term

import "os"

// This system cannot report whether a terminal has input: lines have the time at which they are read.

func waitForInput(*os.File) bool { return false }

func hasInput(*os.File) bool { return false }

func inForeground(*os.File) bool { return false }
