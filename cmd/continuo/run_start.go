package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/continuo-log/continuo/engine/conversations"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
)

type runStartCommand struct {
	runFlags
	ownerFlag
	Workflow string   `arg:"" help:"Which workflow, by its id."`
	Session  string   `placeholder:"ID" help:"The conversation to run in: id, key or @1, or the session id of a new one. Default: a new one without."`
	Input    []string `sep:"none" placeholder:"NAME=VALUE" help:"An input of the run; lists and objects as JSON; NAME=@FILE reads a file. May be repeated."`
	Inputs   string   `placeholder:"FILE" help:"Inputs as a JSON object in a file, or in standard input (-); --input replaces single ones."`
	Message  string   `short:"m" placeholder:"TEXT" help:"The message that starts the run. Default: a sentence that names the workflow and its inputs."`
}

func (runStartCommand) Help() string {
	return `Runs a workflow in a conversation and shows each step, until the run ends, waits for a decision or fails. In a terminal the command asks for missing inputs. Ctrl-C stops the run, and prints how to resume it; a second one exits at once.

In a terminal the steps are shown in place, and the command asks for the decisions that the run needs. Elsewhere each change is a line on standard error, and the outputs are written to standard output as JSON at the end; a run that waits for a decision ends the program with code 6.

Examples:

    continuo run start example
    continuo run start report --input topic=tea --input 'sources=["a.md","b.md"]'
    continuo run start report --input draft=@draft.md --session s1
    continuo run start report --inputs inputs.json --yes --json`
}

// Run begins the run and follows it.
func (r *runStartCommand) Run(ctx context.Context, a *app) error {
	w, err := a.wireTurns(ctx, false)
	if err != nil {
		return err
	}
	defer w.Close()
	found, err := w.engine.Runs.Workflow(r.Workflow)
	if err != nil {
		return err
	}
	session, err := w.sessionOf(ctx, r.Session, r.ownerFlag)
	if err != nil {
		return err
	}
	typist := newTypist(a.in)
	inputs, err := a.runInputs(found, r, typist)
	if err != nil {
		return err
	}
	return a.watchRun(ctx, w, r.runFlags, typist, 0, func(ctx context.Context) (*engine.RunStatus, error) {
		return w.engine.Runs.Start(ctx, engine.RunRequest{Scope: w.scope(), UserID: r.User, SessionID: session, Workflow: found.ID, Inputs: inputs, Message: r.Message})
	})
}

// sessionOf finds the conversation of a name, or checks that the owner can begin it.
func (w *services) sessionOf(ctx context.Context, name string, owner ownerFlag) (string, error) {
	if name == "" {
		return "", owner.check(continuo.Conversation{})
	}
	conversation, err := w.find(ctx, name)
	switch {
	case err == nil:
		return conversation.ID, owner.check(conversation)
	case errors.Is(err, continuo.ErrNotFound) && !isReference(name):
		return name, errors.Join(owner.check(continuo.Conversation{}), conversations.CheckKey(name))
	}
	return "", err
}

// readInputs reads a whole file, or standard input for -.
func (a *app) readInputs(path string) ([]byte, error) {
	if path != "-" {
		return readBounded(path)
	}
	text, err := io.ReadAll(io.LimitReader(a.in, maxLine+1))
	if err != nil {
		return nil, fmt.Errorf("read the inputs: %w", err)
	}
	if len(text) > maxLine {
		return nil, usage("the inputs on standard input are longer than %s", term.Size(maxLine))
	}
	return []byte(strings.TrimPrefix(string(text), "\ufeff")), nil
}
