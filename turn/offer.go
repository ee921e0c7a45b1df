package turn

import (
	"context"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/window"
)

// offer says which tools a request may offer.
type offer struct {
	set tool.Set
	all bool // every tool is offered, not only those that can do anything for the request
}

// plan decides what a model is shown of a source as it was at seq at, and which tools the request offers: that depends
// on whether the plan shows the whole conversation. The envelope comes back with the tools.
func (o offer) plan(conversation continuo.Conversation, source window.Source, at int64, view View, envelope continuo.Envelope, info model.Info) (*continuo.Plan, continuo.Envelope, error) {
	if err := noView(view); err != nil {
		return nil, continuo.Envelope{}, err
	}
	return o.decide(conversation, view, func(tools tool.Set) (*continuo.Plan, continuo.Envelope, error) {
		offering := with(envelope, tools)
		plan, err := view.Build(source, windowInput(at, offering, info))
		return plan, offering, err
	})
}

// decide plans with the tools for one situation, and once more where the plan turns out to be of the other one. A
// conversation with more entries than the view has messages is planned as a partial one first.
func (o offer) decide(conversation continuo.Conversation, view View, plan func(tool.Set) (*continuo.Plan, continuo.Envelope, error)) (*continuo.Plan, continuo.Envelope, error) {
	partial := view.MaxMessages() > 0 && conversation.LastSeq > int64(view.MaxMessages())
	expected, other := o.tools(conversation, partial), o.tools(conversation, !partial)
	planned, envelope, err := plan(expected)
	if len(expected) == len(other) || err == nil && planned.Partial() == partial {
		return planned, envelope, err
	}
	if again, offering, failed := plan(other); failed == nil {
		return again, offering, nil
	}
	return planned, envelope, err
}

// tools are the tools for a situation.
func (o offer) tools(conversation continuo.Conversation, partial bool) tool.Set {
	if o.all {
		return o.set
	}
	return o.set.Useful(tool.Situation{Conversation: conversation, Partial: partial})
}

// with is an envelope that offers tools.
func with(envelope continuo.Envelope, tools tool.Set) continuo.Envelope {
	envelope.Tools = nil
	if len(tools) > 0 {
		envelope.Tools = tools.Specs()
	}
	return envelope
}

// offer is what the runner's requests may offer.
func (r *Runner) offer(ctx context.Context) offer {
	return offer{set: r.offered(ctx), all: r.AllTools}
}
