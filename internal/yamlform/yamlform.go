// Package yamlform reads the YAML files that people write by hand and that describe one thing each, workflows and
// crews, key by key, and collects all problems, each with its position and how to fix it.
//
// A [Reader] is made for one file. Each of its methods reads the value of a key; if there is none, or it is not of the
// required form, it returns the zero value, and in the second case records a problem. So the caller reads to the end of
// the file, and calls [Reader.Err] then.
package yamlform

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/yamltree"
)

// Form describes a kind of file, for problems, and how such a file begins.
type Form struct {
	One    string // what one file describes, with its article, such as a workflow
	Many   string // its plural
	Parts  string // the parts of one, in a sentence; completes "the file is empty; a workflow has"
	Keys   string // the most important keys; completes "the file must be a mapping with the keys"
	IfLong string // how to shorten a file that is too long
}

// The limits of a file.
const (
	MaxBytes   = 256 << 10
	maxNesting = 16
	maxLevels  = 32
	maxKeys    = 5000
)

// Reader reads one file and collects its problems. It is not safe for concurrent use.
type Reader struct {
	File string
	// Any makes Known accept every name.
	Any bool

	list []Problem
	more int
}

// Complain records a problem; the same problem is recorded once.
func (r *Reader) Complain(at yamltree.Position, format string, args ...any) {
	problem := Problem{r.File, max(at.Line, 1), max(at.Column, 1), fmt.Sprintf(format, args...)}
	switch {
	case r.Full():
		r.more++
	case !slices.Contains(r.list, problem):
		r.list = append(r.list, problem)
	}
}

// Full says that further problems are only counted; call it before building a long one.
func (r *Reader) Full() bool { return len(r.list) >= maxGathered }

// Complaints counts the recorded problems, so that a caller can see whether reading something added one.
func (r *Reader) Complaints() int { return len(r.list) }

// Err returns a *Problems with all problems; nil if there are none.
func (r *Reader) Err() error {
	if len(r.list) == 0 {
		return nil
	}
	return r.problems()
}

// Root reads the file: one mapping, with plain scalars, lists and mappings below it. If the text has another form, it
// records a problem and returns nil.
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
		r.Complain(root.At, "the file is empty; %s has %s", form.One, form.Parts)
	default:
		r.Complain(root.At, "the file must be a mapping with the keys %s, not %s", form.Keys, root.Kind)
	}
	return nil
}

// reservedID is used by the address of the JSON Schema.
const reservedID = "schema"

// ID reads the id of what the file describes; noun names its kind. Without an id, the file's name is the id; top is the
// position of the mapping's beginning.
func (r *Reader) ID(v *yamltree.Node, top yamltree.Position, noun string) string {
	id, at := idOfFile(r.File), top
	if v != nil {
		id, at = r.Text(v, "id"), v.At
	}
	switch {
	case v != nil && id == "": // reported already
	case !idPattern.MatchString(id):
		r.Complain(at, "the %s's id cannot be %s: ids are %s; write one with the key id, or name the file so", noun, Quoted(id), idForm)
	case id == reservedID:
		r.Complain(at, "the %s's id cannot be %s, which is the address of the JSON Schema; choose another", noun, id)
	}
	return id
}

// idOfFile is the id that follows from a file's name.
func idOfFile(file string) string {
	name := filepath.Base(file)
	for _, end := range []string{".yaml", ".yml"} {
		if id, ok := strings.CutSuffix(name, end); ok {
			return id
		}
	}
	return name
}
