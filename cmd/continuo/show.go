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
)

type showCommand struct {
	Conversation string `arg:"" name:"conv" help:"Which one: id, key or @1."`
	Entries      int    `default:"20" placeholder:"N" help:"How many of the newest entries to show (default 20); 0 for none."`
	All          bool   `help:"Show all entries."`
	Full         bool   `help:"Show texts whole, not only how they begin."`
	JSON         bool   `help:"Write JSON: {conversation, entries}."`
}

func (showCommand) Help() string {
	return `Shows what is known about a conversation, and its newest entries: seq, role, the step or the agent that it is of (review, @ada), and how each begins. What a model would be shown of it is another matter: see continuo context show.

Examples:

    continuo conversations show s1
    continuo conversations show s1 --all --full | less
    continuo conversations show @1 --all --json | jq '.entries[] | select(.role == "tool")'`
}

// Run prints the conversation.
func (s *showCommand) Run(ctx context.Context, a *app) error {
	if s.Entries < 0 {
		return usage("--entries %d: give 0 for none or a positive number", s.Entries)
	}
	w, err := a.wire(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
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
		a.print("%s", a.paint.dim(fmt.Sprintf("… %s before (--all shows them)", count(before, "entry"))))
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
	for entry, err := range w.log.Read(ctx, conversation, continuo.Range{Backward: true}) {
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
	if title := oneLine(conversation.Title, 200); title != "" {
		return title
	}
	return oneLine(nameOf(conversation), 200)
}

func (a *app) showHeader(conversation continuo.Conversation) {
	a.print("%s", a.paint.bold(titleOf(conversation)))
	t := table{}
	row := func(name, value string) { t.add(cell{name, a.paint.dim}, plain(value)) }
	row("id", conversation.ID)
	if conversation.Key != "" {
		row("key", oneLine(conversation.Key, 200))
	}
	if conversation.UserID != "" {
		row("user", oneLine(conversation.UserID, 200))
	}
	row("project", oneLine(conversation.ProjectID, 200))
	row("mode", string(conversation.ActiveMode))
	if conversation.ActiveAgent != "" {
		row("agent", oneLine(conversation.ActiveAgent, 200))
	}
	row("entries", number(conversation.LastSeq))
	row("created", when(conversation.CreatedAt))
	row("updated", when(conversation.UpdatedAt))
	if conversation.ParentID != "" {
		row("fork of", fmt.Sprintf("%s, its first %s", conversation.ParentID, count(conversation.ForkSeq, "entry")))
	}
	if len(conversation.Metadata) > 0 {
		row("metadata", oneLine(string(conversation.Metadata), 400))
	}
	for _, line := range t.lines(a.width) {
		a.print("%s", line)
	}
	a.print("")
}

// showEntries prints entries as a table, one line each.
func (a *app) showEntries(entries []continuo.Entry) {
	t := table{right: []bool{true, false, false, true}}
	of := newOrigins(a.paint)
	for i := range entries {
		of.see(&entries[i])
	}
	for i := range entries {
		entry := &entries[i]
		words := a.wordsOf(entry)
		if entry.Hidden {
			words.text = "(hidden) " + words.text
		}
		t.add(cell{number(entry.Seq), a.paint.dim}, a.roleCell(entry.Role), of.cell(entry), cell{number(entry.Tokens), a.paint.dim}, words)
	}
	t.dropEmpty(2, 0)
	for _, line := range t.lines(a.tableWidth()) {
		a.print("%s", line)
	}
}

// tableWidth is how wide tables of entries get: the terminal's width, or 120 columns.
func (a *app) tableWidth() int {
	if a.width > 0 {
		return a.width
	}
	return 120
}

func (a *app) roleCell(role continuo.Role) cell {
	switch role {
	case continuo.User:
		return cell{string(role), a.paint.cyan}
	case continuo.Assistant:
		return cell{string(role), a.paint.green}
	case continuo.Tool:
		return cell{string(role), a.paint.yellow}
	}
	return cell{string(role), a.paint.dim}
}

// wordsOf summarizes an entry on one line.
func (a *app) wordsOf(entry *continuo.Entry) cell {
	const limit = 300
	content := contentWords(entry.Content, limit)
	var words []string
	if entry.Role == continuo.Tool {
		words = append(words, toolWords(entry)+" ·")
	}
	if content != "" {
		words = append(words, content)
	}
	for _, call := range entry.ToolCalls {
		words = append(words, "→ "+callWords(call, limit))
	}
	if entry.Error != nil {
		failure := fmt.Sprintf("✘ %s: %s", entry.Error.Reason, oneLine(entry.Error.Message, limit))
		if len(words) > 0 {
			failure = fmt.Sprintf("✘ %s after: %s", entry.Error.Reason, strings.Join(words, " "))
		}
		return cell{failure, a.paint.red}
	}
	if len(words) == 0 && entry.Reasoning != nil {
		return cell{"(thinking) " + oneLine(entry.Reasoning.Text, limit), a.paint.dim}
	}
	return plain(strings.Join(words, " "))
}

// contentWords is the beginning of content on one line; non-text parts are named.
func contentWords(content continuo.Content, limit int) string {
	if !content.IsParts() {
		return oneLine(content.String(), limit)
	}
	var words []string
	for _, part := range content.Parts() {
		if part.IsText() {
			words = append(words, oneLine(part.Text, limit))
		} else {
			words = append(words, "["+oneLine(part.Type, 40)+"]")
		}
	}
	return fit(strings.Join(words, " "), limit)
}

// callWords formats a tool call as in a program.
func callWords(call continuo.ToolCall, limit int) string {
	return oneLine(call.Name, 60) + "(" + oneLine(call.Arguments, limit) + ")"
}

// toolWords describes a tool's result: its name and its outcome.
func toolWords(entry *continuo.Entry) string {
	name := entry.ToolName
	if name == "" {
		name = entry.Name
	}
	if name == "" {
		name = "result"
	}
	words := "← " + oneLine(name, 60)
	if entry.Outcome != "" {
		words += " · " + oneLine(entry.Outcome, 100)
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
		head := fmt.Sprintf("%s %s", a.paint.dim("── "+number(entry.Seq)), role.paint(role.text))
		if entry.Name != "" {
			head += " " + oneLine(entry.Name, 60)
		}
		if mark := of.cell(entry); mark.text != "" {
			head += " " + mark.paint(mark.text)
		}
		a.print("%s %s", head, a.paint.dim(fmt.Sprintf("· %s · %s", when(entry.CreatedAt), count(entry.Tokens, "token"))))
		if entry.Reasoning != nil && entry.Reasoning.Text != "" {
			a.print("%s", a.paint.dim(a.shown(entry.Reasoning.Text)))
		}
		if text := wholeContent(entry.Content); text != "" {
			a.print("%s", a.shown(text))
		}
		for _, call := range entry.ToolCalls {
			a.print("→ %s %s", a.paint.yellow(a.shown(call.Name)), a.shown(call.Arguments))
		}
		if entry.Error != nil {
			a.print("%s", a.paint.red(fmt.Sprintf("✘ %s: %s", entry.Error.Reason, a.shown(entry.Error.Message))))
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
		texts = append(texts, partWords(part))
	}
	return strings.Join(texts, "\n")
}

func partWords(part continuo.Part) string {
	const limit = 200
	raw := part.Raw
	if object, err := rawjson.ParseObject(raw); err == nil {
		raw = json.RawMessage(rawjson.MustMarshal(object))
	}
	text := oneLine(string(raw), limit)
	if length := utf8.RuneCount(raw); length > limit {
		text += fmt.Sprintf(" (%s)", count(length, "character"))
	}
	return text
}

// shown is foreign text made safe for the console's output.
func (a *app) shown(text string) string {
	if a.outTerminal {
		return harmless(text)
	}
	return text
}
