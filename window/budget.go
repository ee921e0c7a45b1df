package window

import (
	"math"

	continuo "github.com/continuo-log/continuo"
)

// budget is a set of limits, tokens already corrected. 0 means no limit.
type budget struct {
	Limits
}

// limits returns the limits of the view, tightened by the model's window and by what the provider reported.
func (b *build) limits() budget { return b.limitsBy(b.correction) }

// limitsBy is limits with estimated tokens corrected by a factor.
func (b *build) limitsBy(correction float64) budget {
	limits := b.view.Limits
	if room, known := b.room(); known && (limits.Tokens == 0 || b.view.FollowWindow || room < limits.Tokens) {
		limits.Tokens = max(room, 1)
	}
	if limits.Tokens > 0 {
		limits.Tokens = max(int(float64(limits.Tokens)/correction), 1)
	}
	return budget{limits}
}

// answerShare is the part of a model's window that the view's Reserve may hold back for the answer at most.
const answerShare = 4

// answerTokens is how many tokens of the model's window are held back for the answer: as many as it may take, or what
// the prompt leaves of the view's Reserve.
func (b *build) answerTokens() int { return max(b.in.Output, b.reserved()) }

// reserved is what the prompt leaves of the view's Reserve, bounded by the answer's share of the window.
func (b *build) reserved() int {
	return max(min(b.view.Reserve-b.in.Prompt.Tokens, b.in.ModelWindow/answerShare), 0)
}

// room is how many tokens of the model's window are left to messages; known is false where the window is not known.
// The estimate is not corrected: a message that was let in is not refused later because an estimate was too low.
func (b *build) room() (tokens int, known bool) {
	if b.in.ModelWindow == 0 {
		return 0, false
	}
	return b.in.ModelWindow - b.in.Prompt.Tokens - b.answerTokens(), true
}

// overWindow reports whether messages of a size do not fit into the model's window. One that is not known holds all.
func (b *build) overWindow(size continuo.Size) bool {
	room, known := b.room()
	return known && size.Tokens > room
}

// around returns the limits of a request that must hold something of the size needed. Where that alone is over a limit
// of the view, the limit bounds what is shown around it.
func (b *build) around(needed continuo.Size) budget {
	limits := b.limits()
	widened := limits.Add(limits.over(needed))
	if room, known := b.room(); known {
		corrected := int(float64(room) / b.correction)
		widened.Tokens = max(min(widened.Tokens, corrected), needed.Tokens, 1)
	}
	return widened
}

// Add returns the limits with room for a size besides; a limit that there is not stays so.
func (l budget) Add(size continuo.Size) budget {
	add := func(limit, more int) int {
		if limit == 0 {
			return 0
		}
		return limit + more
	}
	return budget{Limits{Messages: add(l.Messages, size.Messages), Chars: add(l.Chars, size.Chars), Tokens: add(l.Tokens, size.Tokens)}}
}

// over returns the parts of a size that are over their limit, each whole; the others are 0.
func (l budget) over(size continuo.Size) (over continuo.Size) {
	if l.Messages > 0 && size.Messages > l.Messages {
		over.Messages = size.Messages
	}
	if l.Chars > 0 && size.Chars > l.Chars {
		over.Chars = size.Chars
	}
	if l.Tokens > 0 && size.Tokens > l.Tokens {
		over.Tokens = size.Tokens
	}
	return over
}

// The names of the limits, as plans and windows give them.
const (
	limitMessages = "messages"
	limitChars    = "chars"
	limitTokens   = "tokens"
)

// exceeded names the first limit that a size is over, or returns "".
func (l budget) exceeded(size continuo.Size) string {
	switch {
	case l.Messages > 0 && size.Messages > l.Messages:
		return limitMessages
	case l.Chars > 0 && size.Chars > l.Chars:
		return limitChars
	case l.Tokens > 0 && size.Tokens > l.Tokens:
		return limitTokens
	}
	return ""
}

// lowered returns the limits that a move fills up to: a share of what fixed leaves, and never less than needed.
func (l budget) lowered(share float64, fixed, needed continuo.Size) budget {
	lower := func(limit, fixed, needed int) int {
		if limit == 0 {
			return 0
		}
		return max(fixed+int(math.Ceil(share*float64(max(limit-fixed, 0)))), needed)
	}
	return budget{Limits{
		Messages: lower(l.Messages, fixed.Messages, needed.Messages),
		Chars:    lower(l.Chars, fixed.Chars, needed.Chars),
		Tokens:   lower(l.Tokens, fixed.Tokens, needed.Tokens),
	}}
}

// CheckFits reports, as Build would, that a new user message cannot be shown whatever is left out.
func CheckFits(view View, in Input, content continuo.Content) error {
	if view.Role != nil {
		return checkRoleFits(view, in, content)
	}
	if view.Handoff != nil {
		return nil // it cuts what is too long
	}
	b := &build{view: view, in: in, correction: 1, shaper: shaper{view: view, counter: in.Counter, provider: in.Provider}}
	u := &unit{entries: []*continuo.Entry{{Role: continuo.User, Content: content}}}
	if size := u.at(b.shaper, whole).size; b.overWindow(size) {
		return b.overflowOf(b.limits(), continuo.OverflowError{NewestUser: size})
	}
	return nil
}

// overflow is the error of a request that must hold a user message and a group, of which the shortest form counts.
func (b *build) overflow(limits budget, user continuo.Size, openGroup *unit) error {
	parts := continuo.OverflowError{NewestUser: user}
	if openGroup != nil {
		parts.OpenGroup = openGroup.at(b.shaper, line).size
	}
	return b.overflowOf(limits, parts)
}

// overflowOf is the error of a request that must hold parts which do not fit into the limits.
func (b *build) overflowOf(limits budget, parts continuo.OverflowError) error {
	parts.View, parts.Limits, parts.Prompt = b.view.Name, continuo.Size(limits.Limits), b.in.Prompt
	if room, known := b.room(); known && parts.Messages().Tokens > room {
		parts.Model, parts.ModelWindow, parts.Answer = b.in.Model, b.in.ModelWindow, b.answerTokens()
		parts.Output, parts.Reserved = b.in.Output, b.reserved()
		parts.Limits = continuo.Size{Tokens: max(room, 0)}
	}
	return &parts
}
