package child

import (
	"errors"
	"io"
	"os"
)

// output is our end of a pipe that the program writes to.
type output struct {
	*os.File
	rest int // bytes that were read since the group is gone
}

// maxRest is the most that a pipe can hold, in bytes: what comes beyond it was written since, by somebody who left
// the group and holds the other end.
const maxRest = 1 << 20

// Read reads until the pipe is closed, and once reads are broken off, because the group is gone, what stands in it.
// Any end is io.EOF.
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
