package objecttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

var errData = errors.New("the data fails")

// failing yields some bytes, and then fails.
func failing(bytes int64, err error) io.Reader {
	return io.MultiReader(io.LimitReader(pattern(1), bytes), readerFunc(func([]byte) (int, error) { return 0, err }))
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func testFailingData(t *testing.T, store continuo.ObjectStore) {
	put(t, store, "a/old", "what was there")
	for _, size := range []int64{0, 1, 1 << 20, 8 << 20, 20 << 20} {
		for _, cause := range []error{errData, io.ErrUnexpectedEOF, fmt.Errorf("no end: %w", io.EOF)} {
			for _, name := range []string{"a/old", "a/new", "b/c/d"} {
				if err := store.PutObject(t.Context(), name, failing(size, cause)); !errors.Is(err, cause) {
					t.Errorf("%s, %v after %d bytes: %v", name, cause, size, err)
				}
			}
		}
	}
	expect(t, store, "a/old", "what was there")
	expectNone(t, store, "a/new")
	expectNames(t, store, "", "a/old")
	put(t, store, "a/new", "new")
	expect(t, store, "a/new", "new")
}

func testEndedContext(t *testing.T, store continuo.ObjectStore) {
	put(t, store, "a/old", "what was there")
	for _, size := range []int64{0, 1, 20 << 20} {
		for _, name := range []string{"a/old", "a/new"} {
			ctx, end := context.WithCancel(t.Context())
			// The context ends while the data continue.
			data := io.MultiReader(io.LimitReader(pattern(1), size), readerFunc(func([]byte) (int, error) { end(); return 0, io.EOF }), strings.NewReader("more"))
			if err := store.PutObject(ctx, name, data); !errors.Is(err, context.Canceled) {
				t.Errorf("%s after %d bytes: %v, want context.Canceled", name, size, err)
			}
			end()
		}
	}
	expect(t, store, "a/old", "what was there")
	expectNone(t, store, "a/new")
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := store.PutObject(ctx, "a/new", strings.NewReader("new")); !errors.Is(err, context.Canceled) {
		t.Errorf("a put after its context: %v", err)
	}
	expectNames(t, store, "", "a/old")
}

// testConcurrentPuts has writers that each put one letter, many times, and readers that must see one letter.
func testConcurrentPuts(t *testing.T, store continuo.ObjectStore) {
	put(t, store, "a/b", strings.Repeat("a", 100_000))
	var writers, readers sync.WaitGroup
	written := make(chan struct{})
	for i := range 8 {
		text := strings.Repeat(string(rune('a'+i)), 100_000+10_000*i)
		writers.Go(func() {
			for range 10 {
				if err := store.PutObject(t.Context(), "a/b", strings.NewReader(text)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for {
				text, err := get(t.Context(), store, "a/b", 0, -1)
				if err != nil || text == "" || len(text) != 100_000+10_000*int(text[0]-'a') || strings.Trim(text, text[:1]) != "" {
					t.Errorf("%s (%v) is not what one of the puts wrote", short(text), err)
				}
				select {
				case <-written:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(written)
	readers.Wait()
	expectNames(t, store, "", "a/b")
}

// testConcurrentCalls puts and deletes neighbours, so that the folder they share is created and removed.
func testConcurrentCalls(t *testing.T, store continuo.ObjectStore) {
	var writers sync.WaitGroup
	for i := range 8 {
		name := fmt.Sprintf("a/b/%d", i)
		writers.Go(func() {
			for round := range 25 {
				text := fmt.Sprint(i, " ", round)
				if err := store.PutObject(t.Context(), name, strings.NewReader(text)); err != nil {
					t.Error(err)
				}
				if got, err := get(t.Context(), store, name, 0, -1); err != nil || got != text {
					t.Errorf("%s: %q (%v), want %q", name, got, err, text)
				}
				if err := store.DeleteObject(t.Context(), name); err != nil {
					t.Error(err)
				}
				if _, err := get(t.Context(), store, name, 0, -1); !errors.Is(err, continuo.ErrNotFound) {
					t.Errorf("%s was deleted: %v", name, err)
				}
			}
			if err := store.PutObject(t.Context(), name, strings.NewReader(name)); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Go(func() {
		for range 25 {
			for _, err := range store.Objects(t.Context(), "a/") {
				if err != nil {
					t.Error(err)
				}
			}
		}
	})
	writers.Wait()
	for i := range 8 {
		name := fmt.Sprintf("a/b/%d", i)
		expect(t, store, name, name)
	}
}
