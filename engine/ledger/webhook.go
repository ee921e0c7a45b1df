package ledger

import (
	"bytes"
	"context"
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

// Webhook is a receiver that is notified of each turn that ends, in the form of Standard Webhooks. It gets the turns in their
// order, each at least once; one that it does not accept is sent again until it does.
type Webhook struct {
	// Name identifies the webhook: its position in the feed, and the lease under which it is sent, have it. Required.
	Name string
	// URL is where the messages are sent by POST, Secret what they are signed with. Both are required.
	URL, Secret string
	// Projects are those whose turns are sent. Default: all.
	Projects []string
	// States are those of the turns that are sent. Default: TurnFinished and TurnFailed.
	States []continuo.TurnState
	// Client sends the messages; redirects are refused. Default http.DefaultClient's transport.
	Client *http.Client
	// Timeout bounds one message. Default 15 s.
	Timeout time.Duration
	// Body writes the turn of a message.
	Body func(continuo.FinishedTurn) any
	// Sent is called after each attempt, Lost where turns were removed from the feed before they were sent, and Behind with how
	// long ago the turn ended that is being sent, 0 when all were accepted. Default none.
	Sent   func(ok bool)
	Lost   func()
	Behind func(time.Duration)
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

// WebhookPosition is the name of the position in the feed up to which a webhook has accepted the turns, and of the lease
// under which it is sent.
func WebhookPosition(name string) string { return "webhook/" + name }

// Send sends the turns that end until ctx is done. Only one process may call it for a name at a time; see
// engine.RunExclusive and WebhookPosition. A webhook that is new is sent the turns that end from now on. Where turns were
// removed from the feed that it has not accepted, it continues with those that are kept.
func (l *Ledger) Send(ctx context.Context, hook Webhook) error {
	hook = hook.withDefaults()
	defer hook.Behind(0)
	name := WebhookPosition(hook.Name)
	position, err := l.log.FeedPosition(ctx, name)
	if errors.Is(err, continuo.ErrNotFound) {
		if position, err = l.LastFinished(ctx); err == nil {
			err = l.log.SetFeedPosition(ctx, name, position)
		}
	}
	if err != nil {
		return err
	}
	err = l.sendAfter(ctx, hook, position)
	if errors.Is(err, continuo.ErrFeedPruned) {
		hook.Logger.ErrorContext(ctx, "webhook_turns_lost", "webhook", hook.Name, "after", position, "error", err.Error())
		hook.Lost()
		err = l.sendAfter(ctx, hook, -1)
	}
	return err
}

// sendAfter sends the turns after a position. That of the webhook is moved past turns that it does not get when it has to be
// moved anyway, or when no more turns have ended.
func (l *Ledger) sendAfter(ctx context.Context, hook Webhook, position int64) error {
	var seen, accepted int64
	for turn, err := range l.Follow(ctx, continuo.FeedQuery{After: position}) {
		switch {
		case err != nil:
			return err
		case turn.TurnID == "":
			hook.Behind(0)
		case hook.gets(turn):
			if err := hook.deliver(ctx, turn); err != nil {
				return err
			}
			seen = turn.Position
		default:
			seen = turn.Position
			continue
		}
		if seen == accepted {
			continue
		}
		if err := l.log.SetFeedPosition(ctx, WebhookPosition(hook.Name), seen); err != nil {
			return err
		}
		accepted = seen
	}
	return ctx.Err()
}

// gets reports whether a turn is sent.
func (h Webhook) gets(turn continuo.FinishedTurn) bool {
	return slices.Contains(h.States, turn.State) && (len(h.Projects) == 0 || slices.Contains(h.Projects, turn.ProjectID))
}

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
	if h.Lost == nil {
		h.Lost = func() {}
	}
	if h.Behind == nil {
		h.Behind = func(time.Duration) {}
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
		return fmt.Errorf("webhook %s: turn %s: %w", h.Name, turn.TurnID, err)
	}
	id := "msg_" + strconv.FormatInt(turn.Position, 10)
	for pause := firstWebhookPause; ; pause = min(2*pause, maxWebhookPause) {
		h.Behind(max(h.Now().Sub(turn.EndedAt), 0))
		err := h.post(ctx, id, body)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if h.Sent(err == nil); err == nil {
			return nil
		}
		h.Logger.WarnContext(ctx, "webhook_failed", "webhook", h.Name, "message_id", id, "turn_id", turn.TurnID, "error", err.Error(), "again_in", pause.String())
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

// The status of an answer says all. Its body is read so that the connection can be used again, as far as it comes at once.
const (
	maxWebhookAnswer   = 64 << 10
	webhookAnswerDelay = 200 * time.Millisecond
)

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
	defer time.AfterFunc(webhookAnswerDelay, cancel).Stop()
	_, _ = io.CopyN(io.Discard, response.Body, maxWebhookAnswer)
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("the receiver answered %s", response.Status)
	}
	return nil
}
