package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"syscall"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/turn"
)

type taskDeployCommand struct {
	ID     string `arg:"" optional:"" name:"task" help:"Which task: id, the beginning of an id, or @1. Default: the newest."`
	Type   string `arg:"" optional:"" help:"What answers: a connector, an agent or a model of the settings. Default: the default model."`
	Prompt string `short:"p" placeholder:"TEXT" help:"Instructions for the agent in addition to the task."`
	JSON   bool   `help:"Write JSON at the end: the agent, and its output."`
}

func (taskDeployCommand) Help() string {
	return `Deploys an agent on a task, in a conversation of its own, and shows its output until it is done. The agent runs in this process: Ctrl-C kills it, with all of its child processes. In a terminal the command asks about tool calls that need a decision. continuo task logs shows the output too, also while the agent works.

Examples:

    continuo task deploy
    continuo task deploy @1 reviewer
    continuo task deploy task_0199c3 --prompt "Begin with the tests." --json | jq -r .output`
}

// Run deploys the agent and follows it.
func (d *taskDeployCommand) Run(ctx context.Context, a *app) error {
	w, err := a.wireTurns(ctx, true)
	if err != nil {
		return err
	}
	defer w.Close()
	status, err := w.findTask(ctx, d.ID)
	if err != nil {
		return err
	}
	watch := agentWatch{app: a, services: w, quiet: d.JSON, asks: true}
	err = watch.follow(ctx, func(ctx context.Context) (*engine.DeployedAgent, error) {
		return w.engine.Tasks.Deploy(ctx, engine.DeployRequest{Scope: w.scope(), TaskID: status.ID, Type: d.Type, Prompt: d.Prompt})
	}, watch.eventsOrKill)
	if !d.JSON || watch.agent == nil {
		return err
	}
	output, problem := w.engine.Tasks.Output(context.WithoutCancel(ctx), w.scope(), watch.agent.ID, 0, maxLine)
	if problem != nil {
		return errors.Join(err, problem)
	}
	return errors.Join(a.json(output), err)
}

// agentWatch shows an agent's work as a chat shows an answer.
type agentWatch struct {
	*app
	*services
	quiet bool // show nothing
	asks  bool // ask the person about calls that wait
	agent *engine.DeployedAgent
}

// follow finds or starts an agent, and shows the events of its work. Ctrl-C ends the context of the events.
func (w *agentWatch) follow(ctx context.Context, find func(context.Context) (*engine.DeployedAgent, error), events func(context.Context) iter.Seq2[turn.Event, error]) error {
	t := &chatSession{app: w.app, services: w.services, plain: !w.outTerminal, quiet: w.quiet}
	t.signals = make(chan os.Signal, 2)
	signal.Notify(t.signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(t.signals)
	if w.asks && w.inTerminal && w.outTerminal {
		t.lines = t.newLines(ctx, t.completions)
		defer func() { t.lines.Close() }()
	}
	err := t.runTurn(ctx, func(ctx context.Context) (*engine.Chat, error) {
		agent, err := find(ctx)
		if err != nil {
			return nil, err
		}
		w.agent = agent
		works := "works"
		if !isAtWork(*agent) {
			works = "worked"
		}
		t.printAside("%s (%s) %s on %s.", agent.ID, term.OneLine(agent.Type, 60), works, agent.TaskID)
		conversation, err := w.engine.Conversations.Conversation(ctx, agent.ConversationID)
		return &engine.Chat{Conversation: conversation, TurnID: agent.TurnID, Events: events(ctx)}, err
	})
	if err == nil && t.stopping {
		err = &reportedError{context.Canceled}
	}
	return err
}

// work yields the events of the agent's work until ctx ends.
func (w *agentWatch) work(ctx context.Context) iter.Seq2[turn.Event, error] {
	return w.engine.Turns.Follow(ctx, continuo.Turn{ConversationID: w.agent.ConversationID, ID: w.agent.TurnID}, 0)
}

// eventsOrKill yields the events of the agent's work to its end, and kills the agent when ctx ends.
func (w *agentWatch) eventsOrKill(ctx context.Context) iter.Seq2[turn.Event, error] {
	return func(yield func(turn.Event, error) bool) {
		stays := context.WithoutCancel(ctx)
		killed := make(chan error, 1)
		stop := context.AfterFunc(ctx, func() {
			_, err := w.engine.Tasks.Kill(stays, w.scope(), w.agent.ID, "a person stopped it in the terminal")
			killed <- err
		})
		reading := true
		for event, err := range w.work(stays) {
			if reading = yield(event, err); !reading {
				break
			}
		}
		if stop() {
			return
		}
		if err := <-killed; err != nil && reading && !errors.Is(err, continuo.ErrNotRunning) {
			yield(turn.Event{}, err)
		}
	}
}

type taskLogsCommand struct {
	ID     string `arg:"" optional:"" name:"agent-id" help:"Which agent: id or the beginning of an id. Default: the newest."`
	Follow bool   `short:"f" help:"Follow the output; Ctrl-C exits and does not stop the agent."`
	JSON   bool   `xor:"how" help:"Write JSON: the agent, and its output."`
}

func (taskLogsCommand) Help() string {
	return `Shows the output of an agent so far, with a line for each tool call; with --follow as it arrives, in whichever process the agent works. The whole log is that of its conversation: see continuo conversations show.

Examples:

    continuo task logs
    continuo task logs agent_0199c3 --follow
    continuo task logs --json | jq -r .status`
}

func (l *taskLogsCommand) check() error {
	if l.Follow && l.JSON {
		return usage("--json needs all that there is: leave --follow out")
	}
	return nil
}

// Run shows the output.
func (l *taskLogsCommand) Run(ctx context.Context, a *app, w *services) error {
	agent, err := w.findAgent(ctx, l.ID, false)
	if err != nil {
		return err
	}
	if l.Follow {
		watch := agentWatch{app: a, services: w}
		return watch.follow(ctx, func(context.Context) (*engine.DeployedAgent, error) { return agent, nil }, watch.eventsWithoutQuestions)
	}
	output, err := w.engine.Tasks.Output(ctx, w.scope(), agent.ID, 0, maxLine)
	if err != nil {
		return err
	}
	return a.show(l.JSON, output, func() {
		if output.Output != "" {
			a.text(output.Output + "\n")
		}
		a.note("%s", a.notePaint.Dim(deployedText(output.DeployedAgent)))
	})
}

// deployedText describes the state of an agent: agent_… (reviewer) has failed: why.
func deployedText(agent engine.DeployedAgent) string {
	words := fmt.Sprintf("%s (%s) is %s", agent.ID, term.OneLine(agent.Type, 60), agent.State)
	if agent.Reason != "" {
		words += ": " + term.OneLine(agent.Reason, 300)
	}
	return words
}

// eventsWithoutQuestions yields the events of the agent's work until ctx ends; for a call that waits it only prints a note.
func (w *agentWatch) eventsWithoutQuestions(ctx context.Context) iter.Seq2[turn.Event, error] {
	return func(yield func(turn.Event, error) bool) {
		for event, err := range w.work(ctx) {
			if err == nil && event.Kind == turn.Asked {
				w.note("%s %s", w.notePaint.Yellow("waits for a decision:"), callText(*event.Call, 300))
				continue
			}
			if ctx.Err() != nil || !yield(event, err) {
				return
			}
		}
	}
}

type taskKillCommand struct {
	ID     string `arg:"" optional:"" name:"agent-id" help:"Which agent: id or the beginning of an id. Default: the only one at work."`
	Reason string `placeholder:"TEXT" help:"The reason, which is stored with the agent."`
	JSON   bool   `help:"Write the agent as JSON."`
}

func (taskKillCommand) Help() string {
	return `Ends an agent's work permanently, with all of its child processes, in whichever process it runs. Its output is kept.

Examples:

    continuo task kill
    continuo task kill agent_0199c3 --reason "It runs in circles."`
}

// Run kills the agent.
func (k *taskKillCommand) Run(ctx context.Context, a *app, w *services) error {
	agent, err := w.findAgent(ctx, k.ID, true)
	if err != nil {
		return err
	}
	if agent, err = w.engine.Tasks.Kill(ctx, w.scope(), agent.ID, k.Reason); err != nil {
		return err
	}
	return a.show(k.JSON, agent, func() { a.print("%s", deployedText(*agent)) })
}
