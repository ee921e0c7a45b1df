package window

import (
	"math"

	continuo "github.com/continuo-log/continuo"
)

// Limits bound what a view shows. 0 means no limit. All of them apply together. The newest user message and
// the open group are shown regardless of the limits: if they exceed a limit, it applies only to the other
// messages.
type Limits struct {
	Messages int `json:"messages,omitempty"`
	Chars    int `json:"chars,omitempty"`
	Tokens   int `json:"tokens,omitempty"`
}

// The names of the limits in plans and windows.
const (
	LimitMessages = "messages"
	LimitChars    = "chars"
	LimitTokens   = "tokens"
)

// Exceeded names the first limit that a size exceeds, or returns "".
func (l Limits) Exceeded(size continuo.Size) string {
	switch {
	case l.Messages > 0 && size.Messages > l.Messages:
		return LimitMessages
	case l.Chars > 0 && size.Chars > l.Chars:
		return LimitChars
	case l.Tokens > 0 && size.Tokens > l.Tokens:
		return LimitTokens
	}
	return ""
}

// Lowered returns the limits up to which a move fills the window: a share of what fixed leaves, and never
// less than needed. Share is the view's low-water mark.
func (l Limits) Lowered(share float64, fixed, needed continuo.Size) Limits {
	lower := func(limit, fixed, needed int) int {
		if limit == 0 {
			return 0
		}
		return max(fixed+int(math.Ceil(share*float64(max(limit-fixed, 0)))), needed)
	}
	return Limits{
		Messages: lower(l.Messages, fixed.Messages, needed.Messages),
		Chars:    lower(l.Chars, fixed.Chars, needed.Chars),
		Tokens:   lower(l.Tokens, fixed.Tokens, needed.Tokens),
	}
}

// add returns the limits increased by a size; a limit of 0 stays 0.
func (l Limits) add(size continuo.Size) Limits {
	add := func(limit, more int) int {
		if limit == 0 {
			return 0
		}
		return limit + more
	}
	return Limits{Messages: add(l.Messages, size.Messages), Chars: add(l.Chars, size.Chars), Tokens: add(l.Tokens, size.Tokens)}
}

// over returns the parts of a size that exceed their limit, each whole; the others are 0.
func (l Limits) over(size continuo.Size) (over continuo.Size) {
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
