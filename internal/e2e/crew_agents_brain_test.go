//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// agentModels are the models of the CLI agents of a crew, over the chat protocol and Gemini's: each answers once to each
// message of a person, and else has nothing to add. What agents ask besides, such as for titles, is answered with
// nothing of use.
type agentModels struct {
	url string

	mu       sync.Mutex
	answered map[string]bool
	prompts  []agentRequest
}

// agentRequest is what an agent sent to its model for a role's turn.
type agentRequest struct {
	agent    string
	before   string // all that was said by the user before, without original requests
	prompt   string // what the user said last, likewise
	original string // the original request in it; "" for none
}

func startAgentModels(t *testing.T) *agentModels {
	t.Helper()
	m := &agentModels{answered: map[string]bool{}}
	served := httptest.NewServer(m)
	t.Cleanup(served.Close)
	m.url = served.URL
	return m
}

// requests returns what an agent has sent until now.
func (m *agentModels) requests(agent string) (found []agentRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, request := range m.prompts {
		if request.agent == agent {
			found = append(found, request)
		}
	}
	return found
}

// geminiRequest is a request as Gemini's models get it.
type geminiRequest struct {
	Contents []struct {
		Role  string
		Parts []struct{ Text string }
	}
}

func (m *agentModels) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the agent was killed while it asked
	}
	if r.URL.Path == "/v1/chat/completions" {
		m.serveChat(w, body)
		return
	}
	m.serveGemini(w, r, body)
}

func (m *agentModels) serveChat(w http.ResponseWriter, body []byte) {
	var request taskRequest
	if err := json.Unmarshal(body, &request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var said []string
	for i := range request.Messages {
		if request.Messages[i].Role == "user" {
			one := taskRequest{Messages: request.Messages[i : i+1]}
			said = append(said, one.usersText())
		}
	}
	answer := m.answer("qwen", said)
	w.Header().Set("Content-Type", "text/event-stream")
	for _, piece := range pieces(answer, 8) {
		_ = writeChunk(w, map[string]any{"content": piece}, nil) // a client that has left does not need it
	}
	stop := "stop"
	_ = writeChunk(w, map[string]any{}, &stop)
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func (m *agentModels) serveGemini(w http.ResponseWriter, r *http.Request, body []byte) {
	var request geminiRequest
	if err := json.Unmarshal(body, &request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var said []string
	for _, content := range request.Contents {
		text := ""
		for _, part := range content.Parts {
			text += part.Text + "\n"
		}
		if content.Role == "user" {
			said = append(said, text)
		}
	}
	part := func(text string) []byte {
		data, _ := json.Marshal(map[string]any{
			"candidates":    []any{map[string]any{"content": map[string]any{"role": "model", "parts": []any{map[string]string{"text": text}}}, "finishReason": "STOP", "index": 0}},
			"usageMetadata": map[string]int{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}, "modelVersion": "gemini-2.5-flash",
		})
		return data
	}
	switch {
	case strings.HasSuffix(r.URL.Path, ":countTokens"):
		_, _ = io.WriteString(w, `{"totalTokens": 10}`)
	case strings.HasSuffix(r.URL.Path, ":generateContent"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(part("{}"))
	case strings.HasSuffix(r.URL.Path, ":streamGenerateContent"):
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: %s\n\n", part(m.answer("gemini", said)))
	default:
		http.Error(w, "this is only a mind", http.StatusNotFound)
	}
}

// originalRequest finds what each prompt repeats, so that it is never out of sight: the original request, and the
// current one.
var originalRequest = regexp.MustCompile(`(?s)\[(?:ORIGINAL|CURRENT) REQUEST\]\n(.*?)\n\[END REQUEST\]\n?`)

var crewMessage = regexp.MustCompile(`User: (Message \d+)`)

// answer is what the model of an agent says to what the user said, message by message.
func (m *agentModels) answer(agent string, said []string) string {
	if len(said) == 0 {
		return "{}"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	last := said[len(said)-1]
	if !strings.Contains(last, "User: ") && !strings.Contains(last, "Assistant (") {
		return "{}"
	}
	request := agentRequest{agent: agent, prompt: originalRequest.ReplaceAllString(last, "")}
	if found := originalRequest.FindStringSubmatch(last); found != nil {
		request.original = found[1]
	}
	request.before = originalRequest.ReplaceAllString(strings.Join(said[:len(said)-1], "\n"), "")
	m.prompts = append(m.prompts, request)
	answer := "....."
	for _, found := range crewMessage.FindAllStringSubmatch(request.prompt, -1) {
		if one := agent + found[1]; !m.answered[one] {
			m.answered[one] = true
			answer = agent + " heard " + found[1] + "."
		}
	}
	return answer
}
