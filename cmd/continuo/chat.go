package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine/conversations"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/window"
)

// usualView is the terminal's view if neither a flag nor the agent sets one.
const usualView = window.Codex

type chatCommand struct {
	ownerFlag
	Session string   `arg:"" optional:"" help:"The conversation to continue, or the session id of a new one. Default: a new one without a session id."`
	Message *string  `short:"m" placeholder:"TEXT" help:"Send this message, print the answer and exit; - reads the message from standard input."`
	Resume  bool     `help:"Continue the answer that was interrupted, print it and exit."`
	View    *string  `enum:"${views}" help:"The view that selects what the model is shown: ${turnviews}. Default: the agent's, else ${usualview}."`
	Mode    *string  `enum:"chat,agent,run" help:"Mode from the next message on: chat, agent or run. Default: agent where --agent is given, else as the conversation is."`
	Agent   *string  `placeholder:"AGENT" help:"The agent that answers from the next message on: an agent of the settings, or none. Default: unchanged."`
	Model   *string  `placeholder:"NAME" help:"The model (model)."`
	File    []string `short:"f" sep:"none" placeholder:"FILE" help:"With --message: send this text file, image or PDF file with it; may be repeated."`
	Pick    bool     `short:"p" help:"Choose the conversation from a list."`
	JSON    bool     `help:"With --message: write JSON, as POST /chat does: the answer, or the error with what there is of it."`
}

func (chatCommand) Help() string {
	return `Chats with a model over the local store; without a configured model the built-in demo answers. In a terminal it is a screen that shows Markdown, takes several lines and files (@notes.md), and says what the next request holds and what was billed; /help lists commands and keys. Ctrl-C clears the line, then stops the answer and keeps the part that has arrived, then leaves.

A tool call that needs a decision is answered by a line that was begun after the question was shown. Lines typed before that are the next messages.

With TERM=dumb the terminal shows lines instead of a screen, with NO_COLOR the screen has no colours. When standard input is no terminal, each line is a message: answers go to standard output, everything else to standard error.

Examples:

    continuo chat
    continuo chat s1 --agent reviewer
    continuo chat s1 --mode chat
    continuo chat s1 --user ada@example.com
    continuo chat s1 --message "What did I say first?"
    continuo chat --pick
    continuo chat s1 --message "What is on it?" --file picture.png
    git diff | continuo chat review --message -
    continuo chat s1 --resume
    printf 'Hello\nWhat did I say?\n' | continuo chat s1`
}

// Run chats until the input ends.
func (c *chatCommand) Run(ctx context.Context, a *app) error {
	if len(c.File) > 0 && c.Message == nil {
		return usage("--file needs --message: in the chat, a file is named as @FILE")
	}
	if c.Pick && (c.Session != "" || c.Message != nil || c.Resume) {
		return usage("--pick chooses the conversation of an interactive chat: leave the name, --message and --resume out")
	}
	if c.JSON && c.Message == nil && !c.Resume {
		return usage("--json needs --message or --resume: an interactive session prints no JSON document")
	}
	if c.Resume && (c.Message != nil || c.Session == "") {
		return usage("--resume continues without a message: name the conversation, and leave --message out")
	}
	if c.Resume && (c.Mode != nil || c.Agent != nil) {
		return usage("--resume continues as the turn was started: leave --mode and --agent out")
	}
	settings, err := a.loadSettings(flag{"model", "model", c.Model})
	if err != nil {
		return err
	}
	remarks := &remarks{}
	w, err := a.wireWith(ctx, settings, buildOptions{turns: true, remark: remarks.say})
	if err != nil {
		return err
	}
	defer w.Close()
	if words := settings.MissingKey(); words != "" { // a provider would report it as incorrect
		a.note("%s %s", a.notePaint.Yellow("note:"), words)
	}
	if _, err := w.engine.Turns.Recover(ctx); err != nil {
		a.note("%s %s", a.notePaint.Yellow("note:"), err)
	}
	t, err := c.begin(ctx, a, w)
	if err != nil {
		return err
	}
	t.signals = make(chan os.Signal, 2)
	signal.Notify(t.signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(t.signals)
	if c.Message != nil || c.Resume {
		return c.once(ctx, t)
	}
	if t.hasScreen() {
		return t.runScreen(ctx, c.Pick, remarks)
	}
	if c.Pick {
		return usage("--pick needs a terminal with a screen: continuo conversations list shows what there is")
	}
	return t.run(ctx)
}

// begin finds the conversation, or checks that it can be started.
func (c *chatCommand) begin(ctx context.Context, a *app, w *services) (*chatSession, error) {
	t := &chatSession{app: a, services: w, user: c.User, plain: !a.inTerminal || !a.outTerminal}
	if err := c.check(continuo.Conversation{}); err != nil {
		return nil, err
	}
	if c.View != nil {
		t.view = *c.View
	}
	if c.Agent != nil {
		if err := t.chooseAgent(*c.Agent); err != nil {
			return nil, err
		}
	}
	if c.Mode != nil {
		t.mode = continuo.Mode(*c.Mode)
	}
	if c.Session == "" {
		return t, nil
	}
	conversation, err := w.find(ctx, c.Session)
	switch {
	case err == nil:
		t.conversation = conversation
		t.session = conversation.ID
		err = c.check(conversation)
	case errors.Is(err, continuo.ErrNotFound) && conversations.CheckKey(c.Session) == nil:
		t.session, err = c.Session, nil
	case errors.Is(err, continuo.ErrNotFound) && !isReference(c.Session):
		err = conversations.CheckKey(c.Session)
		if strings.Contains(c.Session, " ") {
			err = fmt.Errorf("%w%s", err, messageHint)
		}
		return nil, err
	}
	return t, err
}

// isReference reports whether a name can only be that of an existing conversation.
func isReference(name string) bool {
	return strings.HasPrefix(name, "@") || strings.HasPrefix(name, "conv_")
}

// once sends one message, or resumes a failed turn, and prints the answer.
func (c *chatCommand) once(ctx context.Context, t *chatSession) error {
	message, err := c.message(t)
	if err != nil {
		return err
	}
	t.plain, t.quiet, t.files = !t.outTerminal, c.JSON, c.File
	if c.Resume {
		err = t.resume(ctx, "")
	} else {
		err = t.sendMessage(ctx, message)
	}
	if err == nil && t.stopping {
		err = &reportedError{context.Canceled}
	}
	if !c.JSON || t.ended == nil {
		return err
	}
	return errors.Join(err, t.printAnswer(context.WithoutCancel(ctx)))
}

// printAnswer writes the answer to the last message as POST /chat does, or the error for which there is no complete one.
func (t *chatSession) printAnswer(ctx context.Context) error {
	ids := api.ChatIDs{SessionID: nameOf(t.conversation), ConversationID: t.conversation.ID, TurnID: t.ended.TurnID}
	var err error
	if ids.Resumed, err = t.engine.Turns.Resumed(ctx, ids.ConversationID, ids.TurnID); err != nil {
		return err
	}
	answer, failure := api.AnswerOf(ids, t.ended.Entry, t.ended.Usage, t.plan)
	if failure != nil {
		return t.json(failure)
	}
	return t.json(answer)
}

// message is the text of --message, or of standard input.
func (c *chatCommand) message(t *chatSession) (string, error) {
	if c.Message == nil {
		return "", nil
	}
	if *c.Message != "-" {
		return *c.Message, nil
	}
	text, err := io.ReadAll(io.LimitReader(t.in, maxLine+1))
	if err != nil {
		return "", fmt.Errorf("read the message: %w", err)
	}
	if len(text) > maxLine {
		return "", usage("the message on standard input is longer than %s", term.Size(maxLine))
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// maxLine is the longest message from standard input, in bytes.
const maxLine = 32 << 20
