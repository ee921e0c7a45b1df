package fs

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// countdown is a context that ends when it was asked so many times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestSearchReportsWhatItCovered ends the time after every number of looks at the clock.
func TestSearchReportsWhatItCovered(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("x in "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	partly := 0
	for left := range 50 {
		h := &hunt{alias: aliasProject, expression: regexp.MustCompile("x"), lines: 10, bytes: 1000}
		if err := h.through(&countdown{t.Context(), left}, project{root: root}, ""); err != nil {
			t.Fatal(err)
		}
		content := h.content()
		if h.stopped == "" && (h.found != 3 || strings.Contains(content, "[")) {
			t.Errorf("%d looks: not all was searched, and that is not said: %s", left, content)
		}
		if h.stopped != "" && h.files > 0 {
			partly++
			if !strings.Contains(content, "[the time is up: searched ") || !strings.Contains(content, "the last was "+h.last+";") {
				t.Errorf("%d looks: %s", left, content)
			}
		}
	}
	if partly == 0 {
		t.Error("no search ended midway")
	}
}
