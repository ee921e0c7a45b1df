package child

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Lines reads lines of bounded length. It is for one goroutine.
type Lines struct {
	in    *bufio.Reader
	limit int
	skip  bool // the rest of a line that was too long comes first
}

// ErrLongLine means that a line is longer than the limit. The next call of Next skips the rest of it.
var ErrLongLine = errors.New("the line is too long")

// NewLines reads lines of up to limit bytes, their ends not counted.
func NewLines(in io.Reader, limit int) *Lines {
	return &Lines{in: bufio.NewReaderSize(in, 64<<10), limit: limit}
}

// Next returns the next line with its end; it is valid until the next call. The last one, if it has no end, comes
// together with the error of the input.
func (l *Lines) Next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		switch {
		case l.skip:
			l.skip = full
			if err == nil || full {
				continue
			}
			return nil, err
		case len(line)+len(bytes.TrimRight(part, "\r\n")) > l.limit:
			l.skip = full
			return nil, ErrLongLine
		case !full && line == nil:
			return part[:len(part):len(part)], err
		}
		line = append(line, part...)
		if !full {
			return line, err
		}
	}
}
