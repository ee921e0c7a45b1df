package object

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// eachKind runs a test over a store of each kind.
func eachKind(t *testing.T, run func(t *testing.T, b *Bucket)) {
	for kind, location := range map[string]func(t *testing.T) string{
		"folder": func(t *testing.T) string { return t.TempDir() },
		"s3":     func(t *testing.T) string { return startS3(t).location("") },
	} {
		t.Run(kind, func(t *testing.T) { run(t, openAt(t, location(t))) })
	}
}

func TestAClosedBucketReportsIt(t *testing.T) {
	eachKind(t, func(t *testing.T, b *Bucket) {
		if err := b.PutObject(t.Context(), "a", strings.NewReader("0123456789")); err != nil {
			t.Fatal(err)
		}
		open, err := b.ReadObject(t.Context(), "a", 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(open, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := io.ReadAll(open); !errors.Is(err, continuo.ErrClosed) {
			t.Errorf("a reading that was open: %v", err)
		}
		if err := open.Close(); err != nil {
			t.Error(err)
		}
		_, err = b.ReadObject(t.Context(), "a", 0, -1)
		for what, err := range map[string]error{
			"put": b.PutObject(t.Context(), "a", strings.NewReader("")), "read": err, "delete": b.DeleteObject(t.Context(), "a"),
		} {
			if !errors.Is(err, continuo.ErrClosed) {
				t.Errorf("%s: %v, want ErrClosed", what, err)
			}
		}
		for _, err := range b.Objects(t.Context(), "") {
			if !errors.Is(err, continuo.ErrClosed) {
				t.Errorf("list: %v, want ErrClosed", err)
			}
		}
	})
}

// TestCloseEndsAPut closes while the data of a put is still coming, and waits for the put.
func TestCloseEndsAPut(t *testing.T) {
	eachKind(t, func(t *testing.T, b *Bucket) {
		begun, proceed := make(chan struct{}), make(chan struct{})
		started := false
		data := readFunc(func(p []byte) (int, error) {
			if !started {
				started = true
				close(begun)
				<-proceed
			}
			return 1, nil // for ever
		})
		ended, closed := make(chan error, 1), make(chan error, 1)
		go func() { ended <- b.PutObject(t.Context(), "a", data) }()
		<-begun
		go func() { closed <- b.Close() }()
		for isOpen(b) {
			runtime.Gosched()
		}
		if len(closed) > 0 {
			t.Error("Close returned before the put")
		}
		close(proceed)
		if err := <-ended; !errors.Is(err, continuo.ErrClosed) {
			t.Errorf("the put: %v, want ErrClosed", err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

func isOpen(b *Bucket) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.closed
}

func TestAReadingEndsWithItsContext(t *testing.T) {
	eachKind(t, func(t *testing.T, b *Bucket) {
		if err := b.PutObject(t.Context(), "a", strings.NewReader("0123456789")); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		body, err := b.ReadObject(ctx, "a", 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		end()
		if _, err := io.ReadAll(body); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want context.Canceled", err)
		}
		if err := body.Close(); err != nil {
			t.Error(err)
		}
	})
}
