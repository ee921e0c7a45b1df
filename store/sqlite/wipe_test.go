package sqlite

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// TestNoPageKeepsWhatWasMoved appends to several conversations in turn, so that pages are split between them, and redacts some of
// the entries: no page has a copy of one in the space that it does not use, and the file is as it must be.
func TestNoPageKeepsWhatWasMoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	store := openAt(t, path, Options{})
	random := rand.New(rand.NewPCG(1, 2))
	secret := func(conversation, seq int) string { return fmt.Sprintf("hunter%dx%dx", conversation, seq) }
	lengths := make([]int, 8)
	for i := range lengths {
		newConversation(t, store, fmt.Sprint(i), 0)
	}
	for range 400 {
		c := random.IntN(len(lengths))
		lengths[c]++
		entries := someEntries(fmt.Sprint(c), int64(lengths[c]), int64(lengths[c]), secret(c, lengths[c])+strings.Repeat(" word", random.IntN(100)))
		if err := store.Append(t.Context(), continuo.Batch{ConversationID: fmt.Sprint(c), After: int64(lengths[c] - 1), Entries: entries}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if pagesWithRemains(t, path) == 0 {
		t.Error("no page has a copy of anything: this shows nothing")
	}
	store = openAt(t, path, Options{})
	var gone []string
	for range 40 {
		c := random.IntN(len(lengths))
		seq := 1 + random.IntN(lengths[c])
		gone = append(gone, secret(c, seq))
		entries := someEntries(fmt.Sprint(c), int64(seq), int64(seq), "[redacted]")
		entries[0].Redacted = &continuo.Redaction{At: sometime}
		if err := store.Redact(t.Context(), fmt.Sprint(c), entries); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range gone {
		if bytes.Contains(data, []byte(word)) {
			t.Errorf("the file has %s", word)
		}
	}
	if n := pagesWithRemains(t, path); n > 0 {
		t.Errorf("%d pages have copies of what was moved", n)
	}
	if found, err := Inspect(t.Context(), path); err != nil || len(found.Damage) > 0 {
		t.Errorf("the file is damaged: %+v, %v", found, err)
	}
}

// pagesWithRemains is how many pages of a closed file have something in the space that they do not use.
func pagesWithRemains(t *testing.T, path string) (n int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const size = 4096
	for at := 0; at < len(data); at += size {
		if len(bytes.Trim(unusedOf(data[at:at+size], at == 0), "\x00")) > 0 {
			n++
		}
	}
	return n
}
