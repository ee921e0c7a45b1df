package turn

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/window"
)

// Request is one model request, built from the log.
type Request struct {
	Plan     *window.Plan
	Envelope continuo.Envelope
	Body     []byte // the sent bytes
	envelope string // the hash of the envelope where that is stored; "": not known
}

// SHA256 is the hash of the body, in hex.
func (r *Request) SHA256() string {
	sum := sha256.Sum256(r.Body)
	return hex.EncodeToString(sum[:])
}

// Build builds a model request for a conversation as of seq at, with attachments loaded; 0 means the newest entry of
// the log. Only the ID of the conversation matters: a value from before an append works too. The envelope is everything
// that does not come from the log; Build sets its View, its Model where it is empty, and its Instruction where the
// model needs one. Build fails with continuo.ErrBadRange where there is no entry at, with a *continuo.OverflowError,
// and with continuo.ErrInvalid.
func Build(ctx context.Context, log *continuo.Log, conversation continuo.Conversation, at int64, view View, envelope continuo.Envelope, info model.Info) (*Request, error) {
	envelope.Model = cmp.Or(envelope.Model, info.Name)
	round := &continuo.Round{At: at, CachePrices: log.CachePrices(info.Provider, info.Name)}
	return build(Source{Context: ctx, Log: log, Conversation: conversation}, view, envelope, info, round)
}

// build is Build, also for a replayed request: of the round, it uses what such a request recorded.
func build(source Source, view View, envelope continuo.Envelope, info model.Info, round *continuo.Round) (*Request, error) {
	if err := noView(view); err != nil {
		return nil, err
	}
	in, err := windowInput(round.At, envelope, info)
	if err != nil {
		return nil, err
	}
	in.Prices = round.CachePrices
	if round.Window.Epoch > 0 {
		in.Recorded = &round.Window
	}
	in.Profiles = profiles{ctx: source.context(), log: source.Log, conversation: source.Conversation, recorded: round.Window.Profile}
	plan, err := view.Build(source, in)
	if err != nil {
		return nil, err
	}
	return request(source, plan, view, envelope, info, round.Missing)
}

// request renders a plan.
func request(source Source, plan *window.Plan, view View, envelope continuo.Envelope, info model.Info, without []continuo.MissingPart) (*Request, error) {
	envelope, err := withInstruction(envelope, info)
	if err != nil {
		return nil, err
	}
	protocol, err := render.ProtocolOf(info.Protocol)
	if err != nil {
		return nil, err
	}
	if !protocol.NamesParts {
		if err := attach(source.Context, source.Log, plan, without); err != nil {
			return nil, err
		}
	}
	options := render.Options{Provider: info.Provider}
	plan.Missing = append(plan.Missing, protocol.Unsent(plan.Messages, options)...)
	plan.Withheld = render.Withheld(plan.Messages, options)
	envelope.View = rawjson.MustMarshal(view)
	body, err := protocol.Request(withProfile(envelope, plan), plan, options)
	if err != nil {
		return nil, fmt.Errorf("render request for conversation %s: %w", source.Conversation.ID, err)
	}
	return &Request{Plan: plan, Envelope: envelope, Body: body}, nil
}

// withProfile returns the envelope that is rendered: the stored one has nothing of the profile, which can be redacted.
func withProfile(envelope continuo.Envelope, plan *window.Plan) continuo.Envelope {
	envelope.System = plan.System(envelope.System)
	return envelope
}

// Plan returns the plan of a request for a conversation; at and conversation are as for [Build]. Its messages have
// placeholders for attachments; see Attach.
func Plan(ctx context.Context, log *continuo.Log, conversation continuo.Conversation, at int64, view View, envelope continuo.Envelope, info model.Info) (*window.Plan, error) {
	if err := noView(view); err != nil {
		return nil, err
	}
	in, err := windowInput(at, envelope, info)
	if err != nil {
		return nil, err
	}
	in.Prices = log.CachePrices(info.Provider, info.Name)
	in.Profiles = profiles{ctx: ctx, log: log, conversation: conversation}
	return view.Build(Source{Context: ctx, Log: log, Conversation: conversation}, in)
}

// demoProvider is the built-in model's provider: its reported usage is made up and must not correct estimates.
const demoProvider = "demo"

func windowInput(at int64, envelope continuo.Envelope, info model.Info) (window.Input, error) {
	protocol, err := render.ProtocolOf(info.Protocol)
	if err != nil {
		return window.Input{}, err
	}
	if complete, err := withInstruction(envelope, info); err == nil { // on an error the build fails later
		envelope = complete
	}
	encoding, _ := token.ForModel(info.Name)
	leadIn := protocol.LeadIn
	if envelope.Roles != continuo.RolesFree {
		leadIn = render.LeadIn
	}
	return window.Input{
		LeadIn: leadIn, At: at, Counter: encoding, Prompt: promptSize(&envelope, encoding), ModelWindow: info.ContextWindow,
		Output: envelope.MaxOutputTokens, Provider: info.Provider, Model: info.Name, Estimated: info.Provider != demoProvider,
	}, nil
}

// withInstruction returns an envelope with the instruction that a model without tool calls needs. An existing instruction is
// kept, so that a replayed request is unchanged.
func withInstruction(envelope continuo.Envelope, info model.Info) (continuo.Envelope, error) {
	if _, ok := info.Transcript(); !ok || envelope.Instruction != "" {
		return envelope, nil
	}
	var err error
	envelope.Instruction, err = render.Instruction(envelope.Tools)
	return envelope, err
}

// Render renders a request's body in the model's protocol. The plan must have its attachments loaded.
func Render(envelope continuo.Envelope, plan *window.Plan, info model.Info) ([]byte, error) {
	protocol, err := render.ProtocolOf(info.Protocol)
	if err != nil {
		return nil, err
	}
	return protocol.Request(withProfile(envelope, plan), plan, render.Options{Provider: info.Provider})
}

// Replay rebuilds the request of a round from the log and the stored envelope, and reports whether its hash is the
// recorded one. Read decodes the view of the envelope.
func Replay(ctx context.Context, log *continuo.Log, conversation continuo.Conversation, round *continuo.Round, read ViewReader) (request *Request, same bool, err error) {
	envelope, err := log.Envelope(ctx, round.Envelope)
	if err != nil {
		return nil, false, err
	}
	if envelope.Forwarded != nil {
		return replayForwarded(ctx, log, round, envelope)
	}
	view, err := read(envelope.View)
	if err != nil {
		return nil, false, fmt.Errorf("view of the round: %w", err)
	}
	if round.At < 1 {
		return nil, false, fmt.Errorf("replay: %w: the round does not say which entries its request could see", continuo.ErrInvalid)
	}
	info := model.Info{Provider: round.Provider, Name: round.Model, Protocol: round.Protocol, ContextWindow: round.ContextWindow}
	request, err = build(Source{Context: ctx, Log: log, Conversation: conversation}, view, envelope, info, round)
	if err != nil {
		return nil, false, err
	}
	return request, request.SHA256() == round.RequestSHA256, nil
}
