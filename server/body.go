package server

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
)

// readBody reads a request's body, which must be JSON or one of the media types kinds, and validates its text. For an absent
// body it returns nil.
func (s *server) readBody(w http.ResponseWriter, r *http.Request, kinds ...string) ([]byte, error) {
	data, err := s.readRaw(w, r, kinds...)
	if err != nil {
		return nil, err
	}
	if at := loneSurrogate(data); at >= 0 {
		return nil, &api.Problem{
			Status: http.StatusBadRequest, Type: api.InvalidRequest, Code: "invalid_utf8",
			Message: "the body has half of a character, an escape such as \\ud83d without its other half, at byte " + strconv.Itoa(at) + ": text was cut inside a character",
		}
	}
	return data, nil
}

// readRaw is readBody for a body that may contain invalid escapes, or have one of the media types kinds.
func (s *server) readRaw(w http.ResponseWriter, r *http.Request, kinds ...string) ([]byte, error) {
	if contentType := r.Header.Get("Content-Type"); contentType != "" {
		if err := checkContentType(contentType, kinds); err != nil {
			return nil, err
		}
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, unsupported("Content-Encoding", "bodies must not be compressed: leave out the header Content-Encoding")
	}
	data, err := io.ReadAll(s.boundedBody(w, r))
	if err != nil || len(data) == 0 {
		return nil, err
	}
	if at := invalidUTF8(data); at >= 0 {
		return nil, &api.Problem{Status: http.StatusBadRequest, Type: api.InvalidRequest, Code: "invalid_utf8", Message: "the body is not valid UTF-8 at byte " + strconv.Itoa(at)}
	}
	return data, nil
}

// boundedBody returns a request's body, whose reads fail with an *api.Problem or engine.ErrClosing, also beyond the
// largest body that the server accepts.
func (s *server) boundedBody(w http.ResponseWriter, r *http.Request) io.ReadCloser {
	return &boundedBody{http.MaxBytesReader(w, r.Body, s.options.MaxBodyBytes), s}
}

type boundedBody struct {
	io.ReadCloser
	server *server
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err //nolint:wrapcheck // io.EOF must be itself
	}
	var tooLarge *http.MaxBytesError
	var refused *api.Problem // set when the budget refused the body
	switch {
	case errors.As(err, &tooLarge):
		return n, &api.Problem{
			Status: http.StatusRequestEntityTooLarge, Type: api.InvalidRequest, Code: "body_too_large",
			Message: "the body has more than " + strconv.FormatInt(b.server.options.MaxBodyBytes, 10) + " bytes, the limit of this server",
		}
	case errors.Is(err, http.ErrServerClosed):
		return n, engine.ErrClosing
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, &api.Problem{
			Status: http.StatusRequestTimeout, Type: api.InvalidRequest, Code: "body_timeout",
			Message: "the body came too slowly: this server waits " + b.server.options.BodyTimeout.String() + " for it, and a second more for each 64 KiB",
		}
	case errors.As(err, &refused):
		return n, refused
	}
	return n, api.Refuse("", "the body could not be read to its end")
}

// checkContentType accepts JSON, and the type that curl -d sends by default. A page of another origin can send that
// type too, which does no harm: requests of other origins are refused.
func checkContentType(value string, others []string) error {
	kind, parameters, err := mime.ParseMediaType(value)
	charset := parameters["charset"]
	if err != nil || kind != "application/json" && kind != "application/x-www-form-urlencoded" && !slices.Contains(others, kind) || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return unsupported("Content-Type", "the body must be JSON in UTF-8: send the header Content-Type: application/json")
	}
	return nil
}

func unsupported(header, message string) *api.Problem {
	return &api.Problem{Status: http.StatusUnsupportedMediaType, Type: api.InvalidRequest, Code: "unsupported_media_type", Param: header, Message: message}
}

// invalidUTF8 returns where data stops being UTF-8, -1 when it does not.
func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for at := 0; ; {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
}

// loneSurrogate returns the position of a \u escape in JSON text that is half of a surrogate pair, which a decoder
// would replace silently; -1 when there is none. The text need not be valid JSON.
func loneSurrogate(data []byte) int {
	for at := 0; at < len(data); at++ {
		if data[at] != '\\' {
			continue
		}
		unit, ok := escapedUnit(data[at:])
		switch {
		case !ok:
			at++ // a backslash and what it escapes
		case unit < 0xd800 || unit > 0xdfff:
			at += 5
		default:
			low, ok := escapedUnit(data[at+6:])
			if unit > 0xdbff || !ok || low < 0xdc00 || low > 0xdfff {
				return at
			}
			at += 11
		}
	}
	return -1
}

// escapedUnit reads \uXXXX at the start of data.
func escapedUnit(data []byte) (unit uint64, ok bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return unit, err == nil
}
