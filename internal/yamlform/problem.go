package yamlform

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// Problems are the errors in a file, in its order, at most 20. They are continuo.ErrInvalid.
type Problems struct {
	List []Problem
	more int // beyond the limit
}

// Problem is one error, and how to fix it.
type Problem struct {
	File         string
	Line, Column int // from 1; columns in characters
	Message      string
}

// Error writes each problem on a line of its own.
func (p *Problems) Error() string {
	lines := make([]string, 0, len(p.List)+1)
	for _, problem := range p.List {
		lines = append(lines, problem.String())
	}
	if p.more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", p.more))
	}
	return strings.Join(lines, "\n")
}

// Is makes every problem of a file an invalid input.
func (p *Problems) Is(target error) bool { return target == continuo.ErrInvalid }

func (p Problem) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// MaxProblems is how many problems of a file are reported.
const MaxProblems = 20

// maxGathered is how many problems are collected before they are sorted and the first MaxProblems reported.
const maxGathered = 1000

// problems returns the collected problems, in the order of the file.
func (r *Reader) problems() *Problems {
	slices.SortStableFunc(r.list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	listed := r.list[:min(len(r.list), MaxProblems)]
	return &Problems{List: slices.Clone(listed), more: r.more + len(r.list) - len(listed)}
}
