package contexts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	continuo "github.com/continuo-log/continuo"
	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/gateway/request"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// Variant says in what a request that is made again differs from the recorded one. The zero value changes nothing.
type Variant struct {
	// Model is the name of a model, View that of a view. Default: the recorded ones.
	Model, View string
	// MaxMessages, MaxChars and MaxTokens replace the view's limits; nil keeps them, 0 removes them.
	MaxMessages, MaxChars, MaxTokens *int
	// Agent names an agent of the settings, with whose persona and tools the request is made. Settings takes the system
	// messages and tools of the settings, of the recorded mode and agent. Default: the recorded ones, and those of the settings
	// for an answer that was imported.
	Agent    string
	Settings bool
}

// Varied is a request that was made again, and the model that it is for.
type Varied struct {
	*turn.Request
	Upstream catalog.Upstream
	// Dialect is that of the request.
	Dialect model.Dialect
	// Round is what a turn would record of the request, without an envelope.
	Round *continuo.Round
}

// ErrNoModel says that the settings do not have the model of a recorded request.
var ErrNoModel = errors.New("the settings do not have the recorded model")

// Vary makes the request of an answer again, in another variant. It asks no model and changes nothing. The conversation is one of
// the log, which may be another one than that of the contexts. Rounds replace those of the entries with these seqs, so that the
// window continues from the requests of the variant, not from the recorded ones. It fails with ErrNoModel and with
// *continuo.OverflowError.
func (cx *Contexts) Vary(ctx context.Context, log *continuo.Log, conversation continuo.Conversation, answer *continuo.Entry, variant Variant, rounds map[int64]*continuo.Round) (*Varied, error) {
	recorded, err := recordedOf(ctx, log, answer.Round)
	if err != nil {
		return nil, err
	}
	chosen, err := cx.vary(conversation, answer, variant, recorded)
	if err != nil {
		return nil, err
	}
	runner := cx.catalog.Runner(chosen)
	runner.Log, runner.Recaller, runner.Fallback = log, nil, nil
	if recorded != nil {
		recorded.apply(runner, chosen.Upstream, variant)
	}
	if runner.View, err = cx.variedView(runner.View, variant, recorded); err != nil {
		return nil, err
	}
	at := answer.Seq - 1
	if answer.Round != nil && answer.Round.At > 0 {
		at = answer.Round.At
	}
	source := replaced{Source: turn.Source{Context: ctx, Log: log, Conversation: conversation}, rounds: rounds}
	if recorded != nil && variant.View == "" {
		source.from = recorded.from
	}
	conversation.LastSeq = at // as it was
	built, round, err := runner.Request(ctx, conversation, source, at)
	if err != nil {
		return nil, err
	}
	return &Varied{Request: built, Upstream: chosen.Upstream, Dialect: runner.Speaker.Dialect(), Round: round}, nil
}

// Recorded rebuilds the request of a round of a conversation of a log.
func (cx *Contexts) Recorded(ctx context.Context, log *continuo.Log, conversation continuo.Conversation, round *continuo.Round) (*turn.Request, error) {
	built, _, err := turn.Replay(ctx, log, conversation, round, readView)
	return built, err
}

// recordedRequest is what a recorded request has besides the log.
type recordedRequest struct {
	continuo.Envelope
	round *continuo.Round
	from  int64 // the first seq that its client sent; 0 for all
}

// recordedOf reads what a round's request has besides the log; nil for an answer without one. A client's request that was
// forwarded is read as the gateway reads one that it does not forward.
func recordedOf(ctx context.Context, log *continuo.Log, round *continuo.Round) (*recordedRequest, error) {
	if round == nil || round.Envelope == "" {
		return nil, nil
	}
	envelope, err := log.Envelope(ctx, round.Envelope)
	if err != nil {
		return nil, err
	}
	recorded := &recordedRequest{Envelope: envelope, round: round}
	if envelope.Forwarded == nil {
		return recorded, nil
	}
	sent, _, err := turn.Replay(ctx, log, continuo.Conversation{}, round, readView)
	if err != nil {
		return nil, err
	}
	read, asked, err := readForwarded(sent.Body, round)
	if err != nil {
		return nil, fmt.Errorf("read the forwarded request: %w", err)
	}
	recorded.from = round.Window.Start
	recorded.System, recorded.Tools, recorded.MaxOutputTokens = read.System, read.Tools, asked.MaxOutputTokens
	recorded.Temperature, recorded.ReasoningEffort, recorded.Sampling = asked.Temperature, asked.ReasoningEffort, &asked.Sampling
	return recorded, nil
}

// readForwarded reads the body of a forwarded request.
func readForwarded(body []byte, round *continuo.Round) (*request.Request, *request.Asked, error) {
	read, ok := map[string]func([]byte, request.Options) (*request.Request, error){
		model.ProtocolOpenAIChat: request.ReadChat, model.ProtocolAnthropic: request.ReadAnthropic,
		model.ProtocolGemini: request.ReadGemini, model.ProtocolResponses: request.ReadResponses,
	}[round.Protocol]
	if !ok {
		return nil, nil, fmt.Errorf("%w: no request of the protocol %q can be read", continuo.ErrInvalid, round.Protocol)
	}
	found, err := read(body, request.Options{Provider: round.Provider})
	if err != nil {
		return nil, nil, err
	}
	asked, err := found.Asked()
	return found, asked, err
}

// vary resolves what the variant names, and for the rest what was recorded.
func (cx *Contexts) vary(conversation continuo.Conversation, answer *continuo.Entry, variant Variant, recorded *recordedRequest) (catalog.ResolvedTurn, error) {
	mode, agent := catalog.ModeAndAgent(conversation, answer.Mode, cmp.Or(variant.Agent, answer.AgentID))
	if variant.Agent != "" && mode == continuo.ModeChat {
		mode = continuo.ModeAgent // in which agents answer
	}
	spec := catalog.TurnSpec{Mode: mode, Agent: agent, Model: variant.Model, ViewName: variant.View}
	if recorded == nil || variant.Settings || variant.Agent != "" {
		chosen, err := cx.catalog.Resolve(spec)
		if err == nil || !errors.Is(err, catalog.ErrUnknownAgent) || variant.Agent != "" {
			return chosen, err
		}
	}
	spec.Agent = "" // the settings need not have the agent any more
	if recorded != nil && variant.Model == "" {
		name, ok := cx.catalog.NameOf(recorded.round.Provider, recorded.round.Model)
		if !ok {
			return catalog.ResolvedTurn{}, fmt.Errorf("%w %s of %s: name another one", ErrNoModel, recorded.round.Model, recorded.round.Provider)
		}
		spec.Model = name
	}
	return cx.catalog.Resolve(spec)
}

// apply gives a runner what was recorded, as far as the variant keeps it.
func (r *recordedRequest) apply(runner *turn.Runner, upstream catalog.Upstream, variant Variant) {
	if !variant.Settings && variant.Agent == "" {
		runner.System, runner.Tools, runner.ClientTools = r.System, nil, append([]continuo.ToolSpec{}, r.Tools...)
	}
	info := upstream.Model.Info()
	if info.Provider == r.round.Provider && info.Name == r.round.Model {
		runner.MaxOutputTokens, runner.Temperature, runner.ReasoningEffort = r.MaxOutputTokens, r.Temperature, r.ReasoningEffort
		runner.Extras = turn.Extras{Sampling: r.Sampling}
		if r.Own != nil && r.Own.Protocol == info.Protocol {
			runner.Extras.Body = r.Own.Members
		}
	} else {
		runner.MaxOutputTokens = cmp.Or(upstream.MaxOutputTokens, r.MaxOutputTokens)
		runner.Extras.Sampling = withChoice(runner.Extras.Sampling, r.Sampling)
	}
	if runner.Extras.ResponseFormat == nil && info.Protocol == r.round.Protocol {
		runner.Extras.ResponseFormat = r.ResponseFormat
	}
}

// withChoice adds to the sampling of a model's settings what a recorded request asks of any model.
func withChoice(own, recorded *continuo.Sampling) *continuo.Sampling {
	if recorded == nil {
		return own
	}
	var joined continuo.Sampling
	if own != nil {
		joined = *own
	}
	joined.ToolChoice, joined.ParallelToolCalls = recorded.ToolChoice, recorded.ParallelToolCalls
	if joined.Stop == nil {
		joined.Stop = recorded.Stop
	}
	return &joined
}

// whole shows everything, for a client's request that was forwarded.
var whole = window.View{Name: turn.ClientViewName, LowWater: 1, ShowCollapsed: true}

// variedView is the view that the variant names, else the recorded one, with the variant's limits. Usual is the view of an answer
// without a recorded request.
func (cx *Contexts) variedView(usual turn.View, variant Variant, recorded *recordedRequest) (turn.View, error) {
	limits := Request{MaxMessages: variant.MaxMessages, MaxChars: variant.MaxChars, MaxTokens: variant.MaxTokens}
	view := usual
	if recorded != nil && variant.View == "" {
		var err error
		if view, err = readView(recorded.View); recorded.Forwarded != nil {
			view, err = whole, nil
		}
		if err != nil {
			return nil, err
		}
	}
	switch view := view.(type) {
	case window.View:
		return limited(view, limits)
	case crewview.View:
		var err error
		view.View, err = limited(view.View, limits)
		return view, err
	case task.View:
		var err error
		view.View, err = limited(view.View, limits)
		return view, err
	}
	return view, nil
}

// replaced is a source whose entries have other rounds, and which begins at a seq.
type replaced struct {
	turn.Source
	rounds map[int64]*continuo.Round
	from   int64
}

// Expecting is part of [window.Paged].
func (s replaced) Expecting(entries int) window.Source {
	s.Expect = entries
	return s
}

// Backward is part of [window.Source].
func (s replaced) Backward(seq int64) iter.Seq2[*continuo.Entry, error] {
	return func(yield func(*continuo.Entry, error) bool) {
		for entry, err := range s.Source.Backward(seq) {
			if err == nil && entry.Seq < s.from || !yield(s.with(entry), err) {
				return
			}
		}
	}
}

// Forward is part of [window.Source].
func (s replaced) Forward(seq int64) iter.Seq2[*continuo.Entry, error] {
	return func(yield func(*continuo.Entry, error) bool) {
		for entry, err := range s.Source.Forward(max(seq, s.from)) {
			if !yield(s.with(entry), err) {
				return
			}
		}
	}
}

// with is an entry with its round replaced. Entries are shared: it is a copy.
func (s replaced) with(entry *continuo.Entry) *continuo.Entry {
	if entry == nil {
		return nil
	}
	round, ok := s.rounds[entry.Seq]
	if !ok {
		return entry
	}
	changed := *entry
	changed.Round = round
	return &changed
}

// SharedBytes is the length of the beginning that two bodies have in common.
func SharedBytes(before, after json.RawMessage) int64 {
	return commonPrefix(string(before), string(after))
}
