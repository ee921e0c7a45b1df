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

// roleServer says what the roles of a crew say: it is the upstream of those for which a model speaks, and tells the parts
// that agents and commands play. It outlives the programs, and keeps every prompt.
type roleServer struct {
	url        string
	killPoints *killPoints

	mu      sync.Mutex
	random  *rand.Rand
	quiet   map[string]bool // conversations in which no role has anything to add any more
	said    int
	prompts []rolePrompt
	asked   map[string]int // how often, by role
	loads   int            // sessions that were loaded, and those that an agent had lost
	lost    int
}

// rolePrompt is a prompt of a role: the whole prompt of an agent or a command, the body of a model's request, or all
// that an agent found of its session when it loaded it.
type rolePrompt struct {
	role, session, text string
	process             int // of the agent or the command
}

func startRoleServer(t *testing.T, killPoints *killPoints, random *rand.Rand) *roleServer {
	t.Helper()
	c := &roleServer{killPoints: killPoints, quiet: map[string]bool{}, asked: map[string]int{}, random: rand.New(rand.NewPCG(random.Uint64(), random.Uint64()))}
	served := httptest.NewServer(c)
	t.Cleanup(served.Close)
	c.url = served.URL
	return c
}

// received returns what was received until now.
func (c *roleServer) received() []rolePrompt {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]rolePrompt{}, c.prompts...)
}

// stopAnswers makes every role silent in a conversation.
func (c *roleServer) stopAnswers(conversation string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quiet[conversation] = true
}

// conversationMark is how a conversation is recognised by the messages in it; the original request is always in sight.
var conversationMark = regexp.MustCompile(`Message \d+ of ([a-z0-9-]+)\.`)

// modelRole is the role of the model.
const modelRole = "cid"

func (c *roleServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the program was killed while it asked
	}
	switch r.URL.Path {
	case "/load", "/part":
		var prompt promptRequest
		if err := json.Unmarshal(body, &prompt); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		received := rolePrompt{prompt.Role, prompt.Session, prompt.Text, prompt.Process}
		if r.URL.Path == "/load" {
			if !c.findsSession(received) {
				http.Error(w, "lost", http.StatusGone)
			}
			return
		}
		c.streamAnswer(w, r, received, func(piece string) error { return json.NewEncoder(w).Encode(piece) })
		_, _ = io.WriteString(w, "\"\"\n") // a client that has left does not need it
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		c.streamAnswer(w, r, rolePrompt{role: modelRole, text: string(body)}, func(piece string) error { return writeChunk(w, map[string]any{"content": piece}, nil) })
		stop := "stop"
		_ = writeChunk(w, map[string]any{}, &stop)
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}
	c.killPoints.reach(atEnd, "")
}

// lacksSessions reports whether no session was loaded yet, or none lost.
func (c *roleServer) lacksSessions() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loads == 0 || c.lost == 0
}

// findsSession says whether an agent finds its session; one in four is lost.
func (c *roleServer) findsSession(found rolePrompt) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.random.IntN(4) == 0 {
		c.lost++
		return false
	}
	c.loads++
	c.prompts = append(c.prompts, found)
	return true
}

// streamAnswer says an answer piece by piece.
func (c *roleServer) streamAnswer(w http.ResponseWriter, r *http.Request, prompt rolePrompt, say func(string) error) {
	answer, size, pace := c.answer(prompt)
	c.killPoints.reach(inTool, "")
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
		c.killPoints.reach(inStream, "")
	}
}

// answer makes up what a role says: new words, or that it has nothing to add.
func (c *roleServer) answer(prompt rolePrompt) (text string, piece int, pace time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prompts = append(c.prompts, prompt)
	c.asked[prompt.role]++
	piece, pace = 3+c.random.IntN(20), time.Duration(1+c.random.IntN(4))*time.Millisecond
	conversation := conversationMark.FindStringSubmatch(prompt.text)
	if conversation == nil || c.quiet[conversation[1]] || c.random.IntN(100) < 60 {
		return continuo.Placeholder, piece, pace
	}
	c.said++
	text = fmt.Sprintf("%s says %d.", prompt.role, c.said)
	return strings.TrimSpace(text + "\n" + prose(fmt.Sprintf("%s%d", prompt.role, c.said), c.random.IntN(600))), piece, pace
}
