package view

import (
	"math"
	"sort"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// sizer measures what a role is shown, and cuts messages that are too large. It uses the limits in force.
type sizer struct {
	request     *window.Request
	definition  window.View // by which entries are shaped
	hash        string      // of the view
	in          window.Input
	role        Role
	maxMessages int           // in a window; 0 for any number
	perMessage  window.Limits // larger messages are cut to it
}

// messageShare is the divisor of the limits for one message; the newest message of the user is shown whole.
const messageShare = 2

func newSizer(view View, in window.Input) *sizer {
	definition := view.View
	definition.SkipSystem, definition.Limits.Messages = true, 0
	hash := view.Hash()
	s := &sizer{request: window.NewRequest(definition, hash, in), definition: definition, hash: hash, in: in, role: view.Role}
	if view.Role.Kind == Window && !view.Role.Whole {
		s.maxMessages = view.Role.Newest
	}
	limits := s.request.EstimatedLimits()
	share := func(limit int) int { return (limit + messageShare - 1) / messageShare }
	s.perMessage = window.Limits{Chars: share(limits.Chars), Tokens: share(limits.Tokens)}
	return s
}

// lowered is the low-water mark of limits.
func (s *sizer) lowered(limits window.Limits) window.Limits {
	return limits.Lowered(s.definition.LowWater, continuo.Size{}, continuo.Size{})
}

// loweredMessages is the low-water mark of the number of messages.
func (s *sizer) loweredMessages() int {
	return int(math.Ceil(s.definition.LowWater * float64(s.maxMessages)))
}

// separator is placed between two parts of a text.
const separator = "\n\n"

// sizeOf measures a part, with the separator that follows it in a text, or as a message of its own in a list.
func (s *sizer) sizeOf(text string) continuo.Size {
	return s.partSize(utf8.RuneCountInString(text), s.in.Counter.Count(text))
}

func (s *sizer) partSize(chars, tokens int) continuo.Size {
	if s.role.Messages {
		return continuo.Size{Messages: 1, Chars: chars, Tokens: tokens + window.MessageOverhead}
	}
	return continuo.Size{Chars: chars + len(separator), Tokens: tokens + 1}
}

// textOf is a message as it is shown: in a list of messages a role's own answer has no label, everything else has
// one.
func (s *sizer) textOf(m *message, body string) string {
	if s.role.Messages && m.isAnswer() {
		return body
	}
	return m.text(body)
}

// measure measures a message, once. Unless it must be shown whole, it is cut to its beginning and its end where it
// exceeds the limit for one message. For an unchanged message the count from its append is used.
func (s *sizer) measure(m *message, wholly bool) continuo.Size {
	if m.size != (continuo.Size{}) {
		return m.size
	}
	m.size = s.uncut(m)
	if wholly || s.perMessage.Exceeded(m.size) == "" {
		return m.size
	}
	size := func(body string) continuo.Size { return s.sizeOf(s.textOf(m, body)) }
	body, ok := cutTo(m.raw, s.perMessage, func(body string) bool { return s.perMessage.Exceeded(size(body)) == "" })
	if !ok {
		body = headAndTail(m.raw, minCut)
	}
	m.body, m.short, m.size = body, true, size(body)
	return m.size
}

// uncut is the size of a message as it was read.
func (s *sizer) uncut(m *message) continuo.Size {
	text := s.textOf(m, m.body)
	e := m.unit.Entries[0]
	label := len(text) - len(m.body)
	if e.Tokenizer != s.in.Counter.Name() || !e.Content.IsText() || m.body != e.Content.String() || label != 0 && label != len(m.label)+1 {
		return s.sizeOf(text)
	}
	tokens := e.Tokens
	if label > 0 {
		tokens += s.in.Counter.Count(m.label) + 1
	}
	return s.partSize(utf8.RuneCountInString(text), tokens)
}

// minCut is the minimum number of characters that are shown of a text that is cut.
const minCut = 60

// cutTo cuts a text to the largest head and tail that fit. It returns false where the minimum does not fit.
func cutTo(text string, available window.Limits, fits func(string) bool) (string, bool) {
	maxChars := utf8.RuneCountInString(text)
	if available.Chars > 0 {
		maxChars = min(maxChars, available.Chars)
	}
	if available.Tokens > 0 {
		maxChars = min(maxChars, available.Tokens*charsPerToken)
	}
	cut := func(chars int) string { return headAndTail(text, chars) }
	least := min(minCut, maxChars)
	refused := sort.Search(maxChars-least+1, func(more int) bool { return !fits(cut(least + more)) })
	if refused == 0 {
		return "", false
	}
	body := cut(least + refused - 1)
	return body, fits(body)
}

// charsPerToken exceeds the average characters per token of any text worth showing.
const charsPerToken = 16

// blockShare is the divisor of the limits for a block before the messages.
const blockShare = 4

// blockLimits is the maximum size of a block, after the needed size is subtracted. It uses estimated limits, which do
// not depend on a provider's token counts, so that blocks stay the same between moves.
func (s *sizer) blockLimits(needed continuo.Size) window.Limits {
	limits := s.request.EstimatedLimits()
	share := func(limit, needed int) int {
		if limit == 0 {
			return 0
		}
		return max(int(math.Ceil(float64(limit-needed)/blockShare)), 1)
	}
	return window.Limits{Chars: share(limits.Chars, needed.Chars), Tokens: share(limits.Tokens, needed.Tokens)}
}

// leastShown is the room for everything besides the newest message of the user: the original request and notes or a
// summary, cut, the newest message, cut, and the lines about left out messages.
func leastShown(limits window.Limits) continuo.Size {
	return continuo.Size{Chars: min(800, limits.Chars/blockShare), Tokens: min(300, limits.Tokens/blockShare)}
}

// less is the rest of limits after a size.
func less(limits window.Limits, size continuo.Size) window.Limits {
	take := func(limit, size int) int {
		if limit == 0 {
			return 0
		}
		return max(limit-size, 1)
	}
	return window.Limits{Chars: take(limits.Chars, size.Chars), Tokens: take(limits.Tokens, size.Tokens)}
}
