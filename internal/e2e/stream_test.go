package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/continuo-log/continuo/internal/sse"
)

// metronome is an upstream of a fixed pace. Each of its tokens is the time at which it was written, so
// that a reader in this process knows how long it was under way.
type metronome struct {
	tokens int
	pace   time.Duration // between two tokens; 0 writes them as fast as the connection takes them
}

// epoch is where the tokens count from, in nanoseconds of the monotonic clock.
var epoch = time.Now()

func (m metronome) start(t testing.TB) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	return server
}

func (m metronome) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		return // ready
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	var beat <-chan time.Time
	if m.pace > 0 {
		ticker := time.NewTicker(m.pace)
		defer ticker.Stop()
		beat = ticker.C
	}
	for token := range m.tokens {
		if token > 0 && beat != nil {
			select {
			case <-beat:
			case <-r.Context().Done():
				return
			}
		}
		_, err := fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"%d "},"finish_reason":null}]}`+"\n\n", time.Since(epoch))
		if err := errors.Join(err, control.Flush()); err != nil {
			return
		}
	}
	_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
}

// arrival is a token that was read.
type arrival struct {
	sent, delay time.Duration // sent counts from epoch
}

// listener reads streams of a metronome's tokens, from itself or through something else.
type listener struct {
	url, body string
	// bodyOf makes the body of each request; nil: it is body.
	bodyOf func() string
	// conversation is the conversation that requests name; "" for none.
	conversation string
	// text is what an event adds to the answer.
	text func(event sse.Event) (string, error)
}

// bare listens to an upstream, or to a proxy before it.
func bare(url string) listener {
	return listener{
		url: url + "/v1/chat/completions", body: `{"model":"m","stream":true,"messages":[{"role":"user","content":"go"}]}`,
		text: func(event sse.Event) (string, error) {
			var data struct {
				Choices []struct {
					Delta struct {
						Content string `json:"content"`
					} `json:"delta"`
				} `json:"choices"`
			}
			if string(event.Data) == "[DONE]" {
				return "", nil
			}
			if err := json.Unmarshal(event.Data, &data); err != nil || len(data.Choices) == 0 {
				return "", fmt.Errorf("%s: %w", event.Data, err)
			}
			return data.Choices[0].Delta.Content, nil
		},
	}
}

// through listens to turns of the server with a model, each of a conversation of its own.
func through(url, model string) listener {
	return throughBody(url, fmt.Sprintf(`{"message":"go","model":%q,"stream":true}`, model))
}

// throughSession listens to turns of one conversation.
func throughSession(url, model, session string) listener {
	return throughBody(url, fmt.Sprintf(`{"message":"go","model":%q,"session_id":%q,"stream":true}`, model, session))
}

func throughBody(url, body string) listener {
	return listener{
		url: url + "/chat", body: body,
		text: func(event sse.Event) (string, error) {
			var data struct {
				Text string `json:"text"`
			}
			switch event.Type {
			case "error":
				return "", fmt.Errorf("the turn failed: %s", event.Data)
			case "delta":
				return data.Text, json.Unmarshal(event.Data, &data)
			}
			return "", nil
		},
	}
}

// listen runs one stream to its end. first, if it is not nil, is called at the first token.
func (l listener) listen(ctx context.Context, client *http.Client, first func()) (begin time.Duration, arrivals []arrival, err error) {
	if l.bodyOf != nil {
		l.body = l.bodyOf()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader([]byte(l.body)))
	if err != nil {
		return 0, nil, err
	}
	if l.conversation != "" {
		request.Header.Set("X-Conversation-ID", l.conversation)
	}
	request.Header.Set("Content-Type", "application/json")
	begin = time.Since(epoch)
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, nil, fmt.Errorf("%s answered %s", l.url, response.Status)
	}
	rest := ""
	for events := sse.NewReader(response.Body, 0); ; {
		event, err := events.Next()
		if errors.Is(err, io.EOF) {
			return begin, arrivals, nil
		}
		if err != nil {
			return 0, nil, err
		}
		text, err := l.text(event)
		if err != nil {
			return 0, nil, err
		}
		now := time.Since(epoch)
		for rest += text; ; { // an event may hold a part of a token, or several
			token, after, whole := strings.Cut(rest, " ")
			if !whole {
				break
			}
			rest = after
			sent, err := strconv.ParseInt(token, 10, 64)
			if err != nil {
				return 0, nil, err
			}
			arrivals = append(arrivals, arrival{sent: time.Duration(sent), delay: now - time.Duration(sent)})
			if len(arrivals) == 1 && first != nil {
				first()
			}
		}
	}
}

// quantile sorts values and returns the one at a share of them.
func quantile(values []time.Duration, share float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[int(share*float64(len(values)-1))]
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
