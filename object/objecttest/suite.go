// Package objecttest is the suite that every continuo.ObjectStore passes. It is public, so that others can
// write object stores.
package objecttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Run runs the suite. newStore makes an empty store for each test, and cleans up with t.Cleanup.
func Run(t *testing.T, newStore func(t *testing.T) continuo.ObjectStore) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, continuo.ObjectStore)
	}{
		{"an object comes back as it went in", testFidelity},
		{"a part of an object is read", testRanges},
		{"an object is replaced", testReplace},
		{"a deleted object is gone", testDelete},
		{"what is not there is not found", testNotFound},
		{"objects are listed in the order of their names", testList},
		{"a list of many objects is whole", testLongList},
		{"a list can be left early", testShortList},
		{"names that are none are refused", testNames},
		{"a put whose data fails keeps nothing", testFailingData},
		{"a put whose context ends keeps nothing", testEndedContext},
		{"puts of one name do not mix", testConcurrentPuts},
		{"puts, reads and removals at once do not harm each other", testConcurrentCalls},
		{"64 MiB pass through", testLarge},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newStore(t)) })
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, store continuo.ObjectStore, name, text string) {
	t.Helper()
	noError(t, store.PutObject(t.Context(), name, strings.NewReader(text)))
}

// get reads a part of an object to its end.
func get(ctx context.Context, store continuo.ObjectStore, name string, offset, length int64) (string, error) {
	body, err := store.ReadObject(ctx, name, offset, length)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(body)
	return string(data), errors.Join(err, body.Close())
}

func expect(t *testing.T, store continuo.ObjectStore, name, want string) {
	t.Helper()
	got, err := get(t.Context(), store, name, 0, -1)
	if err != nil || got != want {
		t.Errorf("%s: %s (%v), want %s", name, short(got), err, short(want))
	}
}

func expectNone(t *testing.T, store continuo.ObjectStore, name string) {
	t.Helper()
	if got, err := get(t.Context(), store, name, 0, -1); !errors.Is(err, continuo.ErrNotFound) {
		t.Errorf("%s: %s (%v), want ErrNotFound", name, short(got), err)
	}
}

func short(text string) string {
	if len(text) > 40 {
		return fmt.Sprintf("%q… (%d bytes)", text[:40], len(text))
	}
	return fmt.Sprintf("%q", text)
}

func names(t *testing.T, store continuo.ObjectStore, prefix string) []string {
	t.Helper()
	var found []string
	for info, err := range store.Objects(t.Context(), prefix) {
		noError(t, err)
		found = append(found, info.Name)
	}
	return found
}

func expectNames(t *testing.T, store continuo.ObjectStore, prefix string, want ...string) {
	t.Helper()
	if got := names(t, store, prefix); !slices.Equal(got, want) {
		t.Errorf("objects %q: got %q, want %q", prefix, got, want)
	}
}

func testFidelity(t *testing.T, store continuo.ObjectStore) {
	for name, text := range map[string]string{
		"conv_1/empty":                    "",
		"conv_1/out_1":                    "text\n",
		"conv_1/bytes":                    "\x00\xff\r\n\x1a binary",
		"conv_1/large":                    strings.Repeat("0123456789abcdef", 1<<16),
		"a":                               "one part",
		"A-Z_a.z/0-9/.hidden/..a/b..":     "every kind of character",
		strings.Repeat("n", 200):          "a long part",
		strings.Repeat("deep/", 20) + "d": "many parts",
		strings.Repeat("xx/", 170) + "xx": "a long name",
	} {
		put(t, store, name, text)
		expect(t, store, name, text)
	}
	// A reader with small reads is stored unchanged, and no more is read than there is.
	noError(t, store.PutObject(t.Context(), "conv_1/bites", io.LimitReader(&bites{text: "abc"}, 10_000)))
	expect(t, store, "conv_1/bites", strings.Repeat("abc", 3334)[:10_000])
}

// bites yields its text repeatedly, one byte at a time, and nothing at every other read.
type bites struct {
	text string
	at   int
	rest bool
}

func (b *bites) Read(p []byte) (int, error) {
	if b.rest = !b.rest; b.rest || len(p) == 0 {
		return 0, nil
	}
	p[0] = b.text[b.at%len(b.text)]
	b.at++
	return 1, nil
}

func testRanges(t *testing.T, store continuo.ObjectStore) {
	put(t, store, "a/digits", "0123456789")
	put(t, store, "a/empty", "")
	for _, part := range []struct {
		name           string
		offset, length int64
		want           string
	}{
		{"a/digits", 0, -1, "0123456789"},
		{"a/digits", 0, 10, "0123456789"},
		{"a/digits", 0, 100, "0123456789"},
		{"a/digits", 0, math.MaxInt64, "0123456789"},
		{"a/digits", 3, math.MaxInt64, "3456789"},
		{"a/digits", 3, 4, "3456"},
		{"a/digits", 3, -1, "3456789"},
		{"a/digits", 9, 1, "9"},
		{"a/digits", 8, 5, "89"},
		{"a/digits", 0, 0, ""},
		{"a/digits", 5, 0, ""},
		{"a/digits", 10, 0, ""},
		{"a/digits", 10, -1, ""},
		{"a/digits", 10, 1, ""},
		{"a/digits", 1000, 1, ""},
		{"a/digits", 1000, -1, ""},
		{"a/empty", 0, -1, ""},
		{"a/empty", 0, 0, ""},
		{"a/empty", 0, 5, ""},
		{"a/empty", 5, 5, ""},
	} {
		got, err := get(t.Context(), store, part.name, part.offset, part.length)
		if err != nil || got != part.want {
			t.Errorf("%s, %d bytes from %d: %q (%v), want %q", part.name, part.length, part.offset, got, err, part.want)
		}
	}
	if _, err := get(t.Context(), store, "a/digits", -1, 1); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("an offset below 0: %v, want ErrInvalid", err)
	}
}

func testReplace(t *testing.T, store continuo.ObjectStore) {
	put(t, store, "a/b", "a first text that is longer")
	before, err := store.ReadObject(t.Context(), "a/b", 0, -1)
	noError(t, err)
	put(t, store, "a/b", "the second")
	expect(t, store, "a/b", "the second")
	expectNames(t, store, "", "a/b")
	old, err := io.ReadAll(before)
	if err != nil || string(old) != "a first text that is longer" && string(old) != "the second" {
		t.Errorf("a read that began before: %q (%v), want one of the two, whole", old, err)
	}
	noError(t, before.Close())
	put(t, store, "a/b", "")
	expect(t, store, "a/b", "")
}

func testDelete(t *testing.T, store continuo.ObjectStore) {
	for range 2 {
		put(t, store, "a/b/c", "1")
		put(t, store, "a/b/d", "2")
		noError(t, store.DeleteObject(t.Context(), "a/b/c"))
		noError(t, store.DeleteObject(t.Context(), "a/b/c"))
		expectNone(t, store, "a/b/c")
		expectNames(t, store, "", "a/b/d")
		noError(t, store.DeleteObject(t.Context(), "a/b/d"))
		expectNames(t, store, "")
	}
	put(t, store, "a", "where a/b was the beginning of other names")
	expectNames(t, store, "a", "a")
}

func testNotFound(t *testing.T, store continuo.ObjectStore) {
	expectNone(t, store, "a")
	expectNone(t, store, "a/b")
	put(t, store, "a/b", "1")
	for _, name := range []string{"a", "a/c", "a/b/c", "a/b/c/d", "b"} {
		expectNone(t, store, name)
		noError(t, store.DeleteObject(t.Context(), name))
	}
	expect(t, store, "a/b", "1")
	expectNames(t, store, "c/")
	expectNames(t, store, "a/b/")
}

func testList(t *testing.T, store continuo.ObjectStore) {
	all := []string{"a-c", "a.c", "a/b", "a/c/d", "a/c0", "a0", "aB", "b", "ba/c", "conv_1/out_1", "conv_1/out_2", "conv_10/out_1"}
	began := time.Now().Add(-time.Hour) // clocks of services differ from ours
	for i := range all {
		put(t, store, all[len(all)-1-i], strings.Repeat("x", len(all)-1-i))
	}
	expectNames(t, store, "", all...)
	expectNames(t, store, "a", all[:7]...)
	expectNames(t, store, "a/", all[2:5]...)
	expectNames(t, store, "a/c", all[3:5]...)
	expectNames(t, store, "a/c/", "a/c/d")
	expectNames(t, store, "a/c/d", "a/c/d")
	expectNames(t, store, "conv_1", all[9:]...)
	expectNames(t, store, "conv_1/", all[9:11]...)
	expectNames(t, store, "x")
	i := 0
	for info, err := range store.Objects(t.Context(), "") {
		noError(t, err)
		if info.Size != int64(i) {
			t.Errorf("%s: size %d, want %d", info.Name, info.Size, i)
		}
		if info.ModifiedAt.Before(began) || info.ModifiedAt.After(began.Add(2*time.Hour)) {
			t.Errorf("%s: modified at %s, put just now", info.Name, info.ModifiedAt)
		}
		i++
	}
}

func testLongList(t *testing.T, store continuo.ObjectStore) {
	var want []string
	for i := range 1205 {
		want = append(want, fmt.Sprintf("conv_%d/out_%04d", i/1000, i))
	}
	var writers sync.WaitGroup
	for share := range slices.Chunk(want, 50) {
		writers.Go(func() {
			for _, name := range share {
				if err := store.PutObject(t.Context(), name, strings.NewReader("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	expectNames(t, store, "", want...)
	expectNames(t, store, "conv_1/", want[1000:]...)
}

func testShortList(t *testing.T, store continuo.ObjectStore) {
	for _, name := range []string{"a/1", "a/2", "b/1"} {
		put(t, store, name, "")
	}
	list := store.Objects(t.Context(), "")
	for info, err := range list {
		noError(t, err)
		noError(t, store.DeleteObject(t.Context(), info.Name)) // as a cleanup does
		break
	}
	expectNames(t, store, "", "a/2", "b/1")
	for info, err := range list { // a list can be read again
		noError(t, err)
		noError(t, store.DeleteObject(t.Context(), info.Name))
	}
	expectNames(t, store, "")
	ended, end := context.WithCancel(t.Context())
	end()
	put(t, store, "a", "")
	for _, err := range store.Objects(ended, "") {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a list after its context: %v", err)
		}
	}
}

func testNames(t *testing.T, store continuo.ObjectStore) {
	put(t, store, "a/b", "1")
	for _, name := range []string{
		"", ".", "..", "/", "/a", "a/", "a//b", "./a", "../a", "a/../b", "a/..", "a/.", "/etc/passwd",
		`a\b`, `..\a`, "C:a", "a b", "a\x00", "a\n", "ä", "a~", "~new/a", "a:b", "a%2fb", "a*", "a?b", "a#b", "\xff",
		strings.Repeat("n", 201), strings.Repeat("xx/", 171), strings.Repeat("xx/", 171) + "x",
	} {
		read := bytes.NewBufferString("never read")
		for what, err := range map[string]error{
			"put":    store.PutObject(t.Context(), name, read),
			"read":   second(get(t.Context(), store, name, 0, -1)),
			"delete": store.DeleteObject(t.Context(), name),
		} {
			if !errors.Is(err, continuo.ErrInvalid) {
				t.Errorf("%s %q: %v, want ErrInvalid", what, name, err)
			}
		}
		if read.Len() != len("never read") {
			t.Errorf("data for %q was read", name)
		}
	}
	for _, prefix := range []string{"/", "../", "a//", "a/../", "a/..\\", "*", "a b", "~new/", "./"} {
		count := 0
		for _, err := range store.Objects(t.Context(), prefix) {
			if count++; !errors.Is(err, continuo.ErrInvalid) {
				t.Errorf("objects %q: %v, want ErrInvalid", prefix, err)
			}
		}
		if count != 1 {
			t.Errorf("objects %q: %d results, want an error", prefix, count)
		}
	}
	expectNames(t, store, "", "a/b")
}

func second[A any](_ A, err error) error { return err }
