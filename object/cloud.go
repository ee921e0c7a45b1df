package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	continuo "github.com/continuo-log/continuo"
	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
)

// cloud keeps objects through the portable library, which has the same words for the services of all vendors.
type cloud struct {
	bucket  *blob.Bucket
	timeout time.Duration
	// upload prepares the sending of one object; nil changes nothing.
	upload func(as func(any) bool) error
	// translate gives an error of the service the root's word for it.
	translate func(error) error
}

func openMemory(options Options) engine {
	return &cloud{bucket: memblob.OpenBucket(nil), timeout: options.Timeout, translate: translateCloud}
}

// put ends the context when data fails, before the library closes the upload: it would keep what it has of
// the object otherwise.
func (c *cloud) put(ctx context.Context, name string, data io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return c.translate(c.bucket.Upload(ctx, name, &abortingReader{data, cancel}, &blob.WriterOptions{
		ContentType: "application/octet-stream", // else the library looks into the data
		BufferSize:  partBytes, MaxConcurrency: partsAtOnce,
		BeforeWrite: c.upload,
	}))
}

// abortingReader calls failed before it returns an error.
type abortingReader struct {
	io.Reader
	failed func()
}

func (r *abortingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.failed()
	}
	return n, err
}

func (c *cloud) read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	opening := time.AfterFunc(c.timeout, func() { cancel(slow(c.timeout)) })
	body, err := c.bucket.NewRangeReader(ctx, name, offset, length, nil)
	opening.Stop()
	if err == nil {
		return section{body, closer(func() error { defer cancel(nil); return body.Close() })}, nil
	}
	err = ending(ctx, c.translate(err))
	cancel(nil)
	if errors.Is(err, errBeyond) {
		return http.NoBody, nil
	}
	return nil, err
}

type closer func() error

func (c closer) Close() error { return c() }

func (c *cloud) remove(ctx context.Context, name string) error {
	ctx, cancel := c.briefly(ctx)
	defer cancel()
	err := c.translate(c.bucket.Delete(ctx, name))
	if err != nil {
		return ending(ctx, err)
	}
	return nil
}

func (c *cloud) list(ctx context.Context, prefix string) iter.Seq2[continuo.ObjectInfo, error] {
	return func(yield func(continuo.ObjectInfo, error) bool) {
		for token := blob.FirstPageToken; len(token) > 0; {
			var page []*blob.ListObject
			var err error
			if page, token, err = c.page(ctx, token, prefix, 1000); err != nil {
				yield(continuo.ObjectInfo{}, err)
				return
			}
			for _, o := range page {
				if !yield(continuo.ObjectInfo{Name: o.Key, Size: o.Size, ModifiedAt: o.ModTime}, nil) {
					return
				}
			}
		}
	}
}

func (c *cloud) page(ctx context.Context, token []byte, prefix string, size int) ([]*blob.ListObject, []byte, error) {
	ctx, cancel := c.briefly(ctx)
	defer cancel()
	page, next, err := c.bucket.ListPage(ctx, token, size, &blob.ListOptions{Prefix: prefix})
	if err != nil {
		return nil, nil, ending(ctx, c.translate(err))
	}
	return page, next, nil
}

func (c *cloud) briefly(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.timeout, slow(c.timeout))
}

func (c *cloud) close() error { return c.bucket.Close() }

func slow(timeout time.Duration) error {
	return fmt.Errorf("%w: no answer within %s", continuo.ErrUnavailable, timeout)
}
