//go:build !linux

package e2e

import "os/exec"

// bind does nothing: only Linux binds a program to the one that started it.
func bind(*exec.Cmd) {}
