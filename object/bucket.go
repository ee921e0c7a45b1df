package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Options configure Open; the zero value works.
type Options struct {
	// Timeout ends a removal, a page of a list, or the beginning of a read. Sending and receiving an object
	// may take any time, as long as no such time passes without a byte. It is not for folders and memory,
	// where nothing waits for a network. Default 30 s.
	Timeout time.Duration
	// Now is the clock, for the age of what a crash left behind. Default time.Now.
	Now func() time.Time
}

// Bucket is a continuo.ObjectStore. It is safe for concurrent use.
type Bucket struct {
	engine engine

	life  context.Context // ends with Close
	end   context.CancelCauseFunc
	mu    sync.Mutex
	calls sync.WaitGroup // grows under mu, and only while life has not ended
}

var _ continuo.ObjectStore = (*Bucket)(nil)

// engine keeps objects whose names have been checked.
type engine interface {
	// put keeps nothing if data fails.
	put(ctx context.Context, name string, data io.Reader) error
	// read is given an offset of 0 or more; ctx is for all of the reading.
	read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	remove(ctx context.Context, name string) error
	list(ctx context.Context, prefix string) iter.Seq2[continuo.ObjectInfo, error]
	close() error
}

// Open opens what location names: the path of a folder, which is made when it is missing, file:///FOLDER,
// mem:// for memory that is gone after Close, or s3://BUCKET?endpoint=URL&region=NAME&prefix=TEXT. There, region
// and endpoint may be missing where the AWS settings of this user or machine name them, as they name the
// credentials; an endpoint is addressed by path and may be http. It fails with continuo.ErrInvalid where the location
// cannot be understood, ErrReadOnly or ErrFull where the folder cannot be written, and ErrUnavailable where
// the bucket cannot be reached, is missing, or is not for these credentials.
func Open(ctx context.Context, location string, options Options) (*Bucket, error) {
	if options.Timeout <= 0 {
		options.Timeout = 30 * time.Second
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	place, err := parseLocation(location)
	if err != nil {
		return nil, fmt.Errorf("open the object store %s: %w", place, err)
	}
	engine, err := place.open(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("open the object store %s: %w", place, err)
	}
	b := &Bucket{engine: engine}
	b.life, b.end = context.WithCancelCause(context.WithoutCancel(ctx))
	return b, nil
}

// PutObject implements continuo.ObjectStore. An error of data is returned as it is, wrapped.
func (b *Bucket) PutObject(ctx context.Context, name string, data io.Reader) error {
	ctx, done, err := b.begin(ctx, name)
	if err != nil {
		return fmt.Errorf("put object %q: %w", name, err)
	}
	defer done()
	source := &source{ctx: ctx, data: data}
	if err := b.engine.put(ctx, name, source); err != nil {
		if source.err != nil {
			return fmt.Errorf("put object %s: read what it shall hold: %w", name, source.err)
		}
		return fmt.Errorf("put object %s: %w", name, interrupted(ctx, err))
	}
	return nil
}

// ReadObject implements continuo.ObjectStore. An offset at the object's end or beyond it reads nothing;
// one below 0 is continuo.ErrInvalid.
func (b *Bucket) ReadObject(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	ctx, done, err := b.begin(ctx, name)
	if err == nil && offset < 0 {
		done()
		err = fmt.Errorf("%w: the offset %d is below 0", continuo.ErrInvalid, offset)
	}
	if err != nil {
		return nil, fmt.Errorf("read object %q: %w", name, err)
	}
	defer done()
	reading, stop := b.within(context.WithoutCancel(ctx))
	// The caller's context still ends the reading; that of this call ends when the call returns.
	detach := context.AfterFunc(callersOf(ctx), func() { stop(context.Cause(callersOf(ctx))) })
	end := func() { detach(); stop(nil) }
	body, err := b.engine.read(reading, name, offset, length)
	if err != nil {
		end()
		return nil, fmt.Errorf("read object %s: %w", name, interrupted(reading, err))
	}
	return &reader{ctx: reading, name: name, body: body, end: end}, nil
}
