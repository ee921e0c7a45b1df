package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/engine/internal/brief"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/engine/metrics"
	"github.com/continuo-log/continuo/engine/start"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/workflow"
)

// Runs begins, resumes and follows the runs of workflows.
type Runs struct {
	log     *continuo.Log
	catalog *catalog.Catalog
	turns   *start.Turns
	life    *lifecycle.Lifecycle
	keeper  *turn.Keeper
	driver  *durable.Driver
	metrics *metrics.Metrics
	options Options
	texts   brief.Cache[*workflow.Workflow] // parsed texts of the log
}

// Options configures Runs.
type Options struct {
	Workflows Source        // nil: there are none
	Wait      time.Duration // for turns that end or ask
	Logger    *slog.Logger
	LogText   bool
}

func New(
	log *continuo.Log, catalog *catalog.Catalog, turns *start.Turns, life *lifecycle.Lifecycle, keeper *turn.Keeper, driver *durable.Driver, metrics *metrics.Metrics, options Options,
) *Runs {
	return &Runs{log: log, catalog: catalog, turns: turns, life: life, keeper: keeper, driver: driver, metrics: metrics, options: options}
}

// Source is the source of workflows. It must be safe for concurrent use.
type Source interface {
	// Workflow finds one by id; continuo.ErrNotFound, or a *workflow.Problems for an invalid one.
	Workflow(id string) (*workflow.Workflow, error)
	// Workflows lists all valid workflows by id. The problems of invalid files are joined in the error.
	Workflows() ([]*workflow.Workflow, error)
}

// Request is a request to begin a run of a workflow.
type Request struct {
	Scope continuo.Scope
	// UserID is the user of a conversation that the request creates, and SessionID the conversation's id or key, as in a
	// ChatRequest.
	UserID    string
	SessionID string
	Workflow  string // its id
	// Inputs is a JSON object with the run's inputs; nil for none.
	Inputs json.RawMessage
	// Message is the person's message in the log. Default: a sentence that names the workflow and the inputs.
	Message string
	// Key is the idempotency key; "" for none.
	Key string
	// Detached lets the run continue when the caller's context ends.
	Detached bool
}

// Status is the state of a run.
type Status struct {
	continuo.Run
	workflow.Status
	// TurnID is the turn of a step that is running, in any process; absent for none. Its tool calls that wait for a person
	// are shown and decided on there.
	TurnID string `json:"turn_id,omitempty"`
}

// Errors of runs.
var (
	ErrOver    = errors.New("the run is over")
	ErrWaiting = errors.New("the run waits for a person's decision")
	// ErrDecided says that another person's opposite decision on a call was first, or that its turn has ended.
	ErrDecided = errors.New("the call has been decided on")
	// ErrInProgress says that a run must be stopped before it can be repaired.
	ErrInProgress = errors.New("the run is in progress")
)

// Workflows lists the workflows; see [Source].
func (rs *Runs) Workflows() ([]*workflow.Workflow, error) {
	if rs.options.Workflows == nil {
		return nil, nil
	}
	return rs.options.Workflows.Workflows()
}

// Workflow finds a workflow by id; see [Source].
func (rs *Runs) Workflow(id string) (*workflow.Workflow, error) {
	if rs.options.Workflows == nil {
		return nil, fmt.Errorf("workflow %q: %w: there are none", id, continuo.ErrNotFound)
	}
	return rs.options.Workflows.Workflow(id)
}

// Start checks a request, finds or creates its conversation, records the beginning of the run, and drives the run
// in goroutines of its own. For a key that has already begun a run, Start returns that run.
func (rs *Runs) Start(ctx context.Context, request Request) (*Status, error) {
	if begun, err := rs.begunRun(ctx, request); err != nil || begun != nil {
		return begun, err
	}
	found, err := rs.Workflow(request.Workflow)
	if err != nil {
		return nil, err
	}
	inputs, err := found.ReadInputs(request.Inputs)
	if err != nil {
		return nil, err
	}
	if rs.life.IsClosed() {
		return nil, lifecycle.ErrClosing // before a conversation is created for it
	}
	first, err := found.Begin("", request.Message, inputs)
	if err != nil {
		return nil, err
	}
	conversation, err := rs.turns.OpenWithinBudget(ctx, start.ChatRequest{Scope: request.Scope, UserID: request.UserID, SessionID: request.SessionID, Message: first.Content, Key: request.Key})
	if err != nil {
		return nil, err
	}
	if _, err := rs.log.PutText(ctx, found.Text); err != nil {
		return nil, err
	}
	payer, _ := continuo.PayerOf(ctx)
	first.RunEvent.KeyID = payer.KeyID
	first.RunID = rs.log.NewID("run")
	if request.Key != "" {
		first.RunID = keyedRunID(conversation.ID, request.Key)
	}
	first.OutputRef = continuo.InputsRef(first.RunID)
	stored, err := rs.driver.Append(ctx, conversation.ID, []continuo.Entry{first}, continuo.AppendOptions{Key: beginKey(first.RunID), Identity: brief.Hash(request.asked())})
	if errors.Is(err, continuo.ErrKeyReused) { // a concurrent request with the same key was first
		return nil, errRunKeyReused(first.RunID)
	}
	if err != nil {
		return nil, err
	}
	run, err := rs.log.Runs().Run(ctx, conversation.ProjectID, stored[0].RunID)
	if err != nil {
		return nil, err
	}
	auditRun(ctx, run)
	rs.options.Logger.InfoContext(ctx, "run_began", "conversation_id", run.ConversationID, "run_id", run.ID, "workflow_id", run.WorkflowID)
	return rs.resumeRecorded(ctx, run, request.Detached)
}

// begunRun returns the run that a request's key has already begun; nil where there is none.
func (rs *Runs) begunRun(ctx context.Context, request Request) (*Status, error) {
	if request.Key == "" {
		return nil, nil
	}
	session := cmp.Or(request.SessionID, conversations.OnceKey(request.Scope, request.Key))
	conversation, err := rs.log.Find(ctx, request.Scope, session)
	if errors.Is(err, continuo.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	runID := keyedRunID(conversation.ID, request.Key)
	receipt, err := rs.log.Receipt(ctx, conversation.ID, beginKey(runID))
	switch {
	case errors.Is(err, continuo.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case receipt.Fingerprint != brief.Hash(request.asked()):
		return nil, errRunKeyReused(runID)
	}
	run, err := rs.log.Runs().Run(ctx, conversation.ProjectID, runID)
	if err != nil {
		return nil, err
	}
	auditRun(ctx, run)
	return rs.resume(ctx, run, request.Detached)
}

// auditRun says that the operation of the context is about a run.
func auditRun(ctx context.Context, run continuo.Run) {
	audit.About(ctx, run.ConversationID)
	audit.Targets(ctx, run.ID)
}

// keyedRunID is the id of the run that an idempotency key begins in a conversation.
func keyedRunID(conversationID, key string) string {
	return "run_" + brief.Hash(conversationID+"\n"+key)
}

// beginKey is the key under which a run's first entry is appended once.
func beginKey(runID string) string { return "run/" + runID }

// asked is the content of a request, to distinguish a retry from another request with the same key.
func (r Request) asked() string {
	return string(rawjson.MustMarshal([]string{r.Workflow, string(r.Inputs), r.Message}))
}

func errRunKeyReused(runID string) error {
	return fmt.Errorf("%w: it began run %s with something else", continuo.ErrKeyReused, runID)
}

// Find finds a run of a workflow within a scope; ErrNotFound. The cycles of crews are not found.
func (rs *Runs) Find(ctx context.Context, scope continuo.Scope, id string) (continuo.Run, error) {
	run, err := continuo.Run{}, continuo.ErrNotFound
	if conversations.KeyPattern.MatchString(id) { // all ids match this pattern
		run, err = rs.log.FindRun(ctx, scope, id)
	}
	if _, cycle := continuo.CrewOf(run.WorkflowID); cycle || errors.Is(err, continuo.ErrNotFound) {
		return continuo.Run{}, fmt.Errorf("run %q: %w", id, continuo.ErrNotFound)
	}
	if err == nil {
		auditRun(ctx, run)
	}
	return run, err
}

// Get finds a run within a scope; ErrNotFound.
func (rs *Runs) Get(ctx context.Context, scope continuo.Scope, id string) (*Status, error) {
	run, err := rs.log.FindRun(ctx, scope, id)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	return rs.status(ctx, run)
}

// status returns the state of a run; for one that cannot be read, its row in the index.
func (rs *Runs) status(ctx context.Context, run continuo.Run) (*Status, error) {
	r := newRun(rs, run)
	err := r.CatchUp(ctx)
	if errors.Is(err, durable.ErrCorrupt) {
		return &Status{Run: run, Status: workflow.Status{Reason: err.Error(), Nodes: []workflow.NodeStatus{}}}, nil
	}
	if err != nil {
		return nil, err
	}
	return r.status(ctx)
}

// Resume resumes a run that failed or was stopped, from where it broke off, or whose process is gone. A step that
// waits for a retry is retried at once; any other running run is left unchanged. ErrOver says that the run has
// ended permanently, ErrWaiting that a person must decide first. If detached, the run continues when ctx ends.
func (rs *Runs) Resume(ctx context.Context, run continuo.Run, detached bool) (*Status, error) {
	err := rs.change(ctx, run, func(s *workflow.State) ([]continuo.Entry, error) {
		switch {
		case s.Run.IsOver():
			return nil, fmt.Errorf("run %s: %w: it is %s; start another one", run.ID, ErrOver, s.Run)
		case s.Run == continuo.RunWaiting:
			return nil, fmt.Errorf("run %s: %w in %s", run.ID, ErrWaiting, names(s.Waiting()))
		case s.Run == continuo.RunRunning && !s.Retries():
			return nil, rs.checkSupported(s.Workflow)
		}
		if err := rs.checkSupported(s.Workflow); err != nil {
			return nil, err
		}
		conversation, err := rs.log.Conversation(ctx, run.ConversationID)
		if err != nil {
			return nil, err
		}
		if err := rs.turns.CheckBudget(ctx, continuo.Payer{ProjectID: run.ProjectID, UserID: conversation.UserID, KeyID: run.KeyID}); err != nil {
			return nil, err
		}
		return []continuo.Entry{s.Resume()}, nil
	})
	if err != nil {
		return nil, err
	}
	return rs.resume(ctx, run, detached)
}

// Stop stops a run, whichever process drives it, until a person resumes it; ErrOver.
func (rs *Runs) Stop(ctx context.Context, run continuo.Run, reason string) (*Status, error) {
	return rs.end(ctx, run, func(s *workflow.State) []continuo.Entry {
		if s.Run == continuo.RunStopped || s.Run == continuo.RunFailed {
			return nil
		}
		return []continuo.Entry{s.Halt(reason)}
	})
}

// Cancel ends a run permanently, whichever process drives it; ErrOver.
func (rs *Runs) Cancel(ctx context.Context, run continuo.Run) (*Status, error) {
	status, err := rs.end(ctx, run, func(s *workflow.State) []continuo.Entry { return []continuo.Entry{s.Cancel()} })
	if !errors.Is(err, durable.ErrCorrupt) {
		return status, err
	}
	if run.State.IsOver() {
		return nil, fmt.Errorf("run %s: %w: it is %s", run.ID, ErrOver, run.State)
	}
	if err := rs.driver.EndCorrupt(ctx, run, continuo.RunEventCancelled, "a person cancelled it"); err != nil {
		return nil, err
	}
	return rs.Get(ctx, continuo.Scope{ProjectID: run.ProjectID}, run.ID)
}

// end stops a run's turns and appends what makes returns. It stops the turns first, since nothing can be appended
// while calls are open, and again afterwards, since another turn may have begun meanwhile.
func (rs *Runs) end(ctx context.Context, run continuo.Run, makes func(*workflow.State) []continuo.Entry) (*Status, error) {
	changes := func(s *workflow.State) ([]continuo.Entry, error) {
		if s.Run.IsOver() {
			return nil, fmt.Errorf("run %s: %w: it is %s", run.ID, ErrOver, s.Run)
		}
		return makes(s), nil
	}
	if err := rs.change(ctx, run, func(s *workflow.State) ([]continuo.Entry, error) { _, err := changes(s); return nil, err }); err != nil {
		return nil, err
	}
	if err := rs.stopTurnOf(ctx, run); err != nil {
		return nil, err
	}
	if err := rs.change(ctx, run, changes); err != nil {
		return nil, err
	}
	if err := rs.stopTurnOf(ctx, run); err != nil {
		return nil, err
	}
	return rs.status(ctx, run)
}

// stopTurnOf stops the running turns of a run, in whichever process they run.
func (rs *Runs) stopTurnOf(ctx context.Context, run continuo.Run) error {
	r := newRun(rs, run)
	if err := r.CatchUp(ctx); err != nil {
		return err
	}
	_, err := rs.driver.CancelTurns(ctx, run.ID, r.conversations())
	return err
}

// waiting finds the node that a decision names; "" is the only waiting one.
func waiting(s *workflow.State, id string) (*workflow.Node, error) {
	waiting := s.Waiting()
	for _, node := range waiting {
		if node.ID == id || id == "" && len(waiting) == 1 {
			return node, nil
		}
	}
	switch {
	case len(waiting) == 0:
		return nil, fmt.Errorf("run %s: %w: nothing waits for a decision", s.RunID, continuo.ErrNotFound)
	case id == "":
		return nil, fmt.Errorf("run %s: %w: several steps wait, name one of %s", s.RunID, continuo.ErrInvalid, names(waiting))
	}
	return nil, fmt.Errorf("run %s: %w: the step %q does not wait for a decision; %s does", s.RunID, continuo.ErrNotFound, brief.Shorten(id, 60), names(waiting))
}

func names(nodes []*workflow.Node) string {
	ids := make([]string, len(nodes))
	for i, node := range nodes {
		ids[i] = node.ID
	}
	return strings.Join(ids, ", ")
}

// Progress is an item of a run's stream: an entry of the run, or an event of the turn that is running.
type Progress struct {
	// Entry is an entry of the run, in the order of their seqs. Status is the run's state after it, where it has a
	// RunEvent.
	Entry  *continuo.Entry
	Status *Status
	// Turn is a live event of a turn of the run: text as it arrives, calls, questions. These events are not repeated: a
	// client that reads later finds their content in the entries.
	Turn *turn.Event
	// ConversationID is the conversation of that turn: the run's own, or a branch. Set with Turn.
	ConversationID string
}

// Follow yields the entries of a run with seqs above after, each once and in order, first the recorded ones and
// then new ones, with the live events of its turns between them. It ends with an error, or after the last entry of a
// run that is over, has failed or was stopped.
func (rs *Runs) Follow(ctx context.Context, run continuo.Run, after int64) iter.Seq2[Progress, error] {
	return func(yield func(Progress, error) bool) {
		r := newRun(rs, run)
		err := rs.driver.Watch(ctx, run, r, after, func(entry *continuo.Entry, running *continuo.Turn, event *turn.Event) bool {
			if entry != nil && entry.RunID != run.ID {
				return true
			}
			progress := Progress{Entry: entry, Turn: event}
			if running != nil {
				progress.ConversationID = running.ConversationID
			}
			if entry != nil && entry.RunEvent != nil {
				progress.Status = r.statusAt(entry)
			}
			return yield(progress, nil)
		})
		if err != nil {
			yield(Progress{}, err)
		}
	}
}

// ResumeAbandoned resumes runs whose process is gone: those in the state running with no event for the time quiet and no
// turn in progress. It returns how many.
func (rs *Runs) ResumeAbandoned(ctx context.Context, quiet time.Duration) (resumed int, err error) {
	resumed, err = rs.driver.ResumeAbandoned(ctx, quiet)
	if err != nil {
		err = fmt.Errorf("resume interrupted runs: %w", err)
	}
	return resumed, err
}
