// Package lazy holds values that are made when they are first needed. A program that is started for each command, as
// continuo is, must not make at its start what most commands never use.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles the expression at its first call, and panics there if it is not valid. It is safe
// for concurrent use.
func Regexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
