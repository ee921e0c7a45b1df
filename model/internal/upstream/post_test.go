package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// transport answers requests by a function.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

func client(answer transport) *Model {
	return New(model.ClientOptions{
		BaseURL: "http://upstream.invalid/v1/?api-version=7", HTTPClient: &http.Client{Transport: answer}, APIKey: "secret-key",
		Headers: map[string]string{"x-version": "version-2", "Accept": "special/type"},
	}, Protocol{
		Path: "chat/completions", Key: Bearer, Headers: map[string]string{"X-Version": "1", "X-Standing": "1"},
	})
}

// pipe is an answer whose bytes the test writes, and which ends when the request does.
func pipe() (transport, *io.PipeWriter) {
	in, out := io.Pipe()
	return func(request *http.Request) (*http.Response, error) {
		context.AfterFunc(request.Context(), func() { _ = in.CloseWithError(request.Context().Err()) })
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: in}, nil
	}, out
}

func reason(err error) continuo.FailureReason {
	if err == nil {
		return ""
	}
	return model.AsError(err).Reason
}

func TestPostSendsTheRequest(t *testing.T) {
	var sent *http.Request
	response, err := client(func(request *http.Request) (*http.Response, error) {
		sent = request
		return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
	}).Post(t.Context(), []byte(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	response.Close()
	response.Close() // as often as one likes
	if got := sent.URL.String(); got != "http://upstream.invalid/v1/chat/completions?api-version=7" {
		t.Errorf("posted to %s", got)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer secret-key", "X-Version": "version-2", "X-Standing": "1", "Accept": "special/type", "Content-Type": "application/json",
	} {
		if got := sent.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if body, _ := io.ReadAll(sent.Body); string(body) != `{"a":1}` {
		t.Errorf("sent %s", body)
	}
}

func TestPostWithoutARequest(t *testing.T) {
	never := func(*http.Request) (*http.Response, error) {
		t.Error("a request was made")
		return nil, errors.New("no")
	}
	for _, base := range []string{"", "localhost:11434/v1", "ftp://x/v1", "http:///v1", "http://[::1/v1", "/v1"} {
		c := client(never)
		c.options.BaseURL = base
		if _, err := c.Post(t.Context(), nil); reason(err) != continuo.ReasonUpstream || model.AsError(err).Retryable {
			t.Errorf("%q: got %v", base, err)
		}
	}
	c := client(never)
	c.options.APIKeyFunc = func(context.Context) (string, error) { return "", errors.New("the vault is closed") }
	if _, err := c.Post(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "the vault is closed") {
		t.Errorf("got %v", err)
	}
}

// The address may hold a key in its query: it stays out of errors, as do the values of headers.
func TestPostKeepsSecrets(t *testing.T) {
	_, err := client(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("proxy says: secret-key and version-2 are wrong")
	}).Post(t.Context(), nil)
	for _, secret := range []string{"secret-key", "version-2", "api-version"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s is in %v", secret, err)
		}
	}
	if reason(err) != continuo.ReasonNetwork || !strings.Contains(err.Error(), "upstream.invalid: proxy says: [redacted]") {
		t.Errorf("got %v", err)
	}
}

func TestIdleBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(func(request *http.Request) (*http.Response, error) {
			<-request.Context().Done()
			return nil, request.Context().Err()
		})
		begin := time.Now()
		_, err := c.Post(t.Context(), nil)
		if reason(err) != continuo.ReasonTimeout || time.Since(begin) != DefaultIdleTimeout || !model.AsError(err).Retryable {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	})
}

// A request that could not be sent says why in plain words.
func TestUnreachable(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	unknown := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "upstream.invalid", Server: "127.0.0.1:53", IsNotFound: true}}
	for cause, want := range map[error]string{
		refused:             "post the request: upstream.invalid: connection refused",
		unknown:             "post the request: upstream.invalid: no address is known for this host",
		io.ErrUnexpectedEOF: "post the request: upstream.invalid: the connection ended before the answer did",
	} {
		_, err := client(func(*http.Request) (*http.Response, error) { return nil, cause }).Post(t.Context(), nil)
		if failed := model.AsError(err); failed.Message != want || failed.Reason != continuo.ReasonNetwork || !failed.Retryable {
			t.Errorf("%v: got %+v", cause, failed)
		}
	}
}

// The connect limit ends with the connection; what comes after is the idle limit's.
func TestConnectTimeout(t *testing.T) {
	for connects, want := range map[bool]string{
		false: "post the request: upstream.invalid gave no connection within 10s, the connect limit",
		true:  "post the request: upstream.invalid sent nothing for 1m0s, the idle limit",
	} {
		synctest.Test(t, func(t *testing.T) {
			c := client(func(request *http.Request) (*http.Response, error) {
				if connects {
					httptrace.ContextClientTrace(request.Context()).GotConn(httptrace.GotConnInfo{})
				}
				<-request.Context().Done()
				return nil, request.Context().Err()
			})
			c.options.ConnectTimeout, c.options.IdleTimeout = 10*time.Second, time.Minute
			_, err := c.Post(t.Context(), nil)
			if failed := model.AsError(err); failed.Message != want || failed.Reason != continuo.ReasonTimeout || !failed.Retryable {
				t.Errorf("got %+v", failed)
			}
		})
	}
}

// Every byte, a comment's too, gives the upstream new time; the time that the consumer takes is its own.
func TestIdleInTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, out := pipe()
		c := client(answer)
		c.options.IdleTimeout = time.Minute
		response, err := c.Post(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Close()
		events := response.Events()
		go func() {
			for range 3 {
				time.Sleep(50 * time.Second)
				_, _ = out.Write([]byte(": still there\n\n"))
			}
			_, _ = out.Write([]byte("data: a\n\n"))
		}()
		if event, err := events.Next(); err != nil || string(event.Data) != "a" {
			t.Fatalf("got %q, %v", event.Data, err)
		}
		time.Sleep(time.Hour) // the consumer thinks
		begin := time.Now()
		_, err = events.Next()
		if failure := model.AsError(response.ReadFailed(err)); failure.Reason != continuo.ReasonTimeout || time.Since(begin) != time.Minute {
			t.Errorf("after %v: %v", time.Since(begin), failure)
		}
	})
}

// An upstream that does not close the connection after its answer holds nobody up for long.
func TestDrainIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, _ := pipe()
		response, err := client(answer).Post(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		response.Drain()
		response.Close()
		if took := time.Since(begin); took != drainTime {
			t.Errorf("took %v", took)
		}
	})
}

func TestJSONIsBounded(t *testing.T) {
	response, err := client(func(*http.Request) (*http.Response, error) {
		endless := io.NopCloser(io.MultiReader(strings.NewReader(`{"a":"`), zeros{}))
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: endless}, nil
	}).Post(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Close()
	var value any
	if _, err := response.JSON(&value); reason(err) != continuo.ReasonUpstream || model.AsError(err).Retryable {
		t.Errorf("got %v", err)
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestShorten(t *testing.T) {
	for _, test := range [][2]string{
		{"short", "short"}, {" a \n\t b ", "a b"}, {"12345678żż", "12345678ż"}, {"1234567żżż", "1234567ż"}, {"a\xffb", "a\uFFFDb"}, {"", ""},
	} {
		if got := shorten(test[0], 10); got != test[1] {
			t.Errorf("%q: got %q, want %q", test[0], got, test[1])
		}
	}
}

// TestARefusedKeyIsNamed: where it comes from, never the key. A client's own credentials are not those of the settings.
func TestARefusedKeyIsNamed(t *testing.T) {
	const note = "the key in SOME_KEY was sent"
	for name, test := range map[string]struct {
		status   int
		note     string
		ctx      func(context.Context) context.Context
		contains string
	}{
		"401":              {401, note, nil, "no such account (" + note + ")"},
		"403":              {403, note, nil, "no such account (" + note + ")"},
		"another status":   {404, note, nil, ""},
		"without a note":   {401, "", nil, ""},
		"the client's own": {401, note, keepsKey, "no such account (with the client's own credentials)"},
		"forwarded by us":  {401, note, forwards, "no such account (" + note + ")"},
	} {
		m := client(func(*http.Request) (*http.Response, error) {
			body := io.NopCloser(strings.NewReader(`{"error":{"message":"no such account"}}`))
			return &http.Response{StatusCode: test.status, Body: body}, nil
		})
		m.options.KeyNote = test.note
		ctx := t.Context()
		if test.ctx != nil {
			ctx = test.ctx(ctx)
		}
		_, err := m.Post(ctx, []byte(`{}`))
		message := model.AsError(err).Message
		if test.contains == "" && strings.Contains(message, "(") || !strings.Contains(message, test.contains) || strings.Contains(message, "secret-key") {
			t.Errorf("%s: %s", name, message)
		}
	}
}

func keepsKey(ctx context.Context) context.Context {
	return model.WithClientHeaders(ctx, &model.ClientHeaders{KeepsKey: true})
}

func forwards(ctx context.Context) context.Context {
	return model.WithForwarding(ctx, &model.Forwarding{})
}
