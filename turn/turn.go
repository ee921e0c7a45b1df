// Package turn executes one turn: append the user's entry, build the request, stream the model's answer and append it,
// run tools and append their results, and repeat until the model gives its final answer (the tool loop).
//
// The log is the only copy of the conversation: each request is built from appended entries, so the newest input can be
// neither missing nor duplicated. Each answer records its round. A failed model call leaves an assistant entry with the
// partial text and an LLM_ERROR, and every tool call gets a result, whatever happens.
//
// A turn runs under a lease of its conversation ([Keeper]), and its events are stored while it runs ([Journal]): the
// program may be killed at any point, and the next process that finds the turn closes it with all stored output. Any
// process can follow a running turn.
//
// Pitfalls: stopping the journal ends the turn with an entry that says so, which is still appended. Times are measured
// by this process's monotonic clock.
package turn

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/window"
)

// ErrInterrupted is the cancellation cause when the program ends or another turn takes over. Any other cancellation is
// the user's.
var ErrInterrupted = errors.New("interrupted")

// Runner runs turns. It is safe for concurrent use. Model and View are required.
type Runner struct {
	// Log defaults to the keeper's log and must be the same.
	Log *continuo.Log
	// Model gets one request per round; it handles retries and request timeouts itself.
	Model model.Model
	// Tools is read once per turn; tools that Policy denies are not offered. The zero Policy asks about every call: the
	// call waits for [Keeper.Decide], up to Limits.Ask. Default: no tools.
	Tools  tool.Source
	Policy tool.Policy
	// AllTools also offers tools that are not useful for a request; see [tool.Situational].
	AllTools bool
	View     View
	// Since is the seq up to which tools must not show entries either, because a crew was reset there. 0 for none.
	Since  int64
	System []string // the system messages, in order
	Limits Limits
	// MaxOutputTokens, Temperature and ReasoningEffort are sent to the model; with zero values the model's defaults apply.
	MaxOutputTokens int
	Temperature     *float64
	ReasoningEffort string // see continuo.Envelope
	// Speaker tracks the dialect of Model. Default: the standard protocol.
	Speaker *model.Speaker
	// Answer is the JSON Schema of the answer, sent where the model's dialect supports it. Default none.
	Answer *AnswerSchema
	// Fallback gets the request when Model fails before any visible output. Default none.
	Fallback *Upstream
	// ClientTools are the tools that the turn's client runs: an answer that calls one of them ends the turn with those
	// calls open, and the client's next request has their results. Tools of the same name are not offered. Where it is not nil,
	// calls of unknown tools are the client's too. Default none.
	ClientTools []continuo.ToolSpec
	// Options are what the turn's client asks of the answer. Default nothing.
	Options *ClientOptions
	// Recaller returns what is appended right before a message: earlier entries that it may need and that the request would
	// not show. Default none.
	Recaller Recaller
	// Forward sends a client's request as it came instead of one that is built from the log; all calls of its answer are
	// the client's. Default none.
	Forward *Forward
	// Answered is called with the status and the headers of each answer of an upstream. Default none.
	Answered func(status int, header http.Header)
}

// Recaller finds the earlier entries that a new message may need. It returns a hidden entry that shows them, nil for none. A
// turn never fails because of it.
type Recaller interface {
	Recall(ctx context.Context, runner *Runner, snapshot *continuo.Snapshot, message continuo.Content) *continuo.Entry
}

// AnswerSchema describes an answer. Without a Schema it is any JSON object; Strict is what a client asks, nil for nothing.
type AnswerSchema struct {
	Name   string
	Schema json.RawMessage
	Strict *bool
}

// ClientOptions are what a client asks of the answer of a request that is built from the log.
type ClientOptions struct {
	// Sampling and Own are as in continuo.Envelope.
	Sampling *continuo.Sampling
	Own      *continuo.OwnMembers
	// Names are the client's names of the members of continuo.Envelope and continuo.Sampling.
	Names map[string]string
	// Omitted are the members that no request that is built can have.
	Omitted []string
	// Headers are sent with the request. Default none.
	Headers *model.ClientHeaders
}

// Upstream is a model with its request settings.
type Upstream struct {
	Model           model.Model
	MaxOutputTokens int      // 0 means the model's default
	Temperature     *float64 // nil means the model's default
	ReasoningEffort string   // see continuo.Envelope
	Speaker         *model.Speaker
}

// own is the runner's model as an upstream.
func (r *Runner) own() Upstream {
	return Upstream{
		Model: r.Model, MaxOutputTokens: r.MaxOutputTokens, Temperature: r.Temperature, ReasoningEffort: r.ReasoningEffort, Speaker: r.Speaker,
	}
}

// Limits bound a turn.
type Limits struct {
	Rounds int           // model requests; the last one offers no tools. Default 25
	Turn   time.Duration // the whole turn, without the time that calls wait for a person. Default 10 min
	Tool   time.Duration // one call of a tool. Default 1 min
	Ask    time.Duration // wait for a person's decision on a call; AskWithoutLimit: no limit. Default 5 min

	// OverTime is the error text at the end of Turn. Default: that the turn took longer than Turn, and the setting's
	// name.
	OverTime string

	OutputBytes int // one tool output; a larger one becomes a failure. Default 64 MiB
}

// AskWithoutLimit is a Limits.Ask without a time limit for a decision.
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

// Input is the input of a turn.
type Input struct {
	// Conversation is the turn's, as the caller has read it: just now, or under the turn's lease. Default: it is read.
	Conversation continuo.Conversation
	// Snapshot has the newest entries of Conversation, as the caller has read them with it. Default: they are read.
	Snapshot *continuo.Snapshot
	// Create says that the conversation is a new one, which Log.NewConversation has made: [Runner.Begin] stores it in its
	// commit, and fails with continuo.ErrExists where its key is taken.
	Create  bool
	Message continuo.Content
	// Entries replace the message: what a client's request adds to the log. Results of open calls come first; those that
	// it leaves open get a result that says so.
	Entries []continuo.Entry
	// Prefixes returns what makes the prefixes of entries that are about to be appended, as continuo.AppendOptions has it:
	// those of the input, or an answer. Default: they get none.
	Prefixes func(entries []continuo.Entry, answer bool) func(stored []continuo.Entry) []continuo.Prefix
	// Fits says that the caller has checked the message with [Runner.CheckFits]. Default: it is checked.
	Fits bool
	// Resume continues from the newest entry of the log, without a message; Again asks the model as if an answer that broke
	// off were not there, because the client does so.
	Resume, Again bool
	// Mode is the turn's mode, AgentID the agent that answers. They become the conversation's active ones in the commit
	// of the input, unless the turn belongs to a run.
	Mode    continuo.Mode
	AgentID string
	// Cue replaces the message: a system entry that instructs the model.
	Cue *continuo.Entry
	// NoMemory says that nothing may be remembered of the turn: its first entries say so.
	NoMemory bool
	// Leave keeps the turn running when this program ends, for another process to take over (see [Keeper.TakeUp]).
	Leave bool
	// At is the seq that the first entry of the turn must get. Default 0: any.
	At int64
	// Author is the role of a crew that speaks in the turn. Default none.
	Author *continuo.Author
	// AskAgain repeats the interrupted calls of the run's step whose tools are safe to repeat.
	AskAgain bool
	// Conclude returns entries to append after the turn's final answer in the same commit, computed from the log before
	// the seq at. It is called again when another append came first. It may set a run event on the answer itself.
	// Default none.
	Conclude func(answer *continuo.Entry) (behind []continuo.Entry, at int64)
}

// check refuses a runner that cannot build a request.
func (r *Runner) check() error {
	if r.Model == nil {
		return fmt.Errorf("%w: the runner has no model", continuo.ErrInvalid)
	}
	return noView(r.View)
}

// Run executes the turn of a journal and returns when it is over. Its events are read with [Keeper.Follow] or
// [Journal.Follow], in another goroutine or afterwards. The error says why the turn could not be recorded or built; a
// model failure is a Failed event and no error. A journal runs once.
func (r *Runner) Run(j *Journal, in Input) (err error) {
	if err := j.use(); err != nil {
		return err
	}
	r = r.withLog(j.keeper.options.Log)
	limits := r.Limits.orDefaults()
	ctx, clock, cancel := withClock(j.Context(), limits.Turn, &timeoutError{limits.OverTime})
	defer cancel()
	defer func() { j.keeper.end(j, err) }()
	if in.Prefixes != nil {
		j.prefixes = func(entries []continuo.Entry) func([]continuo.Entry) []continuo.Prefix {
			return in.Prefixes(entries, true)
		}
	}
	c := &toolLoop{Runner: r, journal: j, limits: limits, in: in, conversationID: j.turn.ConversationID, ctx: ctx, clock: clock, usage: j.used, tools: r.offered(ctx), slots: make(chan struct{}, maxSideBySide)}
	return c.run()
}

// offered returns the tools that a model may be offered. Of tools with the same name in a request, the first counts.
func (r *Runner) offered(ctx context.Context) tool.Set {
	if r.Tools == nil {
		return nil
	}
	var offered tool.Set
	taken := map[string]bool{}
	for _, spec := range r.ClientTools {
		taken[render.ToolName(spec.Name)] = true
	}
	for _, candidate := range r.Policy.Offered(r.Tools.Tools(ctx)) {
		if name := render.ToolName(candidate.Spec().Name); !taken[name] {
			taken[name] = true
			offered = append(offered, candidate)
		}
	}
	return offered
}

// timeoutError ends a turn that exceeds its time limit.
type timeoutError struct{ text string }

func (e *timeoutError) Error() string { return e.text }

// OverTime returns the message that something took longer than a limit, with the setting to raise.
func OverTime(what string, limit time.Duration, setting string) string {
	return fmt.Sprintf("%s took longer than %s; raise %s", what, limit, setting)
}

// toolLoop is one turn in progress.
type toolLoop struct {
	*Runner
	journal        *Journal
	limits         Limits
	in             Input
	conversationID string
	conversation   continuo.Conversation // at the start of the turn
	snapshot       *continuo.Snapshot    // of the log up to the turn's input; nil once it may be out of date
	tools          tool.Set              // of this turn
	usage          continuo.Usage
	newestPlan     *window.Plan  // of the newest round
	slots          chan struct{} // slots of concurrent calls
	ctx            context.Context
	clock          *clock // ends ctx
}

func (c *toolLoop) run() error {
	begin := time.Now()
	if err := c.begin(); err != nil {
		if errors.Is(err, continuo.ErrUnavailable) {
			return err // the first entries may be stored: recovery of the turn checks
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
		case c.isLast(answer):
			return nil
		case answer.Error != nil:
			return c.fail(answer)
		}
		if err := c.answerCalls(answer, round == c.limits.Rounds); err != nil {
			return err
		}
		if c.callsClient(answer) {
			return c.finish(answer)
		}
		if round == c.limits.Rounds {
			return c.giveUp()
		}
	}
}

// ends records why there is no answer: the turn was stopped, or its request cannot be built. It returns an error only
// when that cannot be recorded.
func (c *toolLoop) ends(err error) error {
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
	case errors.Is(err, continuo.ErrUnavailable): // the turn itself has no fault
		reason = continuo.ReasonInterrupted
	case errors.As(err, &overflow):
		reason = continuo.ReasonContextOverflow
	}
	if failed := c.end(&model.Error{Reason: reason, Message: err.Error(), Retryable: reason == continuo.ReasonInterrupted}); failed != nil {
		return errors.Join(err, failed)
	}
	return nil
}

// fail ends a turn with a failed answer: its calls get results, and the turn ends.
func (c *toolLoop) fail(answer *continuo.Entry) error {
	var results []continuo.Entry
	for _, call := range answer.ToolCalls {
		results = append(results, c.resultOf(call, notRun()))
	}
	if c.isLeftToOtherProcess(answer) {
		_, err := c.append(results, toolEvents, keepRunning)
		return err
	}
	_, err := c.append(results, func(stored []continuo.Entry) []Event {
		return append(toolEvents(stored), Event{Kind: Failed, Entry: answer, Plan: c.newestPlan, Usage: c.usage})
	}, ends(continuo.TurnFailed, continuo.TurnEnd{Reason: answer.Error.Reason, Usage: c.usage}))
	return err
}

// begin appends the user's entry, or what a resumed turn needs, unless that was appended when the turn began.
func (c *toolLoop) begin() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.journal.opened {
		c.conversation, c.snapshot = c.journal.conversation, c.journal.snapshot
		c.journal.snapshot = nil
		return nil
	}
	o, err := c.firstEntries(c.ctx, &c.journal.turn, c.in)
	if err != nil {
		return err
	}
	c.conversation = o.snapshot.Conversation
	for _, blob := range o.blobs {
		c.journal.keep(blob)
	}
	stored, err := c.journal.append(o.entries, o.started, func(update *continuo.TurnUpdate) {
		update.Mode, update.Agent = o.mode, o.agent
	}, c.in.At)
	if err != nil {
		return err
	}
	if o.kept != nil {
		o.kept()
	}
	c.snapshot = o.snapshot.With(stored)
	return nil
}

// resumeNote instructs the model to continue an answer that was cut off.
//
//go:embed resume.md
var resumeNote string

// OpenResults returns results for calls that are open although no turn runs, such as in an import: without them no
// other entry can be appended.
func OpenResults(ctx context.Context, log *continuo.Log, conversation continuo.Conversation) ([]continuo.Entry, error) {
	return openResults(ctx, log, &continuo.Snapshot{Conversation: conversation})
}

func openResults(ctx context.Context, log *continuo.Log, snapshot *continuo.Snapshot) ([]continuo.Entry, error) {
	group, err := log.OpenGroupOf(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	var results []continuo.Entry
	for _, call := range group.OpenCalls() {
		results = append(results, interruptedCall(call, group.Hidden))
	}
	return results, nil
}

// CheckFits refuses, with a *continuo.OverflowError, a message that no request in a conversation could hold. For a
// conversation that does not exist yet only the project must be set.
func (r *Runner) CheckFits(ctx context.Context, conversation continuo.Conversation, message continuo.Content) error {
	if err := r.check(); err != nil {
		return err
	}
	fewest := r.toolOffer(ctx).tools(conversation, false)
	in, err := windowInput(0, with(r.envelope(r.own(), r.Speaker.Dialect()), fewest, r.ClientTools), r.Model.Info())
	if err != nil {
		return err
	}
	return r.View.CheckFits(in, message)
}

// now returns the conversation up to the turn's own newest entry.
func (c *toolLoop) now() continuo.Conversation {
	conversation := c.conversation
	conversation.LastSeq = max(conversation.LastSeq, c.journal.lastSeq())
	return conversation
}

// append adds entries of the turn to the log together with the events returned by eventsOf. It also works after the turn
// was cancelled.
func (c *toolLoop) append(entries []continuo.Entry, eventsOf func([]continuo.Entry) []Event, more func(*continuo.TurnUpdate)) ([]continuo.Entry, error) {
	return c.appendAt(entries, eventsOf, more, 0)
}

// appendAt is append at a seq, 0 for any.
func (c *toolLoop) appendAt(entries []continuo.Entry, eventsOf func([]continuo.Entry) []Event, more func(*continuo.TurnUpdate), at int64) ([]continuo.Entry, error) {
	c.snapshot = nil // it lacks the new entries
	return c.journal.append(withTurnFields(entries, &c.journal.turn, c.in), eventsOf, more, at)
}

// tag sets an entry's turn, the run's step, and the author of an answer. An entry with a RunEvent has its own run
// fields.
func tag(entry *continuo.Entry, turn *continuo.Turn, author *continuo.Author) {
	entry.TurnID = turn.ID
	if entry.Role == continuo.Assistant {
		entry.Author = author
	}
	if entry.RunEvent == nil {
		entry.RunID, entry.WorkflowID, entry.NodeID = turn.RunID, turn.WorkflowID, turn.NodeID
	}
}

// answered appends an answer. An answer without calls ends the turn in the same commit.
func (c *toolLoop) answered(answer continuo.Entry) (*continuo.Entry, error) {
	var last func(*continuo.TurnUpdate)
	kind, state, reason := Finished, continuo.TurnFinished, continuo.FailureReason("")
	if answer.Error != nil {
		kind, state, reason = Failed, continuo.TurnFailed, answer.Error.Reason
	}
	left := c.isLeftToOtherProcess(&answer)
	switch {
	case !c.isLast(&answer):
	case left:
		last = keepRunning
	default:
		last = ends(state, continuo.TurnEnd{Reason: reason, Usage: c.usage})
	}
	eventsOf := func(stored []continuo.Entry) []Event {
		events := []Event{{Kind: Answered, Entry: &stored[0]}}
		if last != nil && !left {
			events = append(events, Event{Kind: kind, Entry: &stored[0], Plan: c.newestPlan, Usage: c.usage})
		}
		return events
	}
	var stored []continuo.Entry
	var err error
	if last != nil && answer.Error == nil && c.in.Conclude != nil {
		stored, err = c.concluded(answer, eventsOf, last)
	} else {
		stored, err = c.append([]continuo.Entry{answer}, eventsOf, last)
	}
	if err != nil {
		return nil, err
	}
	return &stored[0], nil
}

// maxConcludeAttempts bounds how often Conclude is called again because of another append.
const maxConcludeAttempts = 64

// concluded appends a turn's final answer with the entries of Conclude.
func (c *toolLoop) concluded(answer continuo.Entry, eventsOf func([]continuo.Entry) []Event, last func(*continuo.TurnUpdate)) (stored []continuo.Entry, err error) {
	for range maxConcludeAttempts {
		behind, at := c.in.Conclude(&answer)
		stored, err = c.appendAt(append([]continuo.Entry{answer}, behind...), eventsOf, last, at)
		if moved := new(continuo.ConflictError); !errors.As(err, &moved) {
			return stored, err
		}
	}
	return nil, err
}

// giveUp ends a turn whose model requested tools although its last request offered none.
func (c *toolLoop) giveUp() error {
	return c.end(&model.Error{
		Reason:  continuo.ReasonTurnLimit,
		Message: fmt.Sprintf("the model still asked for tools after %d rounds, the limit of a turn (turn.max_rounds)", c.limits.Rounds),
	})
}

// end closes a turn with an entry that says why there is no answer.
func (c *toolLoop) end(failure *model.Error) error {
	_, err := c.answered((&model.Answer{}).Entry(failure))
	return err
}
