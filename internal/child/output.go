package child

import (
	"errors"
	"io"
	"os"
)

// output is the read end of a pipe that the program writes to.
type output struct {
	*os.File
	rest int // bytes read since the group ended
}

// maxRest is the largest capacity of a pipe, in bytes: further bytes were written after the group's end, by a
// process that left the group and holds the other end.
const maxRest = 1 << 20

// Read reads until the pipe is closed, and after the group's end, the bytes left in the pipe. Any end is
// io.EOF.
func (o *output) Read(buffer []byte) (int, error) {
	n, err := o.File.Read(buffer)
	switch {
	case err == nil || n > 0:
		return n, nil
	case !errors.Is(err, os.ErrDeadlineExceeded) || o.rest >= maxRest:
		return 0, io.EOF
	}
	n, err = readRest(o.File, buffer)
	o.rest += n
	return n, err
}
