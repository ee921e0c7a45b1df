package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// inspectorUpstream is a model behind chat completions for the inspector's checks: what it does is in the newest message,
// and what it read from a cache of prefixes is in its usage.
type inspectorUpstream struct {
	mu     sync.Mutex
	before string // the request before, for the cache
}

// newInspectorUpstream gives the upstream's base URL.
func newInspectorUpstream(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(&inspectorUpstream{})
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

type inspectorMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

func (u *inspectorUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var raw json.RawMessage
	var request struct {
		Messages []inspectorMessage `json:"messages"`
		Stream   bool               `json:"stream"`
	}
	if json.NewDecoder(r.Body).Decode(&raw) != nil || json.Unmarshal(raw, &request) != nil || len(request.Messages) == 0 {
		http.Error(w, `{"error":{"message":"no chat completion"}}`, http.StatusBadRequest)
		return
	}
	shown := 0
	for _, message := range request.Messages {
		if message.Role != "system" {
			shown++
		}
	}
	answer := fmt.Sprintf("I was shown %d messages. This is **what I found**:\n\n- the queue, in `queue.go`\n- its test\n", shown)
	usage := u.usage(string(raw))
	if !request.Stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c1","object":"chat.completion","created":1,"model":"mock-sonnet","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":%s}`, quoted(answer), usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := inspectorStream{w}
	last := request.Messages[len(request.Messages)-1]
	asked := string(last.Content)
	switch {
	case strings.Contains(asked, "stream a long answer"):
		out.long(r, usage)
	case strings.Contains(asked, "break off") && !strings.Contains(string(raw), "network"):
		out.delta(`{"content":"This answer will break "}`)
		panic(http.ErrAbortHandler)
	case strings.Contains(asked, "search the log"):
		out.delta(`{"reasoning_content":"That may be further back than what I am shown."}`)
		out.delta(`{"tool_calls":[{"index":0,"id":"call_search_` + fmt.Sprint(shown) + `","type":"function","function":{"name":"conversation_search","arguments":"{\"query\": \"order\", \"limit\": 5}"}}]}`)
		out.end("tool_calls", usage)
	default:
		for piece := range strings.SplitAfterSeq(answer, " ") {
			out.delta(`{"content":` + quoted(piece) + `}`)
		}
		out.end("stop", usage)
	}
}

// usage counts a token for four bytes, and what repeats the request before as cached.
func (u *inspectorUpstream) usage(raw string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	shared := 0
	for shared < min(len(raw), len(u.before)) && raw[shared] == u.before[shared] {
		shared++
	}
	u.before = raw
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":24,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}`, len(raw)/4, len(raw)/4+24, shared/4/128*128)
}

func quoted(text string) string {
	data, _ := json.Marshal(text)
	return string(data)
}

// inspectorStream is a stream of chunks.
type inspectorStream struct{ http.ResponseWriter }

func (s inspectorStream) chunk(delta, finish, rest string) {
	fmt.Fprintf(s, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"mock-sonnet\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]%s}\n\n", delta, finish, rest)
	s.ResponseWriter.(http.Flusher).Flush()
}

func (s inspectorStream) delta(delta string) { s.chunk(delta, "null", "") }

func (s inspectorStream) end(reason, usage string) {
	s.chunk("{}", quoted(reason), `,"usage":`+usage)
	fmt.Fprint(s, "data: [DONE]\n\n")
}

// long sends 200 pieces a second for two seconds.
func (s inspectorStream) long(r *http.Request, usage string) {
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for i := range 400 {
		select {
		case <-r.Context().Done():
			return
		case <-pace.C:
		}
		s.delta(fmt.Sprintf(`{"content":"piece %d "}`, i))
	}
	s.end("stop", usage)
}
