package window

import (
	"strconv"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

// storedSize returns the size of an entry's message at a level by the count made at append. It is not known where the
// message differs from the entry, or where the tokens were counted in another encoding or include reasoning: the message
// has to be made then.
func (s *shaper) storedSize(e *continuo.Entry, at Level) (size continuo.Size, known bool) {
	if e.Tokenizer != s.counter.Name() || e.Reasoning != nil {
		return continuo.Size{}, false
	}
	switch e.Role {
	case continuo.Tool:
		known = s.showsWhole(e, at)
	case continuo.Assistant:
		known = e.Error == nil && !s.cutsCalls(e)
	default:
		known = true
	}
	if !known {
		return continuo.Size{}, false
	}
	size = continuo.Size{Messages: 1, Chars: e.Chars, Tokens: MessageOverhead + callOverhead*len(e.ToolCalls) + e.Tokens}
	if e.Name != "" {
		size.Tokens += s.counter.Count(e.Name) + 1
	}
	return size, true
}

// showsWhole reports whether it is clear without making the shorter form that a result is shown as it is in the log.
func (s *shaper) showsWhole(e *continuo.Entry, at Level) bool {
	limit := s.view.ToolOutputChars
	if e.Output != nil && e.Content.IsText() {
		return at == Whole && !s.view.OmitToolResults && (limit == 0 || e.Output.Chars <= limit)
	}
	if at == Line || s.view.OmitToolResults {
		return e.Content.IsText() && lineChars(charsOf(e), e.OutputRef) > e.Chars // the line would be longer
	}
	if at == Whole && (limit == 0 || e.Content.IsText() && len(e.Content.String()) <= limit) {
		return true
	}
	chars := charsOf(e)
	return at == Whole && chars <= limit || chars <= s.view.PreviewChars+previewSlack
}

// cutsCalls reports whether arguments of an entry's calls are above the limit.
func (s *shaper) cutsCalls(e *continuo.Entry) bool {
	limit := s.view.ToolOutputChars
	for i := range e.ToolCalls {
		if arguments := e.ToolCalls[i].Arguments; limit > 0 && len(arguments) > limit && utf8.RuneCountInString(arguments) > limit {
			return true
		}
	}
	return false
}

// lineChars is the number of characters of [leftOut].
func lineChars(chars int, ref string) int {
	var number [20]byte
	digits := len(strconv.AppendInt(number[:0], int64(chars), 10))
	return len(leftOutHead) + digits + len(leftOutMiddle) + utf8.RuneCountInString(ref) + len(leftOutEnd)
}

// lineBounds returns bounds of the size of a unit at the level [Line] without making the lines. It is not ok where the
// line may have more characters than the whole, because the whole has parts that are not text.
func (s *shaper) lineBounds(u *Unit) (least, most continuo.Size, ok bool) {
	for _, e := range u.Entries {
		if e.Role == continuo.Tool && !e.Content.IsText() {
			return least, most, false
		}
	}
	if most, ok = u.storedSize(s, Whole); !ok {
		return least, most, false
	}
	return continuo.Size{Messages: most.Messages, Tokens: most.Messages * MessageOverhead}, most, true
}

// lineSum is the sum of the sizes of units at the level [Line]. It makes the lines, and counts their tokens, only when a
// comparison depends on them.
type lineSum struct {
	shaper      *shaper
	known       continuo.Size // of the units whose size is known, and of what else was added
	least, most continuo.Size // bounds of the size of the others
	others      []*Unit
}

// add adds a unit.
func (l *lineSum) add(u *Unit) {
	if u.Group && u.sizes[Line].Messages == 0 {
		if _, known := u.storedSize(l.shaper, Line); !known {
			if least, most, ok := l.shaper.lineBounds(u); ok {
				l.least, l.most, l.others = l.least.Add(least), l.most.Add(most), append(l.others, u)
				return
			}
		}
	}
	l.known = l.known.Add(u.size(l.shaper, Line))
}

// exceeds names the first limit that the sum exceeds, or returns "".
func (l *lineSum) exceeds(limits Limits) string {
	exceeded := limits.Exceeded(l.known.Add(l.least))
	if len(l.others) == 0 || exceeded == limits.Exceeded(l.known.Add(l.most)) {
		return exceeded
	}
	return limits.Exceeded(l.exact())
}

// exact returns the sum.
func (l *lineSum) exact() continuo.Size {
	for _, u := range l.others {
		l.known = l.known.Add(u.size(l.shaper, Line))
	}
	l.least, l.most, l.others = continuo.Size{}, continuo.Size{}, l.others[:0]
	return l.known
}
