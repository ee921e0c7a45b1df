package turn

import (
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

// round asks the model, or the fallback in its place, and appends the answer.
func (c *cycle) round(last bool) (*continuo.Entry, error) {
	asked, err := c.plan(c.own(), last)
	if err != nil {
		return nil, err
	}
	answer := c.ask(asked)
	if c.mayFallBack(&answer) {
		c.emit(Event{Kind: FellBack, Attempt: &Attempt{Round: answer.Round, Error: answer.Error}})
		answer = c.askFallback(answer, last)
	}
	return c.append(answer)
}

// request is one that is ready to be sent.
type request struct {
	*Request
	upstream Upstream
	round    *continuo.Round
}

// plan builds a round's request for an upstream, in the protocol that it speaks.
func (c *cycle) plan(upstream Upstream, last bool) (*request, error) {
	conversation, err := c.Log.Conversation(c.ctx, c.in.ConversationID)
	if err != nil {
		return nil, err
	}
	info := upstream.Model.Info()
	built, err := Build(c.ctx, c.Log, conversation, conversation.LastSeq, c.View, c.envelope(upstream, last), info)
	if err != nil {
		return nil, err
	}
	hash, err := c.Log.PutEnvelope(c.ctx, built.Envelope)
	if err != nil {
		return nil, err
	}
	return &request{Request: built, upstream: upstream, round: &continuo.Round{
		View: built.Plan.View, ViewHash: built.Plan.ViewHash, At: built.Plan.At, Window: built.Plan.Window,
		Provider: info.Provider, Protocol: info.Protocol, Model: info.Name, ContextWindow: info.ContextWindow,
		Envelope: hash, RequestSHA256: built.SHA256(), RequestBytes: len(built.Body),
		EstimatedTokens: built.Plan.Totals.Tokens + built.Plan.Totals.PromptSize.Tokens,
	}}, nil
}

// ask streams a request's answer.
func (c *cycle) ask(asked *request) continuo.Entry {
	c.emit(Event{Kind: Planned, Plan: asked.Plan})
	answer := c.stream(asked.upstream.Model, asked.Body, asked.round)
	c.count(asked.round)
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

// envelope is what the requests to an upstream hold besides the log; the last one of a turn offers no tools.
func (r *Runner) envelope(upstream Upstream, last bool) continuo.Envelope {
	envelope := continuo.Envelope{
		Model: upstream.Model.Info().Name, System: r.System, MaxOutputTokens: upstream.MaxOutputTokens, Temperature: upstream.Temperature, Stream: true,
	}
	if !last && len(r.Tools) > 0 {
		envelope.Tools = r.Tools.Specs()
	}
	return envelope
}
