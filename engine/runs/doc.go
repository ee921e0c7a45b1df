// Package runs begins, resumes, repairs and follows the runs of workflows. Package durable drives them; a run's machine
// (machine.go) says what its steps are.
package runs
