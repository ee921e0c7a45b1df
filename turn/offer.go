package turn

import (
	"context"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/window"
)

// toolOffer decides which tools a request offers.
type toolOffer struct {
	log      *continuo.Log // that knows prices and profiles
	profiler Profiler      // nil for none
	set      tool.Set
	all      bool // offer every tool, not only those that are useful for the request
	// client are the tools that the turn's client runs;
	client []continuo.ToolSpec
}

// plan decides which messages of a source at seq at a model is shown, and which tools the request offers, which depends
// on whether the plan shows the whole conversation. The returned envelope has the tools.
func (o toolOffer) plan(ctx context.Context, conversation continuo.Conversation, source window.Source, at int64, view View, envelope continuo.Envelope, info model.Info) (*window.Plan, continuo.Envelope, error) {
	if err := noView(view); err != nil {
		return nil, continuo.Envelope{}, err
	}
	known := profiles{ctx: ctx, log: o.log, conversation: conversation, profiler: o.profiler}
	return o.decide(conversation, view, func(tools tool.Set) (*window.Plan, continuo.Envelope, error) {
		offering := with(envelope, tools, o.client)
		in, err := windowInput(at, offering, info)
		if err != nil {
			return nil, offering, err
		}
		in.Profiles = known
		in.Prices = o.log.CachePrices(info.Provider, info.Name)
		plan, err := view.Build(source, in)
		return plan, offering, err
	})
}

// decide plans with the tools for one situation, whole or partial, and again with the other tools where the plan turns
// out to be for the other situation. A conversation with more entries than the view's MaxMessages is planned as partial
// first.
func (o toolOffer) decide(conversation continuo.Conversation, view View, plan func(tool.Set) (*window.Plan, continuo.Envelope, error)) (*window.Plan, continuo.Envelope, error) {
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

// tools returns the tools for a situation.
func (o toolOffer) tools(conversation continuo.Conversation, partial bool) tool.Set {
	if o.all {
		return o.set
	}
	return o.set.Useful(tool.Situation{Conversation: conversation, Partial: partial})
}

// with returns an envelope that offers tools, and those of the turn's client.
func with(envelope continuo.Envelope, tools tool.Set, client []continuo.ToolSpec) continuo.Envelope {
	envelope.Tools = client
	if len(tools) > 0 {
		envelope.Tools = slices.Concat(tools.Specs(), client)
	}
	return envelope
}

// toolOffer returns the offer for the runner's requests.
func (r *Runner) toolOffer(ctx context.Context) toolOffer {
	return toolOffer{log: r.Log, profiler: r.Profiler, set: r.offered(ctx), all: r.AllTools, client: r.ClientTools}
}
