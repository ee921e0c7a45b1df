package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
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
	answers, failures map[string]string
}

func newTracker(e *Engine, run continuo.Run) *tracker {
	return &tracker{engine: e, run: run, next: run.FirstSeq, pieces: map[string][]string{}, answers: map[string]string{}, failures: map[string]string{}}
}

// catchUp reads on to the end of the log.
func (t *tracker) catchUp(ctx context.Context) error {
	return t.read(ctx, 0, func(*continuo.Entry) bool { return true })
}

// read reads on through an entry (0: the end of the log), and gives each entry of the run to a function, which may
// stop it.
func (t *tracker) read(ctx context.Context, through int64, each func(*continuo.Entry) bool) error {
	conversation, err := t.engine.Log.Conversation(ctx, t.run.ConversationID)
	if err != nil {
		return err
	}
	if through == 0 || through > conversation.LastSeq {
		through = conversation.LastSeq
	}
	if t.next > through {
		return nil
	}
	for entry, err := range t.engine.Log.Read(ctx, conversation, continuo.Range{From: t.next, To: through}) {
		if err != nil {
			return err
		}
		if entry.RunID == t.run.ID {
			if err := t.take(ctx, &entry); err != nil {
				return err
			}
		}
		t.next = entry.Seq + 1
		if entry.RunID == t.run.ID && !each(&entry) {
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
			return fmt.Errorf("run %s: %w: entry %d does not begin it", t.run.ID, continuo.ErrInvalid, entry.Seq)
		}
		found, err := t.engine.workflowOf(ctx, t.run.WorkflowID, event.Workflow)
		if err != nil {
			return fmt.Errorf("run %s: %w", t.run.ID, err)
		}
		t.state = workflow.NewState(found, t.run.ID)
	}
	switch {
	case event != nil && event.Kind == continuo.RunNodeBegan && entry.PartType == continuo.PartStep:
		t.pieces[entry.NodeID] = nil // it begins an answer; one that goes on with another has another cue
	case entry.Role == continuo.Assistant:
		t.hear(entry)
	}
	if event != nil && !t.state.Run.IsOver() {
		t.newest = entry
	}
	return t.state.Apply(entry)
}

// hear notes what a step said. What it said before or with calls, whole or not, is no part of its answer.
func (t *tracker) hear(entry *continuo.Entry) {
	node, asks := entry.NodeID, entry.HasCalls()
	if entry.Error != nil {
		t.failures[node] = entry.Error.Message
		asks = asks || len(entry.Error.PartialToolCalls) > 0
	}
	switch {
	case asks:
		t.pieces[node] = nil
	case entry.Error == nil:
		t.answers[node] = entry.Content.String()
	case !entry.Content.IsEmpty():
		t.pieces[node] = append(t.pieces[node], entry.Content.String())
	}
}

// status tells how the run stands now, by all that stands in the log.
func (t *tracker) status(ctx context.Context) (*RunStatus, error) {
	if t.state == nil {
		return nil, fmt.Errorf("run %s: %w: its entries are gone", t.run.ID, continuo.ErrNotFound)
	}
	status := t.statusAt(t.newest)
	if running, err := t.engine.runningTurn(ctx, t.run.ConversationID); err == nil && (running == nil || running.RunID != t.run.ID) {
		status.TurnID = ""
	}
	return status, nil
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

// workflowTexts are workflows by their ids and the hashes of their texts, so that a run's is not parsed at each look.
type workflowTexts struct {
	mu    sync.Mutex
	texts map[string]*workflow.Workflow
}

// maxWorkflowTexts bounds how many are remembered.
const maxWorkflowTexts = 256

// workflowOf finds the workflow that a run was begun with, as it was then. A text may leave the id to its file's name.
func (e *Engine) workflowOf(ctx context.Context, id, hash string) (*workflow.Workflow, error) {
	key := id + " " + hash
	e.texts.mu.Lock()
	found := e.texts.texts[key]
	e.texts.mu.Unlock()
	if found != nil {
		return found, nil
	}
	text, err := e.Log.Text(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("its workflow: %w", err)
	}
	if found, err = workflow.Parse(id+".yaml", text, workflow.Known{Any: true}); err != nil {
		return nil, fmt.Errorf("its workflow: %w", err)
	}
	e.texts.mu.Lock()
	defer e.texts.mu.Unlock()
	if e.texts.texts == nil || len(e.texts.texts) >= maxWorkflowTexts {
		e.texts.texts = map[string]*workflow.Workflow{}
	}
	e.texts.texts[key] = found
	return found, nil
}

// change appends what makes says of a run as it stands, and says it anew where another one was faster. It
// appends nothing where makes gives nothing.
func (e *Engine) change(ctx context.Context, run continuo.Run, makes func(*workflow.State) ([]continuo.Entry, error)) error {
	t := newTracker(e, run)
	for {
		if err := t.catchUp(ctx); err != nil {
			return err
		}
		if t.state == nil {
			return fmt.Errorf("run %s: %w: its entries are gone", run.ID, continuo.ErrNotFound)
		}
		entries, err := makes(t.state)
		if err != nil || len(entries) == 0 {
			return err
		}
		if err := e.recordRun(ctx, t, entries); !errors.Is(err, errMoved) {
			return err
		}
	}
}

// errMoved says that a run has gone on since it was looked at.
var errMoved = errors.New("the run has gone on")

// recordRun appends entries that follow of how a run stands, once: of those who saw it stand so the first counts.
func (e *Engine) recordRun(ctx context.Context, t *tracker, entries []continuo.Entry) error {
	key := fmt.Sprintf("run/%s/%d", t.run.ID, t.state.Seq)
	asked := ""
	for i := range entries {
		asked += string(entries[i].RunEvent.Kind) + entries[i].NodeID + string(entries[i].RunEvent.Outputs) + "\n"
	}
	_, err := e.appendRun(ctx, t.run.ConversationID, key, asked, entries)
	if errors.Is(err, continuo.ErrKeyReused) {
		return errMoved
	}
	return err
}

// appendRun appends entries of a run outside of its turns. Where calls stand open it waits for the turn that
// made them, or, when nobody carries that on any more, answers them first.
func (e *Engine) appendRun(ctx context.Context, conversationID, key, identity string, entries []continuo.Entry) ([]continuo.Entry, error) {
	listener := e.Log.Listen(conversationID)
	defer listener.Close()
	options := continuo.AppendOptions{Key: key, Identity: hashOf(identity)}
	for {
		changed := listener.Changed()
		stored, err := e.Log.Append(ctx, conversationID, entries, options)
		var rule *continuo.RuleError
		if !errors.As(err, &rule) || rule.Rule != continuo.RuleUnanswered {
			return stored, err
		}
		running, err := e.runningTurn(ctx, conversationID)
		if err != nil {
			return nil, err
		}
		if running == nil {
			if err := e.answerOpen(ctx, conversationID); err != nil {
				return nil, err
			}
			continue
		}
		if !listener.Wait(ctx, changed, otherPoll) {
			return nil, context.Cause(ctx)
		}
	}
}

// answerOpen answers calls that stand open although no turn runs.
func (e *Engine) answerOpen(ctx context.Context, conversationID string) error {
	conversation, err := e.Log.Conversation(ctx, conversationID)
	if err != nil {
		return err
	}
	results, err := turn.OpenResults(ctx, e.Log, conversation)
	if err != nil || len(results) == 0 {
		return err
	}
	_, err = e.Log.Append(ctx, conversationID, results, continuo.AppendOptions{ExpectSeq: conversation.LastSeq + 1})
	if conflict := new(continuo.ConflictError); errors.As(err, &conflict) {
		return nil // somebody else was faster
	}
	return err
}

// runFollower is one reader of a run.
type runFollower struct {
	engine  *Engine
	ctx     context.Context
	tracker *tracker
	after   int64
	yield   func(RunProgress, error) bool
	left    bool            // the reader has enough
	heard   map[string]bool // turns that were followed to their end
}

// errLeft ends the walk through a turn's events that nobody wants any more.
var errLeft = errors.New("the reader has left")

func (f *runFollower) run() error {
	waits, cancel := context.WithCancelCause(f.ctx) // for what comes next; a turn under way is heard to its end
	defer cancel(nil)
	defer context.AfterFunc(f.engine.draining, func() { cancel(ErrClosing) })()
	listener := f.engine.Log.Listen(f.tracker.run.ConversationID)
	defer listener.Close()
	f.heard = map[string]bool{}
	for {
		changed := listener.Changed()
		if err := f.entries(0); err != nil || f.left {
			return err
		}
		if f.tracker.state == nil {
			return fmt.Errorf("run %s: %w: its entries are gone", f.tracker.run.ID, continuo.ErrNotFound)
		}
		if state := f.tracker.state.Run; state != continuo.RunRunning && state != continuo.RunWaiting {
			return nil
		}
		running, err := f.engine.runningTurn(f.ctx, f.tracker.run.ConversationID)
		if err != nil {
			return err
		}
		if running != nil && running.RunID == f.tracker.run.ID && !f.heard[running.ID] {
			f.turn(*running)
			if f.left {
				return nil
			}
			continue
		}
		if !listener.Wait(waits, changed, otherPoll) {
			return context.Cause(waits)
		}
	}
}

// entries yields the entries that have come, through one (0: the newest).
func (f *runFollower) entries(through int64) error {
	return f.tracker.read(f.ctx, through, func(entry *continuo.Entry) bool {
		if entry.Seq <= f.after {
			return true
		}
		f.after = entry.Seq
		progress := RunProgress{Entry: entry}
		if entry.RunEvent != nil {
			progress.Status = f.tracker.statusAt(entry)
		}
		f.left = !f.yield(progress, nil)
		return !f.left
	})
}

// turn yields a turn's events, and the entries as they come. What goes wrong with it shows in the entries.
func (f *runFollower) turn(running continuo.Turn) {
	for event, err := range f.engine.Follow(f.ctx, running, 0) {
		if err != nil {
			break
		}
		if f.left = !f.yield(RunProgress{Turn: &event}, nil); f.left {
			return
		}
		if event.Entry != nil && (f.entries(event.Entry.Seq) != nil || f.left) {
			return
		}
	}
	f.heard[running.ID] = true
}
