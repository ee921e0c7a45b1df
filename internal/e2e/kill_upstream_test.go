package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

// script is what the upstream says in one turn.
type script struct {
	rounds []scriptedAnswer
	piece  int           // bytes of a piece, about
	pace   time.Duration // between two pieces; 0 writes them as fast as the connection takes them

	held <-chan struct{} // the turn's last answer ends only when held is closed; nil for at once
}

// scriptedAnswer is the answer of one round.
type scriptedAnswer struct {
	reasoning, text string
	calls           []continuo.ToolCall
}

// The calls that scripts make, and what their results hold when they were executed.
var scriptedCalls = map[string]struct{ arguments, holds string }{
	"fs_list": {`{"path":"@project/","depth":1}`, "notes.txt"},
	"fs_read": {`{"path":"@project/notes.txt","from_line":1,"to_line":2}`, "the first line of the notes"},
	askedTool: {`{"pattern":"second l.ne","path":"@project/"}`, "notes.txt:2"},
}

// askedTool is the tool whose calls a person must allow.
const askedTool = "fs_search"

// slowScript is a turn of some rounds in which a program can be killed. The tag is in every word.
func slowScript(random *rand.Rand, tag string) script {
	s := script{piece: 4 + random.IntN(24), pace: time.Duration(2+random.IntN(5)) * time.Millisecond}
	pieces := 60
	if random.IntN(4) == 0 { // some stream much at once
		s.piece, s.pace, pieces = 100+random.IntN(400), time.Millisecond, 200
	}
	rounds := 1 + random.IntN(4)
	for round := range rounds {
		var answer scriptedAnswer
		name := fmt.Sprintf("%s-r%d", tag, round)
		if random.IntN(2) == 0 {
			answer.reasoning = prose(name+"-why", s.piece*random.IntN(pieces/2))
		}
		if random.IntN(2) == 0 || round == rounds-1 {
			answer.text = prose(name, s.piece*(5+random.IntN(pieces)))
		}
		if round < rounds-1 {
			answer.calls = randomCalls(random, name, "fs_list", "fs_read", "fs_list", "fs_read", askedTool)
		}
		s.rounds = append(s.rounds, answer)
	}
	return s
}

func randomCalls(random *rand.Rand, tag string, names ...string) []continuo.ToolCall {
	var calls []continuo.ToolCall
	for i := range 1 + random.IntN(3) {
		name := names[random.IntN(len(names))]
		calls = append(calls, continuo.ToolCall{ID: fmt.Sprintf("call_%s_%d", tag, i), Type: "function", Name: name, Arguments: scriptedCalls[name].arguments})
	}
	return calls
}

// quickScript is a turn that soon has its answer.
func quickScript(random *rand.Rand, tag string) script {
	s := script{piece: 64}
	if random.IntN(2) == 0 {
		s.rounds = append(s.rounds, scriptedAnswer{reasoning: prose(tag+"-why", 100), calls: randomCalls(random, tag, "fs_list", "fs_read")})
	}
	return script{piece: s.piece, rounds: append(s.rounds, scriptedAnswer{text: prose(tag+"-end", 200)})}
}

// prose is text of about so many bytes, of which no two words are the same.
func prose(tag string, size int) string {
	var text strings.Builder
	for word := 0; text.Len() < size; word++ {
		fmt.Fprintf(&text, "%s-%d ", tag, word)
		if word%7 == 3 {
			text.WriteString("żółć 漢字\n")
		}
	}
	return text.String()
}

// playback is a script under way.
type playback struct {
	script

	mu      sync.Mutex
	bodies  [][]byte                    // of the requests
	answers map[[32]byte]scriptedAnswer // the answers, by the hash of the request
}

// next takes the next request, and returns its answer: to the same request the same one, and beyond the script's end the
// last one again, for a turn that broke off in it is resumed.
func (p *playback) next(body []byte) scriptedAnswer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bodies = append(p.bodies, body)
	hash := sha256.Sum256(body)
	answer, known := p.answers[hash]
	if !known {
		answer = p.rounds[min(len(p.answers), len(p.rounds)-1)]
		p.answers[hash] = answer
	}
	return answer
}

// answered is what was said to the request of a round; nothing where that never came.
func (p *playback) answered(round *continuo.Round) scriptedAnswer {
	p.mu.Lock()
	defer p.mu.Unlock()
	var hash [32]byte
	if round == nil {
		return scriptedAnswer{}
	}
	if _, err := hex.Decode(hash[:], []byte(round.RequestSHA256)); err != nil {
		return scriptedAnswer{}
	}
	return p.answers[hash]
}

func (p *playback) requests() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bodies
}

// scripted is an upstream of the chat protocol that says what scripts say. Requests of one program are distinguished
// from another's by its API key: a killed program's last words must not be taken for its successor's.
type scripted struct {
	url string

	mu      sync.Mutex
	playing map[string]*playback // by API key and conversation
}

func startScripted(t *testing.T) *scripted {
	t.Helper()
	s := &scripted{playing: map[string]*playback{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// play has a script answer the next turn that a program runs in a conversation.
func (s *scripted) play(apiKey, conversation string, what script) *playback {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &playback{script: what, answers: map[[32]byte]scriptedAnswer{}}
	s.playing[apiKey+" "+conversation] = p
	return p
}

// markOf is how messages name the conversation that they are of.
func markOf(conversation string) string { return "(in " + conversation + ")" }

var mark = regexp.MustCompile(`\(in ([a-z0-9-]+)\)`)

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the program was killed while it asked
	}
	found := mark.FindSubmatch(body)
	if found == nil {
		http.Error(w, "no conversation", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	playing := s.playing[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+" "+string(found[1])]
	s.mu.Unlock()
	if playing == nil {
		http.Error(w, "no script", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	playing.stream(w, r, playing.next(body))
}

// stream writes an answer in pieces, until the client disconnects.
func (p *playback) stream(w http.ResponseWriter, r *http.Request, answer scriptedAnswer) {
	control := http.NewResponseController(w)
	var beat <-chan time.Time
	if p.pace > 0 {
		ticker := time.NewTicker(p.pace)
		defer ticker.Stop()
		beat = ticker.C
	}
	for _, delta := range p.deltas(answer) {
		if beat != nil {
			select {
			case <-beat:
			case <-r.Context().Done():
				return
			}
		}
		if writeChunk(w, delta, nil) != nil || control.Flush() != nil {
			return
		}
	}
	finish := "stop"
	if len(answer.calls) > 0 {
		finish = "tool_calls"
	} else if p.held != nil {
		select {
		case <-p.held:
		case <-r.Context().Done():
			return
		}
	}
	_ = writeChunk(w, map[string]any{}, &finish) // the client may have disconnected
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func writeChunk(w io.Writer, delta any, finish *string) error {
	chunk, err := json.Marshal(map[string]any{
		"id": "c", "object": "chat.completion.chunk", "model": "scripted",
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
	})
	if err == nil {
		_, err = fmt.Fprintf(w, "data: %s\n\n", chunk)
	}
	return err
}

// deltas cuts an answer in pieces.
func (p *playback) deltas(answer scriptedAnswer) []any {
	var deltas []any
	for _, piece := range pieces(answer.reasoning, p.piece) {
		deltas = append(deltas, map[string]any{"reasoning_content": piece})
	}
	for _, piece := range pieces(answer.text, p.piece) {
		deltas = append(deltas, map[string]any{"content": piece})
	}
	call := func(index int, members map[string]any) {
		members["index"] = index
		deltas = append(deltas, map[string]any{"tool_calls": []any{members}})
	}
	for i, c := range answer.calls {
		call(i, map[string]any{"id": c.ID, "type": c.Type, "function": map[string]any{"name": c.Name, "arguments": ""}})
		for _, piece := range pieces(c.Arguments, 5) {
			call(i, map[string]any{"function": map[string]any{"arguments": piece}})
		}
	}
	return deltas
}

// pieces cuts a text between characters.
func pieces(text string, size int) []string {
	var all []string
	for len(text) > 0 {
		end := min(size, len(text))
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end++
		}
		all, text = append(all, text[:end]), text[end:]
	}
	return all
}
