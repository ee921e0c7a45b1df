//go:build !linux

package process

// bootAndNamespace returns nothing: the ids are not known on this system.
func bootAndNamespace() (boot, namespace string) { return "", "" }

// startOf returns nothing: start times are not known on this system.
func startOf(string) (start string, known bool) { return "", false }
