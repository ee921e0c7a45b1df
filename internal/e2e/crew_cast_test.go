//go:build linux

package e2e

import (
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

	continuo "github.com/continuo-log/continuo"
)

// cast says what the roles of a crew say: it is the upstream of those for which a model speaks, and tells the parts
// that agents and commands play. It outlives the programs, and remembers who was told what.
type cast struct {
	url   string
	traps *traps

	mu     sync.Mutex
	random *rand.Rand
	quiet  map[string]bool // conversations in which no role has anything to add any more
	said   int
	heard  []cue
	asked  map[string]int // how often, by role
	loads  int            // sessions that were loaded, and those that an agent had lost
	lost   int
}

// cue is what a role was told: the whole prompt of an agent or a command, the body of a model's request, or all that
// an agent found of its session when it loaded it.
type cue struct {
	role, session, text string
	process             int // of the agent or the command
}

func startCast(t *testing.T, traps *traps, random *rand.Rand) *cast {
	t.Helper()
	c := &cast{traps: traps, quiet: map[string]bool{}, asked: map[string]int{}, random: rand.New(rand.NewPCG(random.Uint64(), random.Uint64()))}
	served := httptest.NewServer(c)
	t.Cleanup(served.Close)
	c.url = served.URL
	return c
}

// told returns what was heard until now.
func (c *cast) told() []cue {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]cue{}, c.heard...)
}

// hush lets nobody say anything more in a conversation.
func (c *cast) hush(conversation string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quiet[conversation] = true
}

// conversationMark is how a conversation is told by what a person said in it; the original request is always in sight.
var conversationMark = regexp.MustCompile(`Message \d+ of ([a-z0-9-]+)\.`)

// castModel is the role of the model.
const castModel = "cid"

func (c *cast) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the program was killed while it asked
	}
	switch r.URL.Path {
	case "/load", "/part":
		var told partPrompt
		if err := json.Unmarshal(body, &told); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		heard := cue{told.Role, told.Session, told.Text, told.Process}
		if r.URL.Path == "/load" {
			if !c.loaded(heard) {
				http.Error(w, "lost", http.StatusGone)
			}
			return
		}
		c.perform(w, r, heard, func(piece string) error { return json.NewEncoder(w).Encode(piece) })
		_, _ = io.WriteString(w, "\"\"\n") // whoever is gone does not miss it
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		c.perform(w, r, cue{role: castModel, text: string(body)}, func(piece string) error { return writeChunk(w, map[string]any{"content": piece}, nil) })
		stop := "stop"
		_ = writeChunk(w, map[string]any{}, &stop)
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}
	c.traps.pass(atEnd, "")
}

// lacksSessions reports whether no session was loaded yet, or none lost.
func (c *cast) lacksSessions() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loads == 0 || c.lost == 0
}

// loaded says whether an agent finds its session; one in four is lost.
func (c *cast) loaded(found cue) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.random.IntN(4) == 0 {
		c.lost++
		return false
	}
	c.loads++
	c.heard = append(c.heard, found)
	return true
}

// perform says an answer piece by piece.
func (c *cast) perform(w http.ResponseWriter, r *http.Request, told cue, say func(string) error) {
	answer, size, pace := c.answer(told)
	c.traps.pass(inTool, "")
	beat := time.NewTicker(pace)
	defer beat.Stop()
	for _, piece := range pieces(answer, size) {
		select {
		case <-beat.C:
		case <-r.Context().Done():
			return
		}
		if say(piece) != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		c.traps.pass(inStream, "")
	}
}

// answer makes up what a role says: words that nobody has said before, or that it has nothing to add.
func (c *cast) answer(told cue) (text string, piece int, pace time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = append(c.heard, told)
	c.asked[told.role]++
	piece, pace = 3+c.random.IntN(20), time.Duration(1+c.random.IntN(4))*time.Millisecond
	conversation := conversationMark.FindStringSubmatch(told.text)
	if conversation == nil || c.quiet[conversation[1]] || c.random.IntN(100) < 60 {
		return continuo.Placeholder, piece, pace
	}
	c.said++
	text = fmt.Sprintf("%s says %d.", told.role, c.said)
	return strings.TrimSpace(text + "\n" + prose(fmt.Sprintf("%s%d", told.role, c.said), c.random.IntN(600))), piece, pace
}
