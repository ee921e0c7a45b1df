package e2e

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
func newInspectorUpstream(t testing.TB) string {
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
	asked := string(request.Messages[len(request.Messages)-1].Content)
	if strings.Contains(asked, "refuse with an attack") {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":%s,"type":%[1]s,"code":%[1]s}}`, quoted(inspectorAttack))
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
	switch {
	case strings.Contains(asked, "stream a long answer"):
		out.long(r, 400)
		out.end("stop", usage)
	case strings.Contains(asked, "stream until I stop you"):
		out.long(r, math.MaxInt)
	case strings.Contains(asked, "answer with an attack"):
		out.attack(usage)
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

// inspectorAttack is a text that would run in a page that takes it for its own.
const inspectorAttack = `<script>window.pwned=1</script><img src=x onerror="window.pwned=1">`

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

// attack sends an answer whose every part attacks a page that shows it.
func (s inspectorStream) attack(usage string) {
	attack := quoted(inspectorAttack)
	s.delta(`{"reasoning_content":` + attack + `}`)
	s.delta(`{"content":` + attack + `}`)
	s.delta(`{"tool_calls":[{"index":0,"id":` + attack + `,"type":"function","function":{"name":"window_pwned","arguments":` + quoted(`{"query": `+attack+`}`) + `}}]}`)
	s.end("tool_calls", usage)
}

// long sends 200 pieces a second, until the reader leaves at the latest.
func (s inspectorStream) long(r *http.Request, pieces int) {
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for i := range pieces {
		select {
		case <-r.Context().Done():
			return
		case <-pace.C:
		}
		s.delta(fmt.Sprintf(`{"content":"piece %d "}`, i))
	}
}

// recordedUpstream answers the recorded requests of agents with what they were answered with.
type recordedUpstream struct {
	mu      sync.Mutex
	answers map[[sha256.Size]byte][]recordedAnswer // by the request's body
}

type recordedAnswer struct {
	Scenario string         `json:"scenario"`
	Status   int            `json:"status"`
	Request  string         `json:"request_body"`
	Header   map[string]any `json:"response_headers"`
	Body     string         `json:"response_body"`
}

// newRecordedUpstream gives the URL of an upstream with the answers of a scenario; folder has the recorded traffic.
func newRecordedUpstream(t testing.TB, folder, scenario string, agents ...string) string {
	t.Helper()
	u := &recordedUpstream{answers: map[[sha256.Size]byte][]recordedAnswer{}}
	for _, agent := range agents {
		u.read(t, filepath.Join(folder, "agent-traffic", agent+".jsonl.gz"), scenario)
	}
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	return server.URL
}

func (u *recordedUpstream) read(t testing.TB, path, scenario string) {
	t.Helper()
	packed, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewReader(unpacked); ; {
		line, err := lines.ReadBytes('\n')
		var answer recordedAnswer
		if len(line) > 0 {
			if err := json.Unmarshal(line, &answer); err != nil {
				t.Fatal(err)
			}
		}
		if answer.Scenario == scenario && answer.Status == http.StatusOK {
			sum := sha256.Sum256([]byte(answer.Request))
			u.answers[sum] = append(u.answers[sum], answer)
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (u *recordedUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	u.mu.Lock()
	sum := sha256.Sum256(body)
	answers := u.answers[sum]
	if len(answers) > 1 {
		u.answers[sum] = answers[1:]
	}
	u.mu.Unlock()
	if len(answers) == 0 {
		http.Error(w, `{"error":{"message":"this request was not recorded"}}`, http.StatusBadRequest)
		return
	}
	for _, name := range []string{"Content-Type", "content-type"} {
		if kind, ok := answers[0].Header[name].(string); ok {
			w.Header().Set("Content-Type", kind)
		}
	}
	w.WriteHeader(answers[0].Status)
	_, _ = io.WriteString(w, answers[0].Body) // the client may have left
}
