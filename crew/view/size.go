package view

import (
	"math"
	"sort"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// sizer measures what a role is shown, and cuts a message that takes too much. It knows the limits in force.
type sizer struct {
	request     *window.Request
	definition  window.View // that entries are shaped by
	hash        string      // of the view
	in          window.Input
	role        Role
	maxMessages int           // that a window shows; 0 for any number
	perMessage  window.Limits // a message that takes more is cut down to it
}

// messageShare is the part of the limits that one message may take; the newest message of the user is shown whole.
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

// separator stands between two parts of a text.
const separator = "\n\n"

// sizeOf measures a part: with the separator behind it in a text, as a message of its own in a list.
func (s *sizer) sizeOf(text string) continuo.Size {
	return s.partSize(utf8.RuneCountInString(text), s.in.Counter.Count(text))
}

func (s *sizer) partSize(chars, tokens int) continuo.Size {
	if s.role.Messages {
		return continuo.Size{Messages: 1, Chars: chars, Tokens: tokens + window.MessageOverhead}
	}
	return continuo.Size{Chars: chars + len(separator), Tokens: tokens + 1}
}

// textOf is a message as it is shown: a role's own answer in a list of messages bare, everything else under a label.
func (s *sizer) textOf(m *message, body string) string {
	if s.role.Messages && m.isAnswer() {
		return body
	}
	return m.text(body)
}

// measure measures a message, once, and cuts it where it takes more than one message may, unless it is to be shown
// wholly: its beginning and its end are shown. What was counted at append is used again where nothing was changed.
func (s *sizer) measure(m *message, wholly bool) continuo.Size {
	if m.size != (continuo.Size{}) {
		return m.size
	}
	m.size = s.uncut(m)
	if wholly || s.perMessage.Exceeded(m.size) == "" {
		return m.size
	}
	size := func(body string) continuo.Size { return s.sizeOf(s.textOf(m, body)) }
	body, ok := cutTo(m.said, s.perMessage, func(body string) bool { return s.perMessage.Exceeded(size(body)) == "" })
	if !ok {
		body = headAndTail(m.said, minCut)
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

// minCut is how many characters of a text are shown at least where it is cut.
const minCut = 60

// cutTo cuts a text down to the most of it that fits, head and tail. It reports false where the least does not fit.
func cutTo(text string, room window.Limits, fits func(string) bool) (string, bool) {
	most := utf8.RuneCountInString(text)
	if room.Chars > 0 {
		most = min(most, room.Chars)
	}
	if room.Tokens > 0 {
		most = min(most, room.Tokens*charsPerToken)
	}
	cut := func(chars int) string { return headAndTail(text, chars) }
	least := min(minCut, most)
	refused := sort.Search(most-least+1, func(more int) bool { return !fits(cut(least + more)) })
	if refused == 0 {
		return "", false
	}
	body := cut(least + refused - 1)
	return body, fits(body)
}

// charsPerToken is more characters than a token has on average in any text that is worth showing.
const charsPerToken = 16

// blockShare is the part of the limits that a block before the messages may take.
const blockShare = 4

// blockRoom is what a block may take at most, besides what is needed. It follows no report of a provider, so that blocks
// stay the same between moves.
func (s *sizer) blockRoom(needed continuo.Size) window.Limits {
	limits := s.request.EstimatedLimits()
	share := func(limit, needed int) int {
		if limit == 0 {
			return 0
		}
		return max(int(math.Ceil(float64(limit-needed)/blockShare)), 1)
	}
	return window.Limits{Chars: share(limits.Chars, needed.Chars), Tokens: share(limits.Tokens, needed.Tokens)}
}

// leastShown is what is given to everything besides the newest message of the user: to the original request and notes or
// a summary, cut, to the newest message, cut, and to the lines about others.
func leastShown(limits window.Limits) continuo.Size {
	return continuo.Size{Chars: min(800, limits.Chars/blockShare), Tokens: min(300, limits.Tokens/blockShare)}
}

// less is what a size leaves of limits.
func less(limits window.Limits, size continuo.Size) window.Limits {
	take := func(limit, size int) int {
		if limit == 0 {
			return 0
		}
		return max(limit-size, 1)
	}
	return window.Limits{Chars: take(limits.Chars, size.Chars), Tokens: take(limits.Tokens, size.Tokens)}
}
