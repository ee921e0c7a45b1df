package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// fault is what an upstream does wrong, or differently than usual, after its header. Stream and whole return the body of an
// answer that is streamed and of one that is not; nil where the fault does not occur there.
type fault struct {
	name          string
	stream, whole func(v *vendor) string
	kind          string // the Content-Type; "" for the right one
	vanishes      bool   // the connection is closed before the header
	breaks        bool   // the connection breaks after the body
	bytewise      bool   // each byte is sent alone

	text   string                 // that arrives
	reason continuo.FailureReason // "" for an answer that is complete
	empty  bool                   // nothing of an answer arrives, so that the client gets an error instead of a stream
}

const allWords = firstWords + lastWords

func body(text string) func(*vendor) string { return func(*vendor) string { return text } }

// halfEvent is the beginning of the event that follows the head, up to a byte within a character.
func halfEvent(v *vendor) string { return v.more[:strings.Index(v.more, "ü")+1] }

// crlf ends lines as servers on another system do.
func crlf(stream string) string { return strings.ReplaceAll(stream, "\n", "\r\n") }

// withoutLast removes the last event of a stream.
func withoutLast(stream string) string {
	stream = strings.TrimSuffix(stream, "\n\n")
	return stream[:strings.LastIndex(stream, "\n\n")+2]
}

var faults = []fault{
	{name: "no fault", stream: func(v *vendor) string { return v.head + v.more + v.end }, whole: func(v *vendor) string { return v.whole }, text: allWords},
	{name: "keep-alives", stream: func(v *vendor) string { return v.keepAlive + v.head + v.keepAlive + v.more + v.keepAlive + v.end }, text: allWords},
	{name: "lines end with CRLF", stream: func(v *vendor) string { return crlf(v.head + v.more + v.end) }, text: allWords},
	{name: "byte by byte", stream: func(v *vendor) string { return v.head + v.more + v.end }, bytewise: true, text: allWords},
	{name: "text after the end", stream: func(v *vendor) string { return v.head + v.more + v.end + v.ghost }, text: allWords},
	{name: "two ends", stream: func(v *vendor) string { return v.head + v.more + v.end + v.end }, text: allWords},
	{name: "an error after the end", stream: func(v *vendor) string { return v.head + v.more + v.end + v.failed }, text: allWords},
	{name: "the connection breaks after the end", stream: func(v *vendor) string { return v.head + v.more + v.end }, breaks: true, text: allWords},
	{name: "the end lacks its last event", stream: func(v *vendor) string {
		if v.protocol == model.ProtocolResponses || v.protocol == model.ProtocolGemini {
			return v.head + v.more + v.end // their end is one event
		}
		return v.head + v.more + withoutLast(v.end)
	}, text: allWords},

	{name: "the connection breaks", stream: func(v *vendor) string { return v.head }, whole: func(v *vendor) string { return v.whole[:len(v.whole)/2] }, breaks: true, text: firstWords, reason: continuo.ReasonNetwork},
	{name: "the answer ends without its end", stream: func(v *vendor) string { return v.head }, whole: func(v *vendor) string { return v.whole[:len(v.whole)-1] }, text: firstWords, reason: continuo.ReasonNetwork},
	{name: "the answer ends in a character", stream: func(v *vendor) string { return v.head + halfEvent(v) }, text: firstWords, reason: continuo.ReasonNetwork},
	{name: "the connection breaks in a character", stream: func(v *vendor) string { return v.head + halfEvent(v) }, breaks: true, text: firstWords, reason: continuo.ReasonNetwork},
	{name: "[DONE] before the end", stream: func(v *vendor) string { return v.head + data("[DONE]") }, text: firstWords, reason: continuo.ReasonNetwork},
	{name: "an event cannot be read", stream: func(v *vendor) string { return v.head + data(`{"choices":[{"oops`) + v.more + v.end }, whole: body(`{"choices":oops}`), text: firstWords, reason: continuo.ReasonUpstream},
	{name: "an error event", stream: func(v *vendor) string { return v.head + v.failed }, whole: func(v *vendor) string { return errorOf(v.failed) }, text: firstWords, reason: continuo.ReasonUpstream},
	{name: "an error event, and more after it", stream: func(v *vendor) string { return v.head + v.failed + v.more + v.end }, text: firstWords, reason: continuo.ReasonUpstream},
	{name: "an error event first", stream: func(v *vendor) string { return v.failed }, reason: continuo.ReasonUpstream},
	{name: "no answer", stream: body(""), whole: body(""), vanishes: true, reason: continuo.ReasonNetwork, empty: true},
	{name: "nothing after the header", stream: body(""), whole: body(""), reason: continuo.ReasonNetwork, empty: true},
	{name: "the connection breaks after the header", stream: body(""), whole: body(""), breaks: true, reason: continuo.ReasonNetwork, empty: true},
	{name: "keep-alives only", stream: func(v *vendor) string { return v.keepAlive + v.keepAlive }, reason: continuo.ReasonNetwork},
	{name: "a page instead of an answer", stream: body("<html><h1>Sign in</h1></html>"), whole: body("<html><h1>Sign in</h1></html>"), kind: "text/html", reason: continuo.ReasonUpstream, empty: true},
	{name: "an error instead of a stream", stream: func(v *vendor) string { return errorOf(v.failed) }, kind: "application/json", reason: continuo.ReasonUpstream, empty: true},
}

// errorOf is the data of an event.
func errorOf(event string) string {
	_, after, _ := strings.Cut(event, "data: ")
	return strings.TrimSpace(after)
}

// passedHeaders are headers of each upstream's answers that reach every client.
var passedHeaders = map[string]string{
	"X-Ratelimit-Remaining-Requests": "59", "X-Ratelimit-Reset-Tokens": "6m0s", "Anthropic-Ratelimit-Tokens-Remaining": "12", "Request-Id": "req_011", "X-Request-Id": "upstream-1",
}

// answerWith is an upstream of each protocol that has a fault.
func answerWith(f *fault) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked, _ := io.ReadAll(r.Body)
		v, streamed := vendorOf(r, asked)
		if f.vanishes {
			panic(http.ErrAbortHandler)
		}
		for name, value := range passedHeaders {
			w.Header().Set(name, value)
		}
		kind, text := "text/event-stream", f.stream(v)
		if !streamed {
			kind, text = "application/json", f.whole(v)
		}
		if f.kind != "" {
			kind = f.kind
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(http.StatusOK)
		flush := http.NewResponseController(w).Flush
		_ = flush()
		for rest := []byte(text); len(rest) > 0; {
			piece := len(rest)
			if f.bytewise {
				piece = 1
			}
			_, _ = w.Write(rest[:piece])
			_ = flush()
			rest = rest[piece:]
		}
		if f.breaks {
			panic(http.ErrAbortHandler)
		}
	}
}

// eachCase calls f for each endpoint before each upstream, with streams and without, of those that applies selects; nil: all.
// The case is in the request's text, so that each has a conversation of its own.
func eachCase(t *testing.T, applies func(e *clientEndpoint, v *vendor, streamed bool) bool, f func(t *testing.T, e *clientEndpoint, v *vendor, streamed bool, path, body string)) {
	for i := range clientEndpoints {
		e := &clientEndpoints[i]
		for _, v := range vendors {
			for _, streamed := range []bool{true, false} {
				if applies != nil && !applies(e, v, streamed) {
					continue
				}
				name := fmt.Sprintf("%s before %s, streamed %v", e.name, v.protocol, streamed)
				path, body := e.request(v.protocol, streamed)
				t.Run(name, func(t *testing.T) { f(t, e, v, streamed, path, strings.Replace(body, "hi", name, 1)) })
			}
		}
	}
}

// Every fault of an upstream, through every endpoint, streamed and whole, to the client of the same protocol and to those of
// others: the answer never ends as if it were complete, nothing comes after its end, the error has the form of the
// endpoint, and the log has what arrived and why there is no more.
func TestEveryFaultThroughEveryEndpoint(t *testing.T) {
	for i := range faults {
		f := &faults[i]
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			upstream := httptest.NewServer(answerWith(f))
			t.Cleanup(upstream.Close)
			g := newVendorsGateway(t, upstream.URL)
			isWhole := func(e *clientEndpoint, v *vendor, streamed bool) bool { return !streamed && e.protocol == v.protocol } // else the upstream streams
			applies := func(e *clientEndpoint, v *vendor, streamed bool) bool {
				return f.whole != nil || !isWhole(e, v, streamed)
			}
			eachCase(t, applies, func(t *testing.T, e *clientEndpoint, v *vendor, streamed bool, path, body string) {
				whole := isWhole(e, v, streamed)
				response, got := g.post(t, path, body)
				f.check(t, e, response, got, streamed)
				if !f.vanishes {
					checkPassed(t, response)
				}
				text := f.text
				if whole && f.reason != "" {
					text = ""
				}
				entries := g.entries(t, response)
				last := entries[len(entries)-1]
				switch {
				case last.Role != continuo.Assistant || last.Content.String() != text || len(entries) != 2:
					t.Errorf("the log has %d entries and ends with %s %q", len(entries), last.Role, last.Content.String())
				case (last.Error == nil) != (f.reason == ""), last.Error != nil && last.Error.Reason != f.reason:
					t.Errorf("the log says %+v", last.Error)
				}
			})
		})
	}
}

// check checks what a client got.
func (f *fault) check(t *testing.T, e *clientEndpoint, response *http.Response, got string, streamed bool) {
	t.Helper()
	isStream := strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
	switch {
	case f.reason == "" && !streamed:
		if end := e.readWhole(got); response.StatusCode != http.StatusOK || isStream || !end.complete || end.failed || end.text != f.text || end.wrong != "" {
			t.Errorf("got %d %s: %+v", response.StatusCode, got, end)
		}
	case streamed && isStream && !f.empty:
		end := e.readStream(got)
		if response.StatusCode != http.StatusOK || end.wrong != "" || end.text != f.text || end.complete != (f.reason == "") || end.failed != (f.reason != "") {
			t.Errorf("got %+v from %d\n%s", end, response.StatusCode, got)
		}
	case streamed && (f.text != "" || isStream), isStream, response.StatusCode != http.StatusBadGateway && response.StatusCode != http.StatusServiceUnavailable:
		t.Errorf("got %d %s %s", response.StatusCode, response.Header.Get("Content-Type"), got)
	default:
		e.checkRefused(t, got, response.StatusCode)
	}
}

func checkPassed(t *testing.T, response *http.Response) {
	t.Helper()
	for name, want := range passedHeaders {
		if got := response.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// Every refusal of a vendor goes to its own clients as it came, and to others in the form of their endpoint, with a status
// that says who has to act.
func TestEveryRefusalThroughEveryEndpoint(t *testing.T) {
	for _, v := range vendors {
		for _, refused := range v.refusals {
			t.Run(fmt.Sprintf("%s %d %.90s", v.protocol, refused.status, refused.body), func(t *testing.T) {
				t.Parallel()
				upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					w.Header().Set("Content-Type", "application/json")
					for name, value := range passedHeaders {
						w.Header().Set(name, value)
					}
					if refused.header[0] != "" {
						w.Header().Set(refused.header[0], refused.header[1])
					}
					w.WriteHeader(refused.status)
					_, _ = io.WriteString(w, refused.body)
				}))
				t.Cleanup(upstream.Close)
				g := newVendorsGateway(t, upstream.URL)
				toVendor := func(_ *clientEndpoint, to *vendor, _ bool) bool { return to == v }
				eachCase(t, toVendor, func(t *testing.T, e *clientEndpoint, to *vendor, _ bool, path, body string) {
					response, got := g.post(t, path, body)
					checkPassed(t, response)
					if e.protocol == v.protocol {
						if response.StatusCode != refused.status || got != refused.body {
							t.Errorf("got %d %s", response.StatusCode, got)
						}
					} else {
						if response.StatusCode != refused.reported {
							t.Errorf("got %d %s, want %d", response.StatusCode, got, refused.reported)
						}
						e.checkRefused(t, got, response.StatusCode)
						e.checkOverflow(t, got, refused.reason)
					}
					if name := refused.header[0]; name != "" && name != "Content-Type" && response.Header.Get(name) != refused.header[1] {
						t.Errorf("%s: got %q", name, response.Header.Get(name))
					}
					entries := g.entries(t, response)
					if last := entries[len(entries)-1]; last.Error == nil || last.Error.Reason != refused.reason || last.Error.ProviderStatus != refused.status {
						t.Errorf("the log says %+v", last.Error)
					}
				})
			})
		}
	}
}

// checkOverflow checks that a request that is too large is reported so in the terms of the endpoint, which clients know.
func (e *clientEndpoint) checkOverflow(t *testing.T, got string, reason continuo.FailureReason) {
	t.Helper()
	want := map[string]string{
		model.ProtocolAnthropic: `"error":{"type":"invalid_request_error","message":"prompt is too long: `, model.ProtocolGemini: `"status":"INVALID_ARGUMENT"`,
	}[e.protocol]
	if want == "" {
		want = `"code":"context_length_exceeded"`
	}
	if found := bytes.Contains([]byte(got), []byte(want)); found != (reason == continuo.ReasonContextOverflow) && (found || reason == continuo.ReasonContextOverflow) && e.protocol != model.ProtocolGemini {
		t.Errorf("got %s, want %s: %v", got, want, reason == continuo.ReasonContextOverflow)
	}
}
