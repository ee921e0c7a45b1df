package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/window"
)

// round sends one request to the model, or to the fallback if the model fails, and appends the answer.
func (c *toolLoop) round(last bool) (*continuo.Entry, error) {
	answer, err := c.answerOf(c.own(), last)
	if err != nil {
		return nil, err
	}
	if c.mayFallBack(&answer) {
		c.journal.emit(Event{Kind: FellBack, Attempt: &Attempt{Round: answer.Round, Error: answer.Error}})
		answer = c.askFallback(answer, last)
	}
	if answer.Error != nil && answer.Error.Reason == continuo.ReasonCancelled && c.ctx.Err() == nil {
		answer.Error.Reason = continuo.ReasonUpstream // no client cancelled it: the model reported this itself
	}
	return c.keep(answer)
}

// answerOf sends a request to a model, and again in each dialect that its refusals point to. The error says why no
// request could be built.
func (c *toolLoop) answerOf(upstream Upstream, last bool) (continuo.Entry, error) {
	for {
		begin := time.Now()
		var asked *readyRequest
		err := c.journal.retry(c.ctx, func() (err error) {
			asked, err = c.plan(upstream, last)
			return err
		})
		if err != nil {
			return continuo.Entry{}, err
		}
		c.journal.measure(StageBuild, time.Since(begin))
		answer := c.ask(asked)
		replaced, err := c.reforward(&answer)
		replaced = replaced || c.dropThinking(asked, &answer)
		switch {
		case err != nil:
			return continuo.Entry{}, err
		case !replaced && (!isSilent(&answer) || !upstream.Speaker.Learn(asked.dialect, answer.Error)):
			return answer, nil
		}
		c.journal.emit(Event{Kind: Rephrased, Attempt: &Attempt{Round: answer.Round, Error: answer.Error}})
	}
}

// dropThinking leaves the thinking before the newest message out of the turn's requests after the provider refused a signature,
// once, where that makes another request.
func (c *toolLoop) dropThinking(asked *readyRequest, answer *continuo.Entry) bool {
	if c.Forward != nil || c.noOldThinking || !isSilent(answer) || c.ctx.Err() != nil || !model.RefusesSignature(answer.Error) {
		return false
	}
	bare := asked.Envelope
	bare.NoOldThinking = true
	body, err := Render(bare, asked.Plan, asked.upstream.Model.Info())
	c.noOldThinking = err == nil && !bytes.Equal(body, asked.Body)
	return c.noOldThinking
}

// keep appends an answer. An answer that breaks a rule of the log is appended as a failed one with its text, because
// text that was shown must not be lost. While the store cannot be reached, keep retries. After two other failures the
// turn is left to recovery, which rebuilds the answer from the events.
func (c *toolLoop) keep(answer continuo.Entry) (*continuo.Entry, error) {
	if c.Annotate != nil {
		c.Annotate(&answer)
	}
	kept, err := c.answered(answer)
	var rule *continuo.RuleError
	switch {
	case err == nil || errors.Is(err, continuo.ErrLeaseLost):
		return kept, err
	case errors.As(err, &rule):
		if answer.Error == nil {
			answer.Error = (&model.Answer{}).Entry(&model.Error{Reason: continuo.ReasonUpstream, Message: "the answer cannot be kept"}).Error
		}
		answer.Error.Message += "; " + rule.Error()
		answer = textOf(answer)
	}
	err = c.journal.retry(c.journal.ctx, func() error {
		kept, err = c.answered(answer) // if the failed write was committed after all, the ids of its events refuse this one
		return err
	})
	if err != nil {
		return nil, &notKeptError{err}
	}
	return kept, nil
}

// notKeptError says why an answer could not be appended.
type notKeptError struct{ err error }

func (e *notKeptError) Error() string { return "keep the answer: " + e.err.Error() }
func (e *notKeptError) Unwrap() error { return e.err }

// readyRequest is a request that is ready to be sent.
type readyRequest struct {
	*Request
	upstream Upstream
	dialect  model.Dialect
	round    *continuo.Round
}

// plan builds a round's request in the upstream's protocol.
func (c *toolLoop) plan(upstream Upstream, last bool) (*readyRequest, error) {
	conversation := c.now()
	info := upstream.Model.Info()
	dialect := upstream.Speaker.Dialect()
	built, err := c.build(conversation, upstream, dialect, last)
	if err != nil {
		return nil, err
	}
	c.snapshot = nil // a later request reads the log: entries may be redacted until then
	envelope := continuo.Blob{Hash: built.envelope}
	if envelope.Hash == "" {
		if envelope, err = c.Log.EnvelopeBlob(built.Envelope); err != nil {
			return nil, err
		}
	}
	c.journal.keep(envelope) // stored with the event that names it
	if built.Envelope.ResponseFormat == nil {
		dialect.Structured = model.StructuredOff // a refusal cannot mean a format that was not sent
	}
	round := recordOf(built, info, envelope.Hash)
	round.Omitted = c.omitted(built, info)
	return &readyRequest{Request: built, upstream: upstream, dialect: dialect, round: round}, nil
}

// build builds a round's request. The turn's last request offers no tools.
func (c *toolLoop) build(conversation continuo.Conversation, upstream Upstream, dialect model.Dialect, last bool) (*Request, error) {
	if c.Forward != nil {
		return c.Forward.request(conversation, c.View)
	}
	offer := toolOffer{log: c.Log, profiler: c.Profiler, set: c.tools, all: c.AllTools, client: c.ClientTools}
	if last {
		offer.set = nil
	}
	source := Source{Context: c.ctx, Log: c.Log, Conversation: conversation, Snapshot: c.snapshot}
	wanted := c.envelope(upstream, dialect)
	wanted.NoOldThinking = c.noOldThinking
	if c.hasCalled {
		wanted.Sampling = afterCall(wanted.Sampling)
	}
	return c.requestTo(c.ctx, upstream, dialect, offer, conversation, source, conversation.LastSeq, wanted)
}

// requestTo builds a request to an upstream for a source at seq at.
func (r *Runner) requestTo(ctx context.Context, upstream Upstream, dialect model.Dialect, offer toolOffer, conversation continuo.Conversation, source window.Source, at int64, wanted continuo.Envelope) (*Request, error) {
	info := upstream.Model.Info()
	plan, envelope, err := offer.plan(ctx, conversation, source, at, r.View, wanted, info)
	if err != nil {
		return nil, err
	}
	if envelope.ResponseFormat = r.Answer.format(dialect, info, len(envelope.Tools) > 0); r.Answer == nil && r.Options == nil {
		envelope.ResponseFormat = upstream.Extras.format(dialect, info)
	}
	return request(Source{Context: ctx, Log: r.Log, Conversation: conversation}, plan, r.View, envelope, info, nil)
}

// recordOf is what a round records of a request before it is sent; its envelope is stored under a hash.
func recordOf(built *Request, info model.Info, envelope string) *continuo.Round {
	round := &continuo.Round{
		View: built.Plan.View, ViewHash: built.Plan.ViewHash, At: built.Plan.At, Window: built.Plan.Window,
		Provider: info.Provider, Protocol: info.Protocol, Model: info.Name, ContextWindow: info.ContextWindow,
		Envelope: envelope, RequestSHA256: built.SHA256(), RequestBytes: len(built.Body), Missing: built.Plan.Missing,
		EstimatedTokens: built.Plan.Totals.Tokens + built.Plan.Totals.PromptSize.Tokens, CachePrices: built.Plan.Prices,
	}
	if role := built.Plan.Role; role != nil {
		round.Cursor = role.Through
	}
	if known := built.Plan.Correction; known != nil {
		round.Correction = *known
	}
	return round
}

// afterCall is what a client asks once a tool has been called: one that must be called need not be again, since the client
// wants an answer that uses the result. Tools that it did not allow stay forbidden.
func afterCall(s *continuo.Sampling) *continuo.Sampling {
	if s == nil || s.ToolChoice == nil || s.ToolChoice.Mode != continuo.ChoiceRequired {
		return s
	}
	after := *s
	after.ToolChoice = nil
	if len(s.ToolChoice.Tools) > 1 {
		after.ToolChoice = &continuo.ToolChoice{Mode: continuo.ChoiceAuto, Tools: s.ToolChoice.Tools}
	}
	return &after
}

// omitted names what the turn's client asked and a request does not have, under the client's names.
func (c *toolLoop) omitted(built *Request, info model.Info) []string {
	if c.Forward != nil {
		return c.Forward.Omitted
	}
	var omitted []string
	if built.Envelope.NoOldThinking {
		omitted = append(omitted, "thinking before the newest message, after a signature was refused")
	}
	if c.Options == nil {
		return omitted
	}
	omitted = append(omitted, c.Options.Omitted...)
	add := func(name string) { // a member that the client has not named is the settings'
		if name = c.Options.Names[name]; name != "" && !slices.Contains(omitted, name) {
			omitted = append(omitted, name)
		}
	}
	if format := built.Envelope.ResponseFormat; c.Answer != nil && (format == nil || c.Answer.Schema != nil && render.IsAnyObject(format)) {
		add("response_format")
	}
	if protocol, err := render.ProtocolOf(info.Protocol); err == nil { // it was found before
		for _, name := range protocol.Omits(built.Envelope, built.Plan.Messages, render.Options{Provider: info.Provider}) {
			add(name)
		}
	}
	slices.Sort(omitted)
	return omitted
}

// format returns the answer's schema in a dialect's form; nil where the request cannot have one.
func (a *AnswerSchema) format(dialect model.Dialect, info model.Info, tools bool) json.RawMessage {
	protocol, err := render.ProtocolOf(info.Protocol)
	switch {
	case a == nil || err != nil || !protocol.ResponseFormat || tools && !dialect.StructuredWithTools: // on an error request fails
		return nil
	case dialect.Structured == model.StructuredSchema:
		return render.ResponseFormat(a.Name, a.Schema, a.Strict)
	case dialect.Structured == model.StructuredObject:
		return render.ResponseFormat(a.Name, nil, nil)
	}
	return nil
}

// ask sends a request and streams its answer.
func (c *toolLoop) ask(asked *readyRequest) continuo.Entry {
	round := *asked.round // a copy for the event: results are added to asked.round
	c.newestPlan = summary(asked.Plan)
	c.journal.emitQuiet(Event{Kind: Planned, Plan: c.newestPlan, Round: &round})
	payer := continuo.Payer{ProjectID: c.conversation.ProjectID, UserID: c.conversation.UserID, KeyID: c.journal.turn.KeyID}
	release, err := c.journal.keeper.options.Admit(c.ctx, payer, round.Provider, round.Model, max(round.EstimatedTokens, continuo.EstimateUsage(asked.Body, 0).InputTokens))
	if err != nil {
		return notSent(asked.round, err)
	}
	c.journal.reserve(release)
	answer := c.stream(asked.upstream.Model, asked.Body, asked.round)
	if answer.Error != nil && answer.Error.Reason == continuo.ReasonContextOverflow {
		answer.Error.Message = strings.TrimRight(answer.Error.Message, ".") + overflowHelp(asked.round)
	}
	if used := asked.round.Usage; used != nil {
		*used = c.Log.PriceUsage(asked.round.Provider, asked.round.Model, *used)
	}
	addUsage(&c.usage, asked.round)
	c.charge(asked, &answer)
	return answer
}

// notSent is the answer of a request that was not sent.
func notSent(round *continuo.Round, err error) continuo.Entry {
	failure := &model.Error{Reason: continuo.ReasonBudget, Message: err.Error()}
	if errors.Is(err, continuo.ErrUnavailable) { // whether there is a budget is not known
		failure = &model.Error{Reason: continuo.ReasonInterrupted, Message: err.Error(), Retryable: true}
	}
	entry := (&model.Answer{}).Entry(failure)
	entry.Round = round
	return entry
}

// charge records what a request used, also where its answer is replaced by another one. What the provider of a model did not
// report is estimated.
func (c *toolLoop) charge(asked *readyRequest, answer *continuo.Entry) {
	round, silent := asked.round, isSilent(answer)
	used := round.Usage
	if (used == nil || *used == continuo.Usage{}) && !silent && round.Protocol != model.ProtocolPrompt {
		estimated := c.Log.PriceUsage(round.Provider, round.Model, continuo.EstimateUsage(asked.Body, generatedBytes(answer)))
		used = &estimated
	}
	one := continuo.NewSpending(time.Now(), round.Provider, round.Model, used, silent)
	one.ProjectID, one.UserID, one.KeyID = c.conversation.ProjectID, c.conversation.UserID, c.journal.turn.KeyID
	c.journal.charge(one)
}

// generatedBytes is the length of what a model has written.
func generatedBytes(answer *continuo.Entry) int {
	n := len(answer.Content.String())
	if answer.Reasoning != nil {
		n += len(answer.Reasoning.Text)
	}
	for _, call := range answer.ToolCalls {
		n += len(call.Name) + len(call.Arguments)
	}
	return n
}

// overflowHelp says how to fix a request that its provider refused as too large for the context window.
func overflowHelp(round *continuo.Round) string {
	size := fmt.Sprintf("; the request was estimated at %d tokens", round.EstimatedTokens)
	if round.ContextWindow == 0 {
		return size + "; set models.NAME.context_window to the model's window, so that requests are kept within it"
	}
	return fmt.Sprintf("%s, and models.NAME.context_window says %d: lower it to the model's real window, or shorten the message", size, round.ContextWindow)
}

// mayFallBack reports whether an answer failed without visible output, for a reason that may not apply to another
// model. A content refusal is not sent to another model.
func (c *toolLoop) mayFallBack(answer *continuo.Entry) bool {
	if c.Fallback == nil || answer.Error == nil || c.ctx.Err() != nil {
		return false
	}
	switch answer.Error.Reason {
	case continuo.ReasonTimeout, continuo.ReasonNetwork, continuo.ReasonRateLimit, continuo.ReasonUpstream, continuo.ReasonContextOverflow:
	default:
		return false
	}
	return isSilent(answer)
}

// isSilent reports whether an answer failed without visible output.
func isSilent(answer *continuo.Entry) bool {
	return answer.Error != nil && answer.Content.IsEmpty() && answer.Reasoning == nil && len(answer.ToolCalls) == 0 && len(answer.Error.PartialToolCalls) == 0
}

// askFallback sends the request to the fallback. If that fails too, the error describes both failures.
func (c *toolLoop) askFallback(failed continuo.Entry, last bool) continuo.Entry {
	answer, err := c.answerOf(*c.Fallback, last)
	if err != nil {
		failed.Error.Message += fmt.Sprintf("; the fallback %s could not be asked: %s", c.Fallback.Model.Info().Name, err)
		return failed
	}
	if answer.Error != nil {
		answer.Error.Message += fmt.Sprintf("; %s was asked because %s had failed: %s", answer.Round.Model, failed.Round.Model, failed.Error.Message)
	}
	return answer
}

// envelope returns the part of an upstream's requests that is neither the log nor the tools.
func (r *Runner) envelope(upstream Upstream, dialect model.Dialect) continuo.Envelope {
	envelope := continuo.Envelope{
		Model: upstream.Model.Info().Name, System: r.System, MaxOutputTokens: upstream.MaxOutputTokens, Temperature: upstream.Temperature, Stream: true,
		Roles: dialect.Roles, NoEncryptedReasoning: dialect.NoEncryptedReasoning, ReasoningEffort: upstream.ReasoningEffort,
	}
	if r.Options != nil {
		envelope.Sampling, envelope.Own = r.Options.Sampling, r.Options.Own
	} else {
		envelope.Sampling = upstream.Extras.Sampling
	}
	envelope.Own = upstream.Extras.own(upstream.Model.Info().Protocol, envelope.Own)
	return envelope
}
