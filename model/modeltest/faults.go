package modeltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// runFaults tests faults that are the same for every upstream: connections, statuses, secrets, limits.
func runFaults(t *testing.T, options Options, text *transcript) {
	t.Run("any model", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeHead(w, text); _, _ = w.Write(text.body) }))
		defer server.Close()
		RunModel(t, options.New(server.URL, key, server.Client()), text.request)
	})
	t.Run("statuses", func(t *testing.T) { statuses(t, options) })
	t.Run("retry after", func(t *testing.T) { retryAfter(t, options) })
	t.Run("secrets", func(t *testing.T) { secrets(t, options) })
	t.Run("redirect", func(t *testing.T) { redirect(t, options) })
	t.Run("unreachable", func(t *testing.T) { unreachable(t, options) })
	t.Run("endless line", func(t *testing.T) { endlessLine(t, options, text) })
	for _, stop := range stops() {
		t.Run(stop.name, func(t *testing.T) { stopped(t, options, text, stop) })
	}
}

func writeHead(w http.ResponseWriter, transcript *transcript) {
	for _, header := range transcript.headers {
		w.Header().Set(header[0], header[1])
	}
	w.WriteHeader(transcript.status)
}

// ask sends a request to an upstream made of one handler and returns the failure.
func ask(t *testing.T, options Options, handler http.HandlerFunc) *model.Error {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	client := newCountingClient(server.Client().Transport)
	got, err := listen(t.Context(), options.New(server.URL, key, client.Client), []byte(`{}`))
	if err != nil {
		t.Errorf("contract: %v", err)
	}
	if got.err == nil {
		t.Fatalf("no error; received\n%s", got.deltasText())
	}
	client.check(t)
	return model.AsError(got.err)
}

func statuses(t *testing.T, options Options) {
	for _, test := range []struct {
		status    int
		reason    continuo.FailureReason
		retryable bool
	}{
		{400, continuo.ReasonUpstream, false},
		{401, continuo.ReasonUpstream, false},
		{402, continuo.ReasonUpstream, false},
		{403, continuo.ReasonUpstream, false},
		{404, continuo.ReasonUpstream, false},
		{408, continuo.ReasonTimeout, true},
		{409, continuo.ReasonUpstream, true},
		{413, continuo.ReasonContextOverflow, false},
		{422, continuo.ReasonUpstream, false},
		{429, continuo.ReasonRateLimit, true},
		{500, continuo.ReasonUpstream, true},
		{502, continuo.ReasonUpstream, true},
		{503, continuo.ReasonUpstream, true},
		{504, continuo.ReasonTimeout, true},
		{529, continuo.ReasonUpstream, true},
	} {
		for _, body := range []string{
			`{"error":{"message":"it went wrong","type":"some_error","code":null}}`, `{"type":"error","error":{"type":"some_error","message":"it went wrong"}}`,
			`{"error":"it went wrong"}`, `{"object":"error","message":"it went wrong","code":1}`, `{"detail":"it went wrong"}`,
			`{"detail":[{"loc":["body"],"msg":"it went wrong"}]}`, `{"errors":[{"code":1,"message":"it went wrong"}]}`,
			`[{"error":{"code":3,"message":"it went wrong","status":"SOME"}}]`, "<html><h1>it went wrong</h1></html>",
			"<!DOCTYPE html>\n<html><head><title>Error</title><style>a{}</style></head><body><p>it went wrong</p></body></html>",
		} {
			failure := ask(t, options, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(test.status); fmt.Fprint(w, body) })
			if failure.Reason != test.reason || failure.Retryable != test.retryable || failure.Status != test.status || !strings.Contains(failure.Message, "it went wrong") {
				t.Errorf("%d %s: got %+v", test.status, body, failure)
			}
			if strings.Contains(failure.Message, "<") {
				t.Errorf("%d %s: got markup: %s", test.status, body, failure.Message)
			}
		}
	}
}

func retryAfter(t *testing.T, options Options) {
	for _, test := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After-Ms", "1250", 1250 * time.Millisecond},
		{"Retry-After", "Sat, 21 Nov 2026 10:00:30 GMT", 30 * time.Second},
		{"Retry-After", "Sat, 21 Nov 2026 09:00:00 GMT", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After", "-3", 0},
		{"X-Ratelimit-Reset-Requests", "1m3s", 63 * time.Second},
		{"X-Ratelimit-Reset-Tokens", "250ms", 0}, // some remain
	} {
		failure := ask(t, options, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", "Sat, 21 Nov 2026 10:00:00 GMT")
			w.Header().Set("X-Ratelimit-Remaining-Requests", "0")
			w.Header().Set("X-Ratelimit-Remaining-Tokens", "17")
			w.Header().Set(test.name, test.value)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		if failure.RetryAfter != test.want {
			t.Errorf("%s: %s: got %v, want %v", test.name, test.value, failure.RetryAfter, test.want)
		}
	}
	failure := ask(t, options, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Should-Retry", "false")
		w.WriteHeader(http.StatusInternalServerError)
	})
	if failure.Retryable {
		t.Error("x-should-retry: false was not obeyed")
	}
}

// secrets: the key does not appear in the error, neither if the upstream repeats the request's headers nor if
// a message is cut inside the key.
func secrets(t *testing.T, options Options) {
	for _, padding := range []int{0, 190, 1990} {
		for _, status := range []int{http.StatusOK, http.StatusUnauthorized} {
			failure := ask(t, options, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.WriteHeader(status)
				_ = r.Header.Write(w)
				fmt.Fprintf(w, "data: %s%s%s\n\n", strings.Repeat("x", padding), r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"))
			})
			if text := failure.Error(); strings.Contains(text, key[:12]) {
				t.Errorf("status %d: the key is in %q", status, text)
			}
		}
	}
}

func redirect(t *testing.T, options Options) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer other.Close()
	failure := ask(t, options, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if failure.Status != http.StatusTemporaryRedirect || failure.Retryable || !strings.Contains(failure.Message, other.URL) {
		t.Errorf("got %+v", failure)
	}
}

func unreachable(t *testing.T, options Options) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	got, err := listen(t.Context(), options.New(server.URL, key, &http.Client{}), []byte(`{}`))
	if err != nil || got.err == nil {
		t.Fatalf("got %v, contract %v", got.err, err)
	}
	if failure := model.AsError(got.err); failure.Reason != continuo.ReasonNetwork || !failure.Retryable {
		t.Errorf("got %+v", failure)
	}
}

// endlessLine: the client gives up on an upstream that never ends a line.
func endlessLine(t *testing.T, options Options, text *transcript) {
	failure := ask(t, options, func(w http.ResponseWriter, _ *http.Request) {
		writeHead(w, text)
		_, _ = w.Write([]byte("data: "))
		chunk := []byte(strings.Repeat("x", 1<<20))
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	if failure.Reason != continuo.ReasonUpstream || failure.Retryable {
		t.Errorf("got %+v", failure)
	}
}

// stop is a way in which a consumer ends a stream early.
type stop struct {
	name string
	act  func(cancel context.CancelCauseFunc) (proceed bool)
	want continuo.FailureReason
}

func stops() []stop {
	return []stop{
		{"consumer stops in the middle", func(context.CancelCauseFunc) bool { return false }, ""},
		{"cancelled in the middle", func(cancel context.CancelCauseFunc) bool { cancel(nil); return true }, continuo.ReasonCancelled},
		{"out of time in the middle", func(cancel context.CancelCauseFunc) bool { cancel(context.DeadlineExceeded); return true }, continuo.ReasonTimeout},
	}
}

// stopped: when the consumer stops, the upstream notices, and nothing stays open. The upstream sends about
// half of its answer and then waits for the end of the request; the test hangs if it does not come.
func stopped(t *testing.T, options Options, text *transcript, how stop) {
	half := firstHalf(t, options, text)
	left := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server watch the connection
		writeHead(w, text)
		_, _ = w.Write(half)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(left)
	}))
	defer server.Close()
	client := newCountingClient(server.Client().Transport)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	for delta, err := range options.New(server.URL, key, client.Client).Stream(ctx, text.request) {
		last = err
		if delta.Text != "" && !how.act(cancel) {
			break
		}
	}
	<-left
	client.check(t)
	var failure *model.Error
	if errors.As(last, &failure); how.want == "" && last != nil || how.want != "" && (failure == nil || failure.Reason != how.want) {
		t.Errorf("got %v, want the reason %q", last, how.want)
	}
}

// firstHalf returns about half of an answer's bytes, with some text in any case.
func firstHalf(t *testing.T, options Options, text *transcript) []byte {
	t.Helper()
	for at := len(text.body) / 2; at < len(text.body); at++ {
		half := text.body[:at]
		got := play(t, options, text, func() io.Reader { return io.MultiReader(bytes.NewReader(half), iotest.ErrReader(io.ErrUnexpectedEOF)) })
		if got.answer.Entry(got.err).Content.String() != "" {
			return half
		}
	}
	t.Fatal("text.txtar has no text")
	return nil
}
