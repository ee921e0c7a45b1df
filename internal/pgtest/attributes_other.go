//go:build !unix

package pgtest

import "syscall"

// supported is false: tests are skipped.
const supported = false

func attributes(*account, syscall.Signal) *syscall.SysProcAttr { return nil }
