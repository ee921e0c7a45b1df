package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// chatSession is a chat in the terminal or over pipes.
type chatSession struct {
	*app
	*services
	conversation continuo.Conversation // the zero value until it is started
	session      string                // id or key, "" for a new conversation without a key
	user         string                // the owner that it gets; "" for no change
	title        string                // set once the conversation is started
	mode         continuo.Mode         // set with the next message; "" for none
	agent        string                // likewise; config.NoAgent for none
	view         string                // "" leaves it to the agent
	model        string                // "" leaves it to the agent, else it is the default
	files        []string              // that go with the next message
	screen       *screenBackend        // of a terminal that shows the chat as a screen; else nil
	plain        bool                  // no terminal: answers to out, everything else to err
	quiet        bool                  // only collect the answer
	signals      chan os.Signal
	lines        lineReader      // of a terminal or a pipe; nil for a single message
	keys         *term.Keyboard  // of a terminal, below lines; nil until they are read
	pendingLine  chan term.Line  // the line that is being read; nil if none is
	early        []string        // typed before a question and finished after it was shown: the next messages
	converses    bool            // messages are read until the input ends
	always       map[string]bool // tools whose calls the person allows without further questions

	ended *turn.Event  // the end of the last message's turn; nil before it
	plan  *window.Plan // of the last request; nil before the first

	stopping bool  // a signal came during this turn
	leaving  bool  // a signal requested to leave
	failure  error // error of the first message that failed, for the exit code of a script
}

// errLeave ends a chat.
var errLeave = errors.New("leave")

// run reads and answers messages until the input ends.
func (t *chatSession) run(ctx context.Context) error {
	t.lines, t.converses = t.newLines(ctx, t.completions), true
	defer func() { t.lines.Close() }()
	if err := t.welcome(ctx); err != nil {
		return err
	}
	for {
		line, err := t.next(t.lines)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, errLeave):
			if !t.plain {
				t.print("") // the prompt is on this line
			}
			return t.printExitNote()
		case err != nil:
			return err
		case strings.TrimSpace(line) == "":
			continue
		}
		if err := t.take(ctx, line); err != nil {
			if errors.Is(err, errLeave) {
				return t.printExitNote()
			}
			report(t.console, err)
			if t.failure == nil {
				t.failure = err
			}
		}
		if t.leaving {
			return t.printExitNote()
		}
	}
}

// printExitNote says how to continue and returns the result of the chat: of a script that is its first failure.
func (t *chatSession) printExitNote() error {
	if t.plain {
		if t.leaving {
			return fmt.Errorf("stopped: %w", context.Canceled)
		}
		if t.failure != nil {
			return &reportedError{t.failure}
		}
		return nil
	}
	if t.conversation.ID != "" {
		t.printAside("Continue with: continuo chat %s", nameOf(t.conversation))
	}
	return nil
}

// printAside writes a line that is no part of an answer: dim, and in a pipe to standard error.
func (t *chatSession) printAside(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if t.plain {
		if !t.quiet {
			t.note("%s", t.notePaint.Dim(text))
		}
		return
	}
	for _, line := range term.Wrap(text, t.width) {
		t.print("%s", t.paint.Dim(strings.TrimRight(line, " ")))
	}
}

// next waits for a line or a signal.
func (t *chatSession) next(lines lineReader) (string, error) {
	if len(t.early) > 0 {
		line := t.early[0]
		t.early = t.early[1:]
		t.print("%s%s", t.prompt(), term.Clean(line))
		return line, nil
	}
	select {
	case line := <-t.reading(lines):
		t.pendingLine = nil
		return line.Text, line.Err
	case <-t.signals:
		t.leaving = true
		return "", errLeave
	}
}

// reading returns the line that is being read: one whose reader gave up is kept for the next reader.
func (t *chatSession) reading(lines lineReader) <-chan term.Line {
	if t.pendingLine == nil {
		lines.Prompt(t.prompt())
		got := make(chan term.Line, 1)
		go func() { // it is abandoned when the program ends
			got <- lines.Read()
		}()
		t.pendingLine = got
	}
	return t.pendingLine
}

// take executes a command or sends a message.
func (t *chatSession) take(ctx context.Context, line string) error {
	if done, err := t.command(ctx, line); done {
		return err
	}
	if strings.HasPrefix(line, "//") {
		line = line[1:]
	}
	return t.sendMessage(ctx, line)
}

// welcome shows the agent or model and the state of the conversation.
func (t *chatSession) welcome(ctx context.Context) error {
	if t.plain {
		return nil
	}
	t.print("%s  %s", t.paint.Bold("continuo chat"), t.paint.Dim(modelText(t.settings, "")))
	for _, note := range t.startNotes() {
		t.printAside("%s", note)
	}
	if t.conversation.ID == "" {
		t.printAside("A new conversation · %s. /help lists commands, Ctrl-D leaves.", t.modeText())
		return nil
	}
	t.printAside("%s · %s · %s. /help lists commands, Ctrl-D leaves.",
		term.OneLine(t.conversation.Title, 60), term.Count(t.conversation.LastSeq, "entry"), t.modeText())
	t.print("")
	if err := t.history(ctx, 6); err != nil {
		return err
	}
	if broken, err := t.broken(ctx); err == nil && broken != nil {
		t.printAside("The last answer was interrupted (%s). /resume continues it.", broken.Reason)
	}
	return nil
}

// startNotes are what a chat says first of its settings.
func (t *chatSession) startNotes() (notes []string) {
	if t.settings.DefaultModel == config.DemoModel && len(t.settings.Models) == 0 {
		notes = append(notes, "This is the built-in demo model, which repeats what it was shown. continuo init sets up a real one.")
	}
	if id := t.conversation.ActiveAgent; t.agent == "" && checkAgent(t.settings, id) != nil {
		notes = append(notes, "The agent "+term.OneLine(id, 60)+" of this conversation is not in the settings any more. /agent chooses another one, or none.")
	}
	return notes
}

// history shows the newest entries.
func (t *chatSession) history(ctx context.Context, limit int64) error {
	if t.conversation.ID == "" {
		t.printAside("Nothing has been said yet.")
		return nil
	}
	if err := t.refresh(ctx); err != nil {
		return err
	}
	entries, err := t.newest(ctx, t.conversation, limit)
	if err != nil {
		return err
	}
	t.showEntries(entries)
	return nil
}

// refresh reads the current state of the conversation.
func (t *chatSession) refresh(ctx context.Context) error {
	conversation, err := t.engine.Conversations.Conversation(ctx, t.conversation.ID)
	if err == nil {
		t.conversation = conversation
	}
	return err
}

// sendMessage begins a turn with a message and shows it until its end.
func (t *chatSession) sendMessage(ctx context.Context, message string) error {
	content, err := t.contentOf(message, t.files)
	if err != nil {
		return err
	}
	t.files = nil
	return t.sendContent(ctx, content)
}

func (t *chatSession) sendContent(ctx context.Context, message continuo.Content) error {
	if err := t.removeAgent(ctx); err != nil {
		return err
	}
	return t.runTurn(ctx, func(ctx context.Context) (*engine.Chat, error) {
		return t.engine.Turns.Chat(ctx, engine.ChatRequest{
			Scope: continuo.Scope{ProjectID: t.settings.Project}, UserID: t.user, SessionID: t.session, Message: message, Mode: t.mode, AgentID: t.agent, Model: t.model, View: t.view, UsualView: usualView,
		})
	})
}

// runTurn shows a turn from its beginning to its end; Ctrl-C stops it.
func (t *chatSession) runTurn(ctx context.Context, begin func(context.Context) (*engine.Chat, error)) error {
	if t.screen != nil {
		return t.screen.begin(ctx, begin)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t.stopping = false
	done := make(chan struct{})
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		t.watch(done, cancel)
	}()
	defer func() { close(done); <-watching }()

	chat, err := begin(ctx)
	if err != nil {
		return err
	}
	if err := t.setConversation(ctx, chat.Conversation); err != nil {
		return err
	}
	stream := t.newStream()
	for event, err := range chat.Events {
		if err == nil && event.Kind == turn.Asked {
			err = stream.decide(ctx, event)
		}
		if err != nil {
			stream.endLine()
			return err
		}
		stream.show(event)
	}
	_ = t.refresh(context.WithoutCancel(ctx)) // else the prompt shows the previous state
	return stream.failure
}

// watch stops the turn at the first signal, and ends the chat at the second or at one that is not Ctrl-C.
func (t *chatSession) watch(done <-chan struct{}, cancel context.CancelCauseFunc) {
	for {
		select {
		case <-done:
			return
		case got := <-t.signals:
			t.leaving = t.leaving || got != os.Interrupt || t.plain || t.stopping
			t.stopping = true
			cause := error(nil)
			if got != os.Interrupt {
				cause = turn.ErrInterrupted
			}
			cancel(cause)
		}
	}
}

// setConversation records the conversation once a turn runs in it.
func (t *chatSession) setConversation(ctx context.Context, conversation continuo.Conversation) error {
	t.conversation, t.session, t.mode, t.agent = conversation, conversation.ID, "", ""
	if t.title == "" {
		return nil
	}
	title := t.title
	t.title = ""
	changed, err := t.engine.Conversations.Change(context.WithoutCancel(ctx), t.scope(), conversation.ID, continuo.ConversationChange{Title: &title})
	if err == nil {
		t.conversation = changed
	}
	return err
}

// reportedError is an error that has been reported; only its exit code is used.
type reportedError struct{ err error }

func (e *reportedError) Error() string { return e.err.Error() }
func (e *reportedError) Unwrap() error { return e.err }
