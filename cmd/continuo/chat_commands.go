package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
)

// slashCommand is a command of a chat.
type slashCommand struct {
	name, argument, help string
	run                  func(*chatSession, context.Context, string) error
}

// slashCommands lists them in the order of /help.
func slashCommands() []slashCommand {
	return []slashCommand{
		{"/context", "", "what the next request will show of this conversation, in short", (*chatSession).showContextNow},
		{"/plan", "", "the same with a verdict and a reason for every entry", (*chatSession).showPlanNow},
		{"/history", "[N]", "the newest N entries of the log (default 20)", (*chatSession).showHistory},
		{"/resume", "", "continue with an answer that broke off", (*chatSession).resume},
		{"/retry", "[MODEL]", "answer the newest message again, by another model if one is named", (*chatSession).retry},
		{"/undo", "", "take the newest message and its answer back", (*chatSession).undo},
		{"/edit", "[TEXT]", "take the newest message back to change it", (*chatSession).edit},
		{"/model", "[NAME]", "choose the model from the next message on; without one, list the models", (*chatSession).switchModel},
		{"/view", "[NAME]", "choose the view that selects what the next request shows; without one, list the views", (*chatSession).switchView},
		{"/mode", "[chat|agent|run]", "switch the mode with the next message; without one, say which is active", (*chatSession).switchMode},
		{"/agent", "[ID|none]", "choose who answers from the next message on; without one, list the agents", (*chatSession).switchAgent},
		{"/title", "TEXT", "give the conversation a title", (*chatSession).retitle},
		{"/open", "[CONV]", "open another conversation, or choose one from the list", (*chatSession).openNamed},
		{"/search", "WORDS", "find what was said, in all conversations", (*chatSession).searchAll},
		{"/copy", "", "copy the newest answer to the clipboard", (*chatSession).copyAnswer},
		{"/new", "", "begin a new conversation", (*chatSession).startNew},
		{"/help", "", "this list", (*chatSession).help},
		{"/quit", "", "leave; Ctrl-D does too", func(*chatSession, context.Context, string) error { return errLeave }},
	}
}

// command executes a line that is a command and reports whether it was one. An unknown word after a slash is refused in
// the terminal, where it is a typing error, and is a message in a script.
func (t *chatSession) command(ctx context.Context, line string) (done bool, err error) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "/") || strings.HasPrefix(line, "//") {
		return false, nil
	}
	name, argument, _ := strings.Cut(line, " ")
	for _, command := range slashCommands() {
		if command.name == name {
			return true, command.run(t, ctx, strings.TrimSpace(argument))
		}
	}
	if t.plain {
		return false, nil
	}
	return true, usage("there is no command %s: /help lists them; // at the beginning says a message that begins with /", term.OneLine(name, 40))
}

func (t *chatSession) help(context.Context, string) error {
	var commands [][2]string
	for _, command := range slashCommands() {
		commands = append(commands, [2]string{command.name + " " + command.argument, command.help})
	}
	t.printPairs(commands)
	if t.screen != nil {
		t.print("")
		t.printPairs(screenKeys)
		return nil
	}
	t.printAside("Ctrl-C stops an answer. Pasted lines stay together until Enter. // begins a message with a slash.")
	return nil
}

// screenKeys are the keys of the screen.
var screenKeys = [][2]string{
	{"Enter", "send; while an answer arrives, send after it"},
	{"Alt-Enter, Ctrl-J", "begin a new line; Shift-Enter where the terminal tells it from Enter, and \\ before Enter"},
	{"@FILE", "take a text file, an image or a PDF file along; Tab completes"},
	{"↑ ↓, Ctrl-R", "earlier messages, also of other conversations; Ctrl-R searches them"},
	{"Ctrl-C", "clear the line, then stop the answer, then leave"},
	{"Ctrl-D", "leave"},
	{"PgUp, PgDn, wheel", "scroll; Ctrl-Home, Ctrl-End go to the ends"},
	{"Ctrl-O", "open another conversation"},
	{"Ctrl-T", "show thinking and results of tools, or not"},
	{"Ctrl-G", "write in $EDITOR"},
	{"F2", "let the mouse select text instead of scrolling"},
	{"//", "begins a message with a slash"},
}

// printPairs lists names with their explanations, wrapped; where the terminal is narrow they are below the names.
func (t *chatSession) printPairs(pairs [][2]string) {
	t.measure()
	names, width := 0, t.tableWidth()
	for _, pair := range pairs {
		names = max(names, term.Width(pair[0]))
	}
	below := width < names+30
	if below {
		names = 2
	}
	for _, pair := range pairs {
		name := t.paint.Cyan(term.Pad(strings.TrimSpace(pair[0]), names))
		if below {
			t.print("%s", name)
			name = ""
		}
		for _, line := range term.Wrap(pair[1], max(width-names-2, 10)) {
			t.print("%s%s", term.Pad(name, names+2), line)
			name = ""
		}
	}
}

// searchAll executes /search: on the screen, the conversations in which the words were said.
func (t *chatSession) searchAll(ctx context.Context, argument string) error {
	if argument == "" {
		return usage("/search needs words")
	}
	if t.screen != nil {
		t.screen.result.Pick, t.screen.result.Words = true, argument
		return nil
	}
	search := searchCommand{Query: []string{argument}, Limit: 10, Kind: "user"}
	return search.Run(ctx, t.app, t.services)
}

// copyAnswer executes /copy.
func (t *chatSession) copyAnswer(context.Context, string) error {
	if t.screen == nil {
		return usage("/copy needs the screen of a terminal")
	}
	t.screen.result.Copy = true
	return nil
}

// nextContext is what a request would show now.
func (t *chatSession) nextContext(ctx context.Context) (*engine.Context, error) {
	if t.conversation.ID == "" {
		return nil, nil
	}
	if err := t.refresh(ctx); err != nil {
		return nil, err
	}
	next := t.conversation
	next.ActiveMode, next.ActiveAgent = t.modeAndAgent()
	return t.engine.Contexts.Build(ctx, next, engine.ContextRequest{View: t.view, UsualView: usualView, Model: t.model})
}

func (t *chatSession) showContextNow(ctx context.Context, _ string) error {
	shown, err := t.nextContext(ctx)
	if err != nil {
		return err
	}
	if shown == nil {
		t.printAside("Nothing has been said yet.")
		return nil
	}
	t.showUse(shown.Plan)
	list := t.table(">")
	for _, message := range shown.Plan.Messages {
		seq := "·"
		if message.Seq > 0 {
			seq = term.Number(message.Seq)
		}
		words := contentText(message.Content, 300)
		for _, call := range message.ToolCalls {
			words += " → " + callText(call, 200)
		}
		list.Add(t.paint.Dim(seq), t.roleCell(message.Role), strings.TrimSpace(words))
	}
	t.printTable(list, t.tableWidth())
	return nil
}

func (t *chatSession) showPlanNow(ctx context.Context, _ string) error {
	shown, err := t.nextContext(ctx)
	if err != nil {
		return err
	}
	if shown == nil {
		t.printAside("Nothing has been said yet.")
		return nil
	}
	t.printAside("view %s · %s", shown.View, contextLine(shown.Plan))
	return t.showPlan(ctx, t.services, t.conversation, shown.Plan)
}

func (t *chatSession) showHistory(ctx context.Context, argument string) error {
	limit := int64(20)
	if argument != "" {
		given, err := strconv.ParseInt(argument, 10, 64)
		if err != nil || given < 1 {
			return usage("/history %s: give a positive number", term.OneLine(argument, 40))
		}
		limit = given
	}
	return t.history(ctx, limit)
}

func (t *chatSession) retitle(ctx context.Context, argument string) error {
	switch {
	case argument == "":
		return usage("/title needs a text")
	case t.conversation.ID == "":
		t.title = argument
	default:
		changed, err := t.engine.Conversations.Change(ctx, t.scope(), t.conversation.ID, continuo.ConversationChange{Title: &argument})
		if err != nil {
			return err
		}
		t.conversation = changed
	}
	t.printAside("The conversation is called %s.", fmt.Sprintf("%q", term.OneLine(argument, 100)))
	return nil
}

func (t *chatSession) startNew(context.Context, string) error {
	if t.conversation.ID != "" {
		t.printAside("%s stays as it is.", nameOf(t.conversation))
	}
	t.conversation, t.session, t.title, t.plan = continuo.Conversation{}, "", "", nil
	t.printAside("A new conversation.")
	return nil
}
