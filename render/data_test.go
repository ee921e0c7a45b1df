package render

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// conversation is one line of the shared data.
type conversation struct {
	ID         string            `json:"id"`
	Protocol   string            `json:"protocol"`
	Messages   []json.RawMessage `json:"messages"`
	Violations []listed          `json:"violations"`
}

// listed is a violation that the data records.
type listed struct {
	Index int    `json:"index"`
	Code  string `json:"code"`
}

// dataFiles finds files of the shared conversations, or skips the test.
func dataFiles(t *testing.T, pattern string) []string {
	t.Helper()
	folder := os.Getenv("CONTINUO_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "data")
	}
	files, _ := filepath.Glob(filepath.Join(folder, pattern))
	if len(files) == 0 {
		t.Skipf("SKIPPED: no shared conversations in %s; set CONTINUO_DATA to the folder that holds them", folder)
	}
	return files
}

// longLine is the length in bytes above which a conversation is one of the long ones. Of those only one in
// eight is read, and each one that breaks a rule; all of them with CONTINUO_LONG=1.
const longLine = 30_000

// eachConversation calls f for the conversations of the shared data, in the files that match a pattern.
func eachConversation(t *testing.T, pattern string, f func(t *testing.T, c conversation)) {
	t.Helper()
	for _, file := range dataFiles(t, pattern) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			long := 0
			eachLine(t, file, func(line []byte) {
				if len(line) > longLine && os.Getenv("CONTINUO_LONG") == "" && !bytes.Contains(line, []byte(`"violations":`)) {
					if long++; long%8 != 1 {
						return
					}
				}
				var c conversation
				if err := json.Unmarshal(line, &c); err != nil {
					t.Fatal(err)
				}
				f(t, c)
			})
		})
	}
}

// eachLine calls f for each line of a packed file.
func eachLine(t *testing.T, file string, f func(line []byte)) {
	t.Helper()
	packed, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReaderSize(unpacked, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			f(line)
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
