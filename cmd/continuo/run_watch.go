package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/workflow"
)

// runService is what following a run needs of an engine.
type runService struct {
	runs interface {
		Get(ctx context.Context, scope continuo.Scope, id string) (*engine.RunStatus, error)
		Follow(ctx context.Context, run continuo.Run, after int64) iter.Seq2[engine.RunProgress, error]
		Stop(ctx context.Context, run continuo.Run, reason string) (*engine.RunStatus, error)
		Decide(ctx context.Context, run continuo.Run, decision engine.RunDecision, detached bool) (*engine.RunStatus, error)
	}
	turns interface {
		Get(ctx context.Context, conversation continuo.Conversation, id string) (continuo.Turn, error)
		Waiting(ctx context.Context, t continuo.Turn) ([]turn.WaitingCall, error)
		Decide(ctx context.Context, t continuo.Turn, callID string, decision turn.Decision) error
	}
}

// runWatch follows a run that this process executes, until it ends, waits or fails.
type runWatch struct {
	*app
	runService
	conversation continuo.Conversation
	view         *runView
	screen       runScreen
	live         *runLive // the screen, if it is a terminal where a person can be asked; else nil
	answerReader *answerReader
	asJSON       bool
	yes          bool            // approve nodes without asking
	questions    []*question     // open ones; the first of them is asked
	always       map[string]bool // tools whose calls the person allows without further questions
	signals      chan os.Signal
	continued    chan os.Signal     // the program continues after a suspension
	leave        context.CancelFunc // ends the run's own context
	turnID       string             // the newest turn of the run that was seen; "" for none
	stopping     bool               // a person has stopped the run
	stops        sync.WaitGroup
}

// runFlags are the flags of all commands that follow a run.
type runFlags struct {
	Yes  bool `short:"y" help:"Approve the approval steps automatically; tool calls still require a decision."`
	JSON bool `help:"Write JSON, one object per line: {type: entry, entry}, {type: status, status}, at the end {type: end, status}."`
}

// watchRun begins or resumes a run and follows it after a seq. begin gets the context of the run.
func (a *app) watchRun(ctx context.Context, w *services, flags runFlags, typist *answerReader, after int64, begin func(context.Context) (*engine.RunStatus, error)) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	status, err := begin(ctx)
	if err != nil {
		return err
	}
	conversation, err := w.engine.Conversations.Conversation(ctx, status.ConversationID)
	if err != nil {
		return err
	}
	view := newRunView(*status, a.notePaint)
	view.edges, view.after = w.edgesOf(ctx, status.Run), after
	return a.newRunWatch(runService{w.engine.Runs, w.engine.Turns}, conversation, view, flags, typist, signals, leave).follow(ctx, after)
}

func (a *app) newRunWatch(e runService, conversation continuo.Conversation, view *runView, flags runFlags, typist *answerReader, signals chan os.Signal, leave context.CancelFunc) *runWatch {
	w := &runWatch{
		app: a, runService: e, conversation: conversation, view: view, answerReader: typist,
		asJSON: flags.JSON, yes: flags.Yes, always: map[string]bool{}, signals: signals, leave: leave, turnID: view.status.TurnID,
	}
	w.screen = a.newRunScreen(view, flags.JSON)
	if live, ok := w.screen.(*runLive); ok && a.inTerminal {
		w.live = live
	}
	return w
}

// The interval at which the picture is drawn; every third time, the current question is checked as well.
const (
	pictureEvery = 100 * time.Millisecond
	recheckEvery = 3
)

// follow shows the run until there is nothing more to show here.
func (w *runWatch) follow(ctx context.Context, after int64) error {
	followed, cancel := context.WithCancel(ctx)
	steps, wait := follow(followed, w.runs.Follow(followed, w.view.status.Run, after))
	defer func() {
		cancel()
		wait()
		w.stops.Wait()
	}()
	defer w.ownTerminal()()
	beat := time.NewTicker(pictureEvery)
	defer beat.Stop()
	err := w.findPending(ctx)
	for beats := 0; err == nil; {
		select {
		case step, ok := <-steps:
			if !ok {
				return w.ended(ctx)
			}
			err = w.take(ctx, step)
		case <-beat.C:
			w.screen.tick()
			if beats++; beats%recheckEvery == 0 {
				w.recheck(ctx)
			}
		case line := <-w.answers():
			err = w.answer(ctx, line)
		case <-w.signals:
			err = w.interrupted(ctx)
		case <-w.continued:
			w.live.screen.Keep() // the shell has written below the picture
		}
	}
	w.screen.end()
	return err
}

func (w *runWatch) take(ctx context.Context, step step[engine.RunProgress]) error {
	if step.err != nil {
		return step.err
	}
	w.view.take(step.progress)
	w.screen.update(step.progress)
	if event := step.progress.Turn; event != nil && event.Kind == turn.Asked {
		return w.takeCall(ctx, *event, step.progress.ConversationID)
	}
	if step.progress.Status == nil {
		return nil
	}
	w.turnID = cmp.Or(step.progress.Status.TurnID, w.turnID)
	w.recheck(ctx)
	return w.findPending(ctx)
}

// interrupted handles a signal: the first one stops the run, the second one leaves, a third one kills. A run that
// another process executes is left alone.
func (w *runWatch) interrupted(ctx context.Context) error {
	id := w.view.status.ID
	switch {
	case w.stopping:
		signal.Stop(w.signals)
		w.leave()
		return fmt.Errorf("left %s before it had stopped; continue with: continuo run resume %s: %w", id, id, context.Canceled)
	case w.runsElsewhere(ctx):
		w.leave()
		if w.live != nil && w.live.asking != nil {
			w.live.answered("", false)
		}
		return &runContinuesElsewhere{id}
	}
	w.stop(ctx)
	return nil
}

// runsElsewhere reports whether another process, presumably a live one, executes the run's newest turn.
func (w *runWatch) runsElsewhere(ctx context.Context) bool {
	if w.view.status.State != continuo.RunRunning || w.turnID == "" {
		return false
	}
	found, err := w.turns.Get(ctx, w.conversation, w.turnID)
	if err != nil || found.Owner == "" || isOurs(found) {
		return false
	}
	return found.State == continuo.TurnRunning || !ownerEnded(found)
}

// stop stops the run; the stop is shown like every other event.
func (w *runWatch) stop(ctx context.Context) {
	w.stopping, w.view.stopping = true, true
	if w.live != nil && w.live.asking != nil {
		w.live.answered("", false)
	}
	run := w.view.status.Run
	w.stops.Go(func() {
		if _, err := w.runs.Stop(ctx, run, "a person stopped it in the terminal"); err != nil {
			w.leave() // a run that cannot be stopped ends with its context
		}
	})
}

// ended describes the final state of the run.
func (w *runWatch) ended(ctx context.Context) error {
	status, err := w.runs.Get(context.WithoutCancel(ctx), continuo.Scope{ProjectID: w.view.status.ProjectID}, w.view.status.ID)
	if err != nil {
		return err
	}
	w.view.status = *status
	w.screen.end()
	return w.outcome()
}

// outcome is the program's result.
func (w *runWatch) outcome() error {
	status := w.view.status
	switch status.State {
	case continuo.RunFinished:
		if w.asJSON {
			return nil
		}
		return w.printOutputs(status.Outputs)
	case continuo.RunWaiting:
		return w.waits()
	case continuo.RunStopped:
		w.note("Continue with: continuo run resume %s", status.ID)
		if w.stopping {
			return &reportedError{context.Canceled}
		}
		return fmt.Errorf("the run was stopped: %s", status.Reason)
	case continuo.RunFailed:
		return fmt.Errorf("the run failed: %s\n%s", status.Reason, repairCommands(status))
	case continuo.RunCancelled:
		return fmt.Errorf("the run was cancelled")
	default:
		return fmt.Errorf("the run continues without this program; follow it with: continuo run resume %s", status.ID)
	}
}

// runContinuesElsewhere says that a run continues without this program, which only showed it.
type runContinuesElsewhere struct{ id string }

func (e *runContinuesElsewhere) Error() string {
	return "the run continues elsewhere; look again with: continuo run resume " + e.id
}

func (e *runContinuesElsewhere) Is(target error) bool { return target == context.Canceled }

// waits says how to decide what the run waits for.
func (w *runWatch) waits() error { return &runWaits{run: w.view.status} }

// runWaits says that a run resumes after a person's decision.
type runWaits struct{ run engine.RunStatus }

func (e *runWaits) Error() string {
	text := "the run waits for a decision"
	for _, node := range e.run.Nodes {
		if node.State != workflow.NodeWaiting {
			continue
		}
		if words := waitsFor(node); words != "" {
			text += fmt.Sprintf(": %s (%s)", term.OneLine(words, 300), node.ID)
			break
		}
	}
	return fmt.Sprintf("%s; decide with: continuo run approve %s, or with --reject", text, e.run.ID)
}

// waitsFor says what a waiting step waits for.
func waitsFor(node workflow.NodeStatus) string {
	if len(node.WaitingFor) == 0 {
		return node.Question
	}
	calls := make([]string, len(node.WaitingFor))
	for i, call := range node.WaitingFor {
		calls[i] = callText(continuo.ToolCall{Name: call.Name, Arguments: call.Arguments}, 300)
	}
	return "may this run? " + strings.Join(calls, ", ")
}

func (e *runWaits) Is(target error) bool { return target == engine.ErrRunWaits }
