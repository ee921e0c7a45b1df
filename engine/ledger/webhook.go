package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Webhook is a receiver that is told of each turn that ends, in the form of Standard Webhooks. It gets the turns in their
// order, each at least once; one that it does not accept is sent again until it does.
type Webhook struct {
	// URL is where the messages are sent by POST, Secret what they are signed with. Both are required.
	URL, Secret string
	// Failed and Finished say which turns are sent. Default: both.
	States []continuo.TurnState
	// Client sends the messages; redirects are refused. Default http.DefaultClient's transport.
	Client *http.Client
	// Timeout bounds one message. Default 15 s.
	Timeout time.Duration
	// Body writes the turn of a message.
	Body func(continuo.FinishedTurn) any
	// Sent is called after each attempt. Default none.
	Sent   func(ok bool)
	Logger *slog.Logger // default: nothing is logged
	// Now is the clock. Default time.Now. Wait waits before another attempt, until ctx is done. Default: by the clock.
	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error
}

// The pauses before a message is sent again: they double.
const (
	firstWebhookPause = time.Second
	maxWebhookPause   = 5 * time.Minute
)

// name is the name of the position in the feed up to which the receiver has accepted the turns. It does not contain the URL,
// which may have a credential.
func (h Webhook) name() string {
	sum := sha256.Sum256([]byte(h.URL))
	return fmt.Sprintf("webhook/%x", sum[:8])
}

// Send sends the turns that end until ctx is done. Only one process may call it for a URL at a time; see
// engine.RunExclusive and LeaseName. A receiver that is new is sent the turns that end from now on.
func (l *Ledger) Send(ctx context.Context, hook Webhook) error {
	hook = hook.withDefaults()
	position, err := l.log.FeedPosition(ctx, hook.name())
	if errors.Is(err, continuo.ErrNotFound) {
		if position, err = l.LastFinished(ctx); err == nil {
			err = l.log.SetFeedPosition(ctx, hook.name(), position)
		}
	}
	if err != nil {
		return err
	}
	for turn, err := range l.Follow(ctx, continuo.FeedQuery{After: position}) {
		switch {
		case err != nil:
			return err
		case turn.TurnID == "":
			continue
		case slices.Contains(hook.States, turn.State):
			if err := hook.deliver(ctx, turn); err != nil {
				return err
			}
		}
		if err := l.log.SetFeedPosition(ctx, hook.name(), turn.Position); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// LeaseName is the name of the lease under which a webhook is sent.
func (h Webhook) LeaseName() string { return h.name() }

func (h Webhook) withDefaults() Webhook {
	if len(h.States) == 0 {
		h.States = []continuo.TurnState{continuo.TurnFinished, continuo.TurnFailed}
	}
	client := http.Client{}
	if h.Client != nil {
		client = *h.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	h.Client = &client
	if h.Timeout == 0 {
		h.Timeout = 15 * time.Second
	}
	if h.Sent == nil {
		h.Sent = func(bool) {}
	}
	if h.Logger == nil {
		h.Logger = slog.New(slog.DiscardHandler)
	}
	if h.Now == nil {
		h.Now = time.Now
	}
	if h.Wait == nil {
		h.Wait = func(ctx context.Context, d time.Duration) error {
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-timer.C:
				return nil
			}
		}
	}
	return h
}

// deliver sends a turn until the receiver accepts it, or ctx is done.
func (h Webhook) deliver(ctx context.Context, turn continuo.FinishedTurn) error {
	body, err := rawjson.Marshal(message{"turn." + string(turn.State), turn.EndedAt, h.Body(turn)})
	if err != nil {
		return fmt.Errorf("webhook: turn %s: %w", turn.TurnID, err)
	}
	id := "msg_" + strconv.FormatInt(turn.Position, 10)
	for pause := firstWebhookPause; ; pause = min(2*pause, maxWebhookPause) {
		err := h.post(ctx, id, body)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if h.Sent(err == nil); err == nil {
			return nil
		}
		h.Logger.WarnContext(ctx, "webhook_failed", "message_id", id, "turn_id", turn.TurnID, "error", err.Error(), "again_in", pause.String())
		if err := h.Wait(ctx, pause); err != nil {
			return err
		}
	}
}

// message is the body of a message.
type message struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      any       `json:"data"`
}

// maxWebhookAnswer bounds what is read of an answer.
const maxWebhookAnswer = 64 << 10

// post sends a message once; a status other than 2xx is an error. Errors do not have the URL, which may have a credential.
func (h Webhook) post(ctx context.Context, id string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the URL is not valid")
	}
	at := strconv.FormatInt(h.Now().Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "continuo")
	request.Header.Set("Webhook-Id", id)
	request.Header.Set("Webhook-Timestamp", at)
	request.Header.Set("Webhook-Signature", Sign(h.Secret, id, at, body))
	response, err := h.Client.Do(request)
	if err != nil {
		return withoutURL(err)
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxWebhookAnswer) // so that the connection can be used again
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("the receiver answered %s", response.Status)
	}
	return nil
}
