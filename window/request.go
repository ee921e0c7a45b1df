package window

import (
	continuo "github.com/continuo-log/continuo"
)

// Request is the part of planning a request that all views share: how entries are shaped and measured, the
// effective limits, and what earlier requests recorded in the log. Views of other packages build on it, and
// arrange the units themselves.
type Request struct {
	view   View
	in     Input
	hash   string
	shaper *shaper

	correction continuo.Correction // of estimated tokens
	corrected  bool                // a request to the model was found
}

// NewRequest begins a request. Hash identifies the view, which may have more settings than the definition by
// which entries are shaped. The definition must pass [View.Check].
func NewRequest(view View, hash string, in Input) *Request {
	in = in.WithDefaults()
	return &Request{view: view, in: in, hash: hash, shaper: &shaper{view: view, counter: in.Counter, provider: in.Provider}}
}

// Learn reads from an entry what an earlier request recorded on it, and returns the window of that request if
// its view was equal; nil otherwise. Entries come newest first, each once.
func (r *Request) Learn(e *continuo.Entry) *continuo.Window {
	round := e.Round
	if round == nil {
		return nil
	}
	if r.in.Estimated && !r.corrected && round.Provider == r.in.Provider && round.Model == r.in.Model && round.EstimatedTokens > 0 {
		r.corrected, r.correction = true, round.Correction.Checked()
		if round.Usage != nil {
			r.correction = r.correction.With(round.EstimatedTokens, round.Usage.InputTokens)
		}
	}
	if round.ViewHash != r.hash || !plausible(round.Window) {
		return nil
	}
	return &round.Window
}

// plausible reports whether a build could have produced a window. Rounds may be imported; a forged one must
// not reorder entries or show them twice.
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

// Limits returns the limits of the view, with those of tokens corrected by what the provider reported, and bounded by the
// model's window.
func (r *Request) Limits() Limits { return r.limitsBy(r.correction) }

// EstimatedLimits is Limits without the provider's reports: it depends only on the view and the input.
func (r *Request) EstimatedLimits() Limits { return r.limitsBy(continuo.Correction{}) }

// limitsBy returns the limits in estimated tokens.
func (r *Request) limitsBy(correction continuo.Correction) Limits {
	limits := r.view.Limits
	if limits.Tokens > 0 {
		limits.Tokens = max(correction.Estimated(limits.Tokens), 1)
	}
	if remaining, known := r.remainingBy(correction); known && (limits.Tokens == 0 || r.view.FollowWindow || remaining < limits.Tokens) {
		limits.Tokens = max(remaining, 1)
	}
	return limits
}

// answerShare is the divisor of a model's window that bounds how much of it the view's Reserve holds back for
// the answer.
const answerShare = 4

// answerTokens is how many tokens of the model's window are held back for the answer: the answer's limit, or
// what the prompt leaves of the view's Reserve.
func (r *Request) answerTokens() int { return max(r.in.Output, r.reserved()) }

// reserved is what the prompt leaves of the view's Reserve, bounded by answerShare.
func (r *Request) reserved() int {
	return max(min(r.view.Reserve-r.in.Prompt.Tokens, r.in.ModelWindow/answerShare), 0)
}

// remaining is how many tokens of the model's window are left for messages; known is false if the window is not
// known. The estimate is not corrected, so that a message that was accepted is not refused later because an
// estimate was too low.
func (r *Request) remaining() (tokens int, known bool) {
	return r.remainingBy(continuo.Correction{})
}

// remainingBy is remaining with the estimate corrected.
func (r *Request) remainingBy(correction continuo.Correction) (tokens int, known bool) {
	if r.in.ModelWindow == 0 {
		return 0, false
	}
	return correction.Estimated(r.in.ModelWindow-r.answerTokens()) - r.in.Prompt.Tokens, true
}

// SetEstimate says in a plan, whose totals are complete, what the provider will probably count.
func (r *Request) SetEstimate(p *Plan) {
	if r.correction.Reports == 0 {
		return
	}
	correction := r.correction
	p.Correction = &correction
	p.Totals.CorrectedTokens = correction.Tokens(p.Totals.Tokens + p.Totals.PromptSize.Tokens)
}

// OverWindow reports whether messages of a size do not fit into the model's window. An unknown window fits
// everything.
func (r *Request) OverWindow(size continuo.Size) bool {
	remaining, known := r.remaining()
	return known && size.Tokens > remaining
}

// Around returns the limits of a request that must hold something of the size needed. If that alone exceeds a
// limit of the view, the limit applies only to the other messages.
func (r *Request) Around(needed continuo.Size) Limits {
	limits := r.Limits()
	widened := limits.add(limits.over(needed))
	if remaining, known := r.remainingBy(r.correction); known {
		widened.Tokens = max(min(widened.Tokens, remaining), needed.Tokens, 1)
	}
	return widened
}

// Shape returns a unit in the shape of a level. The caller must not change it.
func (r *Request) Shape(u *Unit, at Level) *Shape { return u.at(r.shaper, at) }

// Size returns the size of a unit in the shape of a level. It costs less than Shape where the unit is shown as it is in
// the log.
func (r *Request) Size(u *Unit, at Level) continuo.Size { return u.size(r.shaper, at) }

// Measure measures a message. Unchanged says that the message has the content of its entry: the count made at
// append is then used again.
func (r *Request) Measure(m *Message, unchanged bool) continuo.Size {
	return r.shaper.size(m, unchanged)
}

// Items gives the verdicts on the entries of a unit that is shown at a level. Kept is the reason for uncut
// entries; limit names the limit because of which units are shown at a lower level than [Whole] ("" for none).
func (r *Request) Items(u *Unit, at Level, kept, limit string) []PlanItem {
	shape := r.Shape(u, at)
	items := make([]PlanItem, len(u.Entries))
	for i := range items {
		items[i] = r.item(u, i, at, shape.verdicts[i], &shape.Messages[i], kept, limit, &itemSizes{})
	}
	return items
}

// item is the verdict on one entry of a unit that is shown at a level, as a message. See Items.
func (r *Request) item(u *Unit, i int, at Level, verdict Verdict, shown *Message, kept, limit string, sizes *itemSizes) PlanItem {
	entry, reason, givenUp := u.Entries[i], kept, u.whyGivenUp(i)
	switch {
	case i == 0 && len(u.missing) > 0:
		reason = ReasonUnanswered
	case verdict == Truncated && r.view.OmitToolResults:
		reason = ReasonResultsOff
	case verdict == Truncated && u.whyGivenUp(i) != "":
		reason = u.whyGivenUp(i)
	case verdict == Previewed && !r.shaper.cutByLevel(entry, shown, max(at, givenUpLevels[givenUp])):
		reason = ReasonOutputLimit
	case verdict != Kept && (at < givenUpLevels[givenUp] || cutsImages(entry, at, givenUp)):
		reason = givenUp
	case verdict != Kept:
		reason = DropReason(limit)
	}
	return sizes.item(entry, verdict, reason, &shown.Size)
}

// Overflow is the error of a request that must hold parts that do not fit into the limits.
func (r *Request) Overflow(limits Limits, parts continuo.OverflowError) error {
	parts.View, parts.Limits, parts.Prompt = r.view.Name, continuo.Size(limits), r.in.Prompt
	if remaining, known := r.remaining(); known && parts.Messages().Tokens > remaining {
		parts.Model, parts.ModelWindow, parts.Answer = r.in.Model, r.in.ModelWindow, r.answerTokens()
		parts.Output, parts.Reserved = r.in.Output, r.reserved()
		parts.Limits = continuo.Size{Tokens: max(remaining, 0)}
	}
	return &parts
}

// CheckFits fails, as Build would, for a new user message that cannot be shown even if everything else is
// left out.
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
