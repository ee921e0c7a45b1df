package workflow

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// Parse reads a workflow and checks it as a whole. File names it in complaints, and gives the id of a workflow
// that names none. It fails with a *Problems that lists everything that is wrong, each with its line and with
// what to do.
func Parse(file string, text []byte, known Known) (*Workflow, error) {
	r := &reader{file: file, known: known, workflow: &Workflow{Text: slices.Clone(text)}}
	root, err := parseYAML(text)
	if err != nil {
		r.complain(err.at, "%s", err.message)
		return nil, r.problems()
	}
	r.readWorkflow(root)
	r.checkGraph()
	r.compileExpressions()
	if len(r.list) > 0 {
		return nil, r.problems()
	}
	return r.workflow, nil
}

// Problems are what is wrong with a workflow, in the order of the file, at most 20. They are continuo.ErrInvalid.
type Problems struct {
	List []Problem
	more int // that had no room
}

// Problem is one thing that is wrong, and what to do about it.
type Problem struct {
	File         string
	Line, Column int // from 1; columns in characters
	Message      string
}

// Error tells each problem on a line of its own.
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

// Is makes every complaint about a workflow an invalid input.
func (p *Problems) Is(target error) bool { return target == continuo.ErrInvalid }

func (p Problem) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

const (
	maxProblems = 20   // that are told
	maxGathered = 1000 // of which those are the first in the file
)

// place is where something stands in the file, from 1; columns in characters.
type place struct{ line, column int }

// reader makes a workflow of a file's values and gathers what is wrong with them.
type reader struct {
	file     string
	known    Known
	workflow *Workflow
	list     []Problem
	more     int

	drafts  []draftNode // beside workflow.Nodes
	edges   []draftEdge
	inputs  fieldList
	pending []pendingExpression
	graph   graph
}

// complain keeps a problem; the same is told once.
func (r *reader) complain(at place, format string, args ...any) {
	problem := Problem{r.file, max(at.line, 1), max(at.column, 1), fmt.Sprintf(format, args...)}
	switch {
	case r.full():
		r.more++
	case !slices.Contains(r.list, problem):
		r.list = append(r.list, problem)
	}
}

// full says that more complaints are only counted; ask it before working out a long one.
func (r *reader) full() bool { return len(r.list) >= maxGathered }

// problems returns what was gathered, in the order of the file.
func (r *reader) problems() *Problems {
	slices.SortStableFunc(r.list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	told := r.list[:min(len(r.list), maxProblems)]
	return &Problems{List: slices.Clone(told), more: r.more + len(r.list) - len(told)}
}

// idOfFile is the id of a workflow that names none.
func idOfFile(file string) string {
	name := filepath.Base(file)
	for _, end := range []string{".yaml", ".yml"} {
		if id, ok := strings.CutSuffix(name, end); ok {
			return id
		}
	}
	return name
}
