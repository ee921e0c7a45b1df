// Package yamltree reads hand-written YAML, settings and workflows, into a small tree in which every value has its
// position, so that a caller can report an error at the value's position. It accepts plain scalars, lists and mappings
// with texts as keys, each key once, in one document; anchors, aliases, merge keys and tags are refused.
//
// Scalars stay as they are written: 0x10, 1_000 and .inf are for the caller to interpret, and yes and no are texts. An
// empty file is Null, and so is one that contains null; a key without a value has one that is Null, at the key's
// position.
//
// The underlying parser recurses, and its time grows with the square of some sizes. These are bounded before it runs:
// nesting always, bytes and keys when Options say so. Untrusted files need all the limits.
package yamltree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Kind is the kind of a value. The zero Kind is that of no value.
type Kind int

// The kinds. A Number has a point; 1e3, and integers that 64 bits cannot hold, are a Text.
const (
	Null Kind = iota + 1
	Text
	Whole
	Number
	Bool
	List
	Mapping
)

// String completes "must be a list, not".
func (k Kind) String() string {
	if k < Null || k > Mapping {
		return "no value"
	}
	return [...]string{Null: "nothing", Text: "a text", Whole: "a whole number", Number: "a number", Bool: "true or false", List: "a list", Mapping: "a mapping"}[k]
}

// Position is a position in a text, from 1; columns in characters.
type Position struct{ Line, Column int }

// Node is a value of the file.
type Node struct {
	Kind Kind
	// At is the position of the value's first character; of a mapping without braces, of its first key's.
	At     Position
	Text   string  // of a scalar, as it is written; of a text, its content
	Items  []*Node // of a list
	Fields []Field // of a mapping, in order

	form   token.Type
	source []string // the lines of the file from the one on which a scalar begins
}

// Field is one key of a mapping with its value.
type Field struct{ Key, Value *Node }

// Has reports whether a mapping has a key, with or without a value.
func (n *Node) Has(key string) bool {
	return slices.ContainsFunc(n.Fields, func(f Field) bool { return f.Key.Text == key })
}

// Options are a file's limits, and the terms for errors about it.
type Options struct {
	// MaxBytes bounds the file; the default 0 is no limit.
	MaxBytes int
	// MaxKeys bounds the keys of the whole file; the default 0 is no limit.
	MaxKeys int
	// MaxLevels bounds mappings and lists within each other, however they are written; the default 0 is no limit.
	MaxLevels int
	// MaxNesting bounds brackets within brackets, and dashes on one line; the default is 16.
	MaxNesting int

	// In completes "tags cannot be used in"; the default is "this file".
	In string
	// For completes "values are nested too deeply for"; the default is "this file".
	For string
	// IfLong is how to fix a file that is longer than MaxBytes; the default is "shorten it".
	IfLong string
	// IfSecond is how to fix a second document; the default is "write one document".
	IfSecond string
}

func (o Options) withDefaults() Options {
	o.MaxNesting = cmp.Or(o.MaxNesting, 16)
	o.In, o.For = cmp.Or(o.In, "this file"), cmp.Or(o.For, "this file")
	o.IfLong, o.IfSecond = cmp.Or(o.IfLong, "shorten it"), cmp.Or(o.IfSecond, "write one document")
	return o
}

// Error is an error in a file's form.
type Error struct {
	At      Position
	Message string // on one line
}

// Error returns the message alone: the caller knows the file's name, and puts it and the position before.
func (e *Error) Error() string { return e.Message }

// Parse reads a file, which may begin with a byte order mark. It fails with an *Error.
func Parse(data []byte, options Options) (*Node, error) {
	options = options.withDefaults()
	if options.MaxBytes > 0 && len(data) > options.MaxBytes {
		return nil, &Error{Position{1, 1}, fmt.Sprintf("the file has %d bytes, more than the limit of %d; %s", len(data), options.MaxBytes, options.IfLong)}
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	if err := checkCharacters(text); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(text)
	if err := checkTokens(tokens, options); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, fromParser(err)
	}
	c := converter{Options: options, lines: strings.Split(text, "\n")}
	return c.convertFile(file)
}
