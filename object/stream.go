package object

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// source is the data of an object that an engine stores. Its failure is never taken for the end: a block
// reader may take io.ErrUnexpectedEOF for a last, short block, and store half of an object.
type source struct {
	ctx  context.Context
	data io.Reader
	err  error // the error that ended data early
}

var errUnfinished = errors.New("the data could not be read to its end")

func (s *source) Read(p []byte) (int, error) {
	if s.err != nil || s.ctx.Err() != nil {
		return 0, errUnfinished
	}
	n, err := s.data.Read(p)
	if err != nil && err != io.EOF { // only io.EOF itself is the end
		s.err = err
		return n, errUnfinished
	}
	return n, err
}

// reader is the result of ReadObject.
type reader struct {
	ctx  context.Context
	name string
	body io.ReadCloser
	end  func()
}

func (r *reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, fmt.Errorf("read object %s: %w", r.name, context.Cause(r.ctx))
	}
	n, err := r.body.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("read object %s: %w", r.name, ending(r.ctx, err))
	}
	return n, err
}

func (r *reader) Close() error {
	err := r.body.Close()
	r.end()
	return err
}
