package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/workflow"
)

// tracker follows a run through its log. It is for one goroutine.
type tracker struct {
	engine *Engine
	run    continuo.Run
	state  *workflow.State
	next   int64               // the seq to read on from
	newest *continuo.Entry     // with an event of the run
	pieces map[string][]string // by node: what the visit's answer said before it broke off
	// answers and failures are, by node, its newest answer that did not break off, and why the newest one did.
	answers  map[string]string
	cuts     map[string]bool // whether the answer reached the model's limit of tokens
	failures map[string]continuo.TurnError
}

func newTracker(e *Engine, run continuo.Run) *tracker {
	return &tracker{engine: e, run: run, next: run.FirstSeq, pieces: map[string][]string{}, answers: map[string]string{}, cuts: map[string]bool{}, failures: map[string]continuo.TurnError{}}
}

// at is how far the run is by what was read.
func (t *tracker) at() continuo.RunState { return t.state.Run }

// branches are the conversations in which steps may be under way beside others.
func (t *tracker) branches() []string { return t.state.Branches() }

// catchUp reads on to the end of the log.
func (t *tracker) catchUp(ctx context.Context) error {
	return t.read(ctx, 0, func(*continuo.Entry) bool { return true })
}

// read reads on through an entry (0: the end of the log), and gives each entry of the run to a function, which may
// stop it.
func (t *tracker) read(ctx context.Context, through int64, each func(*continuo.Entry) bool) error {
	err := t.engine.readOn(ctx, t.run, &t.next, through, func(entry *continuo.Entry) error {
		if entry.RunID == t.run.ID {
			return t.take(ctx, entry)
		}
		if t.state == nil {
			return fmt.Errorf("run %s: %w: entry %d does not begin it", t.run.ID, errUnread, entry.Seq)
		}
		return nil
	}, func(entry *continuo.Entry) bool { return entry.RunID != t.run.ID || each(entry) })
	if err == nil && t.state == nil {
		err = fmt.Errorf("run %s: %w: its entries are gone", t.run.ID, errUnread)
	}
	return err
}

// readOn reads a run's conversation from next through an entry (0: the end of the log), and moves next along. Each entry
// is taken, and then given to a function, which may stop it.
func (e *Engine) readOn(ctx context.Context, run continuo.Run, next *int64, through int64, take func(*continuo.Entry) error, each func(*continuo.Entry) bool) error {
	conversation, err := e.Log.Conversation(ctx, run.ConversationID)
	if err != nil {
		return err
	}
	if through == 0 || through > conversation.LastSeq {
		through = conversation.LastSeq
	}
	if *next > through {
		return nil
	}
	for entry, err := range e.Log.Read(ctx, conversation, continuo.Range{From: *next, To: through}) {
		if err == nil {
			err = take(&entry)
		}
		if err != nil {
			return err
		}
		*next = entry.Seq + 1
		if !each(&entry) {
			return nil
		}
	}
	return nil
}

// take follows an entry of the run.
func (t *tracker) take(ctx context.Context, entry *continuo.Entry) error {
	event := entry.RunEvent
	if t.state == nil {
		if event == nil || event.Kind != continuo.RunBegan {
			return fmt.Errorf("run %s: %w: entry %d does not begin it", t.run.ID, errUnread, entry.Seq)
		}
		found, err := t.workflow(ctx, event.Workflow)
		if err != nil {
			return err
		}
		t.state = workflow.NewState(found, t.run.ID)
	}
	switch {
	case event != nil && event.Kind == continuo.RunReplaced:
		found, err := t.workflow(ctx, event.Workflow)
		if err != nil {
			return err
		}
		t.state.Adopt(found)
	case event != nil && event.Kind == continuo.RunNodeBegan && entry.PartType == continuo.PartStep:
		t.pieces[entry.NodeID] = nil // it begins an answer; one that goes on with another has another cue
	case event != nil && event.Kind == continuo.RunNodeRefused && event.Cut:
		t.pieces[entry.NodeID] = append(t.pieces[entry.NodeID], t.answers[entry.NodeID])
	case entry.Role == continuo.Assistant:
		t.hear(entry)
	}
	if event != nil && !t.state.Run.IsOver() {
		t.newest = entry
	}
	if err := t.state.Apply(entry); err != nil {
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	return nil
}

// workflow finds a workflow that the run has or had; errUnread where its text is gone.
func (t *tracker) workflow(ctx context.Context, hash string) (*workflow.Workflow, error) {
	found, err := t.engine.workflowOf(ctx, t.run.WorkflowID, hash)
	if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrInvalid) {
		return nil, fmt.Errorf("run %s: %w: %w", t.run.ID, errUnread, err)
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", t.run.ID, err)
	}
	return found, nil
}

// errUnread says that a run cannot be followed: its text is gone, or its events make no sense. It can only be ended.
var errUnread = errors.New("the run cannot be read")

// hear notes what a step said. What it said before or with calls, whole or not, is no part of its answer.
func (t *tracker) hear(entry *continuo.Entry) {
	node, asks := entry.NodeID, entry.HasCalls()
	if entry.Error != nil {
		t.failures[node] = *entry.Error
		asks = asks || len(entry.Error.PartialToolCalls) > 0
	}
	switch {
	case asks:
		t.pieces[node] = nil
	case entry.Error == nil:
		t.answers[node], t.cuts[node] = entry.Content.String(), wasCut(entry)
	case !entry.Content.IsEmpty():
		t.pieces[node] = append(t.pieces[node], entry.Content.String())
	}
}

// failureOf is why the newest attempt of a step broke off; of one that left no entry, a reason that passes.
func (t *tracker) failureOf(step workflow.Step, reason continuo.FailureReason) continuo.TurnError {
	if failure := t.failures[step.Node.ID]; failure.Reason == reason {
		return failure
	}
	return continuo.TurnError{Code: continuo.LLMError, Reason: reason, Message: "its turn broke off", Retryable: reason == continuo.ReasonInterrupted}
}

// wasCut reports whether an answer ended because it had reached the model's limit of tokens.
func wasCut(answer *continuo.Entry) bool {
	return answer.Round != nil && answer.Round.FinishReason == "length"
}

// status tells how the run stands now, by all that stands in the log.
func (t *tracker) status(ctx context.Context) (*RunStatus, error) {
	status := t.statusAt(t.newest)
	turns, err := t.engine.runningTurns(ctx, t.run.ID, append([]string{t.run.ConversationID}, t.state.Branches()...))
	if err != nil {
		return status, nil
	}
	status.TurnID = ""
	for _, running := range turns {
		status.TurnID = cmp.Or(status.TurnID, running.ID)
	}
	return status, t.engine.tellWaiting(ctx, status, turns)
}

// statusAt tells how the run stood after its newest event, an entry, without what has come since.
func (t *tracker) statusAt(event *continuo.Entry) *RunStatus {
	status := &RunStatus{Run: t.run, Status: t.state.Status()}
	status.State, status.UpdatedAt, status.EndedAt = t.state.Run, event.CreatedAt, time.Time{}
	if status.State.IsOver() {
		status.EndedAt = event.CreatedAt
	}
	if event.RunEvent.Kind == continuo.RunNodeBegan {
		status.TurnID = event.TurnID
	}
	return status
}

// workflowOf finds the workflow that a run was begun with, as it was then. A text may leave the id to its file's name.
func (e *Engine) workflowOf(ctx context.Context, id, hash string) (*workflow.Workflow, error) {
	return e.workflowTexts.get(id+" "+hash, func() (*workflow.Workflow, error) {
		text, err := e.Log.Text(ctx, hash)
		if err != nil {
			return nil, fmt.Errorf("its workflow: %w", err)
		}
		found, err := workflow.Parse(id+".yaml", text, workflow.Known{Any: true})
		if err != nil {
			return nil, fmt.Errorf("its workflow: %w", err)
		}
		return found, nil
	})
}

// texts are what texts of the log say, by ids and hashes, so that one is not parsed at each look. It is safe for
// concurrent use.
type texts[T any] struct {
	mu   sync.Mutex
	read map[string]T
}

// maxTexts bounds how many are remembered.
const maxTexts = 256

// get finds one or reads it.
func (t *texts[T]) get(key string, read func() (T, error)) (T, error) {
	t.mu.Lock()
	found, ok := t.read[key]
	t.mu.Unlock()
	if ok {
		return found, nil
	}
	found, err := read()
	if err != nil {
		return found, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.read == nil || len(t.read) >= maxTexts {
		t.read = map[string]T{}
	}
	t.read[key] = found
	return found, nil
}
