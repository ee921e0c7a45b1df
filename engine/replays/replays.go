package replays

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/contexts"
	"github.com/continuo-log/continuo/engine/internal/charged"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/turn"
)

// Replays answers recorded messages again. It is safe for concurrent use.
type Replays struct {
	log      *continuo.Log
	contexts *contexts.Contexts
	life     *lifecycle.Lifecycle
	options  Options
}

// Options configures Replays.
type Options struct {
	Requests charged.Requests
	// Timeout bounds one answer. Default 10 min.
	Timeout time.Duration
}

// New makes Replays. What requests use is charged to the log's ledger.
func New(log *continuo.Log, contexts *contexts.Contexts, life *lifecycle.Lifecycle, options Options) *Replays {
	options.Timeout = cmp.Or(options.Timeout, 10*time.Minute)
	return &Replays{log: log, contexts: contexts, life: life, options: options}
}

// Conversation is a conversation to replay.
type Conversation struct {
	continuo.Conversation
	// Name identifies it in results. Default: its id.
	Name string
	// Log has it. Default: the engine's.
	Log *continuo.Log
}

// Variant is a variant with a name.
type Variant struct {
	Name string
	contexts.Variant
}

// Request says what to replay.
type Request struct {
	Conversations []Conversation
	Variants      []Variant
	// DryRun builds the requests and asks no model.
	DryRun bool
	// Known returns the result of an earlier replay, nil for none: where it has an answer to a request with the same bytes, that is
	// not sent again. Default: there is none.
	Known func(conversation, variant string, seq int64) *Result
	// MaxRequests bounds how many requests are sent; MaxCostNano what they cost, in billionths of a US dollar, where prices are
	// known: a request is not sent if what it is expected to cost would exceed it. 0: no bound.
	MaxRequests int
	MaxCostNano int64
	// Concurrency is how many conversations are replayed at once. Default 1.
	Concurrency int
}

// Run replays conversations in each of the variants and calls report with each result, one at a time; those of a conversation and a
// variant come in order. It ends early with the error of report or of ctx. An answer that fails is a result, not an error.
func (rs *Replays) Run(ctx context.Context, request Request, report func(Result) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var reporting sync.Mutex
	guard := &guard{maxRequests: request.MaxRequests, maxCostNano: request.MaxCostNano}
	jobs := make(chan *replay)
	var workers sync.WaitGroup
	for range max(request.Concurrency, 1) {
		workers.Go(func() {
			for job := range jobs {
				if err := job.run(ctx); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, conversation := range request.Conversations {
		conversation.Name = cmp.Or(conversation.Name, conversation.ID)
		if conversation.Log == nil {
			conversation.Log = rs.log
		}
		for _, variant := range request.Variants {
			job := &replay{Replays: rs, request: &request, conversation: conversation, variant: variant, guard: guard, rounds: map[int64]*continuo.Round{}}
			job.report = func(result Result) error {
				reporting.Lock()
				defer reporting.Unlock()
				return report(result)
			}
			select {
			case jobs <- job:
			case <-ctx.Done():
			}
		}
	}
	close(jobs)
	workers.Wait()
	return context.Cause(ctx)
}

// guard bounds what is sent.
type guard struct {
	maxRequests int
	maxCostNano int64

	mu       sync.Mutex
	requests int
	costNano int64 // of what was sent, and what was reserved
}

// reserve reserves a request that is expected to cost so much. The problem says why it may not be sent.
func (g *guard) reserve(costNano int64) (problem string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.maxRequests > 0 && g.requests >= g.maxRequests:
		return "the limit of requests is reached"
	case g.maxCostNano > 0 && g.costNano+costNano > g.maxCostNano:
		return "it would exceed the limit of cost"
	}
	g.requests++
	g.costNano += costNano
	return ""
}

// settle replaces what was reserved by what a request cost.
func (g *guard) settle(reserved, cost int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.costNano += cost - reserved
}

// replay is one conversation in one variant.
type replay struct {
	*Replays
	request      *Request
	conversation Conversation
	variant      Variant
	guard        *guard
	report       func(Result) error

	rounds           map[int64]*continuo.Round // of the variant
	before, recorded json.RawMessage           // the bodies of the previous requests
}

// run replays the answers, the oldest first.
func (r *replay) run(ctx context.Context) error {
	var previous *continuo.Entry // that a model can be shown
	var asked *Message
	for entry, err := range r.conversation.Log.Read(ctx, r.conversation.Conversation, continuo.Range{}) {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if isAnswer(&entry) {
			result := Result{Conversation: r.conversation.Name, Seq: entry.Seq, Variant: r.variant.Name, Message: asked, Recorded: answerOf(&entry)}
			if result.Problem = whySkipped(&entry, previous); result.Problem != "" {
				result.State = StateSkipped
			} else if err := r.answer(ctx, &entry, &result); err != nil {
				return err
			}
			if err := r.report(result); err != nil {
				return err
			}
		}
		if !entry.Hidden {
			previous = &entry
			if entry.Role == continuo.User {
				asked = &Message{entry.Seq, entry.Content.String()}
			}
		}
	}
	return nil
}

// isAnswer reports whether a model made an entry as the answer to what was before.
func isAnswer(entry *continuo.Entry) bool {
	return entry.Role == continuo.Assistant && !entry.Hidden && entry.Summary == nil && entry.Recall == nil
}

// whySkipped says why an answer cannot be asked for again; "" where it can.
func whySkipped(entry, previous *continuo.Entry) string {
	switch {
	case entry.Author != nil:
		return "a role of a crew answered"
	case entry.RunID != "":
		return "it is a step of a workflow"
	case entry.Redacted != nil:
		return "it was redacted"
	case entry.Error != nil:
		return "it failed"
	case previous == nil:
		return "nothing comes before it"
	case previous.Role == continuo.Assistant:
		return "it continues another answer"
	}
	return ""
}

// answer asks for an answer again. The error ends the replay.
func (r *replay) answer(ctx context.Context, entry *continuo.Entry, result *Result) error {
	r.sizeRecorded(ctx, entry, result)
	built, err := r.contexts.Vary(ctx, r.conversation.Log, r.conversation.Conversation, entry, r.variant.Variant, r.rounds)
	switch {
	case errors.Is(err, continuo.ErrUnavailable), ctx.Err() != nil:
		return cmp.Or(context.Cause(ctx), err)
	case err != nil:
		result.State, result.Problem = StateUnbuilt, err.Error()
		return nil
	}
	r.describe(built, entry, result)
	if r.request.DryRun {
		result.State = StateBuilt
		r.keep(entry, built, result)
		return nil
	}
	if known := r.known(result); known != nil {
		*result = *known
		r.keep(entry, built, result)
		return nil
	}
	if err := r.send(ctx, entry, built, result); err != nil {
		return err
	}
	r.keep(entry, built, result)
	return nil
}

// known is the result of an earlier replay that has an answer to the same request.
func (r *replay) known(now *Result) *Result {
	if r.request.Known == nil {
		return nil
	}
	earlier := r.request.Known(now.Conversation, now.Variant, now.Seq)
	if earlier == nil || earlier.State != StateAnswered || earlier.Replayed.Request == nil || earlier.Replayed.Request.SHA256 != now.Replayed.Request.SHA256 {
		return nil
	}
	return earlier
}

// keep makes a request the one that the next one of the variant follows. In a dry run, a request that equals the recorded one has
// what the provider reported of that.
func (r *replay) keep(entry *continuo.Entry, built *contexts.Varied, result *Result) {
	round := built.Round
	if recorded := entry.Round; result.State == StateBuilt && recorded != nil && recorded.RequestSHA256 == round.RequestSHA256 {
		round.Usage = recorded.Usage
	} else if result.State != StateBuilt && result.Replayed.Round != nil {
		round = result.Replayed.Round
	}
	r.rounds[entry.Seq], r.before = round, built.Body
}

// sizeRecorded describes the recorded request, as far as it can be rebuilt.
func (r *replay) sizeRecorded(ctx context.Context, entry *continuo.Entry, result *Result) {
	if entry.Round == nil {
		return
	}
	request, err := r.contexts.Recorded(ctx, r.conversation.Log, r.conversation.Conversation, entry.Round)
	if err != nil {
		return
	}
	result.Recorded.Request = sizeOf(request, entry.Round, r.recorded)
	r.recorded = request.Body
}

// describe describes the request that was built.
func (r *replay) describe(built *contexts.Varied, entry *continuo.Entry, result *Result) {
	info := built.Upstream.Model.Info()
	result.Replayed = Answer{
		Provider: info.Provider, Model: info.Name, View: built.Plan.View,
		Request: sizeOf(built.Request, built.Round, r.before), Round: built.Round,
	}
	expected := continuo.Usage{InputTokens: built.Round.EstimatedTokens, OutputTokens: entry.Tokens}
	if correction := built.Round.Correction; correction.Reports > 0 {
		expected.InputTokens = correction.Tokens(expected.InputTokens)
	}
	if used := result.Recorded.Usage; used != nil && used.OutputTokens > 0 {
		expected.OutputTokens = used.OutputTokens
	}
	cached := expected
	if request := result.Replayed.Request; request.SharedBytes != nil {
		cached.CachedTokens = int(int64(expected.InputTokens) * *request.SharedBytes / max(request.Bytes, 1))
	}
	expected, cached = r.log.PriceUsage(info.Provider, info.Name, expected), r.log.PriceUsage(info.Provider, info.Name, cached)
	result.Replayed.Expected, result.Replayed.ExpectedCached = &expected, &cached
}

func sizeOf(request *turn.Request, round *continuo.Round, before json.RawMessage) *RequestSize {
	size := &RequestSize{
		SHA256: request.SHA256(), Bytes: int64(len(request.Body)), EstimatedTokens: round.EstimatedTokens,
		Totals: request.Plan.Totals, Moved: request.Plan.Moved,
	}
	if before != nil {
		shared := contexts.SharedBytes(before, request.Body)
		size.SharedBytes = &shared
		size.Totals.SharedBytes = shared
	}
	return size
}

// send asks the model, within the limits and the budgets.
func (r *replay) send(ctx context.Context, entry *continuo.Entry, built *contexts.Varied, result *Result) error {
	expected := result.Replayed.Expected
	if result.Problem = r.guard.reserve(expected.Cost.Nano); result.Problem != "" {
		result.State = StateUnsent
		return nil
	}
	spent := int64(0)
	defer func() { r.guard.settle(expected.Cost.Nano, spent) }()
	payer := continuo.Payer{ProjectID: r.conversation.ProjectID, UserID: r.conversation.UserID}
	release, err := r.options.Requests.Admit(ctx, payer, int64(expected.InputTokens), expected.Cost.Nano)
	if err != nil {
		result.State, result.Problem = StateUnsent, err.Error()
		return nil
	}
	defer release()
	if err := r.life.Admit(payer.ProjectID); err != nil {
		return err
	}
	defer r.life.Dismiss(payer.ProjectID)
	answer, used, err := r.ask(continuo.WithPayer(ctx, payer), entry, built, result)
	if err != nil {
		return err
	}
	spent = used
	if ctx.Err() != nil { // the answer is not complete: it is asked for again
		return context.Cause(ctx)
	}
	said := answerOf(answer)
	asked := result.Replayed
	said.Request, said.Expected, said.ExpectedCached, said.Round = asked.Request, asked.Expected, asked.ExpectedCached, answer.Round
	result.Replayed, result.State = said, StateAnswered
	if answer.Error != nil {
		result.State, result.Problem = StateFailed, answer.Error.Message
		return nil
	}
	result.compare()
	return nil
}

// ask asks the model, and again in each dialect that its refusals point to; it returns what the requests cost.
func (r *replay) ask(ctx context.Context, entry *continuo.Entry, built *contexts.Varied, result *Result) (answer *continuo.Entry, costNano int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	for {
		asked := r.options.Requests.Admitted(built.Upstream.Model)
		said := turn.Ask(ctx, asked, built.Body, built.Round, func(model.Delta) {})
		if used := said.Round.Usage; used != nil {
			*used = r.log.PriceUsage(said.Round.Provider, said.Round.Model, *used)
			costNano += used.Cost.Nano
		}
		silent := said.Error != nil && said.Content.IsEmpty() && len(said.ToolCalls) == 0
		if !silent || ctx.Err() != nil || !built.Upstream.Speaker.Learn(built.Dialect, said.Error) {
			return &said, costNano, nil
		}
		if built, err = r.contexts.Vary(ctx, r.conversation.Log, r.conversation.Conversation, entry, r.variant.Variant, r.rounds); err != nil {
			return nil, costNano, err
		}
		r.describe(built, entry, result)
	}
}
