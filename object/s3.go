package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	continuo "github.com/continuo-log/continuo"
)

// An object of partBytes or more is sent in parts, partsAtOnce at a time, each of them held in memory. S3
// allows 10,000 parts: objects up to 78 GiB.
const (
	partBytes   = 8 << 20
	partsAtOnce = 2
	listPage    = 1000 // the most that S3 returns at once
)

// s3Engine keeps objects in a bucket of an S3-compatible service. The SDK makes up to three attempts for a
// request, and waits at most 20 s between two attempts.
type s3Engine struct {
	client  *s3.Client
	uploads *transfermanager.Client
	bucket  string
	prefix  string // of every key; ends with a slash, or is empty
	timeout time.Duration
}

// openS3 opens a bucket and makes sure that it exists and can be listed.
func openS3(ctx context.Context, at s3Location, options Options) (engine, error) {
	client, err := s3Client(ctx, at, options.Timeout)
	if err != nil {
		return nil, err
	}
	e := &s3Engine{client: client, bucket: at.bucket, prefix: at.prefix, timeout: options.Timeout}
	e.uploads = transfermanager.New(client, func(o *transfermanager.Options) {
		o.PartSizeBytes, o.MultipartUploadThreshold, o.Concurrency = partBytes, partBytes, partsAtOnce
		// The manager does not inherit this from the client.
		o.RequestChecksumCalculation = client.Options().RequestChecksumCalculation
		// Parts are removed even if the upload's context has ended: a service keeps, and charges for, the
		// parts of an upload that was neither completed nor aborted.
		o.FailTimeout = options.Timeout
	})
	if _, err := e.page(ctx, e.pages("", 1)); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *s3Engine) put(ctx context.Context, name string, data io.Reader) error {
	_, err := e.uploads.UploadObject(ctx, &transfermanager.UploadObjectInput{
		Bucket: &e.bucket, Key: e.key(name), Body: data, ContentType: aws.String("application/octet-stream"),
	})
	return translateS3(err)
}

func (e *s3Engine) read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	opening := time.AfterFunc(e.timeout, func() { cancel(slow(e.timeout)) })
	body, err := e.get(ctx, name, offset, length)
	opening.Stop()
	if err != nil {
		err = ending(ctx, err)
		cancel(nil)
		return nil, err
	}
	return section{body, closer(func() error { defer cancel(nil); return body.Close() })}, nil
}

func (e *s3Engine) get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	asked := byteRange(offset, length)
	answer, err := e.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &e.bucket, Key: e.key(name), Range: asked})
	if err = translateS3(err); errors.Is(err, errBeyond) {
		return http.NoBody, nil
	}
	if err != nil {
		return nil, err
	}
	if sent := aws.ToString(answer.ContentRange); asked != nil && !strings.HasPrefix(sent, fmt.Sprintf("bytes %d-", offset)) {
		return nil, errors.Join(fmt.Errorf("requested %s, received the range %q", *asked, sent), answer.Body.Close())
	}
	if length == 0 {
		return http.NoBody, answer.Body.Close()
	}
	return answer.Body, nil
}

// byteRange is the header Range of a read, nil for a whole object. S3 has no empty ranges: for a length of 0 it
// is one byte, so that a missing object is noticed.
func byteRange(offset, length int64) *string {
	switch {
	case offset == 0 && length < 0:
		return nil
	case length < 0 || length > math.MaxInt64-offset:
		return aws.String(fmt.Sprintf("bytes=%d-", offset))
	}
	return aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+max(length, 1)-1))
}

type closer func() error

func (c closer) Close() error { return c() }

func (e *s3Engine) remove(ctx context.Context, name string) error {
	ctx, cancel := e.briefly(ctx)
	defer cancel()
	_, err := e.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &e.bucket, Key: e.key(name)})
	if err != nil {
		return ending(ctx, translateS3(err))
	}
	return nil
}

func (e *s3Engine) list(ctx context.Context, prefix string) iter.Seq2[continuo.ObjectInfo, error] {
	return func(yield func(continuo.ObjectInfo, error) bool) {
		for pages := e.pages(prefix, listPage); pages.HasMorePages(); {
			page, err := e.page(ctx, pages)
			if err != nil {
				yield(continuo.ObjectInfo{}, err)
				return
			}
			for _, o := range page.Contents {
				name := strings.TrimPrefix(aws.ToString(o.Key), e.prefix)
				if !yield(continuo.ObjectInfo{Name: name, Size: aws.ToInt64(o.Size), ModifiedAt: aws.ToTime(o.LastModified)}, nil) {
					return
				}
			}
		}
	}
}

func (e *s3Engine) pages(prefix string, size int32) *s3.ListObjectsV2Paginator {
	return s3.NewListObjectsV2Paginator(e.client, &s3.ListObjectsV2Input{Bucket: &e.bucket, Prefix: e.key(prefix), MaxKeys: &size})
}

func (e *s3Engine) page(ctx context.Context, pages *s3.ListObjectsV2Paginator) (*s3.ListObjectsV2Output, error) {
	ctx, cancel := e.briefly(ctx)
	defer cancel()
	page, err := pages.NextPage(ctx)
	if err != nil {
		return nil, ending(ctx, translateS3(err))
	}
	return page, nil
}

func (e *s3Engine) key(name string) *string { return aws.String(e.prefix + name) }

func (e *s3Engine) briefly(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, e.timeout, slow(e.timeout))
}

func (e *s3Engine) close() error { return nil } // the client holds only idle connections

func slow(timeout time.Duration) error {
	return fmt.Errorf("%w: no answer within %s", continuo.ErrUnavailable, timeout)
}
