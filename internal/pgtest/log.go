package pgtest

import (
	"bytes"
	"io"
	"os"
	"testing"
)

const (
	// shownLines of the server's log are shown when a test has failed.
	shownLines = 40
	// shownBytes bounds them.
	shownBytes = 16 << 10
)

// showLog shows the end of the server's log after an offset, if the test has failed.
func (s *Server) showLog(t testing.TB, offset int64) {
	t.Helper()
	if t.Failed() {
		t.Logf("the log of the PostgreSQL server in %s ends with:\n%s", s.folder, s.logFrom(offset))
	}
}

// logFrom returns the last lines of the server's log after an offset.
func (s *Server) logFrom(offset int64) []byte {
	file, err := os.Open(s.path(logName))
	if err != nil {
		return []byte(err.Error())
	}
	defer file.Close() //nolint:errcheck // nothing was written
	offset = max(offset, s.logSize()-shownBytes)
	text, err := io.ReadAll(io.NewSectionReader(file, offset, shownBytes))
	if err != nil {
		return []byte(err.Error())
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-1-shownLines):], nil)
}

func (s *Server) logSize() int64 {
	info, err := os.Stat(s.path(logName))
	if err != nil {
		return 0
	}
	return info.Size()
}
