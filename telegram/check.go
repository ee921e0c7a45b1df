package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// Report is what Telegram reports about a chat and about the bots that are to speak in it.
type Report struct {
	// Chat is its title, and ChatType private, group, supergroup or channel; "" where the listener cannot see it.
	Chat, ChatType string
	// Bots are the listener, which has no role, and then the bots of roles, sorted by role.
	Bots []BotReport
	// Findings are the faults, with how to fix them.
	Findings []Finding
}

// BotReport is a bot that Telegram knows.
type BotReport struct {
	Role     string // "" for the listener
	Username string
}

// Finding is a fault that disables a front end, or a part of it.
type Finding struct {
	// Fatal says that the front end could receive nothing from the chat, or send nothing to it.
	Fatal bool
	Text  string // for people to read
}

// Check asks Telegram about the bots and the chat of a front end, and changes nothing. The error is about options, or
// is ctx's; all that Telegram says is in the report.
func Check(ctx context.Context, options Options) (*Report, error) {
	f, err := New(nil, options)
	if err != nil {
		return nil, err
	}
	c := &checking{FrontEnd: f, report: &Report{}}
	if listener, ok := c.bot(ctx, f.listener, ""); ok {
		c.chat(ctx, listener)
		c.webhook(ctx)
	}
	for _, role := range slices.Sorted(maps.Keys(f.roles)) {
		if bot, ok := c.bot(ctx, f.roles[role], role); ok {
			c.roleIn(ctx, f.roles[role], role, bot)
		}
	}
	return c.report, ctx.Err()
}

// checking makes one report.
type checking struct {
	*FrontEnd
	report *Report
}

func (c *checking) find(fatal bool, format string, args ...any) {
	c.report.Findings = append(c.report.Findings, Finding{fatal, fmt.Sprintf(format, args...)})
}

// bot fetches a bot's account.
func (c *checking) bot(ctx context.Context, b *bot, role string) (me account, ok bool) {
	me, err := b.me(ctx)
	name := "the listener"
	if role != "" {
		name = "the bot of " + role
	}
	switch {
	case isRefusedToken(err):
		c.find(role == "", "Telegram knows no bot by the token of %s: take it over from BotFather as it is", name)
	case err != nil:
		c.find(role == "", "%s cannot be asked for: %v", name, err)
	default:
		c.report.Bots = append(c.report.Bots, BotReport{Role: role, Username: me.Username})
	}
	return me, err == nil
}

// chat checks whether the listener receives the chat's messages, and may write in it.
func (c *checking) chat(ctx context.Context, me account) {
	id := c.options.ChatID
	found, err := c.listener.chat(ctx, id)
	refused, _ := errors.AsType[*apiError](err)
	switch {
	case refused != nil && refused.MigrateTo != 0:
		c.find(true, "the chat has become a supergroup: its id is now %d", refused.MigrateTo)
		return
	case refused != nil && refused.Code == http.StatusBadRequest && id > 0:
		c.find(true, "@%s sees no chat %d: its owner must press Start in it first; or the id is another one", me.Username, id)
		return
	case refused != nil && (refused.Code == http.StatusBadRequest || refused.Code == http.StatusForbidden):
		c.find(true, "@%s sees no chat %d: add it to the group; or the id is another one", me.Username, id)
		return
	case err != nil:
		c.find(true, "the chat cannot be asked for: %v", err)
		return
	}
	c.report.Chat, c.report.ChatType = oneLine(cmp.Or(found.Title, found.FirstName, found.Username), 64), found.Type
	if found.Type == "private" {
		return
	}
	joined, err := c.listener.member(ctx, id, me.ID)
	switch {
	case err != nil:
		c.find(true, "whether @%s is in the chat cannot be asked for: %v", me.Username, err)
	case !joined.isIn():
		c.find(true, "@%s is not in the chat: add it", me.Username)
	case !joined.maySend():
		c.find(true, "@%s may not write in the chat: let it", me.Username)
	case !me.ReadsAll && !joined.isAdmin():
		c.find(true, "@%s receives only commands and replies in groups: write /setprivacy to BotFather, choose it, then Disable; take it out of the group, and add it again", me.Username)
	}
}

// roleIn checks whether a role's bot may write in the chat.
func (c *checking) roleIn(ctx context.Context, b *bot, role string, me account) {
	if c.report.ChatType == "" {
		return // nothing more can be checked
	}
	if c.report.ChatType == "private" {
		if _, err := b.chat(ctx, c.options.ChatID); err != nil {
			c.find(false, "@%s, the bot of %s, has no chat with this person: press Start in it, or the listener speaks for it", me.Username, role)
		}
		return
	}
	joined, err := b.member(ctx, c.options.ChatID, me.ID)
	if refused, ok := errors.AsType[*apiError](err); ok && refused.Code < http.StatusInternalServerError && refused.Code != http.StatusTooManyRequests {
		joined, err = membership{}, nil // the bot cannot see the chat
	}
	switch {
	case err != nil:
		c.find(false, "whether @%s, the bot of %s, is in the chat cannot be asked for: %v", me.Username, role, err)
	case !joined.isIn():
		c.find(false, "@%s, the bot of %s, is not in the chat: add it, or the listener speaks for it", me.Username, role)
	case !joined.maySend():
		c.find(false, "@%s, the bot of %s, may not write in the chat: let it, or the listener speaks for it", me.Username, role)
	}
}

// webhook checks where Telegram posts the updates.
func (c *checking) webhook(ctx context.Context) {
	hook, err := c.listener.webhook(ctx)
	want := ""
	if c.options.Webhook != nil {
		want = c.options.Webhook.URL
	}
	switch {
	case err != nil:
		c.find(false, "the webhook cannot be asked for: %v", err)
	case hook.URL != want && hook.URL != "":
		c.find(false, "Telegram posts what people write to %s; that changes when the front end starts", oneLine(hook.URL, 200))
	case hook.LastError != "" && hook.Pending > 0:
		c.find(false, "Telegram cannot post to the webhook (%d messages wait): %s", hook.Pending, oneLine(hook.LastError, 200))
	}
}
