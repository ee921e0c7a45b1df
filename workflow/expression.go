package workflow

import "errors"

// Expression is a checked expression over Values.
type Expression struct {
	Text string
	Line int // in the file
}

// Eval computes the value.
func (e *Expression) Eval(values Values) (any, error) { return nil, errors.ErrUnsupported }

// Holds computes a condition.
func (e *Expression) Holds(values Values) (bool, error) { return false, errors.ErrUnsupported }
