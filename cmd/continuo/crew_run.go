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

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/internal/yamlform"
)

type crewRunCommand struct {
	ownerFlag
	Crew    string `arg:"" optional:"" help:"Which crew, by its id. Default: the only one in the folder of crews, or the example where there is none."`
	Message string `arg:"" optional:"" help:"The message; - reads it from standard input. Default: a dialogue in a terminal, else standard input."`
	Session string `placeholder:"ID" help:"The conversation: id, key or @1, or the session id of a new one. Default: the crew's own."`
	Follow  bool   `short:"f" help:"Send no message; show the crew's newest cycle from its beginning until it ends. Ctrl-C exits without stopping it."`
	JSON    bool   `help:"Write JSON, one object per line: {type: entry, entry}, {type: status, status}, at the end {type: end, status}."`
}

func (crewRunCommand) Help() string {
	return `Sends a message to a crew, and shows its cycle: the roles answer in turn, each below its name, until no role or not the moderator has anything to add, all of them failed, or the crew's limit is reached. Ctrl-C stops the cycle, and prints how to resume it; a second one exits at once.

Without a message it is a dialogue in a terminal: /help lists its commands, Ctrl-D exits. A message that is sent while a cycle runs in another process joins that cycle.

When standard output is not a terminal, the roles' answers go there, and everything else to standard error.

Examples:

    continuo crew run
    continuo crew run example "Make a plan for a small garden."
    continuo crew run garden "Which herbs?" --session s1
    git diff | continuo crew run review -
    continuo crew run garden --follow`
}

// Run sends the message, or chats until the input ends.
func (r *crewRunCommand) Run(ctx context.Context, a *app) error {
	if r.Message == "" && r.Crew != "" && !yamlform.IsID(r.Crew) { // continuo crew run "Hello"
		r.Crew, r.Message = "", r.Crew
	}
	interactive := r.Message == "" && !r.Follow && a.inTerminal && a.outTerminal
	switch {
	case r.Follow && r.Message != "":
		return usage("--follow only looks on: leave the message out")
	case r.JSON && interactive:
		return usage("--json needs a message: an interactive session prints no JSON document")
	}
	t, leave, err := a.openCrewChatSession(ctx, crewChoice{r.Crew, r.Session}, true)
	if err != nil {
		return err
	}
	defer leave()
	if err := r.check(t.conversation); err != nil {
		return err
	}
	t.session.UserID = r.User
	t.asJSON, t.quiet = r.JSON, r.JSON
	if r.Follow {
		return t.watchOnly(ctx)
	}
	found, err := t.crews.Get(t.session.Crew)
	if errors.Is(err, continuo.ErrNotFound) && r.Message == "" {
		err = fmt.Errorf("%w; to say %q to a crew, name the crew before it", err, r.Crew)
	}
	if err != nil {
		return err
	}
	if interactive {
		return t.run(ctx, found)
	}
	message, err := r.message(a)
	if err != nil {
		return err
	}
	t.openInput(ctx)
	return t.send(ctx, message)
}

// message is the given text, or that of standard input.
func (r *crewRunCommand) message(a *app) (string, error) {
	if r.Message != "" && r.Message != "-" {
		return r.Message, nil
	}
	text, err := io.ReadAll(io.LimitReader(a.in, maxLine+1))
	if err != nil {
		return "", fmt.Errorf("read the message: %w", err)
	}
	if len(text) > maxLine {
		return "", usage("the message on standard input is longer than %s", term.Size(maxLine))
	}
	if strings.TrimSpace(string(text)) == "" {
		return "", usage("there is nothing to say: give a message, or write one to standard input")
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// openCrewChatSession builds what a command that follows a crew needs; leave ends it.
func (a *app) openCrewChatSession(ctx context.Context, choice crewChoice, begin bool) (t *crewChatSession, leave func(), err error) {
	w, err := a.wireTurns(ctx, !begin)
	if err != nil {
		return nil, nil, err
	}
	session, err := w.crewSession(ctx, choice, begin)
	if err != nil {
		w.Close()
		return nil, nil, err
	}
	t = &crewChatSession{
		chatSession: &chatSession{app: a, services: w, plain: !a.outTerminal}, session: session, crews: w.engine.Crews, turns: w.engine.Turns,
	}
	t.signals = make(chan os.Signal, 2)
	signal.Notify(t.signals, os.Interrupt, syscall.SIGTERM)
	if err := t.refresh(ctx); err != nil {
		signal.Stop(t.signals)
		w.Close()
		return nil, nil, err
	}
	return t, t.end, nil
}

// openInput prepares to ask the person about calls, if there is a terminal.
func (t *crewChatSession) openInput(ctx context.Context) {
	if t.plain || !t.inTerminal || t.asJSON {
		return
	}
	t.lines = t.newLines(ctx, t.completions)
}

func (t *crewChatSession) end() {
	if t.lines != nil {
		t.lines.Close()
	}
	signal.Stop(t.signals)
	t.services.Close()
}

// crewChatSession is a conversation with a crew in the terminal.
type crewChatSession struct {
	*chatSession
	session engine.CrewSession
	crews   crewCycles
	turns   crewTurns
	asJSON  bool
}

// refresh reads the state of the conversation; one that does not exist yet is empty.
func (t *crewChatSession) refresh(ctx context.Context) error {
	name := t.session.SessionID
	if name == "" {
		name = continuo.CrewWorkflow(t.session.Crew)
	}
	conversation, err := t.engine.Conversations.Find(ctx, t.session.Scope, name)
	if errors.Is(err, continuo.ErrNotFound) {
		return nil
	}
	t.conversation = conversation
	return err
}

// send sends a message and shows the crew's cycle.
func (t *crewChatSession) send(ctx context.Context, message string) error {
	if err := t.refresh(ctx); err != nil {
		return err
	}
	return t.watch(ctx, crewWatched{own: message, after: t.conversation.LastSeq}, func(ctx context.Context) (*engine.CrewStatus, error) {
		return t.crews.Send(ctx, engine.CrewMessage{Session: t.session, Message: continuo.Text(message)})
	})
}

// resumeCycle resumes a cycle that was interrupted, and shows it.
func (t *crewChatSession) resumeCycle(ctx context.Context) error {
	if err := t.refresh(ctx); err != nil {
		return err
	}
	return t.watch(ctx, crewWatched{after: t.conversation.LastSeq}, func(ctx context.Context) (*engine.CrewStatus, error) {
		return t.crews.Resume(ctx, t.session, false)
	})
}

// watchOnly shows the newest cycle from its beginning, and resumes nothing.
func (t *crewChatSession) watchOnly(ctx context.Context) error {
	return t.watch(ctx, crewWatched{followsOnly: true}, func(ctx context.Context) (*engine.CrewStatus, error) {
		return t.crews.Status(ctx, t.session)
	})
}

type crewResumeCommand struct {
	crewChoice
	JSON bool `help:"Write JSON, one object per line, as continuo crew run does."`
}

func (crewResumeCommand) Help() string {
	return `Resumes a cycle that failed, was stopped, or whose process was killed: all entries are kept, and no role is shown an entry twice. A cycle that another process executes is only shown.

Examples:

    continuo crew resume
    continuo crew resume garden --session s1`
}

// Run resumes the cycle and follows it.
func (r *crewResumeCommand) Run(ctx context.Context, a *app) error {
	t, leave, err := a.openCrewChatSession(ctx, r.crewChoice, false)
	if err != nil {
		return err
	}
	defer leave()
	t.asJSON, t.quiet = r.JSON, r.JSON
	t.openInput(ctx)
	return t.resumeCycle(ctx)
}
