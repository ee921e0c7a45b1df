package main

import (
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/internal/yamlform"
)

// checkFiles checks files of workflows or crews, and prints what check says of the sound ones, and every error of the others
// as file:line:column: message.
func (a *app) checkFiles(noun string, files []string, check func(file string, text []byte) (sound []string, err error)) error {
	var wrong error
	for _, file := range files {
		text, err := readSource(file, noun)
		var sound []string
		if err == nil {
			sound, err = check(file, text)
		}
		for _, line := range sound {
			a.print("%s: %s", term.Clean(file), line)
		}
		if err == nil {
			continue
		}
		wrong = &reportedError{fmt.Errorf("%w: %w", continuo.ErrInvalid, err)}
		problems, ok := errors.AsType[*yamlform.Problems](err)
		if !ok {
			a.print("%s:1:1: %s", term.Clean(file), term.Clean(err.Error()))
			continue
		}
		for _, p := range problems.List {
			a.print("%s:%d:%d: %s", term.Clean(p.File), p.Line, p.Column, term.OneLine(p.Message, 2000))
		}
	}
	return wrong
}
