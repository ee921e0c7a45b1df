package api

import (
	"errors"
	"fmt"
	"testing"

	"github.com/continuo-log/continuo/workflow"
)

// Joined errors of several files are told apart, and what is no problem of a file is an error still.
func TestSplitProblems(t *testing.T) {
	a, b, other := &workflow.Problems{}, &workflow.Problems{}, errors.New("the folder is gone")
	for _, test := range []struct {
		err   error
		found int
		rest  bool
	}{
		{nil, 0, false},
		{a, 1, false},
		{errors.Join(a, b), 2, false},
		{fmt.Errorf("workflows: %w", errors.Join(a, fmt.Errorf("file: %w", b))), 2, false},
		{other, 0, true},
		{errors.Join(a, other, b), 2, true},
		{fmt.Errorf("workflows: %w", errors.Join(a, other)), 1, true},
	} {
		found, rest := splitProblems(test.err)
		if len(found) != test.found || (rest != nil) != test.rest || test.rest && !errors.Is(rest, other) {
			t.Errorf("%v: %d problems, the rest is %v", test.err, len(found), rest)
		}
	}
}
