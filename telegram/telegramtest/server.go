package telegramtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is a Bot API with bots, chats and their messages. It is safe for concurrent use.
type Server struct {
	mu       sync.Mutex
	bots     map[string]*bot // by token
	chats    map[int64]*chat
	sent     []Sent
	calls    []Call
	problems []string
	faults   func(Call) Fault
	messages int64
	changed  chan struct{} // closed, and replaced, at each sent message
}

type bot struct {
	id       int64
	username string
	updates  []update // not confirmed
	nextID   int64
	polling  *poll
	hook     *hook
	until    time.Time // must not send before this time, as it was answered
	typed    int
	commands []Command

	private   bool // its privacy mode is on
	hookError string
}

type update struct {
	id    int64
	shown bool
	body  map[string]any
}

type chat struct {
	kind, title string
	members     map[string]bool // bots, by token
	muted       []string        // of them
	movedTo     int64           // the supergroup that it has become
}

// Sent is a message that a bot has sent.
type Sent struct {
	Bot       string // the bot's username
	ChatID    int64
	Raw       string // as the client sent it
	ParseMode string
	Text      string // as it is displayed
	Entities  []Entity
	At        time.Time
}

// Command is a command that a bot offers.
type Command struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// Call is a call of the API.
type Call struct {
	N      int // from 1
	Bot    string
	Method string
}

// Fault makes a call fail. The zero value does not.
type Fault struct {
	// Status is the response status; the call is not executed. 429 also has RetryAfter.
	Status      int
	Description string // default: the text of the status
	RetryAfter  int    // seconds; until then the bot must not send
	// Plain answers with HTML, as a proxy does.
	Plain bool
	// Dropped breaks the connection before the call is executed, Lost after it.
	Dropped, Lost bool
}

// New makes a server without bots.
func New() *Server {
	return &Server{bots: map[string]*bot{}, chats: map[int64]*chat{}, changed: make(chan struct{})}
}

// AddBot adds a bot and returns its token.
func (s *Server) AddBot(id int64, username string) (token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token = fmt.Sprintf("%d:secret-of-%s", id, username)
	s.bots[token] = &bot{id: id, username: username, nextID: 1000 * id}
	return token
}

// RemoveBot refuses a token from now on.
func (s *Server) RemoveBot(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.bots, token)
}

// AddChat adds a chat with bots in it. Its kind is private, group, supergroup or channel.
func (s *Server) AddChat(id int64, kind, title string, tokens ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &chat{kind: kind, title: title, members: map[string]bool{}}
	for _, token := range tokens {
		c.members[token] = true
	}
	s.chats[id] = c
}

// Leave removes a bot from a chat; Join adds it again.
func (s *Server) Leave(id int64, token string) { s.member(id, token, false) }

// Join adds a bot to a chat.
func (s *Server) Join(id int64, token string) { s.member(id, token, true) }

func (s *Server) member(id int64, token string, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chats[id].members[token] = is
}

// SetFaults sets the function that makes calls fail; nil for none. The server calls it once for each call, while it
// holds its lock.
func (s *Server) SetFaults(faults func(Call) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faults
}

// Receive makes a person write a text to a chat; all bots there receive it.
func (s *Server) Receive(chatID int64, name, text string) {
	s.Post(chatID, name, map[string]any{"text": text})
}

// Post makes a person send a message with the given fields.
func (s *Server) Post(chatID int64, name string, fields map[string]any) {
	message := map[string]any{"from": map[string]any{"id": 77, "is_bot": false, "first_name": name}}
	for key, value := range fields {
		message[key] = value
	}
	s.update(chatID, "message", message)
}

// Edit makes a person edit a message.
func (s *Server) Edit(chatID int64, name, text string) {
	s.update(chatID, "edited_message", map[string]any{
		"from": map[string]any{"id": 77, "is_bot": false, "first_name": name}, "text": text, "edit_date": time.Now().Unix(),
	})
}

func (s *Server) update(chatID int64, kind string, message map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	s.messages++
	message["message_id"], message["date"] = s.messages, time.Now().Unix()
	message["chat"] = map[string]any{"id": chatID, "type": c.kind, "title": c.title}
	for token, is := range c.members {
		b := s.bots[token]
		if !is || b == nil {
			continue
		}
		b.nextID++
		b.updates = append(b.updates, update{id: b.nextID, body: map[string]any{"update_id": b.nextID, kind: message}})
		if b.polling != nil {
			b.polling.wake()
		}
	}
}

// Jump makes a bot's updates continue from another id, as Telegram's do after a week without updates.
func (s *Server) Jump(token string, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bots[token].nextID = id
}

// Sent lists what bots have sent, in order.
func (s *Server) Sent() []Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// Changed returns a channel that closes when something is sent next.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Pending counts the updates that a bot has not confirmed.
func (s *Server) Pending(token string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bots[token].updates)
}

// Typed counts how often a bot showed that it was writing.
func (s *Server) Typed(token string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bots[token].typed
}

// Commands lists what a bot offers.
func (s *Server) Commands(token string) []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bots[token].commands
}

// Calls lists the calls, in order.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Problems lists what clients did that they should never do.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

func (s *Server) problem(format string, values ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, values...))
}

// ServeHTTP answers a call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, method, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/bot"), "/")
	if !ok || !strings.HasPrefix(r.URL.Path, "/bot") {
		refuse(w, &refusal{code: http.StatusNotFound, description: "Not Found"})
		return
	}
	b, fault := s.begin(token, method, r)
	switch {
	case fault.Dropped:
		panic(http.ErrAbortHandler)
	case fault.Plain:
		w.WriteHeader(fault.Status)
		_, _ = fmt.Fprint(w, "<html>", http.StatusText(fault.Status), "</html>") // the client may have disconnected
		return
	case fault.Status != 0:
		refuse(w, fault.refusal())
		return
	case b == nil:
		refuse(w, &refusal{code: http.StatusUnauthorized, description: "Unauthorized"})
		return
	}
	result, refused := s.dispatch(b, token, method, r)
	switch {
	case fault.Lost || r.Context().Err() != nil:
		panic(http.ErrAbortHandler)
	case refused != nil:
		refuse(w, refused)
	default:
		write(w, http.StatusOK, map[string]any{"ok": true, "result": result})
	}
}

// begin counts a call and decides whether it fails.
func (s *Server) begin(token, method string, r *http.Request) (*bot, Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bots[token]
	call := Call{N: len(s.calls) + 1, Method: method}
	if b != nil {
		call.Bot = b.username
	}
	s.calls = append(s.calls, call)
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		s.problem("%s is called by %s with the type %q", method, r.Method, r.Header.Get("Content-Type"))
	}
	if s.faults == nil {
		return b, Fault{}
	}
	fault := s.faults(call)
	if fault.RetryAfter > 0 && b != nil {
		b.until = time.Now().Add(time.Duration(fault.RetryAfter) * time.Second)
	}
	return b, fault
}

// refusal is an error response.
type refusal struct {
	code        int
	description string
	retryAfter  int   // seconds
	movedTo     int64 // the chat
}

func badRequest(format string, values ...any) *refusal {
	return &refusal{code: http.StatusBadRequest, description: "Bad Request: " + fmt.Sprintf(format, values...)}
}

func tooMany(seconds int) *refusal {
	return &refusal{code: http.StatusTooManyRequests, description: fmt.Sprintf("Too Many Requests: retry after %d", seconds), retryAfter: seconds}
}

func (f Fault) refusal() *refusal {
	if f.RetryAfter > 0 {
		return tooMany(f.RetryAfter)
	}
	if f.Description != "" {
		return &refusal{code: f.Status, description: f.Description}
	}
	return &refusal{code: f.Status, description: http.StatusText(f.Status)}
}

func refuse(w http.ResponseWriter, r *refusal) {
	body := map[string]any{"ok": false, "error_code": r.code, "description": r.description}
	if r.retryAfter > 0 {
		body["parameters"] = map[string]any{"retry_after": r.retryAfter}
	}
	if r.movedTo != 0 {
		body["parameters"] = map[string]any{"migrate_to_chat_id": r.movedTo}
	}
	write(w, r.code, body)
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}
