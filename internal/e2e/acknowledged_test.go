package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// acknowledgement is a route that acknowledges a write: what is prepared, what is sent, and how it shows that what was
// acknowledged is there, and continued, after the server was killed at the answer.
type acknowledgement struct {
	prepare func(s *ackFixture)
	body    func(s *ackFixture) any
	header  []string
	verify  func(s *ackFixture)
}

// ackFixture is one program with one upstream, used by one goroutine. Each kill has a session of its own.
type ackFixture struct {
	t       *testing.T
	home    *home
	k       *killable
	lingers atomic.Bool // answers of the upstream do not end
	fails   atomic.Bool // the upstream refuses
	number  int
	key     string            // of the session
	names   map[string]string // the values of {id}, {turn}, … in the path
	export  map[string]any    // of the memory, before it forgot all
	apiKey  string            // the server's first key; "" while no caller needs one
	header  []string          // of every request, such as a key or a cookie
	cookies []*http.Cookie    // of the last answer that was cut
	opened  []*http.Cookie    // of the session that was opened before the kill
}

const (
	ackSteps = "id: steps\nname: Steps\nnodes:\n  only: {brief: Say a word.}\n"
	ackAsks  = "id: asks\nname: Asks\nnodes:\n  ask: {name: Go on, approval: Go on?}\n  end: {brief: Say a word.}\nedges:\n  - {from: ask, to: end}\n"
	ackCrew  = "id: pair\nname: Pair\nmax_rounds: 1\nroles:\n  - {role_name: one, display_name: One, connector: model, model: main, system_prompt: You are One.}\n"
)

func newAckFixture(t *testing.T) *ackFixture {
	t.Helper()
	s := &ackFixture{t: t}
	upstream := httptest.NewServer(s)
	t.Cleanup(upstream.Close)
	s.home = newHome(t, &scripted{url: upstream.URL}, "lease: 2s")
	err := errors.Join(os.Mkdir(filepath.Join(s.home.dir, "workflows"), 0o700), os.Mkdir(filepath.Join(s.home.dir, "crews"), 0o700))
	for name, text := range map[string]string{"workflows/steps.yaml": ackSteps, "workflows/asks.yaml": ackAsks, "crews/pair.yaml": ackCrew} {
		err = errors.Join(err, os.WriteFile(filepath.Join(s.home.dir, name), []byte(text), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.start()
	return s
}

// ServeHTTP is the upstream: it says a word, and calls fs_search where it was asked to.
func (s *ackFixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if s.fails.Load() {
		http.Error(w, `{"error": {"message": "not now"}}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	finish := "stop"
	if strings.Contains(string(body), "please search") && !strings.Contains(string(body), `"tool_call_id"`) {
		finish = "tool_calls"
		call := map[string]any{"index": 0, "id": "call_1", "type": "function", "function": map[string]any{"name": "fs_search", "arguments": scriptedCalls["fs_search"].arguments}}
		_ = writeChunk(w, map[string]any{"tool_calls": []any{call}}, nil)
	} else {
		_ = writeChunk(w, map[string]any{"content": "A word. "}, nil)
	}
	_ = http.NewResponseController(w).Flush()
	for s.lingers.Load() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-r.Context().Done():
			return
		}
	}
	_ = writeChunk(w, map[string]any{}, &finish)
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func (s *ackFixture) start() {
	s.t.Helper()
	s.k = s.home.launch(s.t)
	s.k.ready(s.t)
}

// path fills the names in.
func (s *ackFixture) path(path string) string {
	for name, value := range s.names {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	return path
}

// call sends a request that must succeed, and returns the answer.
func (s *ackFixture) call(method, path string, body any, header ...string) map[string]any {
	s.t.Helper()
	status, answer := s.try(method, path, body, header...)
	if status == 0 || status >= http.StatusBadRequest {
		s.t.Fatalf("%s %s: %d %v", method, s.path(path), status, answer)
	}
	return answer
}

func (s *ackFixture) try(method, path string, body any, header ...string) (status int, answer map[string]any) {
	s.t.Helper()
	response, err := s.k.do(s.t.Context(), method, s.path(path), body, slices.Concat(s.header, header)...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = json.Unmarshal(text, &answer) // not every answer is JSON
	return response.StatusCode, answer
}

// until asks for something until it is as it must be.
func (s *ackFixture) until(what, path string, is func(answer map[string]any) bool) {
	s.t.Helper()
	var answer map[string]any
	for late := time.Now().Add(patience); time.Now().Before(late); <-time.After(20 * time.Millisecond) {
		if _, answer = s.try(http.MethodGet, path, nil); is(answer) {
			return
		}
	}
	s.t.Fatalf("%s: never true of %s: %v; the program said:\n%s", what, s.path(path), answer, s.k.output)
}

// becomes waits until a thing has a state.
func (s *ackFixture) becomes(path, member, state string) {
	s.t.Helper()
	s.until("it becomes "+state, path, func(answer map[string]any) bool { return answer[member] == state })
}

// answerContains checks that an answer has a text.
func (s *ackFixture) answerContains(path, text string) {
	s.t.Helper()
	if answer := s.call(http.MethodGet, path, nil); !strings.Contains(fmt.Sprint(answer), text) {
		s.t.Errorf("%s lacks %q: %v", s.path(path), text, answer)
	}
}

// text is a member of an answer.
func text(answer map[string]any, member string) string {
	value, _ := answer[member].(string)
	return value
}

// cut sends the request, kills the program when the status line is there, and starts another one.
func (s *ackFixture) cut(route string, row acknowledgement) {
	s.t.Helper()
	method, path, _ := strings.Cut(route, " ")
	var body any
	if row.body != nil {
		body = row.body(s)
	}
	header := slices.Concat([]string{"Idempotency-Key", s.key}, row.header, s.header)
	response, err := s.k.do(s.t.Context(), method, s.path(path), body, header...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.k.kill(s.t)
	said, _ := io.ReadAll(response.Body) // what was sent before the kill
	_ = response.Body.Close()
	s.cookies = response.Cookies()
	if response.StatusCode >= http.StatusBadRequest {
		s.t.Fatalf("%s: %d %s", route, response.StatusCode, said)
	}
	s.lingers.Store(false)
	s.fails.Store(false)
	s.start()
}

var indexLine = regexp.MustCompile(`(?m)^  (POST|PUT|PATCH|DELETE) +(/\S*)`)

// writingRoutes are the routes of the API that may write, as its page at / lists them.
func (s *ackFixture) writingRoutes() (routes []string) {
	s.t.Helper()
	response, err := s.k.do(s.t.Context(), http.MethodGet, "/", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, line := range indexLine.FindAllStringSubmatch(string(page), -1) {
		routes = append(routes, line[1]+" "+line[2])
	}
	return routes
}

// TestKilledAtTheAnswer calls every route that acknowledges a write, and kills the server the moment that the status
// line arrives. What was acknowledged is there when the server is back, and what it began continues.
func TestKilledAtTheAnswer(t *testing.T) {
	t.Parallel()
	_ = killTest(t)
	kills := rounds(1, 20)
	routes := newAckFixture(t).writingRoutes()
	if len(routes) == 0 {
		t.Fatal("the page at / lists no route that writes")
	}
	for _, route := range routes {
		if _, ok := acknowledgements[route]; !ok {
			t.Errorf("nobody knows whether %s keeps what it acknowledges: give it a row in acknowledgements", route)
		}
	}
	for route, row := range acknowledgements {
		if !slices.Contains(routes, route) {
			t.Errorf("there is no route %s: remove its row", route)
			continue
		}
		t.Run(route, func(t *testing.T) {
			t.Parallel()
			s := newAckFixture(t)
			for s.number = range kills {
				s.key = fmt.Sprintf("kill-%d", s.number)
				s.names = map[string]string{"id": s.key, "crew": "pair"}
				if row.prepare != nil {
					row.prepare(s)
				}
				s.cut(route, row)
				row.verify(s)
			}
		})
	}
}

// begins begins a turn, and returns when its id is known; it continues.
func (s *ackFixture) begins(message string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	_, err := s.k.listen(ctx, http.MethodPost, "/chat", map[string]any{"session_id": s.key, "message": message}, func(e receivedEvent) {
		if id := turnOf(e); e.kind == "turn" && id != "" {
			s.names["turn"] = id
			cancel()
		}
	})
	if s.names["turn"] == "" {
		s.t.Fatalf("no turn began: %v", err)
	}
}
