package crews

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/contexts"
	"github.com/continuo-log/continuo/engine/internal/brief"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/engine/metrics"
	"github.com/continuo-log/continuo/engine/start"
	"github.com/continuo-log/continuo/engine/summary"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Crews begins, resumes and follows the cycles of crews.
type Crews struct {
	log       *continuo.Log
	catalog   *catalog.Catalog
	summaries *summary.Summaries
	turns     *start.Turns
	contexts  *contexts.Contexts
	life      *lifecycle.Lifecycle
	driver    *durable.Driver
	metrics   *metrics.Metrics
	options   Options
	texts     brief.Cache[*crew.Crew] // parsed texts of the log
	sessions  sessionPool             // the programs that answer for roles
}

// Options configures Crews.
type Options struct {
	Crews    Source // nil: there are none
	Defaults RoleDefaults
	Wait     time.Duration            // for turns that end
	Redact   func(text string) string // removes secrets from the reasons of failures
	Logger   *slog.Logger
	LogText  bool
}

func New(
	log *continuo.Log, catalog *catalog.Catalog, summaries *summary.Summaries, turns *start.Turns, contexts *contexts.Contexts, life *lifecycle.Lifecycle,
	driver *durable.Driver, metrics *metrics.Metrics, options Options,
) *Crews {
	options.Defaults = options.Defaults.orDefaults()
	return &Crews{
		log: log, catalog: catalog, summaries: summaries, turns: turns, contexts: contexts, life: life,
		driver: driver, metrics: metrics, options: options,
		sessions: sessionPool{options: options.Defaults, logger: options.Logger, metrics: metrics},
	}
}

// Source is the source of crews. It must be safe for concurrent use.
type Source interface {
	// Crew finds one by id; continuo.ErrNotFound, or, for an invalid crew, an error that lists its problems.
	Crew(id string) (*crew.Crew, error)
	// Crews lists all valid crews by id. The problems of invalid files are joined in the error.
	Crews() ([]*crew.Crew, error)
}

// RoleDefaults are the defaults for roles whose crew file sets no value.
type RoleDefaults struct {
	// Newest is how many messages the view "window" shows. Default 200.
	Newest int
	// ReminderInterval is the number of answers after which a role's system prompt is repeated. Default 5.
	ReminderInterval int
	// Timeout bounds a role's turn. Default 600 s.
	Timeout time.Duration
	// RestartWait is the wait before the first restart of a program that ended; it doubles with each restart, up to
	// 30 s. Default 500 ms.
	RestartWait time.Duration
	// Failures is the number of failed attempts in a row after which a role is not asked for the time Cooldown. Cooldown
	// doubles while the role keeps failing, at most three times (eightfold). Default 3 and 30 s.
	Failures int
	Cooldown time.Duration
	// Idle is how long the program of a role is kept after its last turn. Default 30 min.
	Idle time.Duration
}

func (o RoleDefaults) orDefaults() RoleDefaults {
	o.Newest, o.ReminderInterval = cmp.Or(o.Newest, 200), cmp.Or(o.ReminderInterval, 5)
	o.Timeout, o.RestartWait = cmp.Or(o.Timeout, 600*time.Second), cmp.Or(o.RestartWait, 500*time.Millisecond)
	o.Failures, o.Cooldown, o.Idle = cmp.Or(o.Failures, 3), cmp.Or(o.Cooldown, 30*time.Second), cmp.Or(o.Idle, 30*time.Minute)
	return o
}

// Session names a crew and the conversation that it works in.
type Session struct {
	Scope continuo.Scope
	Crew  string // its id
	// UserID is the user of a conversation that the message creates, as in a ChatRequest.
	UserID string
	// SessionID is a conversation's id or key, as in a ChatRequest. Default: "crew:" and the crew's id.
	SessionID string
}

func (s Session) session() string { return cmp.Or(s.SessionID, continuo.CrewWorkflow(s.Crew)) }

// Message is a person's message to a crew.
type Message struct {
	Session
	Message continuo.Content
	// Author says who speaks, where several people do; nil for an unnamed user.
	Author *continuo.Author
	Key    string // the idempotency key; "" for none
	// Detached lets the crew continue when the caller's context ends.
	Detached bool
}

// ErrNoCycle says that a crew has no cycle to resume, or no reset to take back.
var ErrNoCycle = errors.New("there is nothing to do")

// List lists the crews; see [Source].
func (cs *Crews) List() ([]*crew.Crew, error) {
	if cs.options.Crews == nil {
		return nil, nil
	}
	return cs.options.Crews.Crews()
}

// Get finds a crew by id; see [Source].
func (cs *Crews) Get(id string) (*crew.Crew, error) {
	if cs.options.Crews == nil {
		return nil, fmt.Errorf("crew %q: %w: there are none", brief.Shorten(id, 60), continuo.ErrNotFound)
	}
	return cs.options.Crews.Crew(id)
}

// Send appends a person's message to a crew. The message begins a cycle, or becomes part of the cycle in progress; in
// both cases the cycle continues in goroutines of its own. For a key that was used before, Send returns the cycle of
// its message.
func (cs *Crews) Send(ctx context.Context, request Message) (*Status, error) {
	found, err := cs.Get(request.Crew)
	if err != nil {
		return nil, err
	}
	if err := start.CheckMessage(request.Message); err != nil {
		return nil, err
	}
	if err := cs.checkStaff(found); err != nil {
		return nil, err
	}
	if err := cs.checkShowable(ctx, found, request); err != nil {
		return nil, err
	}
	if cs.life.IsClosed() {
		return nil, lifecycle.ErrClosing // before the message is appended
	}
	conversation, err := cs.turns.OpenWithinBudget(ctx, start.ChatRequest{Scope: request.Scope, UserID: request.UserID, SessionID: request.session(), Message: request.Message})
	if err != nil {
		return nil, err
	}
	audit.About(ctx, conversation.ID)
	if _, err := cs.log.PutText(ctx, found.Text); err != nil {
		return nil, err
	}
	run, err := cs.appendMessage(ctx, conversation, found, request)
	if err != nil {
		return nil, err
	}
	if err := cs.driver.Resume(ctx, run, request.Detached); err != nil && !errors.Is(err, lifecycle.ErrClosing) {
		return nil, err // the message is in the log: another process resumes the cycle
	}
	return cs.status(ctx, conversation, found, run)
}

// appendMessage appends a message, and returns the cycle that it belongs to. It waits no longer than a turn waits for
// its conversation.
func (cs *Crews) appendMessage(ctx context.Context, conversation continuo.Conversation, found *crew.Crew, request Message) (continuo.Run, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cs.options.Wait, fmt.Errorf("%w: calls of a role wait for their results; send the message again", continuo.ErrBusy))
	defer cancel()
	options := continuo.AppendOptions{}
	if request.Key != "" {
		options.Key = "crew/" + found.ID + "/" + request.Key
		options.Identity = brief.Hash(string(rawjson.MustMarshal(request.Message)))
	}
	for {
		entry, at, err := cs.messageEntry(ctx, conversation, found, request)
		if err != nil {
			return continuo.Run{}, err
		}
		options.ExpectSeq = at
		stored, err := cs.driver.Append(ctx, conversation.ID, []continuo.Entry{entry}, options)
		if moved := new(continuo.ConflictError); errors.As(err, &moved) {
			if conversation, err = cs.log.Conversation(ctx, conversation.ID); err != nil {
				return continuo.Run{}, err
			}
			continue
		}
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return continuo.Run{}, err
		}
		return cs.log.Runs().Run(ctx, conversation.ProjectID, stored[0].RunID)
	}
}

// messageEntry makes the entry of a message, and the seq at which it must be appended: it begins a cycle, or belongs
// to the cycle in progress.
func (cs *Crews) messageEntry(ctx context.Context, conversation continuo.Conversation, found *crew.Crew, request Message) (entry continuo.Entry, at int64, err error) {
	c, err := cs.newestCycle(ctx, conversation, found.ID)
	var before *crew.Snapshot
	switch {
	case errors.Is(err, durable.ErrCorrupt): // its worker ends it
		if before, err = cs.lastState(ctx, conversation, c.Run); err != nil {
			return entry, 0, err
		}
		at = conversation.LastSeq + 1
	case err != nil:
		return entry, 0, err
	case c == nil:
		at = conversation.LastSeq + 1
	case c.State.Run == continuo.RunRunning:
		return c.State.MessageEntry(request.Message, request.Author), c.Next(), nil
	default:
		before, at = found.TakeOver(c.State), c.Next()
	}
	entry = found.Begin(cs.log.NewID("run"), request.Message, request.Author, before)
	payer, _ := continuo.PayerOf(ctx)
	entry.RunEvent.KeyID = payer.KeyID
	return entry, at, nil
}

// newestCycle reads the newest cycle of a crew in a conversation to its end; nil where there is none.
func (cs *Crews) newestCycle(ctx context.Context, conversation continuo.Conversation, crewID string) (*crewCycle, error) {
	newest, err := cs.log.Runs().Runs(ctx, continuo.RunQuery{
		ProjectID: conversation.ProjectID, ConversationID: conversation.ID, WorkflowID: continuo.CrewWorkflow(crewID), BegunBy: math.MaxInt64, Limit: 1,
	})
	if err != nil || len(newest) == 0 {
		return nil, err
	}
	c := newCycle(cs, newest[0])
	return c, c.CatchUp(ctx)
}

// maxCycles bounds how many cycles are searched for the first one of a conversation.
const maxCycles = 10_000

// CycleAt finds the newest cycle of a crew in a conversation that had begun at a seq, or the first cycle where none had;
// ErrNotFound where the crew has never taken part.
func (cs *Crews) CycleAt(ctx context.Context, session Session, conversationID string, seq int64) (continuo.Run, error) {
	query := continuo.RunQuery{
		ProjectID: session.Scope.ProjectID, ConversationID: conversationID, WorkflowID: continuo.CrewWorkflow(session.Crew), BegunBy: max(seq, 1), Limit: 1,
	}
	cycles, err := cs.log.Runs().Runs(ctx, query)
	if err == nil && len(cycles) == 0 {
		query.BegunBy, query.Limit = math.MaxInt64, maxCycles
		cycles, err = cs.log.Runs().Runs(ctx, query)
	}
	if err == nil && len(cycles) == 0 {
		err = continuo.ErrNotFound
	}
	if err != nil {
		return continuo.Run{}, err
	}
	return cycles[len(cycles)-1], nil
}

// lastState is the crew's state after the newest event of a cycle that cannot be read any more; nil where no
// event holds one.
func (cs *Crews) lastState(ctx context.Context, conversation continuo.Conversation, run continuo.Run) (last *crew.Snapshot, err error) {
	for entry, err := range cs.log.Read(ctx, conversation, continuo.Range{From: run.FirstSeq}) {
		if err != nil {
			return nil, err
		}
		if entry.RunID != run.ID {
			continue
		}
		if recorded, err := crew.ReadSnapshot(entry.RunEvent); err == nil && recorded != nil { // an unreadable one is skipped
			last = recorded
		}
	}
	return last, nil
}

// cycleOf finds a session's conversation and its newest cycle; ErrNotFound where the crew has none there.
func (cs *Crews) cycleOf(ctx context.Context, session Session) (continuo.Conversation, *crewCycle, error) {
	conversation, err := cs.log.Find(ctx, session.Scope, session.session())
	if err != nil {
		return conversation, nil, fmt.Errorf("session %s: %w", brief.Shorten(session.session(), 60), err)
	}
	audit.About(ctx, conversation.ID)
	c, err := cs.newestCycle(ctx, conversation, session.Crew)
	if err == nil && c == nil {
		err = fmt.Errorf("%w: crew %s has done nothing in session %s yet", continuo.ErrNotFound, brief.Shorten(session.Crew, 60), brief.Shorten(session.session(), 60))
	}
	return conversation, c, err
}

// Resume resumes a cycle that failed, was stopped, or whose process is gone; ErrNoCycle.
func (cs *Crews) Resume(ctx context.Context, session Session, detached bool) (*Status, error) {
	conversation, c, err := cs.cycleOf(ctx, session)
	if err != nil {
		return nil, err
	}
	if err := cs.checkStaff(c.State.Crew); err != nil {
		return nil, err
	}
	err = c.changeOnce(ctx, durable.Once{}, func(s *crew.State) ([]continuo.Entry, error) {
		switch s.Run {
		case continuo.RunRunning:
			return nil, nil
		case continuo.RunFailed, continuo.RunStopped:
			if s.IsIdle() {
				return nil, fmt.Errorf("crew %s: %w: no message is unanswered; send one", s.Crew.ID, ErrNoCycle)
			}
			if err := cs.turns.CheckBudget(ctx, continuo.Payer{ProjectID: c.Run.ProjectID, UserID: conversation.UserID, KeyID: c.Run.KeyID}); err != nil {
				return nil, err
			}
			return []continuo.Entry{s.Resume()}, nil
		}
		return nil, fmt.Errorf("crew %s: %w: its newest cycle is %s; say something to it", s.Crew.ID, ErrNoCycle, s.Run)
	})
	if errors.Is(err, errSuperseded) {
		return cs.Resume(ctx, session, detached)
	}
	if err != nil {
		return nil, err
	}
	if err := cs.driver.Resume(ctx, c.Run, detached); err != nil && !errors.Is(err, lifecycle.ErrClosing) {
		return nil, err
	}
	return cs.status(ctx, conversation, c.State.Crew, c.Run)
}

// Stop stops a running cycle, whichever process runs it, until a person resumes it or sends a message. It does
// nothing to a cycle that is not running.
func (cs *Crews) Stop(ctx context.Context, session Session, reason string) (*Status, error) {
	conversation, c, err := cs.cycleOf(ctx, session)
	if err != nil {
		return nil, err
	}
	err = cs.stopCycle(ctx, c, reason)
	if errors.Is(err, errSuperseded) {
		return cs.Stop(ctx, session, reason)
	}
	if err != nil {
		return nil, err
	}
	return cs.status(ctx, conversation, c.State.Crew, c.Run)
}

// stopCycle stops a cycle's turn, waits for its end, and records that the cycle was stopped. A turn that begins
// meanwhile causes a conflict when the record is appended, and is stopped too.
func (cs *Crews) stopCycle(ctx context.Context, c *crewCycle, reason string) error {
	return c.changeOnce(ctx, durable.Once{}, func(s *crew.State) ([]continuo.Entry, error) {
		if s.Run != continuo.RunRunning {
			return nil, nil
		}
		if err := cs.endTurnOf(ctx, c.Run); err != nil {
			return nil, err
		}
		return []continuo.Entry{s.Halt(reason)}, nil
	})
}

// endTurnOf stops the running turn of a cycle and waits for its end: its last entries belong to the cycle.
func (cs *Crews) endTurnOf(ctx context.Context, run continuo.Run) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cs.options.Wait, fmt.Errorf("%w: a role does not stop", continuo.ErrBusy))
	defer cancel()
	turns, err := cs.driver.CancelTurns(ctx, run.ID, []string{run.ConversationID})
	if err != nil || len(turns) == 0 {
		return err
	}
	err = cs.driver.AwaitTurn(ctx, run.ConversationID, turns[0].ID)
	if errors.Is(err, continuo.ErrNotRunning) || errors.Is(err, continuo.ErrLeaseLost) { // stopped before it had begun, or another process closes it
		return nil
	}
	return err
}

// Reset resets a crew in its conversation: a running cycle is stopped, and no role sees the present entries any
// more. Nothing is deleted; Restore takes the reset back. A key that was used before causes no second reset.
func (cs *Crews) Reset(ctx context.Context, session Session, key string) (*Status, error) {
	return cs.resetOrRestore(ctx, session, key, "reset", func(s *crew.State, at int64) (continuo.Entry, error) {
		return s.Reset(at), nil
	})
}

// Restore takes back the newest reset that is still in effect; ErrNoCycle where there is none.
func (cs *Crews) Restore(ctx context.Context, session Session, key string) (*Status, error) {
	return cs.resetOrRestore(ctx, session, key, "restore", func(s *crew.State, _ int64) (continuo.Entry, error) {
		entry, ok := s.Restore()
		if !ok {
			return entry, fmt.Errorf("crew %s: %w: it was not reset", s.Crew.ID, ErrNoCycle)
		}
		return entry, nil
	})
}

// resetOrRestore stops the running cycle and appends one event.
func (cs *Crews) resetOrRestore(ctx context.Context, session Session, key, what string, makes func(*crew.State, int64) (continuo.Entry, error)) (*Status, error) {
	conversation, c, err := cs.cycleOf(ctx, session)
	if err != nil {
		return nil, err
	}
	given := key
	if key != "" {
		key = "crew/" + session.Crew + "/" + what + "/" + key
		if _, err := cs.log.Receipt(ctx, conversation.ID, key); err == nil {
			return cs.status(ctx, conversation, c.State.Crew, c.Run)
		}
	}
	err = cs.stopCycle(ctx, c, "the crew was asked to "+what)
	if errors.Is(err, errSuperseded) {
		return cs.resetOrRestore(ctx, session, given, what, makes)
	}
	if err != nil {
		return nil, err
	}
	err = c.changeOnce(ctx, durable.Once{Key: key, Identity: key}, func(s *crew.State) ([]continuo.Entry, error) {
		entry, err := makes(s, c.Next()-1)
		return []continuo.Entry{entry}, err
	})
	if errors.Is(err, errSuperseded) {
		return cs.resetOrRestore(ctx, session, given, what, makes)
	}
	if err != nil {
		return nil, err
	}
	return cs.status(ctx, conversation, c.State.Crew, c.Run)
}

// OpenSession finds the conversation of a crew's session, or creates it.
func (cs *Crews) OpenSession(ctx context.Context, session Session) (continuo.Conversation, error) {
	return cs.turns.Open(ctx, start.ChatRequest{Scope: session.Scope, UserID: session.UserID, SessionID: session.session(), Message: continuo.Text("Crew " + session.Crew)})
}
