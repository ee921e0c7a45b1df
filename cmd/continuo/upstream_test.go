package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// newUpstream starts a server that speaks chat completions. What it answers depends on the newest message:
// "fail" is an error, "tool" asks for fs.read, "half" begins an answer and says nothing more; anything
// else is echoed. It takes only the key "secret-key".
func newUpstream(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		if checkKey(w, r) {
			_, _ = w.Write([]byte(`{"object":"list","data":[]}`))
		}
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		if !checkKey(w, r) {
			return
		}
		var body struct {
			Model    string
			Messages []struct {
				Role    string `json:"role"`
				Content string `json:"content"`
			} `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) == 0 {
			http.Error(w, `{"error":{"message":"bad body"}}`, http.StatusBadRequest)
			return
		}
		newest := body.Messages[len(body.Messages)-1]
		if body.Model == "strict" && len(body.Messages) > 1 && body.Messages[1].Role == "system" {
			http.Error(w, `{"error":{"message":"Conversation roles must alternate user/assistant/user/assistant/..."}}`, http.StatusInternalServerError)
			return
		}
		answerUpstream(w, r, newest.Role, newest.Content)
	})
	mux.HandleFunc("POST /v1/embeddings", func(w http.ResponseWriter, r *http.Request) {
		if checkKey(w, r) {
			_, _ = io.WriteString(w, `{"data":[{"index":0,"embedding":[1]}]}`)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func checkKey(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("Authorization") == "Bearer secret-key" {
		return true
	}
	http.Error(w, `{"error":{"message":"wrong key","type":"invalid_request_error"}}`, http.StatusUnauthorized)
	return false
}

func answerUpstream(w http.ResponseWriter, r *http.Request, role, content string) {
	if content == "too long" {
		http.Error(w, `{"error":{"message":"too many tokens","code":"context_length_exceeded"}}`, http.StatusBadRequest)
		return
	}
	if content == "fail" {
		http.Error(w, `{"error":{"message":"the fake upstream is down"}}`, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta string, finish string) {
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
		_ = http.NewResponseController(w).Flush()
	}
	text := func(text string) string {
		quoted, _ := json.Marshal(text)
		return fmt.Sprintf(`{"content":%s}`, quoted)
	}
	switch {
	case role == "user" && content == "tool":
		send(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"fs_read","arguments":"{\"path\":\"nowhere\"}"}}]}`, "null")
		send(`{}`, `"tool_calls"`)
	case content == "half" || strings.Contains(content, "\n    half\n"): // as a message, or a task's description
		send(text("the first half"), "null")
		<-r.Context().Done()
		return
	case content == "half a call": // and the connection breaks
		send(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"fs_read","arguments":"{\"path\":"}}]}`, "null")
		panic(http.ErrAbortHandler)
	case content == "cut":
		send(text("As much as fits"), "null")
		send(`{}`, `"length"`)
	case content == "filtered":
		send(text("As much as is allowed"), "null")
		send(`{}`, `"content_filter"`)
	case content == "think":
		for _, piece := range []string{"<th", "ink>It is a gre", "eting.</think", ">\n\nHel", "lo."} {
			send(text(piece), "null")
		}
		send(`{}`, `"stop"`)
	default:
		if len(content) > 40 {
			content = content[:40]
		}
		for _, word := range strings.SplitAfter("you said: "+content, " ") {
			send(text(word), "null")
		}
		send(`{}`, `"stop"`)
		_, _ = fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":7,\"total_tokens\":107}}\n\n")
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}
