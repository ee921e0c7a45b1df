package term

import (
	"io"
	"strings"
)

// Wrapper wraps streamed text into lines of a width between words. It holds back a word until its end, or shows the
// part so far and erases it if the word then does not fit.
type Wrapper struct {
	Out    io.Writer
	Width  int // in columns; 0 wraps nothing
	column int // where the next character goes
	word   strings.Builder
	length int // of the word, in columns
	// The part of the word that Show has shown, in bytes and in columns; column is still where the word begins.
	shownBytes, shownColumns int
}

// Write adds a fragment of text, which may begin and end anywhere.
func (w *Wrapper) Write(text string) {
	if w.Width == 0 {
		w.emit(text, Width(text))
		return
	}
	for _, r := range text {
		switch {
		case r == '\n':
			w.Flush()
			w.emit("\n", 0)
			w.column = 0
		case r == ' ' || r == '\t':
			w.Flush()
			if w.column < w.Width {
				w.emit(string(r), 1)
			}
		default:
			w.add(string(r))
		}
	}
}

// add adds a character to the word. A line may end behind any wide character, and anywhere in a word that is wider than
// the line.
func (w *Wrapper) add(character string) {
	first, before := w.word.String(), w.length
	w.word.WriteString(character)
	w.length = Width(w.word.String())
	if before == 0 || w.length == before {
		return
	}
	if _, columns := last(first); w.length > w.Width || columns == 2 {
		w.split(len(first))
	}
}

// split writes the first bytes of the word, and keeps the rest.
func (w *Wrapper) split(at int) {
	first, rest := w.word.String()[:at], w.word.String()[at:]
	w.word.Reset()
	w.word.WriteString(first)
	w.length = Width(first)
	w.Flush()
	w.word.WriteString(rest)
	w.length = Width(rest)
}

// Show shows the word so far, for terminals: it may be erased again. In the last column it shows nothing, since a
// terminal's cursor does not move past it.
func (w *Wrapper) Show() {
	w.breakLine()
	text, length := w.word.String(), w.length
	if w.Width > 0 && w.column+length == w.Width {
		part, columns := last(text)
		text, length = text[:len(text)-len(part)], length-columns
	}
	if len(text) > w.shownBytes {
		_, _ = io.WriteString(w.Out, text[w.shownBytes:])
		w.shownBytes, w.shownColumns = len(text), length
	}
}

// Flush writes the word that is held back.
func (w *Wrapper) Flush() {
	w.breakLine()
	w.emit(w.word.String()[w.shownBytes:], w.length)
	w.word.Reset()
	w.length, w.shownBytes, w.shownColumns = 0, 0, 0
}

// breakLine begins a new line if the word does not fit on this one.
func (w *Wrapper) breakLine() {
	if w.column > 0 && w.length > 0 && w.column+w.length > w.Width {
		w.emit(strings.Repeat("\b \b", w.shownColumns)+"\n", 0)
		w.column, w.shownBytes, w.shownColumns = 0, 0, 0
	}
}

// emit writes text and moves the column; the writer keeps a failure.
func (w *Wrapper) emit(text string, size int) {
	_, _ = io.WriteString(w.Out, text)
	w.column += size
}

// Wrap wraps untrusted text into lines of a width; 0 wraps nothing.
func Wrap(text string, width int) []string {
	var lines strings.Builder
	w := Wrapper{Out: &lines, Width: width}
	w.Write(Clean(strings.ReplaceAll(text, "\t", " ")))
	w.Flush()
	return strings.Split(strings.TrimRight(lines.String(), "\n"), "\n")
}

// last returns what a terminal shows as the last character of a text, and its width.
func last(text string) (part string, columns int) {
	for next, width := range parts(text) {
		part, columns = next, width
	}
	return part, columns
}
