// Package modeltest is the suite that every model passes: [Run] for clients of an HTTP upstream, [RunModel]
// for any model. Nothing leaves the machine and nothing waits for a clock.
//
// Run replays transcripts, one file each, in the txtar form: a description, then sections that begin with a
// line "-- name --".
//
//	request   what must reach the upstream: method and path, headers that must be there, a blank
//	          line, the body, which is what Stream is given
//	response  status, headers, a blank line, the body, byte for byte
//	wire      what happens to the body in transit, one instruction a line: "crlf" makes each LF a CRLF,
//	          "cut N" takes the last N bytes off, "reset" breaks the connection at the end
//	deltas    the expected deltas, one JSON object a line; adjacent ones are not joined
//	answer    what an Answer makes of it: finish, model, usage, error, and the entry
//
// The sections deltas and answer are written by the suite when Options.Update is set; reviewing their diff is
// the test. In errors the upstream's address is written as UPSTREAM.
//
// The suite also checks properties of each transcript: the result does not depend on how the bytes are split;
// after a cut anywhere, the answer is either reported as failed or is complete; a forwarded request yields the
// bytes of the answer; and the resulting entry is one that the log accepts.
package modeltest

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/continuo-log/continuo/model"
)

// Options configures the tests.
type Options struct {
	// New makes the model under test: a client of the upstream at baseURL that sends key as its API key
	// and makes its requests with client.
	New func(baseURL, key string, client *http.Client) model.Model
	// Folder holds the transcripts, *.txtar. One must be called text.txtar: a whole streamed answer with
	// at least two deltas of text.
	Folder string
	// Update rewrites the expected sections instead of comparing them. Default false.
	Update bool
}

// key is the API key that every model under test is given.
const key = "test-key-0123456789"

// Run tests a client.
func Run(t *testing.T, options Options) {
	names, err := filepath.Glob(filepath.Join(options.Folder, "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no transcripts in %s: %v", options.Folder, err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			transcript, err := parseTranscript(data)
			if err != nil {
				t.Fatal(err)
			}
			if replay(t, options, transcript) && options.Update {
				if err := os.WriteFile(name, transcript.archive.format(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			splitAnywhere(t, options, transcript)
			cutAnywhere(t, options, transcript)
			forwardedAnswer(t, options, transcript)
		})
	}
	runFaults(t, options, loadText(t, options))
}

// loadText reads text.txtar.
func loadText(t *testing.T, options Options) *transcript {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(options.Folder, "text.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	transcript, err := parseTranscript(data)
	if err != nil {
		t.Fatal(err)
	}
	return transcript
}
