package config

import (
	"fmt"
	"strings"
)

// OriginKind is the layer that a value came from. Later layers take precedence.
type OriginKind int

// The layers, in the order in which they are applied.
const (
	FromDefault OriginKind = iota
	FromFile
	FromEnv
	FromFlag
)

// Origin is where a value came from.
type Origin struct {
	Kind OriginKind
	// Name is the name of the file, the variable or the flag (with its dashes); "" for a default.
	Name string
	// Line and Column are the value's position in the file, from 1, the column in characters.
	Line, Column int
}

// String writes "default", "continuo.yaml:3", "env CONTINUO_LISTEN" or "flag --listen".
func (o Origin) String() string {
	switch o.Kind {
	case FromFile:
		return fmt.Sprintf("%s:%d", o.Name, o.Line)
	case FromEnv:
		return "env " + o.Name
	case FromFlag:
		return "flag " + o.Name
	default:
		return "default"
	}
}

// position is where a person finds the value, for errors: String with the column, and of a flag its own name.
func (o Origin) position() string {
	switch o.Kind {
	case FromFile:
		return fmt.Sprintf("%s:%d:%d", o.Name, o.Line, o.Column)
	case FromFlag:
		flag, _, _ := strings.Cut(o.Name, " ") // --set KEY: the message names the key
		return flag
	default:
		return o.String()
	}
}
