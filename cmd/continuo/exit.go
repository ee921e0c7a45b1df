package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/task"
)

// exitRule maps a kind of error to the program's exit code.
type exitRule struct {
	code    int
	meaning string
	of      func(error) bool // nil for code 0
}

// exitTable is the only definition of the exit codes; the first rule that matches an error applies.
func exitTable() []exitRule {
	return []exitRule{
		{code: 0, meaning: "done"},
		{code: 130, meaning: "stopped by Ctrl-C or a signal", of: is(context.Canceled)},
		{code: 2, meaning: "wrong usage: arguments, settings or values", of: func(err error) bool {
			return as[*usageError](err) || as[*task.ValidationError](err) || endsWith(2)(err)
		}},
		{code: 3, meaning: "not found", of: endsWith(3)},
		{code: 6, meaning: "a run waits for a person's decision", of: is(engine.ErrRunWaits)},
		{code: 4, meaning: "conflict: busy, already there, archived, over, another's, or changed", of: func(err error) bool {
			return as[*continuo.ConflictError](err) || endsWith(4)(err)
		}},
		{code: 5, meaning: "context_overflow: what must be shown does not fit", of: overflows},
		{code: 1, meaning: "failed in another way", of: func(error) bool { return true }},
	}
}

// exitCode is the exit code for an error.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	for _, rule := range exitTable() {
		if rule.of != nil && rule.of(err) {
			return rule.code
		}
	}
	return 1
}

// exitHelp is the table in the form of the help.
func exitHelp() string {
	var text strings.Builder
	rules := exitTable()
	slices.SortFunc(rules, func(x, y exitRule) int { return cmp.Compare(x.code, y.code) })
	for _, rule := range rules {
		fmt.Fprintf(&text, "    %-3d  %s\n", rule.code, rule.meaning)
	}
	return text.String()
}

func is(targets ...error) func(error) bool {
	return func(err error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
}

// endsWith reports whether the table of errors that all adapters use gives an error this exit code.
func endsWith(code int) func(error) bool {
	return func(err error) bool {
		kind, ok := api.KindOf(err)
		return ok && kind.Class.ExitCode() == code
	}
}

// overflows reports whether something did not fit, as detected here or by the model's provider.
func overflows(err error) bool {
	var failed *turnFailed
	return as[*continuo.OverflowError](err) || errors.As(err, &failed) && failed.reason == continuo.ReasonContextOverflow
}

func as[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// usageError is an invalid use of the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// errSilent ends the program with code 1 if the error was reported already.
var errSilent = errors.New("failed")

// plainText is an error's text for a person: the exit code and the advice say that an input is invalid.
func plainText(err error) string {
	if !errors.Is(err, continuo.ErrInvalid) && !as[*usageError](err) {
		return err.Error()
	}
	kind := continuo.ErrInvalid.Error()
	return strings.NewReplacer(kind+": ", "", ": "+kind, "").Replace(err.Error())
}

// plainError is an error whose text is plain.
type plainError struct{ err error }

func (e *plainError) Error() string { return plainText(e.err) }
func (e *plainError) Unwrap() error { return e.err }

// report writes an error for a person, each line after the program's name.
func report(c *console, err error) {
	if err == nil || errors.Is(err, errSilent) || as[*reportedError](err) {
		return
	}
	for line := range strings.SplitSeq(strings.TrimRight(plainText(err), "\n"), "\n") {
		c.note("%s %s", c.notePaint.Red("continuo:"), term.Clean(c.secrets.Text(line)))
	}
}
