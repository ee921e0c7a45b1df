package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/window"
	"github.com/continuo-log/continuo/workflow"
)

// workflowFolder finds workflows in the files of a folder, which it reads anew at each call. It is safe for
// concurrent use.
type workflowFolder struct {
	dir   string // "": none are read
	known workflow.Known
	// builtIn is the text of a workflow that there is too unless the folder has its id; nil for none.
	builtIn []byte
}

// The bounds of a folder of workflows.
const (
	maxWorkflowFiles = 500
	maxWorkflowBytes = 256 << 10 // of one file
)

// newWorkflowFolder is the folder of the settings, with the example that comes with the program.
func newWorkflowFolder(settings *config.Config) workflowFolder {
	return workflowFolder{
		dir:     settings.Workflows.Dir,
		known:   workflow.Known{Agents: append([]string{}, agentIDs(settings)...), Models: settings.AnswerNames(), Views: window.Names()},
		builtIn: workflow.Example(),
	}
}

// ids lists those that are right.
func (w workflowFolder) ids() (ids []string) {
	found, _ := w.Workflows() // what is wrong with others is told elsewhere
	for _, one := range found {
		ids = append(ids, one.ID)
	}
	return ids
}

// countOf says how many names there are, and which.
func countOf(names []string) string {
	return number(len(names)) + " (" + oneLine(strings.Join(names, ", "), 60) + ")"
}

// Workflow finds one by id. Where a file that should have it is not right, the problems say why.
func (w workflowFolder) Workflow(id string) (*workflow.Workflow, error) {
	read, err := w.read()
	if err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(read.good, func(one *workflow.Workflow) bool { return one.ID == id }); at >= 0 {
		return read.good[at], nil
	}
	if problems := read.bad[id]; len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return nil, fmt.Errorf("workflow %q: %w; %s", oneLine(id, 60), continuo.ErrNotFound, read.advice(id, w.dir))
}

// Workflows lists them by id, those that are right, with the problems of the others.
func (w workflowFolder) Workflows() ([]*workflow.Workflow, error) {
	read, err := w.read()
	if err != nil {
		return nil, err
	}
	return read.good, read.err()
}

// readWorkflows is what a folder holds.
type readWorkflows struct {
	good []*workflow.Workflow // by id
	// bad has the problems of the files that are not right, each under the id that it has, or that it would
	// have by its name.
	bad map[string][]error
}

// err joins the problems in the order of the ids.
func (r *readWorkflows) err() error {
	var all []error
	for _, id := range slices.Sorted(maps.Keys(r.bad)) {
		all = append(all, r.bad[id]...)
	}
	return errors.Join(all...)
}

// advice says which id was probably meant.
func (r *readWorkflows) advice(id, dir string) string {
	var ids []string
	for _, one := range r.good {
		ids = append(ids, one.ID)
	}
	advice := "there are none; write one to a file in " + cmp.Or(dir, "a folder, and name that in workflows.dir")
	if len(ids) > 0 {
		advice = meantOr(id, ids)
	}
	if len(r.bad) > 0 {
		advice += "; " + count(len(r.bad), "file") + " could not be used: continuo doctor says why"
	}
	return advice
}

// read reads the folder.
func (w workflowFolder) read() (*readWorkflows, error) {
	names, err := w.files()
	if err != nil {
		return nil, err
	}
	read := &readWorkflows{bad: map[string][]error{}}
	files := map[string][]workflowFile{}
	for _, name := range names {
		text, err := readWorkflow(name)
		var parsed *workflow.Workflow
		if err == nil {
			parsed, err = workflow.Parse(name, text, w.known)
		}
		if err != nil {
			read.add(strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), err)
			continue
		}
		files[parsed.ID] = append(files[parsed.ID], workflowFile{parsed, name})
	}
	for _, id := range slices.Sorted(maps.Keys(files)) {
		if same := files[id]; len(same) > 1 {
			read.add(id, sharedID(id, same))
		} else {
			read.good = append(read.good, same[0].Workflow)
		}
	}
	read.addBuiltIn(w)
	slices.SortFunc(read.good, func(a, b *workflow.Workflow) int { return strings.Compare(a.ID, b.ID) })
	return read, nil
}

func (r *readWorkflows) add(id string, err error) { r.bad[id] = append(r.bad[id], err) }

// addBuiltIn adds the built-in workflow unless a file has its id, be it right or not.
func (r *readWorkflows) addBuiltIn(w workflowFolder) {
	if w.builtIn == nil {
		return
	}
	parsed, err := workflow.Parse("(built in)", w.builtIn, w.known)
	switch {
	case err != nil:
		r.add("(built in)", err)
	case r.bad[parsed.ID] == nil && !slices.ContainsFunc(r.good, func(one *workflow.Workflow) bool { return one.ID == parsed.ID }):
		r.good = append(r.good, parsed)
	}
}

// workflowFile is a workflow and where it was read.
type workflowFile struct {
	*workflow.Workflow
	file string
}

// sharedID is what is wrong with files that have one id.
func sharedID(id string, files []workflowFile) error {
	problems := &workflow.Problems{}
	for i, file := range files {
		problems.List = append(problems.List, workflow.Problem{
			File: file.file, Line: 1, Column: 1,
			Message: fmt.Sprintf("the id %s is that of %s too: give one of them another id", id, files[(i+1)%len(files)].file),
		})
	}
	return problems
}

// files lists the files with workflows, in order. A folder that is not there has none.
func (w workflowFolder) files() ([]string, error) {
	if w.dir == "" {
		return nil, nil
	}
	folder, err := os.Open(w.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read workflows: %w", err)
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("read workflows: %w", err)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		extension := filepath.Ext(name)
		return strings.HasPrefix(name, ".") || extension != ".yaml" && extension != ".yml"
	})
	if len(names) > maxWorkflowFiles {
		return nil, fmt.Errorf("read workflows: %s has %d files, more than the limit of %d: move those that are not used elsewhere", w.dir, len(names), maxWorkflowFiles)
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = filepath.Join(w.dir, name)
	}
	return names, nil
}

// readWorkflow reads a file. What keeps it from being read is a problem of it.
func readWorkflow(name string) ([]byte, error) {
	problem := func(format string, args ...any) error {
		return &workflow.Problems{List: []workflow.Problem{{File: name, Line: 1, Column: 1, Message: fmt.Sprintf(format, args...)}}}
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, problem("it cannot be read: %s", err)
	}
	if !info.Mode().IsRegular() {
		return nil, problem("it is no regular file: only files are read")
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, problem("it cannot be read: %s", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxWorkflowBytes+1))
	switch {
	case err != nil:
		return nil, problem("it cannot be read: %s", err)
	case len(text) > maxWorkflowBytes:
		return nil, problem("it has more than %d bytes, which is too much for a workflow", maxWorkflowBytes)
	}
	return text, nil
}
