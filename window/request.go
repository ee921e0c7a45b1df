package window

import (
	continuo "github.com/continuo-log/continuo"
)

// Request is what every view knows of the request that it plans: how entries are shaped and measured, the limits in
// force, and what earlier requests recorded in the log. A view that another package makes is built on it; what it makes
// of the units is its own.
type Request struct {
	view   View
	in     Input
	hash   string
	shaper shaper

	correction float64 // of estimated tokens, at least 1
	corrected  bool    // a report of the provider was found
}

// NewRequest begins a request. Hash identifies the view that is built, which may be more than the definition that entries
// are shaped by. The definition is taken as [View.Check] allows it.
func NewRequest(view View, hash string, in Input) *Request {
	in = in.WithDefaults()
	return &Request{view: view, in: in, hash: hash, correction: 1, shaper: shaper{view: view, counter: in.Counter, provider: in.Provider}}
}

// Learn takes from an entry what an earlier request recorded on it, and returns the window of that request if it was one
// of an equal view; nil for none. Entries come newest first, each once.
func (r *Request) Learn(e *continuo.Entry) *continuo.Window {
	round := e.Round
	if round == nil {
		return nil
	}
	if r.in.Estimated && !r.corrected && round.Provider == r.in.Provider && round.Model == r.in.Model &&
		round.Usage != nil && round.EstimatedTokens > 0 {
		r.corrected = true
		r.correction = min(max(float64(round.Usage.InputTokens)/float64(round.EstimatedTokens), 1), maxCorrection)
	}
	if round.ViewHash != r.hash || !plausible(round.Window) {
		return nil
	}
	return &round.Window
}

// plausible reports whether a build could have made a window. Rounds can come from outside; one that is
// made up must not put entries out of order or shown twice.
func plausible(w continuo.Window) bool {
	before := int64(0)
	for _, pin := range w.Pins {
		if pin <= before || pin >= w.Start {
			return false
		}
		before = pin
	}
	return w.Start >= 1 && len(w.Pins) <= maxPins && w.Summary >= 0 && (w.Summary == 0 || w.Start > 1)
}

// maxPins is how many pins a window has at most: an opener and a user message.
const maxPins = 2

// maxCorrection bounds how far one report of a provider can tighten the limits.
const maxCorrection = 4

// Limits returns the limits of the view, tightened by the model's window and by what the provider reported.
func (r *Request) Limits() Limits { return r.limitsBy(r.correction) }

// EstimatedLimits is Limits without the provider's reports: it depends on the view and the input alone.
func (r *Request) EstimatedLimits() Limits { return r.limitsBy(1) }

// limitsBy is the limits with estimated tokens corrected by a factor.
func (r *Request) limitsBy(correction float64) Limits {
	limits := r.view.Limits
	if room, known := r.room(); known && (limits.Tokens == 0 || r.view.FollowWindow || room < limits.Tokens) {
		limits.Tokens = max(room, 1)
	}
	if limits.Tokens > 0 {
		limits.Tokens = max(int(float64(limits.Tokens)/correction), 1)
	}
	return limits
}

// answerShare is the part of a model's window that the view's Reserve may hold back for the answer at most.
const answerShare = 4

// answerTokens is how many tokens of the model's window are held back for the answer: as many as it may take, or what
// the prompt leaves of the view's Reserve.
func (r *Request) answerTokens() int { return max(r.in.Output, r.reserved()) }

// reserved is what the prompt leaves of the view's Reserve, bounded by the answer's share of the window.
func (r *Request) reserved() int {
	return max(min(r.view.Reserve-r.in.Prompt.Tokens, r.in.ModelWindow/answerShare), 0)
}

// room is how many tokens of the model's window are left to messages; known is false where the window is not known.
// The estimate is not corrected: a message that was let in is not refused later because an estimate was too low.
func (r *Request) room() (tokens int, known bool) {
	if r.in.ModelWindow == 0 {
		return 0, false
	}
	return r.in.ModelWindow - r.in.Prompt.Tokens - r.answerTokens(), true
}

// OverWindow reports whether messages of a size do not fit into the model's window. One that is not known holds all.
func (r *Request) OverWindow(size continuo.Size) bool {
	room, known := r.room()
	return known && size.Tokens > room
}

// Around returns the limits of a request that must hold something of the size needed. Where that alone is over a limit
// of the view, the limit bounds what is shown around it.
func (r *Request) Around(needed continuo.Size) Limits {
	limits := r.Limits()
	widened := limits.add(limits.over(needed))
	if room, known := r.room(); known {
		corrected := int(float64(room) / r.correction)
		widened.Tokens = max(min(widened.Tokens, corrected), needed.Tokens, 1)
	}
	return widened
}

// Shape returns a unit in the shape of a level. It must not be changed.
func (r *Request) Shape(u *Unit, at Level) *Shape { return u.at(r.shaper, at) }

// Measure measures a message. Unchanged says that it has the content of its entry: what was counted at append is used
// again.
func (r *Request) Measure(m *continuo.Message, unchanged bool) continuo.Size {
	return r.shaper.size(m, unchanged)
}

// Items gives the verdicts on the entries of a unit that is shown at a level. Kept is the reason where nothing is cut;
// limit names the limit for which units are cut down to a level ("" for none).
func (r *Request) Items(u *Unit, at Level, kept, limit string) []continuo.PlanItem {
	shape := r.Shape(u, at)
	items := make([]continuo.PlanItem, len(u.Entries))
	for i, entry := range u.Entries {
		verdict, reason := shape.verdicts[i], kept
		switch {
		case i == 0 && len(u.missing) > 0:
			reason = reasonUnanswered
		case verdict == continuo.Truncated && r.view.OmitToolResults:
			reason = "tool_results_off"
		case verdict != continuo.Kept && at == Whole:
			reason = "over_output_limit"
		case verdict != continuo.Kept:
			reason = DropReason(limit)
		}
		after := shape.Messages[i].Size
		items[i] = NewItem(entry, verdict, reason, &after)
	}
	return items
}

// Overflow is the error of a request that must hold parts which do not fit into the limits.
func (r *Request) Overflow(limits Limits, parts continuo.OverflowError) error {
	parts.View, parts.Limits, parts.Prompt = r.view.Name, continuo.Size(limits), r.in.Prompt
	if room, known := r.room(); known && parts.Messages().Tokens > room {
		parts.Model, parts.ModelWindow, parts.Answer = r.in.Model, r.in.ModelWindow, r.answerTokens()
		parts.Output, parts.Reserved = r.in.Output, r.reserved()
		parts.Limits = continuo.Size{Tokens: max(room, 0)}
	}
	return &parts
}

// CheckFits reports, as Build would, that a new user message cannot be shown whatever is left out.
func (v View) CheckFits(in Input, content continuo.Content) error {
	if err := v.Check(); err != nil {
		return err
	}
	r := NewRequest(v, "", in)
	if size := r.Shape(MessageUnit(content), Whole).Size; r.OverWindow(size) {
		return r.Overflow(r.Limits(), continuo.OverflowError{NewestUser: size})
	}
	return nil
}
