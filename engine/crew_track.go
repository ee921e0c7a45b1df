package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
)

// crewTracker follows a crew's cycle through its log. It is for one goroutine.
type crewTracker struct {
	engine *Engine
	run    continuo.Run
	state  *crew.State
	next   int64 // the seq to read on from
	// updated is when the cycle's newest event was recorded.
	updated time.Time
	// superseded says that another cycle of the crew has begun since: nothing may be changed in this one.
	superseded bool
	// answers are the newest answer of each role, whole or not; failures count those of its turn under way that failed
	// for another reason than that a program ended, and causes say why the first one did.
	answers  map[string]*continuo.Entry
	failures map[string]int
	causes   map[string]string
}

func newCrewTracker(e *Engine, run continuo.Run) *crewTracker {
	return &crewTracker{engine: e, run: run, next: run.FirstSeq, answers: map[string]*continuo.Entry{}, failures: map[string]int{}, causes: map[string]string{}}
}

// seat names a role of the cycle among those that speak.
func (t *crewTracker) seat(role *crew.Role) speakerKey {
	return speakerKey{t.run.ConversationID, t.state.Crew.ID, role.Name}
}

// at is how far the cycle is by what was read.
func (t *crewTracker) at() continuo.RunState { return t.state.Run }

// branches are none: the roles of a crew speak in turn.
func (t *crewTracker) branches() []string { return nil }

// catchUp reads on to the end of the log.
func (t *crewTracker) catchUp(ctx context.Context) error {
	return t.read(ctx, 0, func(*continuo.Entry) bool { return true })
}

// read reads on through an entry (0: the end of the log), and gives each to a function, which may stop it.
func (t *crewTracker) read(ctx context.Context, through int64, each func(*continuo.Entry) bool) error {
	err := t.engine.readOn(ctx, t.run, &t.next, through, func(entry *continuo.Entry) error { return t.take(ctx, entry) }, each)
	if err == nil && t.state == nil {
		err = fmt.Errorf("cycle %s: %w: its entries are gone", t.run.ID, errUnread)
	}
	return err
}

// take follows an entry.
func (t *crewTracker) take(ctx context.Context, entry *continuo.Entry) error {
	if t.state == nil {
		event := entry.RunEvent
		if event == nil || entry.RunID != t.run.ID || event.Kind != continuo.RunBegan {
			return fmt.Errorf("cycle %s: %w: entry %d does not begin it", t.run.ID, errUnread, entry.Seq)
		}
		id, _ := continuo.CrewOf(t.run.WorkflowID)
		found, err := t.engine.crewTexts.get(id+" "+event.Workflow, func() (*crew.Crew, error) { return t.engine.readCrew(ctx, id, event.Workflow) })
		if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrInvalid) {
			return fmt.Errorf("cycle %s: %w: %w", t.run.ID, errUnread, err)
		}
		if err != nil {
			return fmt.Errorf("cycle %s: %w", t.run.ID, err)
		}
		t.state = crew.NewState(found, t.run.ID)
	}
	if entry.RunID == t.run.ID {
		t.hear(entry)
	} else if event := entry.RunEvent; event != nil && event.Kind == continuo.RunBegan && entry.WorkflowID == t.run.WorkflowID {
		t.superseded = true
	}
	if err := t.state.Apply(entry); err != nil {
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	return nil
}

// hear notes what a role said, and whether its turn is concluded.
func (t *crewTracker) hear(entry *continuo.Entry) {
	if entry.Role == continuo.Assistant && !entry.HasCalls() {
		t.answers[entry.NodeID] = entry
	}
	if entry.Error != nil && entry.Error.Reason != continuo.ReasonInterrupted {
		t.failures[entry.NodeID]++
		t.causes[entry.NodeID] = cmp.Or(t.causes[entry.NodeID], entry.Error.Message)
	}
	if entry.RunEvent != nil {
		t.updated = entry.CreatedAt
	}
	if event := entry.RunEvent; event != nil && (event.Kind == continuo.RunNodeFinished || event.Kind == continuo.CrewRoleFailed) {
		delete(t.failures, entry.NodeID)
		delete(t.causes, entry.NodeID)
	}
}

// readCrew reads the crew that a cycle was begun with, as it was then.
func (e *Engine) readCrew(ctx context.Context, id, hash string) (*crew.Crew, error) {
	text, err := e.Log.Text(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("its crew: %w", err)
	}
	found, err := crew.Parse(id+".yaml", text, crew.Known{Any: true})
	if err != nil {
		return nil, fmt.Errorf("its crew: %w", err)
	}
	return found, nil
}

// changeCrew appends what makes says of a cycle as it stands, and says it anew where somebody else was faster. It
// appends nothing where makes gives nothing.
func (e *Engine) changeCrew(ctx context.Context, t *crewTracker, makes func(*crew.State) ([]continuo.Entry, error)) error {
	return e.changeCrewWith(ctx, t, continuo.AppendOptions{}, makes)
}

// changeCrewWith is changeCrew with a key. It waits no longer than a turn waits for its conversation.
func (e *Engine) changeCrewWith(ctx context.Context, t *crewTracker, options continuo.AppendOptions, makes func(*crew.State) ([]continuo.Entry, error)) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.options.Wait, fmt.Errorf("crew %s: %w: calls of a role wait for their results", t.run.WorkflowID, continuo.ErrBusy))
	defer cancel()
	defer func() {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil { // whatever was under way when the time was up
			err = context.Cause(ctx)
		}
	}()
	for {
		if err := t.catchUp(ctx); err != nil {
			return err
		}
		if t.superseded {
			return errSuperseded
		}
		entries, err := makes(t.state)
		if err != nil || len(entries) == 0 {
			return err
		}
		if err := t.record(ctx, entries, options); !errors.Is(err, errMoved) {
			return err
		}
	}
}

// errSuperseded says that another cycle of the crew has begun: that one is to be looked at.
var errSuperseded = errors.New("another cycle has begun")

// record appends entries that follow of how a cycle stands; errMoved where the log has gone on since it was read.
func (t *crewTracker) record(ctx context.Context, entries []continuo.Entry, options continuo.AppendOptions) error {
	options.ExpectSeq = t.next
	_, err := t.engine.appendRun(ctx, t.run.ConversationID, entries, options)
	if moved := new(continuo.ConflictError); errors.As(err, &moved) {
		return errMoved
	}
	return err
}
