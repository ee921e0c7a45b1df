package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// taskModel is the model of a CLI agent, over the chat protocol: it keeps what it is asked and always gives the same
// advice, or none at all where the request has silentWord.
type taskModel struct {
	url    string
	silent chan struct{} // gets a value when a request is left without an answer
	over   chan struct{} // closed when the test ends

	mu    sync.Mutex
	asked []taskRequest
}

const (
	advice       = "The washer is worn. 12 mm, drawer 4."
	silentMarker = "take your time"
)

// taskRequest is a request to the model.
type taskRequest struct {
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"` // a text, or parts
	} `json:"messages"`
}

// usersText is everything that the request says as the user.
func (r *taskRequest) usersText() string {
	var all strings.Builder
	for _, message := range r.Messages {
		if message.Role != "user" {
			continue
		}
		var text string
		var parts []struct{ Text string }
		if json.Unmarshal(message.Content, &text) != nil {
			_ = json.Unmarshal(message.Content, &parts) // what is neither says nothing
		}
		all.WriteString(text + "\n")
		for _, part := range parts {
			all.WriteString(part.Text + "\n")
		}
	}
	return all.String()
}

func startTaskModel(t *testing.T) *taskModel {
	t.Helper()
	b := &taskModel{silent: make(chan struct{}, 1), over: make(chan struct{})}
	served := httptest.NewServer(b)
	t.Cleanup(func() {
		close(b.over)
		served.Close()
	})
	b.url = served.URL
	return b
}

// requests returns what was asked until now.
func (b *taskModel) requests() []taskRequest {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked)
}

func (b *taskModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request taskRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || r.URL.Path != "/v1/chat/completions" {
		http.Error(w, "this is only a brain", http.StatusNotFound)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body) // only then it is noticed that the agent goes away
	b.mu.Lock()
	b.asked = append(b.asked, request)
	b.mu.Unlock()
	if strings.Contains(request.usersText(), silentMarker) {
		select {
		case b.silent <- struct{}{}:
		default: // the test knows
		}
		select {
		case <-r.Context().Done():
		case <-b.over: // an agent that was not ended is the test's to tell, not to wait for
		}
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, piece := range pieces(advice, 8) {
		_ = writeChunk(w, map[string]any{"content": piece}, nil) // a client that has left does not need it
	}
	stop := "stop"
	_ = writeChunk(w, map[string]any{}, &stop)
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}
