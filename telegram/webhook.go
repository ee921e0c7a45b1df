package telegram

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"net/http"
	"time"
)

const (
	secretHeader = "X-Telegram-Bot-Api-Secret-Token"
	maxUpdate    = 1 << 20          // bytes
	hookTime     = 50 * time.Second // Telegram waits for a minute
)

// Handler receives the updates that Telegram posts to a webhook. The status is 200 when the update's message is in the
// log; after any other status Telegram posts the update again. It is nil without [Options].Webhook.
func (f *FrontEnd) Handler() http.Handler {
	if f.options.Webhook == nil {
		return http.NotFoundHandler()
	}
	secret := sha256.Sum256([]byte(f.options.Webhook.Secret))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := sha256.Sum256([]byte(r.Header.Get(secretHeader)))
		switch {
		case subtle.ConstantTimeCompare(secret[:], given[:]) != 1:
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method != http.MethodPost:
			w.Header().Set("Allow", http.MethodPost)
			w.WriteHeader(http.StatusMethodNotAllowed)
		case !f.ready.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(f.handleUpdate(w, r))
		}
	})
}

// handleUpdate processes one update and returns the status of the response.
func (f *FrontEnd) handleUpdate(w http.ResponseWriter, r *http.Request) (status int) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpdate))
	if err != nil {
		return http.StatusRequestEntityTooLarge
	}
	u, err := readUpdate(data)
	if err != nil {
		f.log.WarnContext(r.Context(), "telegram_post_unreadable", "error", err.Error())
		return http.StatusBadRequest
	}
	ctx, cancel := context.WithTimeout(r.Context(), hookTime)
	defer cancel()
	if err := f.one(ctx, u); err != nil {
		f.log.ErrorContext(ctx, "telegram_update_failed", "update_id", u.ID, "error", err.Error())
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}
