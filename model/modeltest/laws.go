package modeltest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// replay plays a transcript over a real connection and compares the result with it, or updates it. It reports
// whether the transcript was changed.
func replay(t *testing.T, options Options, transcript *transcript) (changed bool) {
	received := make(chan string, 1)
	server := transcript.serve(received)
	defer server.Close()
	client := newCountingClient(server.Client().Transport)
	got, err := listen(t.Context(), options.New(server.URL, key, client.Client), transcript.request)
	if err != nil {
		t.Errorf("contract: %v", err)
	}
	if wrong := <-received; wrong != "" {
		t.Error(wrong)
	}
	client.check(t)
	host, _ := url.Parse(server.URL)
	for _, section := range []section{{"deltas", got.deltasText()}, {"answer", got.answerText(host.Host)}} {
		if want := transcript.archive.get(section.name); !bytes.Equal(section.data, want) {
			changed = true
			if !options.Update {
				t.Errorf("%s: got\n%s\nwant\n%s", section.name, section.data, want)
			}
		}
		transcript.archive.set(section.name, section.data)
	}
	return changed
}

// canned answers every request with a transcript's head and the given body.
type canned struct {
	transcript *transcript
	body       func() io.Reader
}

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	header := http.Header{}
	for _, pair := range c.transcript.headers {
		header.Set(pair[0], pair[1])
	}
	return &http.Response{StatusCode: c.transcript.status, Header: header, Body: io.NopCloser(c.body())}, nil
}

// play lets a model answer from canned bytes.
func play(t *testing.T, options Options, transcript *transcript, body func() io.Reader) *streamed {
	t.Helper()
	client := newCountingClient(canned{transcript, body})
	got, err := listen(t.Context(), options.New("http://upstream.invalid", key, client.Client), transcript.request)
	if err != nil {
		t.Errorf("contract: %v", err)
	}
	client.check(t)
	return got
}

// splitAnywhere: the result does not depend on how the bytes are split.
func splitAnywhere(t *testing.T, options Options, transcript *transcript) {
	whole := play(t, options, transcript, func() io.Reader { return bytes.NewReader(transcript.body) })
	for name, split := range map[string]func(io.Reader) io.Reader{
		"bytes": iotest.OneByteReader, "halves": iotest.HalfReader, "data with EOF": iotest.DataErrReader,
	} {
		got := play(t, options, transcript, func() io.Reader { return split(bytes.NewReader(transcript.body)) })
		if a, b := string(got.deltasText())+string(got.answerText("")), string(whole.deltasText())+string(whole.answerText("")); a != b {
			t.Errorf("split into %s: got\n%s\nwant\n%s", name, a, b)
		}
	}
}

// forwardedAnswer: the bytes of the answer to a forwarded request are those of the upstream, up to its last event, without what
// comes after the end, and the rest of the deltas is the same.
func forwardedAnswer(t *testing.T, options Options, transcript *transcript) {
	status := 0
	client := newCountingClient(canned{transcript, func() io.Reader { return iotest.HalfReader(bytes.NewReader(transcript.body)) }})
	ctx := model.WithForwarding(t.Context(), &model.Forwarding{Answered: func(answered int, _ http.Header, refusal []byte) {
		status = answered
		if refusal != nil && !bytes.HasPrefix(transcript.body, refusal) {
			t.Errorf("the refusal is %q, want %q", refusal, transcript.body)
		}
	}})
	m := options.New("http://upstream.invalid", key, client.Client)
	if !m.Info().Forwards {
		t.Error("the model does not say that it forwards requests")
	}
	var wire strings.Builder
	plain := &streamed{}
	for delta, err := range m.Stream(ctx, transcript.request) {
		wire.WriteString(delta.Wire)
		delta.Wire = ""
		if err != nil {
			plain.err = err
		} else if delta.Visible() || delta.Finish != "" || delta.Usage != nil || delta.Vendor != nil || delta.Item != nil || delta.Model != "" || delta.Signature != "" {
			plain.deltas = append(plain.deltas, delta)
		}
	}
	whole := play(t, options, transcript, func() io.Reader { return bytes.NewReader(transcript.body) })
	if got, want := string(plain.deltasText()), string(whole.deltasText()); got != want {
		t.Errorf("forwarded: got\n%s\nwant\n%s", got, want)
	}
	if status != transcript.status {
		t.Errorf("the status is %d, want %d", status, transcript.status)
	}
	switch sent := wire.String(); {
	case !strings.HasPrefix(string(transcript.body), sent):
		t.Errorf("forwarded %q of %q", sent, transcript.body)
	case whole.err == nil && !isWhole(sent, strings.TrimSpace(string(transcript.body[len(sent):]))):
		t.Errorf("the end of the answer was not forwarded: %q", transcript.body[len(sent):])
	}
}

// isWhole reports whether an answer was sent up to its end: what is left comes after the end.
func isWhole(sent, left string) bool {
	ended := strings.Contains(sent, "event: response.completed") && !strings.HasPrefix(left, "data: [DONE]")
	return left == "" || ended || strings.Contains(sent, "[DONE]")
}

// maxCuts bounds at how many positions one transcript is cut. With CONTINUO_LONG it is cut after every byte.
const maxCuts = 120

// cutAnywhere: a part of an answer is never reported as the whole, whether or not the connection ends
// cleanly.
func cutAnywhere(t *testing.T, options Options, transcript *transcript) {
	whole := play(t, options, transcript, func() io.Reader { return bytes.NewReader(transcript.body) })
	if whole.err != nil {
		return
	}
	full := whole.answer.Entry(nil)
	step := 1 + len(transcript.body)/maxCuts
	if os.Getenv("CONTINUO_LONG") != "" {
		step = 1
	}
	for at := 0; at < len(transcript.body); at += step {
		part := transcript.body[:at]
		ends := map[string]io.Reader{
			"closed": bytes.NewReader(part),
			"broken": io.MultiReader(bytes.NewReader(part), iotest.ErrReader(io.ErrUnexpectedEOF)),
		}
		for name, body := range ends {
			got := play(t, options, transcript, func() io.Reader { return body })
			entry := got.answer.Entry(got.err)
			switch {
			case got.err == nil && !sameAnswer(&entry, &full):
				t.Fatalf("%s after %d bytes, a part passed for the whole:\n%s", name, at, got.answerText(""))
			case got.err != nil && model.AsError(got.err).Reason != continuo.ReasonNetwork:
				t.Fatalf("%s after %d bytes: got %v, want the reason network", name, at, got.err)
			case !strings.HasPrefix(full.Content.String(), entry.Content.String()):
				t.Fatalf("%s after %d bytes: %q is no beginning of the answer", name, at, entry.Content)
			}
		}
	}
}

// sameAnswer compares the content of two entries; usage and similar data may be missing from a stream that
// lost its last bytes.
func sameAnswer(a, b *continuo.Entry) bool {
	same := a.Content.String() == b.Content.String() && len(a.ToolCalls) == len(b.ToolCalls) && (a.Reasoning == nil) == (b.Reasoning == nil)
	for i := range a.ToolCalls {
		same = same && a.ToolCalls[i].Arguments == b.ToolCalls[i].Arguments && a.ToolCalls[i].ID == b.ToolCalls[i].ID
	}
	return same && (a.Reasoning == nil || *a.Reasoning == *b.Reasoning)
}

// RunModel runs the tests that apply to any model: body must be a request that the model answers
// successfully, in at least two deltas.
func RunModel(t *testing.T, m model.Model, body []byte) {
	t.Run("whole", func(t *testing.T) {
		for range 2 {
			got, err := listen(t.Context(), m, body)
			if err != nil || got.err != nil || len(got.deltas) < 2 {
				t.Errorf("got %d deltas, %v, contract %v", len(got.deltas), got.err, err)
			}
		}
	})
	t.Run("side by side", func(t *testing.T) {
		results := make(chan error)
		for range 4 {
			go func() {
				got, err := listen(t.Context(), m, body)
				results <- errors.Join(got.err, err)
			}()
		}
		for range 4 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("consumer stops", func(t *testing.T) {
		for delta, err := range m.Stream(t.Context(), body) {
			if err != nil {
				t.Errorf("got %v, %v", delta, err)
			}
			break
		}
	})
	t.Run("cancelled before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		got, err := listen(ctx, m, body)
		if err != nil || model.AsError(got.err).Reason != continuo.ReasonCancelled || !errors.Is(got.err, context.Canceled) || len(got.deltas) > 0 {
			t.Errorf("got %d deltas, %v, contract %v", len(got.deltas), got.err, err)
		}
	})
	t.Run("out of time before", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(context.DeadlineExceeded)
		got, err := listen(ctx, m, body)
		if err != nil || model.AsError(got.err).Reason != continuo.ReasonTimeout || !errors.Is(got.err, context.DeadlineExceeded) {
			t.Errorf("got %v, contract %v", got.err, err)
		}
	})
}
