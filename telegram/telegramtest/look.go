package telegramtest

import "net/http"

// SetPrivacy sets a bot's privacy mode: in groups it then receives only commands and replies. It is off at first.
func (s *Server) SetPrivacy(token string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bots[token].private = on
}

// Mute removes a bot's right to write in a chat that it is in.
func (s *Server) Mute(id int64, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chats[id].muted = append(s.chats[id].muted, token)
}

// Promote turns a chat into a supergroup with another id.
func (s *Server) Promote(from, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chats[to] = s.chats[from]
	s.chats[to].kind = "supergroup"
	s.chats[from] = &chat{kind: "group", members: s.chats[to].members, movedTo: to}
}

// SetWebhookError sets the last error of a bot's webhook.
func (s *Server) SetWebhookError(token, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bots[token].hookError = text
}

func (s *Server) getMe(b *bot) (any, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]any{"id": b.id, "is_bot": true, "first_name": b.username, "username": b.username, "can_read_all_group_messages": !b.private}, nil
}

// seen returns a chat that a bot can see; the caller holds the server's lock.
func (s *Server) seen(b *bot, token string, id int64) (*chat, *refusal) {
	if refused := s.allowed(b, token, id); refused != nil {
		return nil, refused
	}
	c := s.chats[id]
	if c.movedTo != 0 {
		return nil, &refusal{code: http.StatusBadRequest, description: "Bad Request: group chat was upgraded to a supergroup chat", movedTo: c.movedTo}
	}
	return c, nil
}

func (s *Server) getChat(b *bot, token string, r *http.Request) (any, *refusal) {
	var params struct {
		ChatID int64 `json:"chat_id"`
	}
	if refused := s.decode(r, &params); refused != nil {
		return nil, refused
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, refused := s.seen(b, token, params.ChatID)
	if refused != nil {
		return nil, refused
	}
	if c.kind == "private" {
		return map[string]any{"id": params.ChatID, "type": c.kind, "first_name": c.title}, nil
	}
	return map[string]any{"id": params.ChatID, "type": c.kind, "title": c.title}, nil
}

func (s *Server) getChatMember(b *bot, token string, r *http.Request) (any, *refusal) {
	var params struct {
		ChatID int64 `json:"chat_id"`
		UserID int64 `json:"user_id"`
	}
	if refused := s.decode(r, &params); refused != nil {
		return nil, refused
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, refused := s.seen(b, token, params.ChatID)
	if refused != nil {
		return nil, refused
	}
	if params.UserID != b.id {
		s.problem("getChatMember: %s asks about another one", b.username)
	}
	for _, muted := range c.muted {
		if muted == token {
			return map[string]any{"status": "restricted", "is_member": true, "can_send_messages": false}, nil
		}
	}
	return map[string]any{"status": "member"}, nil
}

func (s *Server) getWebhookInfo(b *bot) (any, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := map[string]any{"url": "", "has_custom_certificate": false, "pending_update_count": len(b.updates)}
	if b.hook != nil {
		info["url"] = b.hook.url
	}
	if b.hookError != "" {
		info["last_error_date"], info["last_error_message"] = 1, b.hookError
	}
	return info, nil
}
