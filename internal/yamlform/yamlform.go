// Package yamlform reads the YAML files of one thing each that people write by hand, workflows and crews, key by key,
// and gathers everything that is wrong, each with its place and with what to do.
//
// A [Reader] is made for one file. Each of its methods reads the value of a key; where there is none, or it is not of
// the form that the key wants, it returns the zero value, and in the second case complains. So whoever reads goes on to the
// end of the file, and asks [Reader.Err] then.
package yamlform

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/yamltree"
)

// Form says what a file is about, for complaints, and how it begins.
type Form struct {
	One    string // what a file describes, with its article, such as a workflow
	Many   string // several of them
	Parts  string // what one has, in a sentence; completes "the file says nothing; a workflow has"
	Keys   string // the most important keys; completes "the file must be a mapping with the keys"
	IfLong string // what to do about a file that is too long
}

// The limits of a file.
const (
	MaxBytes   = 256 << 10
	maxNesting = 16
	maxLevels  = 32
	maxKeys    = 5000
)

// Reader reads one file and gathers what is wrong with it. It is not safe for concurrent use.
type Reader struct {
	File string
	// Any says that Known knows every name.
	Any bool

	list []Problem
	more int
}

// Complain keeps a problem; the same is told once.
func (r *Reader) Complain(at yamltree.Place, format string, args ...any) {
	problem := Problem{r.File, max(at.Line, 1), max(at.Column, 1), fmt.Sprintf(format, args...)}
	switch {
	case r.Full():
		r.more++
	case !slices.Contains(r.list, problem):
		r.list = append(r.list, problem)
	}
}

// Full says that more complaints are only counted; ask it before working out a long one.
func (r *Reader) Full() bool { return len(r.list) >= maxGathered }

// Complaints counts what was gathered, so that one can see whether reading something added to it.
func (r *Reader) Complaints() int { return len(r.list) }

// Err returns a *Problems with everything that is wrong; nil when nothing is.
func (r *Reader) Err() error {
	if len(r.list) == 0 {
		return nil
	}
	return r.problems()
}

// Root reads the file: one mapping, with plain scalars, lists and mappings below it. It returns nil, and has
// complained, where the text is none.
func (r *Reader) Root(text []byte, form Form) *yamltree.Node {
	noun := strings.TrimPrefix(form.One, "a ")
	root, err := yamltree.Parse(text, yamltree.Options{
		MaxBytes: MaxBytes, MaxNesting: maxNesting, MaxLevels: maxLevels, MaxKeys: maxKeys,
		In: form.Many, For: form.One,
		IfLong: form.IfLong, IfSecond: "write each " + noun + " into a file of its own",
	})
	if wrong := (*yamltree.Error)(nil); errors.As(err, &wrong) {
		message := wrong.Message
		if strings.HasPrefix(message, "not valid YAML") && !strings.Contains(message, "already defined") {
			message += `; check the indentation, and put texts that hold ": " or begin with a special sign in quotes`
		}
		r.Complain(wrong.At, "%s", message)
		return nil
	}
	switch root.Kind {
	case yamltree.Mapping:
		return root
	case yamltree.Null:
		r.Complain(root.At, "the file says nothing; %s has %s", form.One, form.Parts)
	default:
		r.Complain(root.At, "the file must be a mapping with the keys %s, not %s", form.Keys, root.Kind)
	}
	return nil
}

// reservedID is taken by the address of the JSON Schema.
const reservedID = "schema"

// ID reads the id of what the file describes, whose noun is given. One that has none is called as the file is; top is
// where its mapping begins.
func (r *Reader) ID(v *yamltree.Node, top yamltree.Place, noun string) string {
	id, at := idOfFile(r.File), top
	if v != nil {
		id, at = r.Text(v, "id"), v.At
	}
	switch {
	case v != nil && id == "": // told already
	case !idPattern.MatchString(id):
		r.Complain(at, "the %s's id cannot be %s: ids are %s; write one with the key id, or name the file so", noun, Quoted(id), idForm)
	case id == reservedID:
		r.Complain(at, "the %s's id cannot be %s, which is the address of the JSON Schema; choose another", noun, id)
	}
	return id
}

// idOfFile is the id that a file's name gives.
func idOfFile(file string) string {
	name := filepath.Base(file)
	for _, end := range []string{".yaml", ".yml"} {
		if id, ok := strings.CutSuffix(name, end); ok {
			return id
		}
	}
	return name
}
