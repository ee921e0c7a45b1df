package object

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// pacedBody yields one byte after each pause.
type pacedBody struct {
	ctx    context.Context
	pauses []time.Duration
}

func (b *pacedBody) Read(p []byte) (int, error) {
	if len(b.pauses) == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(b.pauses[0]):
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
	b.pauses = b.pauses[1:]
	p[0] = 'x'
	return 1, nil
}

func (b *pacedBody) Close() error { return nil }

// service reads requests with pauses, and answers with others.
type service struct{ reads, answers []time.Duration }

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	for _, pause := range s.reads {
		select {
		case <-time.After(pause):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		if _, err := r.Body.Read(make([]byte, 1)); err != nil && err != io.EOF {
			return nil, err
		}
	}
	return &http.Response{StatusCode: http.StatusOK, Body: &pacedBody{r.Context(), s.answers}}, nil
}

// TestOnlyIdleRequestsEnd gives ten seconds to each byte, and any time to all of them.
func TestOnlyIdleRequestsEnd(t *testing.T) {
	nine, eleven := 9*time.Second, 11*time.Second
	for name, test := range map[string]struct {
		service    service
		asks, gets bool // whether the request and the answer end well
	}{
		"a long request":           {service{reads: []time.Duration{nine, nine, nine, nine}}, true, true},
		"a long answer":            {service{answers: []time.Duration{nine, nine, nine, nine}}, true, true},
		"a request that stops":     {service{reads: []time.Duration{nine, nine, eleven}}, false, false},
		"an answer that stops":     {service{answers: []time.Duration{nine, nine, eleven}}, true, false},
		"an answer that never was": {service{reads: []time.Duration{eleven}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &idleTransport{next: &test.service, limit: 10 * time.Second}
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://service/", bytes.NewReader([]byte("12345")))
				if err != nil {
					t.Fatal(err)
				}
				response, err := transport.RoundTrip(request)
				if (err == nil) != test.asks {
					t.Fatalf("the request: %v", err)
				}
				if err == nil {
					_, err = io.ReadAll(response.Body)
					_ = response.Body.Close()
				}
				var timeout interface{ Timeout() bool }
				if (err == nil) != test.gets || err != nil && (!errors.Is(err, continuo.ErrUnavailable) || !errors.As(err, &timeout) || !timeout.Timeout()) {
					t.Errorf("the answer: %v", err)
				}
			})
		})
	}
}

// TestAReaderMayTakeItsTime reads each byte of an answer long after the one before.
func TestAReaderMayTakeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := []time.Duration{time.Second, time.Second, time.Second}
		transport := &idleTransport{next: &service{answers: second}, limit: 10 * time.Second}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://service/", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for {
			time.Sleep(time.Hour) // in the bubble
			n, err := io.CopyN(&got, response.Body, 1)
			if n == 0 {
				if err != io.EOF {
					t.Error(err)
				}
				break
			}
		}
		if err := response.Body.Close(); err != nil || got.String() != "xxx" {
			t.Errorf("%q (%v)", got.String(), err)
		}
	})
}
