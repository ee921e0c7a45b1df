package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/term"
)

type showCommand struct {
	Conversation string `arg:"" name:"conv" help:"Which one: id, key or @1."`
	Entries      int    `default:"20" placeholder:"N" help:"How many of the newest entries to show (default 20); 0 for none."`
	All          bool   `help:"Show all entries."`
	Full         bool   `help:"Show whole texts, not only their beginnings."`
	JSON         bool   `help:"Write JSON: {conversation, entries}."`
}

func (showCommand) Help() string {
	return `Shows the fields of a conversation, and its newest entries: seq, role, step or agent (review, @ada), and the beginning of each. For the entries that a model would be shown, see continuo context show.

Examples:

    continuo conversations show s1
    continuo conversations show s1 --all --full | less
    continuo conversations show @1 --all --json | jq '.entries[] | select(.role == "tool")'`
}

func (s *showCommand) check() error {
	if s.Entries < 0 {
		return usage("--entries %d: give 0 for none or a positive number", s.Entries)
	}
	return nil
}

// Run prints the conversation.
func (s *showCommand) Run(ctx context.Context, a *app, w *services) error {
	conversation, err := w.find(ctx, s.Conversation)
	if err != nil {
		return err
	}
	limit := int64(s.Entries)
	if s.All {
		limit = conversation.LastSeq
	}
	entries, err := w.newest(ctx, conversation, limit)
	if err != nil {
		return err
	}
	if s.JSON {
		return a.json(map[string]any{"conversation": conversation, "entries": entries})
	}
	a.showHeader(conversation)
	if before := conversation.LastSeq - int64(len(entries)); before > 0 && len(entries) > 0 {
		a.print("%s", a.paint.Dim(fmt.Sprintf("… %s before (--all shows them)", term.Count(before, "entry"))))
	}
	if s.Full {
		a.showWhole(entries)
		return nil
	}
	a.showEntries(entries)
	return nil
}

// newest reads the newest entries of a conversation, oldest first.
func (w *services) newest(ctx context.Context, conversation continuo.Conversation, limit int64) ([]continuo.Entry, error) {
	entries := []continuo.Entry{}
	if limit == 0 {
		return entries, nil
	}
	for entry, err := range w.engine.Conversations.Read(ctx, conversation, continuo.Range{Backward: true}) {
		if err != nil {
			return nil, err
		}
		if entries = append(entries, entry); int64(len(entries)) == limit {
			break
		}
	}
	slices.Reverse(entries)
	return entries, nil
}

// titleOf is a conversation's title, or its name when it has none.
func titleOf(conversation continuo.Conversation) string {
	if title := term.OneLine(conversation.Title, 200); title != "" {
		return title
	}
	return term.OneLine(nameOf(conversation), 200)
}

func (a *app) showHeader(conversation continuo.Conversation) {
	a.print("%s", a.paint.Bold(titleOf(conversation)))
	t := a.table()
	t.Fact("id", conversation.ID)
	t.Fact("key", term.OneLine(conversation.Key, 200))
	t.Fact("user", term.OneLine(conversation.UserID, 200))
	t.Fact("project", term.OneLine(conversation.ProjectID, 200))
	t.Fact("mode", string(conversation.ActiveMode))
	t.Fact("agent", term.OneLine(conversation.ActiveAgent, 200))
	t.Fact("entries", term.Number(conversation.LastSeq))
	t.Fact("created", term.Time(conversation.CreatedAt))
	t.Fact("updated", term.Time(conversation.UpdatedAt))
	if conversation.ParentID != "" {
		t.Fact("fork of", fmt.Sprintf("%s, its first %s", conversation.ParentID, term.Count(conversation.ForkSeq, "entry")))
	}
	t.Fact("metadata", term.OneLine(string(conversation.Metadata), 400))
	a.printTable(t, a.width)
	a.print("")
}

// showEntries prints entries as a table, one line each.
func (a *app) showEntries(entries []continuo.Entry) {
	t := a.table(">entry", "role", "of", ">tokens", "text")
	of := newOrigins(a.paint)
	for i := range entries {
		of.see(&entries[i])
	}
	for i := range entries {
		entry := &entries[i]
		words := a.entryText(entry)
		if entry.Hidden {
			words = "(hidden) " + words
		}
		t.Add(a.paint.Dim(term.Number(entry.Seq)), a.roleCell(entry.Role), of.cell(entry), a.paint.Dim(term.Number(entry.Tokens)), words)
	}
	t.DropEmpty(2)
	a.printTable(t, a.tableWidth())
}

// tableWidth is how wide tables of entries get: the terminal's width, or 120 columns.
func (a *app) tableWidth() int {
	if a.width > 0 {
		return a.width
	}
	return 120
}

func (a *app) roleCell(role continuo.Role) string {
	switch role {
	case continuo.User:
		return a.paint.Cyan(string(role))
	case continuo.Assistant:
		return a.paint.Green(string(role))
	case continuo.Tool:
		return a.paint.Yellow(string(role))
	}
	return a.paint.Dim(string(role))
}

// entryText summarizes an entry on one line.
func (a *app) entryText(entry *continuo.Entry) string {
	const limit = 300
	content := contentText(entry.Content, limit)
	var words []string
	if entry.Role == continuo.Tool {
		words = append(words, toolText(entry)+" ·")
	}
	if content != "" {
		words = append(words, content)
	}
	for _, call := range entry.ToolCalls {
		words = append(words, "→ "+callText(call, limit))
	}
	if entry.Error != nil {
		failure := fmt.Sprintf("✘ %s: %s", entry.Error.Reason, term.OneLine(entry.Error.Message, limit))
		if len(words) > 0 {
			failure = fmt.Sprintf("✘ %s after: %s", entry.Error.Reason, strings.Join(words, " "))
		}
		return a.paint.Red(failure)
	}
	if len(words) == 0 && entry.Reasoning != nil {
		return a.paint.Dim("(thinking) " + term.OneLine(entry.Reasoning.Text, limit))
	}
	return strings.Join(words, " ")
}

// contentText is the beginning of content on one line; non-text parts are named.
func contentText(content continuo.Content, limit int) string {
	if !content.IsParts() {
		return term.OneLine(content.String(), limit)
	}
	var words []string
	for _, part := range content.Parts() {
		if part.IsText() {
			words = append(words, term.OneLine(part.Text, limit))
		} else {
			words = append(words, "["+term.OneLine(part.Type, 40)+"]")
		}
	}
	return term.Fit(strings.Join(words, " "), limit)
}

// callText formats a tool call as in a program.
func callText(call continuo.ToolCall, limit int) string {
	return term.OneLine(call.Name, 60) + "(" + term.OneLine(call.Arguments, limit) + ")"
}

// toolText describes a tool's result: its name and its outcome.
func toolText(entry *continuo.Entry) string {
	name := entry.ToolName
	if name == "" {
		name = entry.Name
	}
	if name == "" {
		name = "result"
	}
	words := "← " + term.OneLine(name, 60)
	if entry.Outcome != "" {
		words += " · " + term.OneLine(entry.Outcome, 100)
	}
	return words
}

// showWhole prints entries with their complete texts.
func (a *app) showWhole(entries []continuo.Entry) {
	of := newOrigins(a.paint)
	for i := range entries {
		of.see(&entries[i])
	}
	for i := range entries {
		entry := &entries[i]
		role := a.roleCell(entry.Role)
		head := fmt.Sprintf("%s %s", a.paint.Dim("── "+term.Number(entry.Seq)), role)
		if entry.Name != "" {
			head += " " + term.OneLine(entry.Name, 60)
		}
		if mark := of.cell(entry); mark != "" {
			head += " " + mark
		}
		a.print("%s %s", head, a.paint.Dim(fmt.Sprintf("· %s · %s", term.Time(entry.CreatedAt), term.Count(entry.Tokens, "token"))))
		if entry.Reasoning != nil && entry.Reasoning.Text != "" {
			a.print("%s", a.paint.Dim(a.shown(entry.Reasoning.Text)))
		}
		if text := wholeContent(entry.Content); text != "" {
			a.print("%s", a.shown(text))
		}
		for _, call := range entry.ToolCalls {
			a.print("→ %s %s", a.paint.Yellow(a.shown(call.Name)), a.shown(call.Arguments))
		}
		if entry.Error != nil {
			a.print("%s", a.paint.Red(fmt.Sprintf("✘ %s: %s", entry.Error.Reason, a.shown(entry.Error.Message))))
		}
	}
}

// wholeContent is the text of content, with non-text parts as JSON, long ones truncated.
func wholeContent(content continuo.Content) string {
	if !content.IsParts() {
		return content.String()
	}
	var texts []string
	for _, part := range content.Parts() {
		if part.IsText() {
			texts = append(texts, part.Text)
			continue
		}
		texts = append(texts, partText(part))
	}
	return strings.Join(texts, "\n")
}

func partText(part continuo.Part) string {
	const limit = 200
	raw := part.Raw
	if object, err := rawjson.ParseObject(raw); err == nil {
		raw = json.RawMessage(rawjson.MustMarshal(object))
	}
	text := term.OneLine(string(raw), limit)
	if length := utf8.RuneCount(raw); length > limit {
		text += fmt.Sprintf(" (%s)", term.Count(length, "character"))
	}
	return text
}

// shown is foreign text made safe for the console's output.
func (a *app) shown(text string) string {
	if a.outTerminal {
		return term.Clean(text)
	}
	return text
}
