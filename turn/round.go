package turn

import (
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/tool"
)

// round asks the model, or the fallback in its place, and appends the answer.
func (c *cycle) round(last bool) (*continuo.Entry, error) {
	begin := time.Now()
	asked, err := c.plan(c.own(), last)
	if err != nil {
		return nil, err
	}
	c.journal.measure(StageBuild, time.Since(begin))
	answer := c.ask(asked)
	if c.mayFallBack(&answer) {
		c.journal.emit(Event{Kind: FellBack, Attempt: &Attempt{Round: answer.Round, Error: answer.Error}})
		answer = c.askFallback(answer, last)
	}
	if answer.Error != nil && answer.Error.Reason == continuo.ReasonCancelled && c.ctx.Err() == nil {
		answer.Error.Reason = continuo.ReasonUpstream // nobody did: the model says so of itself
	}
	return c.keep(answer)
}

// keep appends an answer. One that breaks a rule of the log is kept as one that failed, with its text: what
// was shown must not be lost. Where the store fails twice the turn is left to recovery, which makes the
// answer of the events.
func (c *cycle) keep(answer continuo.Entry) (*continuo.Entry, error) {
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
	if kept, err = c.answered(answer); err != nil {
		return nil, &notKeptError{err}
	}
	return kept, nil
}

// notKeptError says why an answer stands in no entry.
type notKeptError struct{ err error }

func (e *notKeptError) Error() string { return "keep the answer: " + e.err.Error() }
func (e *notKeptError) Unwrap() error { return e.err }

// request is one that is ready to be sent.
type request struct {
	*Request
	upstream Upstream
	round    *continuo.Round
}

// plan builds a round's request for an upstream, in the protocol that it speaks.
func (c *cycle) plan(upstream Upstream, last bool) (*request, error) {
	conversation, err := c.Log.Conversation(c.ctx, c.conversationID)
	if err != nil {
		return nil, err
	}
	info := upstream.Model.Info()
	built, err := Build(c.ctx, c.Log, conversation, conversation.LastSeq, c.View, c.envelope(upstream, c.toolsOf(last)), info)
	if err != nil {
		return nil, err
	}
	hash, err := c.Log.PutEnvelope(c.ctx, built.Envelope)
	if err != nil {
		return nil, err
	}
	cursor := int64(0)
	if role := built.Plan.Role; role != nil {
		cursor = role.Through
	}
	return &request{Request: built, upstream: upstream, round: &continuo.Round{
		Cursor: cursor,
		View:   built.Plan.View, ViewHash: built.Plan.ViewHash, At: built.Plan.At, Window: built.Plan.Window,
		Provider: info.Provider, Protocol: info.Protocol, Model: info.Name, ContextWindow: info.ContextWindow,
		Envelope: hash, RequestSHA256: built.SHA256(), RequestBytes: len(built.Body), Missing: built.Plan.Missing,
		EstimatedTokens: built.Plan.Totals.Tokens + built.Plan.Totals.PromptSize.Tokens,
	}}, nil
}

// toolsOf returns what a round's request offers; a turn's last one offers nothing.
func (c *cycle) toolsOf(last bool) tool.Set {
	if last {
		return nil
	}
	return c.tools
}

// ask streams a request's answer.
func (c *cycle) ask(asked *request) continuo.Entry {
	round := *asked.round // what comes of the request is added to the turn's own
	c.newestPlan = summary(asked.Plan)
	c.journal.emit(Event{Kind: Planned, Plan: c.newestPlan, Round: &round})
	answer := c.stream(asked.upstream.Model, asked.Body, asked.round)
	addUsage(&c.usage, asked.round)
	return answer
}

// mayFallBack reports whether an answer failed without showing anything, for a reason that another model
// may not have. What a provider refused for its content is not taken to another one.
func (c *cycle) mayFallBack(answer *continuo.Entry) bool {
	if c.Fallback == nil || answer.Error == nil || c.ctx.Err() != nil {
		return false
	}
	switch answer.Error.Reason {
	case continuo.ReasonTimeout, continuo.ReasonNetwork, continuo.ReasonRateLimit, continuo.ReasonUpstream:
	default:
		return false
	}
	return answer.Content.IsEmpty() && answer.Reasoning == nil && len(answer.ToolCalls) == 0 && len(answer.Error.PartialToolCalls) == 0
}

// askFallback asks the fallback. If that fails too, the error tells of both.
func (c *cycle) askFallback(failed continuo.Entry, last bool) continuo.Entry {
	asked, err := c.plan(*c.Fallback, last)
	if err != nil {
		failed.Error.Message += fmt.Sprintf("; the fallback %s could not be asked: %s", c.Fallback.Model.Info().Name, err)
		return failed
	}
	answer := c.ask(asked)
	if answer.Error != nil {
		answer.Error.Message += fmt.Sprintf("; %s was asked because %s had failed: %s", asked.round.Model, failed.Round.Model, failed.Error.Message)
	}
	return answer
}

// envelope is what the requests to an upstream hold besides the log.
func (r *Runner) envelope(upstream Upstream, tools tool.Set) continuo.Envelope {
	envelope := continuo.Envelope{
		Model: upstream.Model.Info().Name, System: r.System, MaxOutputTokens: upstream.MaxOutputTokens, Temperature: upstream.Temperature, Stream: true,
	}
	if len(tools) > 0 {
		envelope.Tools = tools.Specs()
	}
	return envelope
}
