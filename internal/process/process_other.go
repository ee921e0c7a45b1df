//go:build !linux

package process

// place is not known here.
func place() (boot, namespace string) { return "", "" }

// startOf is not known here.
func startOf(string) (start string, known bool) { return "", false }
