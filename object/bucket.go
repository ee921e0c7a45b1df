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
	// Timeout bounds a removal, a page of a list, and the beginning of a read. Sending and receiving an
	// object may take any time, as long as no pause between bytes exceeds Timeout. It does not apply to
	// folders. Default 30 s.
	Timeout time.Duration
	// Now is the clock, used for the age of files that a crash left behind. Default time.Now.
	Now func() time.Time
}

// Bucket is a continuo.ObjectStore. It is safe for concurrent use.
type Bucket struct {
	engine engine

	mu     sync.Mutex
	closed bool
	bound  map[*context.CancelCauseFunc]struct{} // ends the operations in progress
	calls  sync.WaitGroup                        // incremented under mu, and only while not closed
}

var _ continuo.ObjectStore = (*Bucket)(nil)

// engine stores objects whose names were checked.
type engine interface {
	// put stores nothing if data fails.
	put(ctx context.Context, name string, data io.Reader) error
	// read is called with an offset of 0 or more; ctx applies to the whole reading.
	read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	remove(ctx context.Context, name string) error
	list(ctx context.Context, prefix string) iter.Seq2[continuo.ObjectInfo, error]
	close() error
}

// Open opens a location: the path of a folder, which is created when it is missing, file:///FOLDER, or
// s3://BUCKET?endpoint=URL&region=NAME&prefix=TEXT. Region and endpoint may be omitted if the AWS settings of
// this user or machine have them; the credentials are always read from there. An endpoint uses path-style
// addresses and may be http. It fails with continuo.ErrInvalid for an invalid location, ErrReadOnly or
// ErrFull if the folder cannot be written, and ErrUnavailable if the bucket cannot be reached, does not
// exist, or refuses the credentials.
func Open(ctx context.Context, location string, options Options) (*Bucket, error) {
	if options.Timeout <= 0 {
		options.Timeout = 30 * time.Second
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	parsed, err := parseLocation(location)
	if err != nil {
		return nil, fmt.Errorf("open the object store %s: %w", parsed, err)
	}
	engine, err := parsed.open(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("open the object store %s: %w", parsed, err)
	}
	return &Bucket{engine: engine, bound: map[*context.CancelCauseFunc]struct{}{}}, nil
}

// PutObject implements continuo.ObjectStore. An error of data is returned wrapped.
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
		return fmt.Errorf("put object %s: %w", name, ending(ctx, err))
	}
	return nil
}

// ReadObject implements continuo.ObjectStore. An offset at the object's end or beyond it reads nothing;
// one below 0 is continuo.ErrInvalid. The reading ends with ctx and with Close.
func (b *Bucket) ReadObject(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if offset < 0 {
		return nil, fmt.Errorf("read object %q: %w: the offset %d is below 0", name, continuo.ErrInvalid, offset)
	}
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("read object %q: %w", name, err)
	}
	ctx, end, err := b.bind(ctx)
	if err != nil {
		return nil, fmt.Errorf("read object %s: %w", name, err)
	}
	body, err := b.engine.read(ctx, name, offset, length)
	if err != nil {
		err = ending(ctx, err)
		end()
		return nil, fmt.Errorf("read object %s: %w", name, err)
	}
	return &reader{ctx: ctx, name: name, body: body, end: end}, nil
}

// DeleteObject implements continuo.ObjectStore.
func (b *Bucket) DeleteObject(ctx context.Context, name string) error {
	ctx, done, err := b.begin(ctx, name)
	if err != nil {
		return fmt.Errorf("delete object %q: %w", name, err)
	}
	defer done()
	if err := b.engine.remove(ctx, name); err != nil && !errors.Is(err, continuo.ErrNotFound) {
		return fmt.Errorf("delete object %s: %w", name, ending(ctx, err))
	}
	return nil
}

// Objects implements continuo.ObjectStore. Objects that are put or deleted meanwhile may be listed or not.
// Files and keys with a name that no object can have are left out.
func (b *Bucket) Objects(ctx context.Context, prefix string) iter.Seq2[continuo.ObjectInfo, error] {
	return func(yield func(continuo.ObjectInfo, error) bool) {
		fail := func(err error) { yield(continuo.ObjectInfo{}, fmt.Errorf("list objects %q: %w", prefix, err)) }
		if err := checkPrefix(prefix); err != nil {
			fail(err)
			return
		}
		ctx, end, err := b.bind(ctx)
		if err != nil {
			fail(err)
			return
		}
		defer end()
		for info, err := range b.engine.list(ctx, prefix) {
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				fail(ending(ctx, err))
				return
			}
			if checkName(info.Name) == nil && !yield(info, nil) {
				return
			}
		}
	}
}

// Close ends the operations in progress, and waits for puts and removals, for a put that waits for its data as
// long as that takes. Later calls fail with continuo.ErrClosed.
func (b *Bucket) Close() error {
	b.mu.Lock()
	closed := b.closed
	b.closed = true
	for end := range b.bound {
		(*end)(continuo.ErrClosed)
	}
	b.mu.Unlock()
	b.calls.Wait()
	if closed {
		return nil
	}
	if err := b.engine.close(); err != nil {
		return fmt.Errorf("close the object store: %w", err)
	}
	return nil
}

// begin starts a call that Close waits for.
func (b *Bucket) begin(ctx context.Context, name string) (context.Context, func(), error) {
	if err := checkName(name); err != nil {
		return nil, nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, end, err := b.bindLocked(ctx)
	if err != nil {
		return nil, nil, err
	}
	b.calls.Add(1)
	return ctx, func() { end(); b.calls.Done() }, nil
}

// bind returns a context that Close also ends.
func (b *Bucket) bind(ctx context.Context) (context.Context, func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bindLocked(ctx)
}

func (b *Bucket) bindLocked(ctx context.Context) (context.Context, func(), error) {
	if b.closed {
		return nil, nil, continuo.ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	b.bound[&cancel] = struct{}{}
	return ctx, func() {
		b.mu.Lock()
		delete(b.bound, &cancel)
		b.mu.Unlock()
		cancel(nil)
	}, nil
}

// ending replaces an error caused by the end of a context by the cause of that end.
func ending(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return cause
	}
	return err
}
