package telegramtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// dispatch executes a call.
func (s *Server) dispatch(b *bot, token, method string, r *http.Request) (result any, refused *refusal) {
	switch method {
	case "getMe":
		return s.getMe(b)
	case "getChat":
		return s.getChat(b, token, r)
	case "getChatMember":
		return s.getChatMember(b, token, r)
	case "getWebhookInfo":
		return s.getWebhookInfo(b)
	case "getUpdates":
		return s.getUpdates(b, r)
	case "sendMessage":
		return s.sendMessage(b, token, r)
	case "sendChatAction":
		return s.sendChatAction(b, token, r)
	case "setMyCommands":
		return s.setMyCommands(b, r)
	case "setWebhook":
		return s.setWebhook(b, r)
	case "deleteWebhook":
		return s.deleteWebhook(b, r)
	default:
		s.note("%s is not a method that the server knows", method)
		return nil, &refusal{code: http.StatusNotFound, description: "Not Found: method not found"}
	}
}

// note is problem for callers that do not hold the server's lock.
func (s *Server) note(format string, values ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problem(format, values...)
}

// decode reads the parameters of a call; an unknown one is a problem. A body that breaks off is none: its client was ended.
func (s *Server) decode(r *http.Request, into any) *refusal {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return badRequest("%v", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		s.note("%s: %v", r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], err)
		return badRequest("%v", err)
	}
	return nil
}

// poll is a long poll for updates.
type poll struct {
	woken, ended chan struct{}
	why          string // the reason if it was ended
}

func (p *poll) wake() {
	select {
	case <-p.woken:
	default:
		close(p.woken)
	}
}

func (b *bot) end(why string) {
	if b.polling != nil {
		b.polling.why = why
		close(b.polling.ended)
		b.polling = nil
	}
}

const otherPoller = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"

func (s *Server) getUpdates(b *bot, r *http.Request) (any, *refusal) {
	params := struct {
		Offset  int64    `json:"offset"`
		Limit   int      `json:"limit"`
		Timeout int      `json:"timeout"`
		Allowed []string `json:"allowed_updates"`
	}{Limit: 100}
	if refused := s.decode(r, &params); refused != nil {
		return nil, refused
	}
	s.mu.Lock()
	if b.hook != nil {
		s.mu.Unlock()
		return nil, &refusal{code: http.StatusConflict, description: "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"}
	}
	if params.Offset < 0 || params.Limit < 1 || params.Limit > 100 || params.Timeout < 0 || params.Timeout > 50 {
		s.problem("getUpdates: out of bounds: %+v", params)
	}
	if wait := time.Until(b.until); wait > 0 {
		s.problem("%s asks for updates %v before it may", b.username, wait)
	}
	b.end(otherPoller)
	s.confirm(b, params.Offset)
	if len(b.updates) > 0 || params.Timeout == 0 {
		defer s.mu.Unlock()
		return b.show(params.Limit), nil
	}
	p := &poll{woken: make(chan struct{}), ended: make(chan struct{})}
	b.polling = p
	s.mu.Unlock()
	timer := time.NewTimer(time.Duration(params.Timeout) * time.Second)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil, &refusal{code: http.StatusConflict, description: p.why}
	case <-p.woken:
	case <-timer.C:
	case <-r.Context().Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.polling != p {
		return nil, &refusal{code: http.StatusConflict, description: p.why}
	}
	b.polling = nil
	if r.Context().Err() != nil {
		return nil, nil
	}
	return b.show(params.Limit), nil
}

// confirm removes the updates before offset. One that was never delivered is lost.
func (s *Server) confirm(b *bot, offset int64) {
	for offset > 0 && len(b.updates) > 0 && b.updates[0].id < offset {
		if !b.updates[0].shown {
			s.problem("getUpdates: update %d was confirmed and never shown", b.updates[0].id)
		}
		b.updates = b.updates[1:]
	}
}

func (b *bot) show(limit int) []any {
	shown := []any{}
	for i := range b.updates[:min(limit, len(b.updates))] {
		b.updates[i].shown = true
		shown = append(shown, b.updates[i].body)
	}
	return shown
}

// allowed returns why a bot may not send to a chat.
func (s *Server) allowed(b *bot, token string, chatID int64) *refusal {
	if wait := time.Until(b.until); wait > 0 {
		s.problem("%s sends %v before it may", b.username, wait)
		return tooMany(int(wait/time.Second) + 1)
	}
	c := s.chats[chatID]
	is, known := false, false
	if c != nil {
		is, known = c.members[token]
	}
	switch {
	case !known:
		return badRequest("chat not found")
	case !is:
		return &refusal{code: http.StatusForbidden, description: "Forbidden: bot was kicked from the group chat"}
	default:
		return nil
	}
}

func (s *Server) sendMessage(b *bot, token string, r *http.Request) (any, *refusal) {
	var params struct {
		ChatID    int64  `json:"chat_id"`
		Text      string `json:"text"`
		ParseMode string `json:"parse_mode"`
		Preview   struct {
			Disabled bool `json:"is_disabled"`
		} `json:"link_preview_options"`
	}
	if refused := s.decode(r, &params); refused != nil {
		return nil, refused
	}
	text, entities, refused := read(params.Text, params.ParseMode)
	if refused != nil {
		return nil, refused
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused := s.allowed(b, token, params.ChatID); refused != nil {
		return nil, refused
	}
	s.messages++
	s.sent = append(s.sent, Sent{b.username, params.ChatID, params.Text, params.ParseMode, text, entities, time.Now()})
	close(s.changed)
	s.changed = make(chan struct{})
	return map[string]any{
		"message_id": s.messages, "date": time.Now().Unix(), "text": text,
		"chat": map[string]any{"id": params.ChatID, "type": s.chats[params.ChatID].kind},
	}, nil
}

// maxUnits is how many UTF-16 units a message has at most, as it is shown.
const maxUnits = 4096

// read returns how a message is shown, or why it is refused.
func read(raw, parseMode string) (text string, entities []Entity, refused *refusal) {
	text = raw
	switch parseMode {
	case "":
	case "MarkdownV2":
		var err error
		if text, entities, err = ParseMarkdownV2(raw); err != nil {
			return "", nil, badRequest("can't parse entities: %v", err)
		}
	default:
		return "", nil, badRequest("unsupported parse_mode")
	}
	switch {
	case !utf8.ValidString(text):
		return "", nil, badRequest("strings must be encoded in UTF-8")
	case strings.TrimSpace(text) == "":
		return "", nil, badRequest("message text is empty")
	case len(utf16.Encode([]rune(text))) > maxUnits:
		return "", nil, badRequest("message is too long")
	}
	return text, entities, nil
}

func (s *Server) sendChatAction(b *bot, token string, r *http.Request) (any, *refusal) {
	var params struct {
		ChatID int64  `json:"chat_id"`
		Action string `json:"action"`
	}
	if refused := s.decode(r, &params); refused != nil {
		return nil, refused
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if params.Action != "typing" {
		return nil, badRequest("wrong parameter action in request")
	}
	if refused := s.allowed(b, token, params.ChatID); refused != nil {
		return nil, refused
	}
	b.typed++
	return true, nil
}

var commandPattern = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)

func (s *Server) setMyCommands(b *bot, r *http.Request) (any, *refusal) {
	var params struct {
		Commands []Command `json:"commands"`
		Scope    struct {
			Type   string `json:"type"`
			ChatID int64  `json:"chat_id"`
		} `json:"scope"`
	}
	if refused := s.decode(r, &params); refused != nil {
		return nil, refused
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range params.Commands {
		if !commandPattern.MatchString(c.Command) || c.Description == "" || len(c.Description) > 256 {
			return nil, badRequest("BOT_COMMAND_INVALID")
		}
	}
	if params.Scope.Type != "chat" || s.chats[params.Scope.ChatID] == nil {
		return nil, badRequest("chat not found")
	}
	b.commands = params.Commands
	return true, nil
}
