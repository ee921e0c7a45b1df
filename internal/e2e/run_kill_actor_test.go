package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/continuo-log/continuo/render"
)

// actor is an upstream of the chat protocol that carries out the steps of runs as their system messages say. It
// remembers who asked what.
type actor struct {
	url   string
	traps *traps

	mu     sync.Mutex
	asked  []stepRequest
	newest map[string][]json.RawMessage // histories by line
	wrong  []string                     // what was wrong with requests
	calls  int
}

func startActor(t *testing.T, traps *traps) *actor {
	t.Helper()
	a := &actor{traps: traps, newest: map[string][]json.RawMessage{}}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// told returns what was asked until now, and what was wrong with it.
func (a *actor) told() (all []stepRequest, wrong []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked), slices.Clone(a.wrong)
}

func (a *actor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the program was killed while it asked
	}
	scene, err := readScene(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	scene.at, scene.program = at, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	w.Header().Set("Content-Type", "text/event-stream")
	a.say(w, r, scene.program, scene.answer(a.remember(scene, body)))
}

// remember keeps a request, and returns the number of the next call to make.
func (a *actor) remember(s *scene, body []byte) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	violations := render.CheckOpenAIChat(messagesOf(body))
	violations = slices.DeleteFunc(violations, func(v render.Violation) bool { return v.Lint })
	if len(violations) > 0 {
		a.wrong = append(a.wrong, fmt.Sprintf("a request of %s, step %s, breaks rules: %v", s.run, s.step, violations))
	}
	if s.run != "" && !s.isDirected() {
		a.wrong = append(a.wrong, fmt.Sprintf("a request of %s, step %s, has the system messages %q", s.run, s.step, s.systemMessages))
	}
	line := s.lineOf(s.conversation)
	before, known := a.newest[line]
	if !known {
		before = a.newest[s.conversation]
	}
	if !beginsWith(s.history, before) {
		a.wrong = append(a.wrong, fmt.Sprintf("the history of conversation %s changed before a request of %s, step %s:\n%s\n%s", s.conversation, s.run, s.step, before, s.history))
	}
	a.newest[line] = s.history
	a.asked = append(a.asked, s.stepRequest)
	a.calls += 10
	return a.calls
}

// beginsWith reports whether a history begins with another, byte for byte.
func beginsWith(history, with []json.RawMessage) bool {
	return len(history) >= len(with) && slices.EqualFunc(history[:len(with)], with, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// Of an answer so many bytes come at once, and so long after those before.
const (
	actorPiece = 8
	actorPace  = 6 * time.Millisecond
)

// say writes an answer, until nobody listens any more.
func (a *actor) say(w http.ResponseWriter, r *http.Request, program string, answer said) {
	control := http.NewResponseController(w)
	beat := time.NewTicker(actorPace)
	defer beat.Stop()
	cut := performance{script: script{piece: actorPiece}}
	for _, delta := range cut.deltas(answer) {
		select {
		case <-beat.C:
		case <-r.Context().Done():
			return
		}
		a.traps.pass(inStream, program)
		if writeChunk(w, delta, nil) != nil || control.Flush() != nil {
			return
		}
	}
	finish, end := "stop", atEnd
	if len(answer.calls) > 0 {
		finish, end = "tool_calls", inStream
	}
	_ = writeChunk(w, map[string]any{}, &finish) // whoever is gone does not miss it
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
	a.traps.pass(end, program)
}
