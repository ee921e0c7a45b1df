// Package term is for terminals: widths, tables, styles, wrapped and redrawn text, a progress bar, and the lines that a
// person types.
//
// Text of models and users must pass [OneLine] or [Clean] first, which make visible what could control a terminal. Then
// the only escape sequences in a text are those of a [Style], which have no width.
package term

import "strings"

// Style styles text for a terminal, or returns it unchanged (false).
type Style bool

const reset = "\x1b[0m"

// With styles a text with a code of SGR (ECMA-48). Blank text stays as it is.
func (s Style) With(code, text string) string {
	if !s || strings.TrimSpace(text) == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + reset
}

// Bold, Dim and the colours style a text.
func (s Style) Bold(text string) string   { return s.With("1", text) }
func (s Style) Dim(text string) string    { return s.With("2", text) }
func (s Style) Red(text string) string    { return s.With("31", text) }
func (s Style) Green(text string) string  { return s.With("32", text) }
func (s Style) Yellow(text string) string { return s.With("33", text) }
func (s Style) Cyan(text string) string   { return s.With("36", text) }

// None returns a text unchanged.
func (s Style) None(text string) string { return text }
