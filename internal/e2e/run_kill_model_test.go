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

// stepModel is an upstream of the chat protocol that executes the steps of runs as their system messages say. It
// remembers who asked what.
type stepModel struct {
	url        string
	killPoints *killPoints

	mu     sync.Mutex
	asked  []stepRequest
	newest map[string][]json.RawMessage // histories by line
	wrong  []string                     // what was wrong with requests
	calls  int
}

func startStepModel(t *testing.T, killPoints *killPoints) *stepModel {
	t.Helper()
	a := &stepModel{killPoints: killPoints, newest: map[string][]json.RawMessage{}}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// requests returns what was asked until now, and what was wrong with it.
func (a *stepModel) requests() (all []stepRequest, wrong []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked), slices.Clone(a.wrong)
}

func (a *stepModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the program was killed while it asked
	}
	scene, err := readStepPrompt(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	scene.at, scene.program = at, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	w.Header().Set("Content-Type", "text/event-stream")
	a.writeAnswer(w, r, scene.program, scene.answer(a.addRequest(scene, body)))
}

// addRequest keeps a request, and returns the number of the next call to make.
func (a *stepModel) addRequest(s *stepPrompt, body []byte) int {
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
	line := s.logOf(s.conversation)
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
	modelPiece = 8
	modelPace  = 6 * time.Millisecond
)

// writeAnswer writes an answer, until the client disconnects.
func (a *stepModel) writeAnswer(w http.ResponseWriter, r *http.Request, program string, answer scriptedAnswer) {
	control := http.NewResponseController(w)
	beat := time.NewTicker(modelPace)
	defer beat.Stop()
	cut := playback{script: script{piece: modelPiece}}
	for _, delta := range cut.deltas(answer) {
		select {
		case <-beat.C:
		case <-r.Context().Done():
			return
		}
		a.killPoints.reach(inStream, program)
		if writeChunk(w, delta, nil) != nil || control.Flush() != nil {
			return
		}
	}
	finish, end := "stop", atEnd
	if len(answer.calls) > 0 {
		finish, end = "tool_calls", inStream
	}
	_ = writeChunk(w, map[string]any{}, &finish) // the client may have disconnected
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
	a.killPoints.reach(end, program)
}
