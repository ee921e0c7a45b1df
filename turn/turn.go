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
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/tool"
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
	// Extras are more of what is sent to the model. Default nothing.
	Extras Extras
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
	// Recaller returns what is appended right before a message or a cue: earlier entries that it may need and that the request would
	// not show. Default none.
	Recaller Recaller
	// Profiler has what is known of the conversation's user, for views that show it. Default none.
	Profiler Profiler
	// NoMemory has no facts recalled. The view says whether the profile is shown. Default false.
	NoMemory bool
	// Forward sends a client's request as it came instead of one that is built from the log; all calls of its answer are
	// the client's. Default none.
	Forward *Forward
	// Answered is called with the status and the headers of each answer of an upstream. Default none.
	Answered func(status int, header http.Header)
	// Annotate completes an answer before it is appended. Default: it is appended as it came.
	Annotate func(answer *continuo.Entry)
}

// Recaller finds the earlier entries that a new message may need. It returns a hidden entry that shows them, nil for none. The
// message is null where the turn begins with a cue: a role of a crew answers what is new to it in its view. A turn never fails
// because of it.
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

// Extras are what the settings of a model ask of its answers besides the usual: nothing with zero values.
type Extras struct {
	// Sampling and ResponseFormat are for requests of no client: a client says itself what it asks. ResponseFormat is in the
	// form of chat completions; a turn with an Answer has that instead.
	Sampling       *continuo.Sampling
	ResponseFormat json.RawMessage
	// Body are members that each request has as they are, an object; those of a client in the same protocol take precedence.
	Body json.RawMessage
}

// own are the members that a request in a protocol has as they are.
func (e Extras) own(protocol string, client *continuo.OwnMembers) *continuo.OwnMembers {
	extra, err := rawjson.ParseObject(e.Body)
	if len(e.Body) == 0 || err != nil || len(extra) == 0 {
		return client
	}
	if client != nil && client.Protocol == protocol {
		members, err := rawjson.ParseObject(client.Members)
		if err != nil {
			return client
		}
		for _, member := range members {
			extra.Set(member.Key, member.Value)
		}
	}
	return &continuo.OwnMembers{Protocol: protocol, Members: extra.Raw()}
}

// format is the format of answers that a dialect supports; nil for none.
func (e Extras) format(dialect model.Dialect, info model.Info) json.RawMessage {
	protocol, err := render.ProtocolOf(info.Protocol)
	if err != nil || !protocol.ResponseFormat || e.ResponseFormat == nil {
		return nil
	}
	if dialect.Structured == model.StructuredSchema || dialect.Structured == model.StructuredObject && render.IsAnyObject(e.ResponseFormat) {
		return e.ResponseFormat
	}
	return nil
}

// Upstream is a model with its request settings.
type Upstream struct {
	Model           model.Model
	MaxOutputTokens int      // 0 means the model's default
	Temperature     *float64 // nil means the model's default
	ReasoningEffort string   // see continuo.Envelope
	Extras          Extras
	Speaker         *model.Speaker
}

// own is the runner's model as an upstream.
func (r *Runner) own() Upstream {
	return Upstream{
		Model: r.Model, MaxOutputTokens: r.MaxOutputTokens, Temperature: r.Temperature, ReasoningEffort: r.ReasoningEffort, Extras: r.Extras, Speaker: r.Speaker,
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
