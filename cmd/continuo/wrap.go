package main

import (
	"io"
	"strings"
	"unicode/utf8"
)

// wrapper wraps streamed text into lines of a width between words. It holds back a word until its end, or shows the
// part so far and erases it if the word then does not fit.
type wrapper struct {
	out    io.Writer
	width  int // in columns; 0 wraps nothing
	column int // where the next character goes
	word   strings.Builder
	length int // of the word, in columns
	// The part of the word that show has shown, in bytes and in columns; column is still where the word begins.
	shownBytes, shownColumns int
}

// write adds a fragment of text, which may begin and end anywhere.
func (w *wrapper) write(text string) {
	if w.width == 0 {
		w.emit(text, cells(text))
		return
	}
	for _, r := range text {
		size := runeCells(r)
		switch {
		case r == '\n':
			w.flush()
			w.emit("\n", 0)
			w.column = 0
		case r == ' ' || r == '\t':
			w.flush()
			if w.column < w.width {
				w.emit(string(r), size)
			}
		default:
			w.word.WriteRune(r)
			w.length += size
			if size == 2 || w.length >= w.width {
				w.flush() // scripts without spaces wrap anywhere
			}
		}
	}
}

// show shows the word so far, for terminals: it may be erased again. In the last column it shows nothing, since a
// terminal's cursor does not move past it.
func (w *wrapper) show() {
	w.place()
	text, length := w.word.String(), w.length
	if w.width > 0 && w.column+length == w.width {
		last, size := utf8.DecodeLastRuneInString(text)
		text, length = text[:len(text)-size], length-runeCells(last)
	}
	if len(text) > w.shownBytes {
		_, _ = io.WriteString(w.out, text[w.shownBytes:])
		w.shownBytes, w.shownColumns = len(text), length
	}
}

// flush writes the word that is held back.
func (w *wrapper) flush() {
	w.place()
	w.emit(w.word.String()[w.shownBytes:], w.length)
	w.word.Reset()
	w.length, w.shownBytes, w.shownColumns = 0, 0, 0
}

// place begins a new line if the word does not fit on this one.
func (w *wrapper) place() {
	if w.column > 0 && w.length > 0 && w.column+w.length > w.width {
		w.emit(strings.Repeat("\b \b", w.shownColumns)+"\n", 0)
		w.column, w.shownBytes, w.shownColumns = 0, 0, 0
	}
}

// emit writes text and moves the column; a failure is kept by the console's writer.
func (w *wrapper) emit(text string, size int) {
	_, _ = io.WriteString(w.out, text)
	w.column += size
}
