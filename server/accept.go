package server

import (
	"net/http"
	"strings"
)

// accepts reports whether a request's Accept header names a media type.
func accepts(r *http.Request, mediaType string) bool {
	for _, value := range r.Header.Values("Accept") {
		for item := range strings.SplitSeq(value, ",") {
			name, _, _ := strings.Cut(item, ";")
			if strings.EqualFold(strings.TrimSpace(name), mediaType) {
				return true
			}
		}
	}
	return false
}

// wantsStream reports whether the answer to a request is a stream of events: as the request's body says, else its Accept
// header.
func wantsStream(r *http.Request, inBody *bool) bool {
	if inBody != nil {
		return *inBody
	}
	return accepts(r, "text/event-stream")
}
