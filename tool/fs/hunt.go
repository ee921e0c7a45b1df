package fs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/continuo-log/continuo/tool"
)

// hunt is one search in progress: its query, its matches, and what it left out.
type hunt struct {
	alias        string
	expression   *regexp.Regexp
	include      glob
	skip         int
	lines, bytes int // the limits of the output

	reader  *bufio.Reader
	text    strings.Builder
	full    bool
	found   int // lines that match, the skipped ones included
	shown   int
	matched int // files with a match
	files   int // that were searched
	binary  int
	closed  int // number of files and folders that could not be read
	last    string
	stopped string // the reason of an early end
}

// maxFound bounds how many matches are counted after the shown ones.
const maxFound = 10_000

// through searches a file, or all files below a folder.
func (h *hunt) through(ctx context.Context, below files, name string) error {
	for found, err := range below.walk(ctx, name, maxDepth, "") {
		switch {
		case ctx.Err() != nil:
			h.stopped = "the time is up"
		case err != nil:
			return err
		case found.problem != nil:
			h.closed++
		case found.other != "" && found.name == name:
			return fmt.Errorf("this is %s; only regular files can be searched", found.other)
		case !found.folder && found.other == "" && h.include.match(found.name):
			h.file(ctx, found)
		}
		if h.stopped == "" && h.full && h.found >= maxFound {
			h.stopped = "there are very many matches"
		}
		if h.stopped != "" {
			return nil
		}
	}
	return nil
}

func (h *hunt) file(ctx context.Context, found item) {
	opened, err := found.open(ctx)
	if err != nil {
		h.closed++
		return
	}
	defer opened.Close() //nolint:errcheck // nothing was written
	before := h.found
	switch err := h.scan(ctx, opened, h.alias+"/"+found.name); {
	case errors.Is(err, errBinary):
		h.binary++
		return
	case err != nil && ctx.Err() != nil:
		h.stopped = "the time is up"
	case err != nil:
		h.closed++
	default:
		h.files++
		h.last = h.alias + "/" + found.name
	}
	if h.found > before {
		h.matched++
	}
}

var errBinary = errors.New("a binary file")

// maxPiece is the largest part of a line that is matched at once, in bytes. A longer line is matched in
// pieces that share seam bytes; "^" and "$" then match at their ends too.
const (
	maxPiece = 128 << 10
	seam     = 1 << 10
)

// scan searches each line of a file.
func (h *hunt) scan(ctx context.Context, f *file, name string) error {
	reader := h.read(f)
	if head, _ := reader.Peek(8000); !f.text && bytes.IndexByte(head, 0) >= 0 {
		return errBinary
	}
	var carried, joined []byte // end of the line's previous piece; it and the next piece
	for number, hit := 1, false; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece, err := reader.ReadSlice('\n')
		ended := err == nil || errors.Is(err, io.EOF)
		if !ended && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if len(piece) > 0 && !hit {
			if len(carried) > 0 {
				joined = append(append(joined[:0], carried...), piece...)
				piece = joined
			}
			hit = h.line(bytes.TrimRight(piece, "\r\n"), name, number)
		}
		carried = carried[:0]
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ended:
			number, hit = number+1, false
		case !hit:
			carried = append(carried, piece[max(0, len(piece)-seam):]...)
		}
	}
}

// read returns a reader of a file; it is reused for every file, because its buffer is large.
func (h *hunt) read(f *file) *bufio.Reader {
	content := io.NewSectionReader(f, 0, f.size)
	if h.reader == nil {
		h.reader = bufio.NewReaderSize(content, maxPiece)
	}
	h.reader.Reset(content)
	return h.reader
}

// line matches a line or a piece of one, and shows it while there is room.
func (h *hunt) line(line []byte, name string, number int) bool {
	at := h.expression.FindIndex(line)
	if at == nil {
		return false
	}
	h.found++
	if h.found <= h.skip || h.full {
		return true
	}
	text := fmt.Sprintf("%s:%d: %s\n", visiblePath(name), number, excerpt(line, at[0]))
	if h.shown == h.lines || h.text.Len()+len(text) > h.bytes && h.shown > 0 {
		h.full = true
		return true
	}
	h.text.WriteString(text)
	h.shown++
	return true
}

// maxExcerpt is how much of a line is shown, in characters, and beforeMatch how many of them precede the
// match in a longer line.
const (
	maxExcerpt  = 400
	beforeMatch = 100
)

// excerpt returns a line, or the part around the match of a long line.
func excerpt(line []byte, match int) string {
	begin := max(0, match-4*beforeMatch)
	window := line[begin:min(len(line), match+4*maxExcerpt)]
	before := []rune(string(line[begin:match]))
	runes := []rune(string(window))
	if begin == 0 && len(window) == len(line) && len(runes) <= maxExcerpt {
		return tool.Printable(string(runes))
	}
	first := max(0, len(before)-beforeMatch)
	last := min(len(runes), first+maxExcerpt)
	text := tool.Printable(string(runes[first:last]))
	if begin > 0 || first > 0 {
		text = "…" + text
	}
	if begin+len(window) < len(line) || last < len(runes) {
		text += "…"
	}
	return text
}

func visiblePath(path string) string {
	if _, _, err := splitPath(path); err != nil {
		return fmt.Sprintf("%q", path)
	}
	return path
}

// content returns the matches and, in square brackets, a note on what was left out.
func (h *hunt) content() string {
	var notes []string
	left := h.found - min(h.skip, h.found) - h.shown
	count := fmt.Sprintf("%d matching lines in %d files", h.found, h.matched)
	switch {
	case h.found == 0 && h.stopped == "":
		notes = append(notes, fmt.Sprintf("nothing matches in %d files", h.files))
	case h.shown == 0 && h.found > 0:
		notes = append(notes, fmt.Sprintf("no more: %s, all before skip %d", count, h.skip))
	case left > 0:
		notes = append(notes, fmt.Sprintf("%d of %s are left out; narrow path, include or pattern, or continue with skip %d", left, count, h.found-left))
	}
	switch {
	case h.stopped != "" && h.files == 0:
		notes = append(notes, h.stopped+": no file was searched whole, so narrow path or include")
	case h.stopped != "":
		notes = append(notes, fmt.Sprintf("%s: searched %d files, the last was %s; what comes after it was not searched, so narrow path or include", h.stopped, h.files, visiblePath(h.last)))
	}
	if h.closed > 0 {
		notes = append(notes, fmt.Sprintf("%d files or folders could not be read", h.closed))
	}
	if h.binary > 0 && h.found == 0 {
		notes = append(notes, fmt.Sprintf("%d binary files were passed over", h.binary))
	}
	for _, note := range notes {
		h.text.WriteString("[" + note + "]\n")
	}
	return strings.TrimSuffix(h.text.String(), "\n")
}
