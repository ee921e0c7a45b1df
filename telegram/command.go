package telegram

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// command is a message that is addressed to the bot itself.
type command struct {
	name     string // in lower case, without the slash
	bot      string // the bot's name after the command; "" for none
	argument string
}

// offeredCommand is a command as Telegram shows it to people.
type offeredCommand struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

func offeredCommands() []offeredCommand {
	return []offeredCommand{
		{"status", "the state of the crew"},
		{"roles", "who is in the crew"},
		{"context", "what a role sees now: /context ROLE"},
		{"stop", "stop what the crew does now"},
		{"resume", "let it go on"},
		{"reset", "all roles begin again; nothing is deleted"},
		{"restore", "take the newest reset back"},
		{"help", "what there is"},
	}
}

var commandPattern = regexp.MustCompile(`^/([A-Za-z0-9_]{1,32})(?:@([A-Za-z0-9_]{1,64}))?(?:\s+|$)`)

// parseCommand parses a command; ok is false for any other text, such as a path.
func parseCommand(text string) (c command, ok bool) {
	found := commandPattern.FindStringSubmatch(text)
	if found == nil {
		return command{}, false
	}
	return command{name: strings.ToLower(found[1]), bot: found[2], argument: strings.TrimSpace(text[len(found[0]):])}, true
}

// overtakes reports whether an update is a command that runs even if an earlier message is still waiting to be
// recorded: a command that only reads, or that stops the work that may be blocking.
func (f *FrontEnd) overtakes(u update) bool {
	if u.Message == nil || u.Message.Chat.ID != f.options.ChatID || u.Message.isBots() || u.Message.Forward != nil {
		return false
	}
	c, ok := parseCommand(u.Message.Text)
	return ok && slices.Contains([]string{"stop", "status", "roles", "context", "start", "help"}, c.name)
}

// settle finishes a command that has overtaken messages, once those are handled: a stop also stops the work on messages
// that were written before it, without a second reply.
func (f *FrontEnd) settle(ctx context.Context, u update) error {
	if c, _ := parseCommand(u.Message.Text); c.name != "stop" || c.bot != "" && !strings.EqualFold(c.bot, f.username) {
		return nil
	}
	_, err := f.crew.Stop(ctx)
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return nil
	}
	return err
}

// command executes a command. Commands for other bots are ignored.
func (f *FrontEnd) command(ctx context.Context, u update, c command) error {
	if c.bot != "" && !strings.EqualFold(c.bot, f.username) {
		return nil
	}
	switch c.name {
	case "reset":
		return f.change(ctx, u, f.crew.Reset)
	case "restore":
		return f.change(ctx, u, f.crew.Restore)
	case "stop":
		return f.change(ctx, u, unkeyed(f.crew.Stop))
	case "resume":
		return f.change(ctx, u, unkeyed(f.crew.Resume))
	case "status":
		return f.show(ctx, f.crew.Status)
	case "roles":
		return f.show(ctx, f.crew.Roles)
	case "context":
		return f.showContext(ctx, c.argument)
	case "start", "help":
		return f.notify(ctx, help(""))
	default:
		return f.notify(ctx, help("There is no command /"+c.name+"."))
	}
}

// unkeyed is an idempotent change, which needs no key.
func unkeyed(do func(context.Context) (string, error)) func(context.Context, string) (string, error) {
	return func(ctx context.Context, _ string) (string, error) { return do(ctx) }
}

// change executes a command that changes something, once per update, and replies with the result.
func (f *FrontEnd) change(ctx context.Context, u update, do func(context.Context, string) (string, error)) error {
	answer, err := do(ctx, f.key(u))
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return f.notify(ctx, refused.Reason)
	}
	if err != nil {
		return fmt.Errorf("carry the command out: %w", err)
	}
	return f.notify(ctx, answer)
}

// show replies with what a command reads. A failure is reported too: the person can send the command again.
func (f *FrontEnd) show(ctx context.Context, read func(context.Context) (string, error)) error {
	bounded, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	answer, err := read(bounded)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return f.notify(ctx, refused.Reason)
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.log.ErrorContext(ctx, "telegram_command_failed", "error", err.Error())
		return f.notify(ctx, "That could not be read. Please try again.")
	}
	return f.notify(ctx, answer)
}

func (f *FrontEnd) showContext(ctx context.Context, role string) error {
	if role == "" || strings.ContainsAny(role, " \n\t") {
		return f.notify(ctx, "Which role? Write /context ROLE; /roles lists them.")
	}
	return f.show(ctx, func(ctx context.Context) (string, error) {
		answer, err := f.crew.Context(ctx, role)
		return f.newest(answer), err
	})
}

// contextMessages is the most messages that a role's context takes in the chat: a long one would delay the roles'
// answers for minutes.
const contextMessages = 2

// newest returns the end of a text that is too long for the chat, with a line that says so.
func (f *FrontEnd) newest(text string) string {
	room := contextMessages * f.options.MaxMessageLength * 3 / 4
	start := len(text)
	for start > 0 {
		r, width := utf8.DecodeLastRuneInString(text[:start])
		if room -= units(r); room < 0 {
			break
		}
		start -= width
	}
	if start == 0 {
		return text
	}
	end := text[start:]
	if _, rest, ok := strings.Cut(end, "\n"); ok {
		end = rest
	}
	return fmt.Sprintf("The newest %d of %d characters; continuo crew context shows all.\n\n%s", utf8.RuneCountInString(end), utf8.RuneCountInString(text), end)
}

// help lists the commands, after a complaint if there is one.
func help(complaint string) string {
	var b strings.Builder
	if complaint != "" {
		b.WriteString(complaint + "\n\n")
	}
	b.WriteString("Whatever you write here goes to the crew, whose roles answer in turn.\n")
	for _, c := range offeredCommands() {
		b.WriteString("\n/" + c.Command + ": " + c.Description)
	}
	return b.String()
}
