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
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/internal/yamlform"
)

// folder finds things of one kind in the YAML files of a folder, one per file, which it reads again at each call. It is
// safe for concurrent use.
type folder[T any] struct {
	noun    string // what a file describes, such as workflow
	setting string // that names the folder
	dir     string // "": none are read
	parse   func(file string, text []byte) (T, error)
	id      func(T) string
	// builtIn is the text of one that exists too unless the folder has its id; nil for none.
	builtIn []byte
}

// maxFolderFiles bounds a folder; yamlform.MaxBytes bounds each of its files.
const maxFolderFiles = 500

// find finds one by id. If its file is invalid, the problems say why.
func (f folder[T]) find(id string) (T, error) {
	var none T
	read, err := f.read()
	if err != nil {
		return none, err
	}
	if one, ok := read.good[id]; ok {
		return one, nil
	}
	if problems := read.bad[id]; len(problems) > 0 {
		return none, errors.Join(problems...)
	}
	return none, fmt.Errorf("%s %q: %w; %s", f.noun, term.OneLine(id, 60), continuo.ErrNotFound, f.advice(read, id))
}

// list lists the valid ones by id, with the problems of the others.
func (f folder[T]) list() ([]T, error) {
	read, err := f.read()
	if err != nil {
		return nil, err
	}
	var all []T
	for _, id := range slices.Sorted(maps.Keys(read.good)) {
		all = append(all, read.good[id])
	}
	return all, read.err()
}

// readFolder is the content of a folder.
type readFolder[T any] struct {
	good map[string]T // by id
	// bad has the problems of invalid files, each under its id, or the id that follows from its name.
	bad map[string][]error
}

func (r *readFolder[T]) add(id string, err error) { r.bad[id] = append(r.bad[id], err) }

// err joins the problems in the order of the ids.
func (r *readFolder[T]) err() error {
	var all []error
	for _, id := range slices.Sorted(maps.Keys(r.bad)) {
		all = append(all, r.bad[id]...)
	}
	return errors.Join(all...)
}

// advice suggests the id that was probably meant.
func (f folder[T]) advice(read *readFolder[T], id string) string {
	advice := "there are none; write one to a file in " + cmp.Or(f.dir, "a folder, and name that in "+f.setting)
	if len(read.good) > 0 {
		advice = didYouMean(id, slices.Sorted(maps.Keys(read.good)))
	}
	if len(read.bad) > 0 {
		advice += "; " + term.Count(len(read.bad), "file") + " could not be used: continuo doctor says why"
	}
	return advice
}

// read reads the folder.
func (f folder[T]) read() (*readFolder[T], error) {
	names, err := f.files()
	if err != nil {
		return nil, err
	}
	read := &readFolder[T]{good: map[string]T{}, bad: map[string][]error{}}
	files := map[string][]string{} // by the id that they have
	for _, name := range names {
		one, err := f.readOne(name)
		if err != nil {
			read.add(strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), err)
			continue
		}
		id := f.id(one)
		read.good[id], files[id] = one, append(files[id], name)
	}
	for id, same := range files {
		if len(same) > 1 {
			delete(read.good, id)
			read.add(id, sharedID(id, same))
		}
	}
	f.addBuiltIn(read)
	return read, nil
}

func (f folder[T]) readOne(name string) (T, error) {
	text, err := readSource(name, f.noun)
	if err != nil {
		var none T
		return none, err
	}
	return f.parse(name, text)
}

// addBuiltIn adds the built-in one unless a file, valid or not, has its id.
func (f folder[T]) addBuiltIn(read *readFolder[T]) {
	if f.builtIn == nil {
		return
	}
	const name = "(built in)"
	one, err := f.parse(name, f.builtIn)
	if err != nil {
		read.add(name, err)
		return
	}
	id := f.id(one)
	if _, taken := read.good[id]; !taken && read.bad[id] == nil {
		read.good[id] = one
	}
}

// sharedID is the problem of several files with one id.
func sharedID(id string, files []string) error {
	problems := &yamlform.Problems{}
	for i, file := range files {
		problems.List = append(problems.List, yamlform.Problem{
			File: file, Line: 1, Column: 1,
			Message: fmt.Sprintf("the id %s is that of %s too: give one of them another id", id, files[(i+1)%len(files)]),
		})
	}
	return problems
}

// files lists the files, in order. A missing folder has none.
func (f folder[T]) files() ([]string, error) {
	if f.dir == "" {
		return nil, nil
	}
	opened, err := os.Open(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %ss: %w", f.noun, err)
	}
	defer opened.Close()
	names, err := opened.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("read %ss: %w", f.noun, err)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		extension := filepath.Ext(name)
		return strings.HasPrefix(name, ".") || extension != ".yaml" && extension != ".yml"
	})
	if len(names) > maxFolderFiles {
		return nil, fmt.Errorf("read %ss: %s has %d files, more than the limit of %d: move those that are not used elsewhere", f.noun, f.dir, len(names), maxFolderFiles)
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = filepath.Join(f.dir, name)
	}
	return names, nil
}

// readSource reads a file that describes what the noun says. A failure to read it is one of its problems.
func readSource(name, noun string) ([]byte, error) {
	problem := func(format string, args ...any) error {
		return &yamlform.Problems{List: []yamlform.Problem{{File: name, Line: 1, Column: 1, Message: fmt.Sprintf(format, args...)}}}
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
	text, err := io.ReadAll(io.LimitReader(file, yamlform.MaxBytes+1))
	switch {
	case err != nil:
		return nil, problem("it cannot be read: %s", err)
	case len(text) > yamlform.MaxBytes:
		return nil, problem("it has more than %d bytes, which is too much for a %s", yamlform.MaxBytes, noun)
	}
	return text, nil
}
