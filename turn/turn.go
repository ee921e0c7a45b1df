// Package turn carries out one turn: append the user's entry, build the request, stream the model,
// append, run tools, append, and again until the model gives its final answer.
//
// The log is the only copy of the conversation: what the model is sent is built from what was appended,
// so that the newest input can be neither missing nor doubled. Each answer carries the round that it
// was made by. A call of the model that fails leaves an assistant entry with the partial text and an
// LLM_ERROR, and every call of a tool gets a result, whatever happens.
//
// A turn runs under a lease of its conversation ([Keeper]), and what it does is kept as events in the
// store while it happens ([Journal]): the program may be killed at any point, and whoever finds the turn
// afterwards closes it with all that had come. Anybody may follow it meanwhile, from any process.
//
// Pitfalls: stopping the journal ends the turn with an entry that says so, which is still appended. Times
// are measured by this process's monotonic clock.
package turn

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/window"
)

// ErrInterrupted is the cause with which a context is cancelled when the program ends or another turn
// takes over. Any other cancellation is the user's.
var ErrInterrupted = errors.New("interrupted")

// Runner runs turns. It is safe for concurrent use. Model and View are required.
type Runner struct {
	// Log is the keeper's. Default: just that.
	Log *continuo.Log
	// Model is asked once a round: retries, and limits on the time of one request, are its own.
	Model model.Model
	// Tools are asked for once a turn; those that Policy denies are not offered. The zero Policy asks about every call: it
	// waits for [Keeper.Decide], up to Limits.Ask. Default: no tools.
	Tools  tool.Source
	Policy tool.Policy
	// AllTools offers also the tools that cannot do anything for a request; see [tool.Situational].
	AllTools bool
	View     View
	// Since is the seq of the last entry that tools must not show either: a crew was reset there. 0 for none.
	Since  int64
	System []string // the system messages, in order
	Limits Limits
	// MaxOutputTokens and Temperature go to the model; zero and nil leave them to it.
	MaxOutputTokens int
	Temperature     *float64
	// Speaker knows the dialect of Model. Default: the protocol as it is.
	Speaker *model.Speaker
	// Answer is the JSON Schema of the answer, used where the model's dialect can ask for one. Default none.
	Answer *AnswerSchema
	// Fallback is asked in a round whose model failed before it showed anything. Default none.
	Fallback *Upstream
}

// AnswerSchema describes an answer.
type AnswerSchema struct {
	Name   string
	Schema json.RawMessage
}

// Upstream is a model and what goes to it.
type Upstream struct {
	Model           model.Model
	MaxOutputTokens int      // 0 leaves it to the model
	Temperature     *float64 // nil leaves it to the model
	Speaker         *model.Speaker
}

// own is the runner's model as an upstream.
func (r *Runner) own() Upstream {
	return Upstream{Model: r.Model, MaxOutputTokens: r.MaxOutputTokens, Temperature: r.Temperature, Speaker: r.Speaker}
}

// Limits bound a turn.
type Limits struct {
	Rounds int           // model requests; the last one is offered no tools. Default 25
	Turn   time.Duration // the whole turn, without the time that calls wait for a person. Default 10 min
	Tool   time.Duration // one call of a tool. Default 1 min
	Ask    time.Duration // waiting for a person's decision on a call; AskWithoutLimit: without an end. Default 5 min

	// OverTime is what is said of a turn whose time is up. Default: that it took longer than Turn, and which setting that is.
	OverTime string

	OutputBytes int // one output of a tool; a larger one becomes a failure. Default 64 MiB
}

// AskWithoutLimit is a Limits.Ask that lets a call wait for a decision as long as it takes.
const AskWithoutLimit time.Duration = -1

func (l Limits) orDefaults() Limits {
	if l.Rounds == 0 {
		l.Rounds = 25
	}
	if l.Turn == 0 {
		l.Turn = 10 * time.Minute
	}
	if l.Tool == 0 {
		l.Tool = time.Minute
	}
	if l.Ask == 0 {
		l.Ask = 5 * time.Minute
	}
	if l.OutputBytes == 0 {
		l.OutputBytes = 64 << 20
	}
	if l.OverTime == "" {
		l.OverTime = OverTime("the turn", l.Turn, "turn.timeout")
	}
	return l
}

// Input is what begins a turn.
type Input struct {
	// Conversation is the turn's, as it was read behind its lease. Default: it is read.
	Conversation continuo.Conversation
	Message      continuo.Content
	// Resume goes on from where the log stands, without a message.
	Resume bool
	// Mode is the mode of the turn, AgentID who answers; they become the conversation's, together with the
	// input, unless the turn is a run's.
	Mode    continuo.Mode
	AgentID string
	// Cue begins the turn in the place of a message: a system entry that tells the model what to do.
	Cue *continuo.Entry
	// Leave lets the turn run, without a process, when this program ends: another one takes it up (see [Keeper.TakeUp]).
	Leave bool
	// At is the seq that the first entry of the turn must get. Default 0: any.
	At int64
	// Author is which role of a crew speaks in the turn. Default none.
	Author *continuo.Author
	// AskAgain makes the calls of the run's step again that were interrupted, where their tools are safe to repeat.
	AskAgain bool
	// Conclude makes entries that are appended behind the turn's last word, in the same commit, by what stands in the
	// log before the seq at; where others have appended meanwhile it is asked again. It may put an event of the turn's
	// run on the answer itself. Default none.
	Conclude func(answer *continuo.Entry) (behind []continuo.Entry, at int64)
}

// check refuses a runner that cannot build a request.
func (r *Runner) check() error {
	if r.Model == nil {
		return fmt.Errorf("%w: the runner has no model", continuo.ErrInvalid)
	}
	return noView(r.View)
}

// Run carries out the turn of a journal and returns when it is over. Its events are read with [Keeper.Follow] or
// [Journal.Follow], while it runs in another goroutine or afterwards. The error says why the turn could not be recorded or
// built; a model that fails gives a Failed event and no error. A journal runs once.
func (r *Runner) Run(j *Journal, in Input) (err error) {
	if err := j.use(); err != nil {
		return err
	}
	if r.Log == nil {
		own := *r
		own.Log = j.keeper.options.Log
		r = &own
	}
	limits := r.Limits.orDefaults()
	ctx, clock, cancel := withClock(j.Context(), limits.Turn, &timeoutError{limits.OverTime})
	defer cancel()
	defer func() { j.keeper.end(j, err) }()
	c := &cycle{Runner: r, journal: j, limits: limits, in: in, conversationID: j.turn.ConversationID, ctx: ctx, clock: clock, usage: j.used, tools: r.offered(ctx), places: make(chan struct{}, maxSideBySide)}
	return c.run()
}

// offered returns the tools that a model may be told of. Of tools that a request would give one name the
// first counts.
func (r *Runner) offered(ctx context.Context) tool.Set {
	if r.Tools == nil {
		return nil
	}
	var offered tool.Set
	taken := map[string]bool{}
	for _, candidate := range r.Policy.Offered(r.Tools.Tools(ctx)) {
		if name := render.ToolName(candidate.Spec().Name); !taken[name] {
			taken[name] = true
			offered = append(offered, candidate)
		}
	}
	return offered
}

// timeoutError ends a turn whose time is up.
type timeoutError struct{ words string }

func (e *timeoutError) Error() string { return e.words }

// OverTime says that something took longer than a limit, and what raises that.
func OverTime(what string, limit time.Duration, setting string) string {
	return fmt.Sprintf("%s took longer than %s; raise %s", what, limit, setting)
}

// cycle is one turn under way.
type cycle struct {
	*Runner
	journal        *Journal
	limits         Limits
	in             Input
	conversationID string
	conversation   continuo.Conversation // as the turn found it
	tools          tool.Set              // of this turn
	usage          continuo.Usage
	newestPlan     *continuo.Plan // of the newest round
	places         chan struct{}  // of calls that run at once
	ctx            context.Context
	clock          *clock // ends ctx
}

func (c *cycle) run() error {
	begin := time.Now()
	if err := c.begin(); err != nil {
		if errors.Is(err, continuo.ErrUnavailable) {
			return err // its beginning may stand in the log: whoever closes the turn looks
		}
		if cause := context.Cause(c.ctx); cause != nil && !errors.Is(err, continuo.ErrLeaseLost) {
			err = fmt.Errorf("%w: it was stopped before it began: %w", continuo.ErrNotRunning, cause)
		}
		return errors.Join(err, c.journal.void())
	}
	c.journal.measure(StageBegin, time.Since(begin))
	if c.in.AskAgain {
		if err := c.askAgain(); err != nil {
			return err
		}
	}
	for round := 1; ; round++ {
		answer, err := c.round(round == c.limits.Rounds)
		switch {
		case err != nil:
			return c.ends(err)
		case len(answer.ToolCalls) == 0:
			return nil // it was the turn's last word
		case answer.Error != nil:
			return c.fail(answer)
		}
		if err := c.answerCalls(answer, round == c.limits.Rounds); err != nil {
			return err
		}
		if round == c.limits.Rounds {
			return c.giveUp()
		}
	}
}

// ends records why there is no answer: somebody stopped the turn, or its request cannot be built. Only
// what cannot be recorded is an error.
func (c *cycle) ends(err error) error {
	var notKept *notKeptError
	switch cause := context.Cause(c.ctx); {
	case errors.Is(err, continuo.ErrLeaseLost), errors.As(err, &notKept):
		return err
	case errors.Is(cause, continuo.ErrLeaseLost):
		return cause
	case cause != nil:
		return c.end(model.AsError(causeOf(c.ctx)))
	}
	reason := continuo.ReasonUpstream
	switch overflow := new(continuo.OverflowError); {
	case errors.Is(err, continuo.ErrUnavailable): // nothing is wrong with the turn
		reason = continuo.ReasonInterrupted
	case errors.As(err, &overflow):
		reason = continuo.ReasonContextOverflow
	}
	if failed := c.end(&model.Error{Reason: reason, Message: err.Error(), Retryable: reason == continuo.ReasonInterrupted}); failed != nil {
		return errors.Join(err, failed)
	}
	return nil
}

// fail ends a turn whose answer failed: its calls are answered, and the turn ends with it.
func (c *cycle) fail(answer *continuo.Entry) error {
	var results []continuo.Entry
	for _, call := range answer.ToolCalls {
		results = append(results, c.resultOf(call, notRun()))
	}
	if c.isLeft(answer) {
		_, err := c.append(results, toolEvents, leaves)
		return err
	}
	_, err := c.append(results, func(stored []continuo.Entry) []Event {
		return append(toolEvents(stored), Event{Kind: Failed, Entry: answer, Plan: c.newestPlan, Usage: c.usage})
	}, ends(continuo.TurnFailed, continuo.TurnEnd{Reason: answer.Error.Reason, Usage: c.usage}))
	return err
}

// begin appends the user's entry, or what a resumed turn needs, behind the results of calls that stand open.
func (c *cycle) begin() error {
	if err := c.check(); err != nil {
		return err
	}
	conversation, err := c.in.Conversation, error(nil)
	if conversation.ID == "" {
		conversation, err = c.Log.Conversation(c.ctx, c.conversationID)
	}
	if err != nil {
		return err
	}
	c.conversation = conversation
	// They are appended under the turn's lease: the calls may be another turn's by then.
	entries, err := OpenResults(c.ctx, c.Log, conversation)
	if err != nil {
		return err
	}
	var last *continuo.Entry // that a resumed turn goes on from, where nothing needs to be added
	switch {
	case c.in.Cue != nil:
		entries = append(entries, *c.in.Cue)
	case !c.in.Resume:
		if err := c.CheckFits(c.ctx, conversation, c.in.Message); err != nil {
			return err
		}
		entries = append(entries, continuo.Entry{Role: continuo.User, Content: c.in.Message})
	case len(entries) > 0 && !entries[0].Hidden: // it goes on from the results
	default:
		if last, err = c.newest(); err != nil {
			return err
		}
		if last.Role == continuo.Assistant && !window.IsFailedAttempt(last) { // else it is asked again: nothing was said
			entries = append(entries, continuo.Entry{Role: continuo.System, PartType: continuo.PartResume, Content: continuo.Text(strings.TrimSpace(resumeNote))})
			last = nil
		}
	}
	_, err = c.journal.append(c.tagged(entries), func(stored []continuo.Entry) []Event {
		if last != nil {
			return []Event{{Kind: Started, Entry: last}}
		}
		return []Event{{Kind: Started, Entry: &stored[len(stored)-1]}}
	}, c.switches, c.in.At)
	return err
}

// switches lets the conversation's active mode and agent become the turn's. A run leaves them as they are.
func (c *cycle) switches(update *continuo.TurnUpdate) {
	if c.journal.turn.RunID == "" {
		update.Mode, update.Agent = c.in.Mode, c.in.AgentID
	}
}

// resumeNote tells the model to go on with an answer that broke off.
//
//go:embed resume.md
var resumeNote string

// newest reads the conversation's newest entry that is not hidden.
func (c *cycle) newest() (*continuo.Entry, error) {
	for entry, err := range c.Log.Read(c.ctx, c.conversation, continuo.Range{Backward: true}) {
		if err != nil || !entry.Hidden {
			return &entry, err
		}
	}
	return nil, fmt.Errorf("%w: there is nothing to resume in an empty conversation", continuo.ErrInvalid)
}

// OpenResults makes results for calls that stand open in a conversation although no turn runs, such as an
// import's: without them nothing could ever follow.
func OpenResults(ctx context.Context, log *continuo.Log, conversation continuo.Conversation) ([]continuo.Entry, error) {
	group, err := log.OpenGroup(ctx, conversation)
	if err != nil {
		return nil, err
	}
	var results []continuo.Entry
	for _, call := range group.OpenCalls() {
		results = append(results, interruptedCall(call, group.Hidden))
	}
	return results, nil
}

// CheckFits refuses, with a *continuo.OverflowError, a message that no request in a conversation could hold. Of a
// conversation that is still to begin only the project has to be known.
func (r *Runner) CheckFits(ctx context.Context, conversation continuo.Conversation, message continuo.Content) error {
	if err := r.check(); err != nil {
		return err
	}
	fewest := r.offer(ctx).tools(conversation, false)
	return r.View.CheckFits(windowInput(0, with(r.envelope(r.own(), r.Speaker.Dialect()), fewest), r.Model.Info()), message)
}

// append adds entries of the turn to the log, together with the events that tell of them. It gets there
// even when the turn was cancelled.
func (c *cycle) append(entries []continuo.Entry, tell func([]continuo.Entry) []Event, more func(*continuo.TurnUpdate)) ([]continuo.Entry, error) {
	return c.journal.append(c.tagged(entries), tell, more, 0)
}

// tagged says of entries what they are of.
func (c *cycle) tagged(entries []continuo.Entry) []continuo.Entry {
	for i := range entries {
		entries[i].Mode, entries[i].AgentID = c.in.Mode, c.in.AgentID
		tag(&entries[i], &c.journal.turn, c.in.Author)
	}
	return entries
}

// tag says which turn, and which step of which run, an entry is of, and of an answer who speaks. An event of a run
// says itself what it is of.
func tag(entry *continuo.Entry, turn *continuo.Turn, author *continuo.Author) {
	entry.TurnID = turn.ID
	if entry.Role == continuo.Assistant {
		entry.Author = author
	}
	if entry.RunEvent == nil {
		entry.RunID, entry.WorkflowID, entry.NodeID = turn.RunID, turn.WorkflowID, turn.NodeID
	}
}

// answered appends an answer. One without calls ends the turn in the same commit.
func (c *cycle) answered(answer continuo.Entry) (*continuo.Entry, error) {
	var last func(*continuo.TurnUpdate)
	kind, state, reason := Finished, continuo.TurnFinished, continuo.FailureReason("")
	if answer.Error != nil {
		kind, state, reason = Failed, continuo.TurnFailed, answer.Error.Reason
	}
	left := c.isLeft(&answer)
	switch {
	case len(answer.ToolCalls) > 0:
	case left:
		last = leaves
	default:
		last = ends(state, continuo.TurnEnd{Reason: reason, Usage: c.usage})
	}
	tell := func(stored []continuo.Entry) []Event {
		events := []Event{{Kind: Answered, Entry: &stored[0]}}
		if last != nil && !left {
			events = append(events, Event{Kind: kind, Entry: &stored[0], Plan: c.newestPlan, Usage: c.usage})
		}
		return events
	}
	var stored []continuo.Entry
	var err error
	if last != nil && answer.Error == nil && c.in.Conclude != nil {
		stored, err = c.concluded(answer, tell, last)
	} else {
		stored, err = c.append([]continuo.Entry{answer}, tell, last)
	}
	if err != nil {
		return nil, err
	}
	return &stored[0], nil
}

// concludeTries bounds how often what stands behind an answer is made anew because somebody else has appended.
const concludeTries = 64

// concluded appends a turn's last word with what follows of it.
func (c *cycle) concluded(answer continuo.Entry, tell func([]continuo.Entry) []Event, last func(*continuo.TurnUpdate)) (stored []continuo.Entry, err error) {
	for range concludeTries {
		behind, at := c.in.Conclude(&answer)
		entries := c.tagged(append([]continuo.Entry{answer}, behind...))
		stored, err = c.journal.append(entries, tell, last, at)
		if moved := new(continuo.ConflictError); !errors.As(err, &moved) {
			return stored, err
		}
	}
	return nil, err
}

// giveUp ends a turn whose model asked for tools although its last request offered none.
func (c *cycle) giveUp() error {
	return c.end(&model.Error{
		Reason:  continuo.ReasonTurnLimit,
		Message: fmt.Sprintf("the model still asked for tools after %d rounds, the limit of a turn (turn.max_rounds)", c.limits.Rounds),
	})
}

// end closes a turn with an entry that says why there is no answer.
func (c *cycle) end(failure *model.Error) error {
	_, err := c.answered((&model.Answer{}).Entry(failure))
	return err
}
