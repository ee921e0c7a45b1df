package pgtest

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// run is a test binary's tests.
type run func() int

func (r run) Run() int { return r() }

func TestTheSharedServerIsOneAndEndsWithMain(t *testing.T) {
	var mine sharedServer
	var folder string
	code := mine.main(run(func() int {
		first, err := mine.get()
		if errors.Is(err, errAbsent) {
			return 3
		}
		second, again := mine.get()
		if err != nil || again != nil || first != second {
			t.Errorf("asked twice: %p, %v and %p, %v", first, err, second, again)
		}
		folder = first.folder
		return 3
	}))
	if code != 3 {
		t.Errorf("the code is %d, not that of the tests", code)
	}
	if _, err := os.Stat(folder); folder != "" && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the shared server is still there: %v", err)
	}
}

func TestASharedServerWithoutAnOwnerIsNotStarted(t *testing.T) {
	var mine sharedServer
	if _, err := mine.get(); err == nil || !strings.Contains(err.Error(), "TestMain") {
		t.Errorf("the error does not say what to write: %v", err)
	}
}
