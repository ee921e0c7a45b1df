package main

import (
	"io"
	"strings"
)

// wrapper breaks streamed text into lines of a width between words. It holds back a word until its end.
type wrapper struct {
	out    io.Writer
	width  int // in columns; 0 breaks nothing
	column int // where the next character goes
	word   strings.Builder
	length int // of the word, in columns
}

// write takes a piece of text, which may begin and end anywhere.
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
				w.flush() // scripts without spaces break anywhere
			}
		}
	}
}

// flush writes the word that is held back, on a new line when it has no room on this one.
func (w *wrapper) flush() {
	if w.length == 0 && w.word.Len() == 0 {
		return
	}
	if w.column > 0 && w.column+w.length > w.width {
		w.emit("\n", 0)
		w.column = 0
	}
	w.emit(w.word.String(), w.length)
	w.word.Reset()
	w.length = 0
}

// emit writes text and moves the column; a failure is kept by the console's writer.
func (w *wrapper) emit(text string, size int) {
	_, _ = io.WriteString(w.out, text)
	w.column += size
}
