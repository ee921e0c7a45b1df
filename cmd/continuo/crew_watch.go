package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"sync/atomic"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/turn"
)

// crewCycles are the operations on a crew's cycles that following a crew needs.
type crewCycles interface {
	Get(id string) (*crew.Crew, error)
	Send(ctx context.Context, message engine.CrewMessage) (*engine.CrewStatus, error)
	Status(ctx context.Context, session engine.CrewSession) (*engine.CrewStatus, error)
	Follow(ctx context.Context, run continuo.Run, after int64) iter.Seq2[engine.CrewProgress, error]
	Stop(ctx context.Context, session engine.CrewSession, reason string) (*engine.CrewStatus, error)
	Reset(ctx context.Context, session engine.CrewSession, key string) (*engine.CrewStatus, error)
	Restore(ctx context.Context, session engine.CrewSession, key string) (*engine.CrewStatus, error)
	Resume(ctx context.Context, session engine.CrewSession, detached bool) (*engine.CrewStatus, error)
}

// crewTurns are the operations on the turns of a crew's roles.
type crewTurns interface {
	Get(ctx context.Context, conversation continuo.Conversation, id string) (continuo.Turn, error)
	Decide(ctx context.Context, t continuo.Turn, callID string, decision turn.Decision) error
}

// crewWatched selects what of a cycle is shown.
type crewWatched struct {
	after       int64  // the seq after which it is shown
	own         string // the message that the person has just sent, which is not shown again; "" for none
	followsOnly bool   // another program runs it, if any does
}

// crewWatch follows one cycle until the crew is idle.
type crewWatch struct {
	*crewChatSession
	crewWatched
	screen   crewScreen
	stopping atomic.Bool        // a person has stopped the cycle
	leave    context.CancelFunc // ends the cycle's own context
	stops    sync.WaitGroup
}

// watch begins or resumes a cycle and follows it. begin gets the context of the cycle.
func (t *crewChatSession) watch(ctx context.Context, what crewWatched, begin func(context.Context) (*engine.CrewStatus, error)) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	status, err := begin(ctx)
	if err != nil {
		return t.explained(t.session, err)
	}
	if what.followsOnly {
		what.after = status.FirstSeq - 1
	}
	if t.conversation, err = t.engine.Conversations.Conversation(ctx, status.ConversationID); err != nil {
		return err
	}
	w := &crewWatch{crewChatSession: t, crewWatched: what, leave: leave}
	w.screen = t.newCrewScreen(status, what.own)
	return w.follow(ctx, status)
}

// follow shows the cycle until there is nothing more to show here.
func (w *crewWatch) follow(ctx context.Context, status *engine.CrewStatus) error {
	followed, cancel := context.WithCancel(ctx)
	steps, wait := follow(followed, w.crews.Follow(followed, runOf(status), w.after))
	done := make(chan struct{})
	var under sync.WaitGroup
	under.Go(func() { w.handleSignals(ctx, done) })
	defer func() {
		cancel()
		close(done)
		wait()
		under.Wait()
		w.stops.Wait()
	}()
	beat := time.NewTicker(pictureEvery)
	defer beat.Stop()
	for {
		select {
		case step, ok := <-steps:
			if !ok {
				return w.ended(ctx, nil)
			}
			err := step.err
			if err == nil {
				err = w.screen.update(ctx, step.progress)
			}
			if err != nil {
				return w.ended(ctx, err)
			}
		case now := <-beat.C:
			w.screen.tick(now)
		}
	}
}

// runOf is the run of a crew's newest cycle.
func runOf(status *engine.CrewStatus) continuo.Run {
	return continuo.Run{
		ID: status.RunID, ConversationID: status.ConversationID, ProjectID: status.ProjectID, WorkflowID: continuo.CrewWorkflow(status.Crew),
		State: status.State, FirstSeq: status.FirstSeq, StartedAt: status.StartedAt, UpdatedAt: status.UpdatedAt,
	}
}

// handleSignals handles signals: the first one stops the cycle, the second one leaves. A cycle that another process runs is left
// alone.
func (w *crewWatch) handleSignals(ctx context.Context, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-w.signals:
		}
		switch {
		case w.stopping.Load():
			w.leaving = true
			w.leave()
			return
		case w.followsOnly || w.runsElsewhere(ctx):
			w.followsOnly, w.leaving = true, true
			w.leave()
			return
		}
		w.stopping.Store(true)
		w.stops.Go(func() {
			if _, err := w.crews.Stop(ctx, w.session, "a person stopped it in the terminal"); err != nil {
				w.leave() // a cycle that cannot be stopped ends with its context
			}
		})
	}
}

// runsElsewhere reports whether another process, presumably a live one, runs the current turn.
func (w *crewWatch) runsElsewhere(ctx context.Context) bool {
	status, err := w.crews.Status(ctx, w.session)
	if err != nil || status.TurnID == "" {
		return false
	}
	found, err := w.turns.Get(ctx, w.conversation, status.TurnID)
	if err != nil || found.State != continuo.TurnRunning {
		return false
	}
	return found.Owner != "" && !isOurs(found) && !ownerEnded(found)
}

// isOurs reports whether this process runs a turn.
func (t *crewChatSession) isOurs(ctx context.Context, turnID string) bool {
	found, err := t.turns.Get(ctx, t.conversation, turnID)
	return err == nil && isOurs(found)
}

// decide asks the person whether a call may run, and reports the answer to its turn. Ctrl-C at the question stops the
// cycle.
func (t *crewChatSession) decide(ctx context.Context, s *stream, event turn.Event) error {
	call := *event.Call
	found, err := t.turns.Get(ctx, t.conversation, event.TurnID)
	if err != nil {
		return err
	}
	answer := allowed
	if !t.always[call.Name] {
		answer = s.ask(ctx, found, event)
	}
	switch {
	case answer.stop:
		t.lines.Close()
		t.openInput(ctx) // the previous ones report the end of their input permanently
		select {
		case t.signals <- os.Interrupt:
		default: // one is waiting already
		}
		return nil
	case answer.elsewhere:
		t.printAside("This was decided elsewhere, or the time for a decision ran out.")
		return nil
	}
	err = t.turns.Decide(ctx, found, call.ID, answer.Decision)
	if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrNotRunning) {
		t.printAside("That came too late.")
		return nil
	}
	return err
}

// ended describes the crew's final state, or why its events ended early.
func (w *crewWatch) ended(ctx context.Context, failure error) error {
	w.leave()
	w.stops.Wait()
	status, err := w.crews.Status(context.WithoutCancel(ctx), w.session)
	if err != nil {
		w.screen.end(nil)
		return w.explained(w.session, err)
	}
	w.screen.end(status)
	if failure != nil && context.Cause(ctx) == nil {
		return failure
	}
	return w.outcome(status)
}

// outcome is the command's result.
func (w *crewWatch) outcome(status *engine.CrewStatus) error {
	args := crewArgs(status)
	switch status.State {
	case continuo.RunFinished:
		return nil
	case continuo.RunStopped:
		if w.stopping.Load() {
			return &crewStopped{args}
		}
		if status.IsIdle() {
			return fmt.Errorf("the crew was stopped: %s", status.Reason)
		}
		return fmt.Errorf("the crew was stopped: %s; continue with: continuo crew resume %s", status.Reason, args)
	case continuo.RunFailed:
		return fmt.Errorf("the cycle failed: %s; try again with: continuo crew resume %s", status.Reason, args)
	default:
		if w.stopping.Load() {
			return fmt.Errorf("left the crew before it had stopped; continue with: continuo crew resume %s: %w", args, context.Canceled)
		}
		return &crewRunsElsewhere{args}
	}
}

// crewStopped says that the person has stopped the cycle.
type crewStopped struct{ args string }

func (e *crewStopped) Error() string {
	return "stopped; continue with: continuo crew resume " + e.args
}

func (e *crewStopped) Is(target error) bool { return target == context.Canceled }

// crewRunsElsewhere says that a cycle continues without this program, which only showed it.
type crewRunsElsewhere struct{ args string }

func (e *crewRunsElsewhere) Error() string {
	return "the cycle continues without this program; look on with: continuo crew run --follow " + e.args
}

func (e *crewRunsElsewhere) Is(target error) bool { return target == context.Canceled }
