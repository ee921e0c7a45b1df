package view

import "testing"

// SetMaxBacklog changes how many entries behind a role's cursor are read for one turn, until the test ends.
func SetMaxBacklog(t *testing.T, entries int64) {
	before := maxBacklog
	maxBacklog = entries
	t.Cleanup(func() { maxBacklog = before })
}
