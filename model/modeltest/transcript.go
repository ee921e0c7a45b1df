package modeltest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
)

// transcript is one exchange with an upstream.
type transcript struct {
	archive *archive

	path        string // with the method before it
	wantHeaders [][2]string
	request     []byte

	status  int
	headers [][2]string
	body    []byte
	reset   bool // the connection breaks after the body
}

func parseTranscript(data []byte) (*transcript, error) {
	t := &transcript{archive: parseArchive(data)}
	var err error
	var status string
	if t.path, t.wantHeaders, t.request, err = parseMessage(t.archive.get("request")); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	t.request = bytes.TrimSuffix(t.request, []byte("\n"))
	if status, t.headers, t.body, err = parseMessage(t.archive.get("response")); err != nil {
		return nil, fmt.Errorf("response: %w", err)
	}
	if t.status, err = strconv.Atoi(status); err != nil {
		return nil, fmt.Errorf("response: the first line must be a status: %w", err)
	}
	for line := range strings.Lines(string(t.archive.get("wire"))) {
		if err := t.bend(strings.Fields(line)); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// parseMessage splits a first line, headers and, after a blank line, a body.
func parseMessage(data []byte) (first string, headers [][2]string, body []byte, err error) {
	head, body, ok := bytes.Cut(data, []byte("\n\n"))
	if !ok {
		return "", nil, nil, fmt.Errorf("no blank line ends the headers")
	}
	lines := strings.Split(string(head), "\n")
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return "", nil, nil, fmt.Errorf("%q is no header", line)
		}
		headers = append(headers, [2]string{name, strings.TrimSpace(value)})
	}
	return lines[0], headers, body, nil
}

// bend applies a line of the section wire to the body.
func (t *transcript) bend(words []string) error {
	switch {
	case len(words) == 0:
	case words[0] == "crlf":
		t.body = bytes.ReplaceAll(t.body, []byte("\n"), []byte("\r\n"))
	case words[0] == "reset":
		t.reset = true
	case words[0] == "cut" && len(words) == 2:
		n, err := strconv.Atoi(words[1])
		if err != nil || n > len(t.body) {
			return fmt.Errorf("wire: cannot cut %s of %d bytes", words[1], len(t.body))
		}
		t.body = t.body[:len(t.body)-n]
	default:
		return fmt.Errorf("wire: %q is not one of crlf, cut N, reset", words)
	}
	return nil
}

// serve starts an upstream that answers with the transcript. received gets a description of each unexpected
// request, and an empty text for an expected one.
func (t *transcript) serve(received chan<- string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received <- t.check(r)
		for _, header := range t.headers {
			w.Header().Set(header[0], header[1])
		}
		w.WriteHeader(t.status)
		_, _ = w.Write(t.body)
		if t.reset {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
}

// check compares a request with the expected one and returns what is wrong with it.
func (t *transcript) check(r *http.Request) string {
	var wrong []string
	if got := r.Method + " " + r.URL.RequestURI(); got != t.path {
		wrong = append(wrong, fmt.Sprintf("the request is %s, want %s", got, t.path))
	}
	for _, header := range t.wantHeaders {
		if got := r.Header.Get(header[0]); got != header[1] {
			wrong = append(wrong, fmt.Sprintf("the header %s is %q, want %q", header[0], got, header[1]))
		}
	}
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil || !bytes.Equal(body.Bytes(), t.request) {
		wrong = append(wrong, fmt.Sprintf("the body is %q, want %q (%v)", body.Bytes(), t.request, err))
	}
	return strings.Join(wrong, "; ")
}
