package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/server"
	"github.com/continuo-log/continuo/telegram"
)

// telegramFrontEnd makes the front end of the settings; nil if there is none.
func telegramFrontEnd(w *services, env []string, logger *slog.Logger) (*telegram.FrontEnd, error) {
	settings := w.settings.Telegram
	if settings.Crew == "" {
		return nil, nil
	}
	found, err := w.engine.Crews.Get(settings.Crew)
	if err != nil {
		return nil, fmt.Errorf("telegram.crew: %w", err)
	}
	options, unset, err := telegramOptions(settings, found, env)
	if err != nil {
		return nil, err
	}
	if len(unset) > 0 {
		logger.Warn("telegram_tokens_unset", "variables", unset, "note", "the crew's own bot speaks for these roles")
	}
	options.Log = logger
	chat := &crewChat{engine: w.engine, logger: logger, session: engine.CrewSession{
		Scope: continuo.Scope{ProjectID: settings.Project}, Crew: found.ID, SessionID: "telegram:" + strconv.FormatInt(settings.ChatID, 10),
	}}
	frontEnd, err := telegram.New(chat, options)
	if err != nil {
		return nil, fmt.Errorf("telegram: %w", err)
	}
	return frontEnd, nil
}

// telegramOptions are the settings' options for a crew; unset are the variables of its roles' tokens that have no value.
func telegramOptions(settings config.TelegramConfig, c *crew.Crew, env []string) (options telegram.Options, unset []string, err error) {
	if settings.BotToken == "" {
		return options, nil, errors.New("telegram.bot_token has no value, and telegram.crew is set: set the variable that it names (continuo doctor names it), or take telegram.crew out")
	}
	options = telegram.Options{Token: settings.BotToken, ChatID: settings.ChatID, MaxMessageLength: settings.MaxMessageLength, URL: settings.APIURL}
	options.RoleTokens, unset = botTokens(c, env)
	options.DisplayNames = map[string]string{}
	for i := range c.Roles {
		options.DisplayNames[c.Roles[i].Name] = c.Roles[i].DisplayName
	}
	if settings.WebhookURL != "" {
		options.Webhook = &telegram.Webhook{URL: settings.WebhookURL, Secret: settings.WebhookSecret}
	}
	return options, unset, nil
}

// withWebhook serves the front end's path besides everything else.
func withWebhook(rest http.Handler, settings *config.Config, frontEnd *telegram.FrontEnd) http.Handler {
	hook, err := url.Parse(settings.Telegram.WebhookURL)
	if frontEnd == nil || settings.Telegram.WebhookURL == "" || err != nil {
		return rest
	}
	own := server.LimitBodies(frontEnd.Handler(), settings.Server.BodyTimeout)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == hook.Path {
			own.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
}

// crewChat is a crew's conversation as a front end sees it.
type crewChat struct {
	engine  *engine.Engine
	logger  *slog.Logger
	session engine.CrewSession
}

// Send implements [telegram.Crew].
func (c *crewChat) Send(ctx context.Context, key string, message continuo.Content, author *continuo.Author) error {
	if _, err := c.Delivered(ctx); err != nil { // answers from here on are sent
		return err
	}
	_, err := c.engine.Crews.Send(ctx, engine.CrewMessage{Session: c.session, Message: message, Author: author, Key: key, Detached: true})
	if errors.Is(err, continuo.ErrKeyReused) { // the message was edited, or is parsed otherwise now: the first one counts
		return nil
	}
	return refusal(err)
}

// refusal distinguishes permanent errors from temporary ones. The chat sees one line: files and settings are not its
// concern.
func refusal(err error) error {
	if _, ok := errors.AsType[*continuo.OverflowError](err); ok {
		return &telegram.RefusedError{Reason: "That is more than the crew can be shown at once. Please send it in parts."}
	}
	if _, ok := errors.AsType[*crew.Problems](err); ok {
		return &telegram.RefusedError{Reason: "The crew's file is not valid, so that the crew cannot answer. The operator finds the cause with continuo doctor."}
	}
	for _, stays := range []error{continuo.ErrInvalid, continuo.ErrArchived, engine.ErrNoCycle} {
		if errors.Is(err, stays) {
			line, _, _ := strings.Cut(err.Error(), "\n")
			return &telegram.RefusedError{Reason: term.OneLine(line, 300)}
		}
	}
	return err
}

// withoutStderr is the reason of a failure without what a program wrote on its stderr, which must not reach a chat: it
// may contain paths and secrets.
func withoutStderr(reason string) string {
	reason, _, _ = strings.Cut(reason, "; its stderr")
	return reason + strings.Repeat(")", max(strings.Count(reason, "(")-strings.Count(reason, ")"), 0))
}

// Stop implements [telegram.Crew].
func (c *crewChat) Stop(ctx context.Context) (string, error) {
	status, err := c.engine.Crews.Stop(ctx, c.session, "a person stopped it")
	switch {
	case errors.Is(err, continuo.ErrNotFound):
		return "Nothing was said yet.", nil
	case err != nil:
		return "", refusal(err)
	case status.State == continuo.RunStopped:
		return "We stop here. /resume or any message continues.", nil
	}
	return "No role is answering.", nil
}

// Resume implements [telegram.Crew].
func (c *crewChat) Resume(ctx context.Context) (string, error) {
	_, err := c.engine.Crews.Resume(ctx, c.session, true)
	if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, engine.ErrNoCycle) {
		return "There is nothing to continue. Send a message.", nil
	}
	if err != nil {
		return "", refusal(err)
	}
	return "We go on.", nil
}

// Reset implements [telegram.Crew].
func (c *crewChat) Reset(ctx context.Context, key string) (string, error) {
	_, err := c.engine.Crews.Reset(ctx, c.session, key)
	if errors.Is(err, continuo.ErrNotFound) {
		return "There is nothing to forget yet.", nil
	}
	if err != nil {
		return "", refusal(err)
	}
	return "The crew is reset. Earlier messages are kept: /restore brings them back.", nil
}

// Restore implements [telegram.Crew].
func (c *crewChat) Restore(ctx context.Context, key string) (string, error) {
	status, err := c.engine.Crews.Restore(ctx, c.session, key)
	if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, engine.ErrNoCycle) {
		return "There is nothing to restore.", nil
	}
	if err != nil {
		return "", refusal(err)
	}
	if status.Since > 0 {
		return "Everybody sees again what was said since the reset before that one. What was said before it stays hidden: /restore brings it back too.", nil
	}
	return "Everybody sees again all that was said.", nil
}

// Status implements [telegram.Crew].
func (c *crewChat) Status(ctx context.Context) (string, error) {
	status, err := c.engine.Crews.Status(ctx, c.session)
	if errors.Is(err, continuo.ErrNotFound) {
		return "Nothing was said yet.", nil
	}
	if err != nil {
		return "", refusal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s", status.Name, status.State)
	if status.Reason != "" {
		fmt.Fprintf(&text, " (%s)", withoutStderr(status.Reason))
	}
	names := map[string]string{}
	for _, role := range status.Roles {
		names[role.Name] = role.DisplayName
	}
	switch {
	case status.Speaking != "":
		fmt.Fprintf(&text, "\n%s is speaking.", names[status.Speaking])
	default:
		fmt.Fprintf(&text, "\nNext: %s", names[status.Next])
	}
	for _, role := range status.Roles {
		fmt.Fprintf(&text, "\n%s: %s", role.DisplayName, term.Count(role.Answers, "answer"))
		if why := finishText(role.FinishReason); why != "" {
			fmt.Fprintf(&text, ", the newest %s", why)
		}
		if role.Failed != "" {
			fmt.Fprintf(&text, ", failed: %s", term.OneLine(withoutStderr(role.Failed), 200))
		}
	}
	return text.String(), nil
}

// Roles implements [telegram.Crew].
func (c *crewChat) Roles(context.Context) (string, error) {
	found, err := c.engine.Crews.Get(c.session.Crew)
	if err != nil {
		return "", refusal(err)
	}
	var lines []string
	for _, role := range found.Roles {
		line := fmt.Sprintf("%s (%s): %s", role.DisplayName, role.Name, role.AgentType)
		if role.IsModerator {
			line += ", moderates"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}

// Context implements [telegram.Crew].
func (c *crewChat) Context(ctx context.Context, role string) (string, error) {
	conversation, err := c.engine.Conversations.Find(ctx, c.session.Scope, c.session.SessionID)
	if errors.Is(err, continuo.ErrNotFound) {
		return "Nothing was said yet.", nil
	}
	if err != nil {
		return "", err
	}
	shown, err := c.engine.Contexts.Build(ctx, conversation, engine.ContextRequest{View: engine.RoleViewPrefix + role, Crew: c.session.Crew})
	if err != nil {
		return "", refusal(err)
	}
	var text strings.Builder
	for _, message := range shown.Plan.Messages {
		text.WriteString(message.Content.String() + "\n")
	}
	if strings.TrimSpace(text.String()) == "" {
		return "Nothing: it has no unread messages.", nil
	}
	return text.String(), nil
}

// RunExclusive implements [telegram.Crew].
func (c *crewChat) RunExclusive(ctx context.Context, do func(ctx context.Context) error) error {
	return c.engine.RunExclusive(ctx, c.session.Scope.ProjectID+"/"+c.session.SessionID+"/"+c.session.Crew, func(owner string) {
		c.logger.InfoContext(ctx, "telegram_standby", "owner", owner, "note", "another program with this store answers the chat; this one does when that one ends")
	}, do)
}

// Events implements [telegram.Crew].
func (c *crewChat) Events(ctx context.Context, after int64) iter.Seq2[telegram.Event, error] {
	return func(yield func(telegram.Event, error) bool) {
		conversation, err := c.engine.Crews.OpenSession(ctx, c.session)
		if err != nil {
			yield(telegram.Event{}, err)
			return
		}
		for entry, err := range c.engine.Conversations.Tail(ctx, conversation.ID, after) {
			if err != nil {
				yield(telegram.Event{}, err)
				return
			}
			if event, ok := c.event(&entry); ok && !yield(event, nil) {
				return
			}
		}
	}
}

// event converts an entry to an event that a front end may show.
func (c *crewChat) event(entry *continuo.Entry) (telegram.Event, bool) {
	event := telegram.Event{Seq: entry.Seq, Role: entry.NodeID}
	if id, ok := continuo.CrewOf(entry.WorkflowID); !ok || id != c.session.Crew {
		return event, false
	}
	if entry.Author != nil {
		event.DisplayName = entry.Author.DisplayName
	}
	if entry.Role == continuo.Assistant {
		switch {
		case entry.IsPlaceholder():
			event.Kind = telegram.EventPassed
		case entry.HasCalls() || entry.Error != nil || entry.Content.IsEmpty(): // its final answer follows, or the reason why there is none
			return event, false
		default:
			event.Kind, event.Text = telegram.EventAnswer, entry.Content.String()
			if why := cutText(entry); why != "" {
				event.Text += "\n\n*(" + why + ")*"
			}
		}
		return event, true
	}
	if entry.RunEvent == nil {
		return event, false
	}
	switch entry.RunEvent.Kind {
	case continuo.RunNodeBegan:
		event.Kind = telegram.EventSpeaking
	case continuo.CrewRoleFailed:
		event.Kind, event.Text, event.DisplayName = telegram.EventFailed, withoutStderr(entry.RunEvent.Reason), c.displayName(entry.NodeID)
	case continuo.RunEventFinished:
		event.Kind = telegram.EventEnded
	case continuo.RunEventFailed, continuo.RunEventStopped:
		event.Kind, event.Text = telegram.EventEnded, withoutStderr(entry.Content.String())
	default:
		return event, false
	}
	return event, true
}

// displayName is a role's name for people.
func (c *crewChat) displayName(role string) string {
	if found, err := c.engine.Crews.Get(c.session.Crew); err == nil && found.Role(role) != nil {
		return found.Role(role).DisplayName
	}
	return role
}

// deliveryMark is the name of the mark that holds the crew's [telegram.Delivery].
func (c *crewChat) deliveryMark() string { return "telegram/" + c.session.Crew }

// Delivered implements [telegram.Crew]. In a conversation that is older than the front end only new events are sent.
func (c *crewChat) Delivered(ctx context.Context) (telegram.Delivery, error) {
	conversation, err := c.engine.Crews.OpenSession(ctx, c.session)
	if err != nil {
		return telegram.Delivery{}, err
	}
	mark, err := c.engine.Conversations.Mark(ctx, conversation.ID, c.deliveryMark())
	if errors.Is(err, continuo.ErrNotFound) {
		mark, err = c.engine.Conversations.AdvanceMark(ctx, conversation.ID, c.deliveryMark(), continuo.Mark{Seq: conversation.LastSeq})
	}
	return telegram.Delivery{Seq: mark.Seq, Parts: int(mark.Part)}, err
}

// SetDelivered implements [telegram.Crew]. A delivery before the stored one changes nothing: another process may have
// taken over.
func (c *crewChat) SetDelivered(ctx context.Context, delivery telegram.Delivery) error {
	conversation, err := c.engine.Crews.OpenSession(ctx, c.session)
	if err != nil {
		return err
	}
	_, err = c.engine.Conversations.AdvanceMark(ctx, conversation.ID, c.deliveryMark(), continuo.Mark{Seq: delivery.Seq, Part: int64(delivery.Parts)})
	return err
}
