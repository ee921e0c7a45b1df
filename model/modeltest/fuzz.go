package modeltest

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
)

// Fuzz feeds a client with arbitrary answers, beginning with those of the transcripts. For any answer, the
// stream ends, keeps the contract of model.Model, and leaves an entry that the log accepts.
func Fuzz(f *testing.F, options Options) {
	names, err := filepath.Glob(filepath.Join(options.Folder, "*.txtar"))
	if err != nil || len(names) == 0 {
		f.Fatalf("no transcripts in %s: %v", options.Folder, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		transcript, err := parseTranscript(data)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(transcript.body, transcript.status == http.StatusOK, transcript.reset)
	}
	f.Fuzz(func(t *testing.T, body []byte, good, breaks bool) {
		transcript := &transcript{status: http.StatusOK, request: []byte(`{}`), body: body}
		if !good {
			transcript.status = http.StatusBadGateway
		}
		play(t, options, transcript, func() io.Reader {
			if breaks {
				return io.MultiReader(bytes.NewReader(body), iotest.ErrReader(io.ErrUnexpectedEOF))
			}
			return bytes.NewReader(body)
		})
	})
}
