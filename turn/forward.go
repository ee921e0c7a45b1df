package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/window"
)

// Forward is a client's request that a turn sends as it came.
type Forward struct {
	Body     []byte
	Messages int // in Body
	// Whole says that the answer comes as one value, not as a stream.
	Whole   bool
	Request *model.Forwarding
	Omitted []string // what the client sent and Body does not have; see continuo.Round
	From    int64    // the first seq of the log that Body has; 0 means 1
	// Retry returns the request to send after one that failed without output; nil for none. Default none.
	Retry func(ctx context.Context, failure *continuo.TurnError) (*Forward, error)
	// Envelope is where the body is found again; see [Forwards.Keep].
	Envelope continuo.Envelope

	hash  string          // of the envelope; "" where Keep was not called
	blobs []continuo.Blob // that the turn stores when it begins
	kept  func()          // called when those of a turn's first request are stored
}

// request returns the forwarded request.
func (f *Forward) request(conversation continuo.Conversation, view View) (*Request, error) {
	if _, ok := view.(ClientView); ok {
		view = ClientView{From: f.From}
	}
	plan, err := view.Build(nil, window.Input{At: conversation.LastSeq})
	if err != nil {
		return nil, err
	}
	plan.Totals.Messages, plan.Totals.Chars = f.Messages, utf8.RuneCount(f.Body)
	return &Request{Plan: plan, Envelope: f.Envelope, Body: f.Body, envelope: f.hash}, nil
}

// reforward replaces the forwarded request after an answer that failed, if there is another one to send.
func (c *toolLoop) reforward(answer *continuo.Entry) (replaced bool, err error) {
	if c.Forward == nil || c.Forward.Retry == nil || !isSilent(answer) || c.ctx.Err() != nil {
		return false, nil
	}
	next, err := c.Forward.Retry(c.ctx, answer.Error)
	if err != nil || next == nil {
		return false, err
	}
	for _, blob := range next.blobs {
		c.journal.keep(blob) // stored with the event that names it; later bodies are differences to the one of the beginning
	}
	runner := *c.Runner
	runner.Forward = next
	c.Runner = &runner
	return true, nil
}

// ClientView is the view of a forwarded request: the client decides which messages the model is shown. From is the first
// seq that it sent; 0 means 1.
type ClientView struct{ From int64 }

// ClientViewName names ClientView in plans and rounds.
const ClientViewName = "client"

// Build describes what the client sent: everything from From up to the newest entry.
func (v ClientView) Build(_ window.Source, in window.Input) (*window.Plan, error) {
	from := max(v.From, 1)
	plan := &window.Plan{View: ClientViewName, At: in.At, Window: continuo.Window{Start: from}}
	plan.Totals.Entries, plan.Totals.Kept, plan.Totals.Excluded, plan.Totals.SharedBytes = in.At, in.At-from+1, from-1, -1
	if from > 1 {
		plan.Items = append(plan.Items, window.PlanItem{Seq: 1, Through: from - 1, Verdict: window.Excluded, Reason: window.ReasonDroppedByClient})
	}
	plan.Items = append(plan.Items, window.PlanItem{Seq: from, Through: in.At, Verdict: window.Client, Reason: window.ReasonClient})
	return plan, nil
}

// CheckFits accepts every message: the provider decides.
func (ClientView) CheckFits(window.Input, continuo.Content) error { return nil }

// MaxMessages is 0: the client has no limit.
func (ClientView) MaxMessages() int { return 0 }

// MarshalJSON writes the view's name.
func (ClientView) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"name": ClientViewName})
}

// Forwards keeps the bodies of forwarded requests so that each can be shown again, byte for byte. A client sends its
// whole history again with each request, so a body is kept as its difference to the one before in its conversation:
// what lies between their common beginning and their common end. It is safe for concurrent use.
type Forwards struct {
	log *continuo.Log

	mu     sync.Mutex
	newest map[string]*keptBody // by the conversation's id
	order  []string             // of the conversations, the least recently used first
	bytes  int                  // of the bodies in newest
}

// keptBody is the newest body of a conversation.
type keptBody struct {
	envelope string // the hash of its envelope
	body     []byte
	depth    int // number of envelopes that are read to show it again
}

// The bounds of Forwards: the bytes of bodies in memory, and how many differences follow a whole body.
const (
	maxForwardBytes = 64 << 20
	maxForwardDepth = 32
)

// NewForwards keeps bodies in a log.
func NewForwards(log *continuo.Log) *Forwards {
	return &Forwards{log: log, newest: map[string]*keptBody{}}
}

// Keep makes the envelope of a conversation's request, which the request's turn stores when it begins.
func (f *Forwards) Keep(forward *Forward, conversationID, modelName string) error {
	body := forward.Body
	if !utf8.Valid(body) {
		return fmt.Errorf("%w: the request's body is not valid UTF-8", continuo.ErrInvalid)
	}
	envelope := continuo.Envelope{Model: modelName, Forwarded: &continuo.ForwardedBody{Text: string(body)}}
	depth := 1
	if base := f.base(conversationID); base != nil && base.depth < maxForwardDepth {
		prefix, suffix := common(base.body, body)
		if rest := body[prefix : len(body)-suffix]; len(rest) < len(body)/2 {
			envelope.Forwarded = &continuo.ForwardedBody{Base: base.envelope, Prefix: prefix, Suffix: suffix, Text: string(rest)}
			depth = base.depth + 1
		}
	}
	blob, err := f.log.EnvelopeBlob(envelope)
	if err != nil {
		return err
	}
	forward.Envelope, forward.hash = envelope, blob.Hash
	if blob.Data != nil {
		forward.blobs = []continuo.Blob{blob}
	}
	forward.kept = func() { f.remember(conversationID, &keptBody{blob.Hash, body, depth}) }
	return nil
}

func (f *Forwards) base(conversationID string) *keptBody {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest[conversationID]
}

// remember makes a body the newest of its conversation, and forgets those of conversations that were not used for long.
func (f *Forwards) remember(conversationID string, kept *keptBody) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(conversationID)
	f.newest[conversationID], f.order = kept, append(f.order, conversationID)
	for f.bytes += len(kept.body); f.bytes > maxForwardBytes && len(f.order) > 1; {
		f.forget(f.order[0])
	}
}

func (f *Forwards) forget(conversationID string) {
	if kept := f.newest[conversationID]; kept != nil {
		f.bytes -= len(kept.body)
		delete(f.newest, conversationID)
		f.order = slices.DeleteFunc(f.order, func(id string) bool { return id == conversationID })
	}
}

// common returns the lengths of the common beginning and the common end of two bodies, which do not overlap in either and
// begin and end with whole characters.
func common(a, b []byte) (prefix, suffix int) {
	most := min(len(a), len(b))
	for prefix < most && a[prefix] == b[prefix] {
		prefix++
	}
	for prefix > 0 && prefix < len(b) && !utf8.RuneStart(b[prefix]) {
		prefix--
	}
	for suffix < most-prefix && a[len(a)-1-suffix] == b[len(b)-1-suffix] {
		suffix++
	}
	for suffix > 0 && !utf8.RuneStart(b[len(b)-suffix]) {
		suffix--
	}
	return prefix, suffix
}

// forwardedBody reads the body of a forwarded request.
func forwardedBody(ctx context.Context, log *continuo.Log, envelope continuo.Envelope) ([]byte, error) {
	var chain []*continuo.ForwardedBody
	for kept := envelope.Forwarded; ; {
		chain = append(chain, kept)
		if kept.Base == "" {
			break
		}
		base, err := log.Envelope(ctx, kept.Base)
		switch {
		case err != nil:
			return nil, err
		case base.Forwarded == nil || len(chain) > maxForwardDepth:
			return nil, fmt.Errorf("envelope %s: %w: it has no body of a forwarded request", kept.Base, continuo.ErrInvalid)
		}
		kept = base.Forwarded
	}
	var body []byte
	for i := len(chain) - 1; i >= 0; i-- {
		kept := chain[i]
		if kept.Prefix+kept.Suffix > len(body) {
			return nil, fmt.Errorf("forwarded request: %w: it is longer than what it continues", continuo.ErrInvalid)
		}
		body = bytes.Join([][]byte{body[:kept.Prefix], []byte(kept.Text), body[len(body)-kept.Suffix:]}, nil)
	}
	return body, nil
}

// replayForwarded is [Replay] for a forwarded request.
func replayForwarded(ctx context.Context, log *continuo.Log, round *continuo.Round, envelope continuo.Envelope) (*Request, bool, error) {
	body, err := forwardedBody(ctx, log, envelope)
	if err != nil {
		return nil, false, err
	}
	plan, err := ClientView{From: round.Window.Start}.Build(nil, window.Input{At: round.At})
	if err != nil {
		return nil, false, err
	}
	request := &Request{Plan: plan, Envelope: envelope, Body: body}
	return request, request.SHA256() == round.RequestSHA256, nil
}
