package window

import (
	"math"
	"sort"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

// arrange decides what a role is shown, and how the messages of its own turn are cut down.
func (p *rolePlanner) arrange() error {
	turn := p.log.turn
	// A message that was let in is not refused later because an estimate turned out too low.
	for _, limits := range []budget{p.base.limits(), p.base.limitsBy(1)} {
		if l, ok := p.place(p.besideTurn(limits)); ok && p.arrangeTurn(l, limits) {
			return nil
		}
		if len(turn) == 0 {
			continue
		}
		room := limits.less(turn[len(turn)-1].at(p.base.shaper, line).size).less(p.turnMarker().Size)
		if l, ok := p.place(room); ok && p.arrangeTurn(l, limits) {
			return nil
		}
	}
	var user continuo.Size
	if p.log.newest != nil {
		user = p.log.newest.unit.at(p.base.shaper, whole).size
	}
	var group *unit
	if len(turn) > 0 {
		group = turn[len(turn)-1]
	}
	return p.base.overflow(p.base.limitsBy(1), user, group)
}

// besideTurn is what the role's own turn leaves of the limits: the low-water mark at least.
func (p *rolePlanner) besideTurn(limits budget) budget {
	var taken continuo.Size
	for _, u := range p.log.turn {
		taken = taken.Add(u.at(p.base.shaper, whole).size)
	}
	low := p.lowered(limits)
	return limits.less(continuo.Size{Chars: min(taken.Chars, limits.Chars-low.Chars), Tokens: min(taken.Tokens, limits.Tokens-low.Tokens)})
}

// less is what a size leaves of the limits.
func (l budget) less(size continuo.Size) budget {
	take := func(limit, size int) int {
		if limit == 0 {
			return 0
		}
		return max(limit-size, 1)
	}
	return budget{Limits{Chars: take(l.Chars, size.Chars), Tokens: take(l.Tokens, size.Tokens)}}
}

// fits reports whether a layout keeps to limits and to a number of messages, 0 for any.
func (p *rolePlanner) fits(l layout, limits budget, most int) bool {
	return (most == 0 || len(p.log.messages)-l.first <= most) && limits.exceeded(p.size(l)) == ""
}

// size measures a layout by its parts.
func (p *rolePlanner) size(l layout) continuo.Size {
	size := p.sumFrom(l.first)
	if n := len(p.log.messages); l.cut != "" && n > 0 {
		last := p.log.messages[n-1]
		size = minus(size, last.size).Add(p.sizeOf(p.textOf(last, l.cut)))
	}
	for _, part := range p.around(l) {
		size = size.Add(part.size)
	}
	if !p.role.Messages && size.Chars > 0 {
		size = size.Add(continuo.Size{Chars: -len(separator), Tokens: messageOverhead})
		size.Messages = 1
	}
	return size
}

// sumFrom is the size of the messages from one on.
func (p *rolePlanner) sumFrom(first int) continuo.Size {
	if p.sums == nil {
		n := len(p.log.messages)
		p.sums = make([]continuo.Size, n+1)
		for i := n - 1; i >= 0; i-- {
			p.sums[i] = p.sums[i+1].Add(p.measure(p.log.messages[i], p.log.messages[i] == p.log.newest))
		}
	}
	return p.sums[first]
}

// separator stands between two parts of a text.
const separator = "\n\n"

// sizeOf measures a part: with the separator behind it in a text, as a message of its own in a list.
func (p *rolePlanner) sizeOf(text string) continuo.Size {
	return p.partSize(utf8.RuneCountInString(text), p.base.shaper.counter.Count(text))
}

func (p *rolePlanner) partSize(chars, tokens int) continuo.Size {
	if p.role.Messages {
		return continuo.Size{Messages: 1, Chars: chars, Tokens: tokens + messageOverhead}
	}
	return continuo.Size{Chars: chars + len(separator), Tokens: tokens + 1}
}

// measure measures a message, once, and cuts it where it takes more than one message may: its beginning and its end are
// shown. What was counted at append is used again where nothing was changed.
func (p *rolePlanner) measure(m *roleMessage, wholly bool) continuo.Size {
	if m.size != (continuo.Size{}) {
		return m.size
	}
	text := p.textOf(m, m.body)
	e := m.unit.entries[0]
	label := len(text) - len(m.body)
	if e.Tokenizer == p.base.shaper.counter.Name() && e.Content.IsText() && m.body == e.Content.String() && (label == 0 || label == len(m.label)+1) {
		tokens := e.Tokens
		if label > 0 {
			tokens += p.base.shaper.counter.Count(m.label) + 1
		}
		m.size = p.partSize(utf8.RuneCountInString(text), tokens)
	} else {
		m.size = p.sizeOf(text)
	}
	if wholly || p.unit.exceeded(m.size) == "" {
		return m.size
	}
	size := func(body string) continuo.Size { return p.sizeOf(p.textOf(m, body)) }
	body, ok := cutTo(m.said, p.unit, func(body string) bool { return p.unit.exceeded(size(body)) == "" })
	if !ok {
		body = headAndTail(m.said, minCut)
	}
	m.body, m.short, m.size = body, true, size(body)
	return m.size
}

// minCut is how many characters of a text are shown at least where it is cut.
const minCut = 60

// cutTo cuts a text down to the most of it that fits, head and tail. It reports false where the least does not fit.
func cutTo(text string, room budget, fits func(string) bool) (string, bool) {
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

// blockRoom is what a block may take at most. Tight is what the newest message of the user leaves. It follows no report
// of a provider, so that blocks stay the same between moves.
func (p *rolePlanner) blockRoom(tight bool) budget {
	limits := p.base.limitsBy(1)
	share := func(limit, needed int) int {
		if limit == 0 {
			return 0
		}
		return max(int(math.Ceil(float64(limit-needed)/blockShare)), 1)
	}
	var need continuo.Size
	if tight && p.log.newest != nil {
		need = p.measure(p.log.newest, true).Add(leastShown(limits))
	}
	return budget{Limits{Chars: share(limits.Chars, need.Chars), Tokens: share(limits.Tokens, need.Tokens)}}
}

// leastShown is what is given to everything besides the newest message of the user: to the original request and notes or
// a summary, cut, to the newest message, cut, and to the lines about others.
func leastShown(limits budget) continuo.Size {
	return continuo.Size{Chars: min(800, limits.Chars/blockShare), Tokens: min(300, limits.Tokens/blockShare)}
}

// checkRoleFits is CheckFits for a view of a role.
func checkRoleFits(view View, in Input, content continuo.Content) error {
	u := &unit{entries: []*continuo.Entry{{Role: continuo.User, Content: content}}}
	m := newRoleMessage(u, view.Role)
	if m == nil {
		return nil
	}
	p := newRolePlanner(view, in)
	limits := p.base.limits()
	if limits.exceeded(p.measure(m, true).Add(leastShown(limits))) != "" {
		return p.base.overflow(limits, u.at(p.base.shaper, whole).size, nil)
	}
	return nil
}
