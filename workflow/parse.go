package workflow

import "errors"

// Parse reads a workflow and checks it as a whole. File names it in complaints. It fails with a *Problems
// that lists everything that is wrong, each with its line and with what to do.
func Parse(file string, text []byte, known Known) (*Workflow, error) {
	return nil, errors.ErrUnsupported
}

// Problems are what is wrong with a workflow.
type Problems struct{ List []Problem }

// Problem is one thing that is wrong, and what to do about it.
type Problem struct {
	File         string
	Line, Column int // from 1
	Message      string
}

func (p *Problems) Error() string { return "not yet" }
