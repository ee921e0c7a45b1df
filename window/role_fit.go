package window

import (
	"math"
	"sort"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

// arrange decides what the text has, and how the messages of the role's own turn are cut down.
func (r *roleBuild) arrange() error {
	// A message that was let in is not refused later because an estimate turned out too low.
	for _, relaxed := range []bool{false, true} {
		limits, turn := r.limits(), r.limitsBy(r.openCorrection)
		if relaxed {
			limits, turn = r.limitsBy(1), r.limitsBy(1)
		}
		if r.arrangeText(limits, limits.lowered(r.view.LowWater, continuo.Size{}, continuo.Size{})) && r.arrangeTurn(turn) {
			return nil
		}
		if len(r.units) == 0 {
			continue
		}
		room := turn.less(r.units[len(r.units)-1].at(r.shaper, line).size).less(r.marker().Size)
		if r.arrangeText(room, room) && r.arrangeTurn(turn) {
			return nil
		}
	}
	var user continuo.Size
	if r.newest != nil {
		user = r.newest.unit.at(r.shaper, whole).size
	}
	var group *unit
	if len(r.units) > 0 {
		group = r.units[len(r.units)-1]
	}
	return r.overflow(r.limitsBy(1), user, group)
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

// maxFits bounds how often a text is laid out again because it has more tokens than its parts.
const maxFits = 8

// arrangeText lays the text out within the limits, filled up to the target if that can be. It reports false where what
// it cannot do without does not fit.
func (r *roleBuild) arrangeText(limits, target budget) bool {
	for _, tight := range []bool{false, true} {
		inner, aim := limits.less(continuo.Size{Tokens: messageOverhead}), target.less(continuo.Size{Tokens: messageOverhead})
		for range maxFits {
			l, ok := r.layoutIn(inner, aim, tight)
			if !ok {
				break
			}
			r.arranged, r.text = l, r.write(l)
			if limits.exceeded(r.text.Size) == "" {
				return true
			}
			over := continuo.Size{Tokens: max(r.text.Size.Tokens-limits.Tokens, 0)}
			inner, aim = inner.less(over), aim.less(over)
		}
	}
	return false
}

// layoutIn lays the text out, with the original request before the messages only where it is not among them. Tight
// leaves the blocks before the messages as little as they can do with.
func (r *roleBuild) layoutIn(limits, target budget, tight bool) (layout, bool) {
	l, ok := r.layoutWith(limits, target, r.blocks(limits, tight, r.original != nil))
	if r.original == nil || ok && !r.shows(l, r.original) {
		return l, ok
	}
	without, fits := r.layoutWith(limits, target, r.blocks(limits, tight, false))
	if fits && r.shows(without, r.original) {
		return without, true
	}
	return l, ok
}

// layoutWith lays the messages out behind blocks: all of them if they fit into the target. Else the oldest of those
// that were seen before are given up, then the newest of the new ones wait. The first new message is always shown, if
// need be cut.
func (r *roleBuild) layoutWith(limits, target budget, blocks []block) (l layout, ok bool) {
	over := func() string { return target.exceeded(r.estimate(l)) }
	l = layout{blocks: blocks, fresh: len(r.fresh), optional: len(r.optional)}
	if l.limit = over(); l.limit == "" {
		return l, true
	}
	given := sort.Search(len(r.optional)+1, func(given int) bool {
		l.optional = len(r.optional) - given
		return over() == ""
	})
	if given <= len(r.optional) {
		l.optional = len(r.optional) - given
		return l, true
	}
	l.optional = 0
	if len(r.fresh) == 0 {
		return l, limits.exceeded(r.estimate(l)) == ""
	}
	fit := sort.Search(len(r.fresh)-1, func(fit int) bool {
		l.fresh = fit + 1
		return over() != ""
	})
	if fit > 0 {
		l.fresh = fit
		return l, true
	}
	return r.layoutFirst(limits, target, l)
}

// layoutFirst shows the first new message, and of the others none but the newest of the user.
func (r *roleBuild) layoutFirst(limits, target budget, l layout) (layout, bool) {
	l.fresh = 1
	if len(r.fresh) == 2 && r.fresh[1] == r.newest {
		l.fresh = 2
	}
	if limits.exceeded(r.estimate(l)) == "" {
		return l, true
	}
	first := r.fresh[0]
	if first == r.newest {
		return l, false
	}
	for _, room := range []budget{target, limits} {
		fits := func(body string) bool {
			l.cut = body
			return room.exceeded(r.estimate(l)) == ""
		}
		if body, ok := cutTo(first.body, room, fits); ok {
			l.cut = body
			return l, true
		}
	}
	return l, false
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

// blockRoom is what a block may take at most. Tight is what the newest message of the user leaves.
func (r *roleBuild) blockRoom(limits budget, tight bool) budget {
	share := func(limit, needed int) int {
		if limit == 0 {
			return 0
		}
		return max(int(math.Ceil(float64(limit-needed)/blockShare)), 1)
	}
	var need continuo.Size
	if tight && r.newest != nil {
		need = r.sizeOf(r.newest).Add(leastText(limits))
	}
	return budget{Limits{Chars: share(limits.Chars, need.Chars), Tokens: share(limits.Tokens, need.Tokens)}}
}

// leastText is what a role's text is given besides the newest message of the user: for the original request and notes
// or a summary, cut, the first new message, cut, and what is said of others.
func leastText(limits budget) continuo.Size {
	return continuo.Size{Chars: min(800, limits.Chars/blockShare), Tokens: min(300, limits.Tokens/blockShare)}
}

// checkRoleFits is CheckFits for a view of a role.
func (b *build) checkRoleFits(content continuo.Content) error {
	u := &unit{entries: []*continuo.Entry{{Role: continuo.User, Content: content}}}
	t := newTalk(u, b.view.Role)
	if t == nil {
		return nil
	}
	r := &roleBuild{build: b, role: b.view.Role}
	limits := b.limits()
	limits.Messages = 0
	if limits.exceeded(r.sizeOf(t).Add(leastText(limits))) != "" {
		return b.overflow(limits, u.at(b.shaper, whole).size, nil)
	}
	return nil
}
