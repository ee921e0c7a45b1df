package telegramtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// hook is where a bot's updates are posted to.
type hook struct{ url, secret string }

func (s *Server) setWebhook(b *bot, r *http.Request) (any, *refusal) {
	var params struct {
		URL            string   `json:"url"`
		SecretToken    string   `json:"secret_token"`
		MaxConnections int      `json:"max_connections"`
		Allowed        []string `json:"allowed_updates"`
	}
	if refused := s.decode(r, &params); refused != nil {
		return nil, refused
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.HasPrefix(params.URL, "https://") {
		return nil, badRequest("bad webhook: An HTTPS URL must be provided for webhook")
	}
	b.end("Conflict: terminated by setWebhook request")
	b.hook = &hook{params.URL, params.SecretToken}
	return true, nil
}

func (s *Server) deleteWebhook(b *bot, r *http.Request) (any, *refusal) {
	var params struct {
		Drop bool `json:"drop_pending_updates"`
	}
	if refused := s.decode(r, &params); refused != nil {
		return nil, refused
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if params.Drop {
		s.problem("deleteWebhook drops %d updates", len(b.updates))
	}
	b.hook = nil
	return true, nil
}

// Deliver posts a bot's first unconfirmed update to its webhook, as Telegram repeats until the response is a 2xx;
// status is 0 if there is nothing to post.
func (s *Server) Deliver(ctx context.Context, token string, client *http.Client) (status int, err error) {
	s.mu.Lock()
	b := s.bots[token]
	if b.hook == nil || len(b.updates) == 0 {
		s.mu.Unlock()
		return 0, nil
	}
	to, first := *b.hook, b.updates[0]
	s.mu.Unlock()
	body, err := json.Marshal(first.body)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Telegram-Bot-Api-Secret-Token", to.secret)
	response, err := client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("post update %d: %w", first.id, err)
	}
	if err := response.Body.Close(); err != nil {
		return 0, err
	}
	if response.StatusCode/100 == 2 {
		s.mu.Lock()
		defer s.mu.Unlock()
		b.updates = b.updates[1:]
	}
	return response.StatusCode, nil
}
