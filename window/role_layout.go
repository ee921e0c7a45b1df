package window

import (
	"fmt"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

// layout says how much of the talk a role's text has.
type layout struct {
	blocks []block
	// fresh is how many of the new messages are shown, the oldest first; optional how many of the others, the newest.
	fresh, optional int
	// cut is what is shown of the first new message where it does not fit; "" where it is whole.
	cut string
	// limit is the one for which others are not shown; "" for none.
	limit string
}

// shows reports whether a layout has a message among those that it shows.
func (r *roleBuild) shows(l layout, t *talk) (shown bool) {
	r.walk(l, func(of *talk, _ string) { shown = shown || of == t })
	return shown
}

// estimate is the size of a layout's text, by the sizes of its parts.
func (r *roleBuild) estimate(l layout) continuo.Size {
	var size continuo.Size
	for _, b := range l.blocks {
		size = size.Add(b.size)
	}
	l.blocks = nil
	r.walk(l, func(t *talk, text string) {
		switch {
		case t == nil || text != "":
			size = size.Add(r.sizeOfText(text))
		default:
			size = size.Add(r.sizeOf(t))
		}
	})
	return size
}

// separator is what stands between two parts of a text.
const separator = "\n\n"

// sizeOfText measures a part of a text with the separator behind it.
func (r *roleBuild) sizeOfText(text string) continuo.Size {
	return continuo.Size{Chars: utf8.RuneCountInString(text) + len(separator), Tokens: r.shaper.counter.Count(text) + 1}
}

// sizeOf measures a message, once. What was counted at append is used again where nothing was changed.
func (r *roleBuild) sizeOf(t *talk) continuo.Size {
	if t.size != (continuo.Size{}) {
		return t.size
	}
	text := t.text(t.body)
	if e := t.unit.entries[0]; e.Tokenizer == r.shaper.counter.Name() && e.Content.IsText() && len(text) == len(t.label)+1+len(e.Content.String()) {
		t.size = continuo.Size{Chars: utf8.RuneCountInString(text) + len(separator), Tokens: r.shaper.counter.Count(t.label) + 2 + e.Tokens}
	} else {
		t.size = r.sizeOfText(text)
	}
	return t.size
}

// walk visits the parts of a layout's text in order: messages, with the text of those that are cut, and, with a nil
// message, the text of what stands between them.
func (r *roleBuild) walk(l layout, visit func(t *talk, text string)) {
	for _, b := range l.blocks {
		visit(nil, b.text)
	}
	gap := r.leavesOutAbove()
	freshSeen, optionalSeen := 0, 0
	for _, t := range r.talk {
		shown := t.order == pinned
		switch t.order {
		case fresh:
			freshSeen++
			shown = freshSeen <= l.fresh
		case optional:
			optionalSeen++
			shown = optionalSeen > len(r.optional)-l.optional
		}
		switch {
		case shown && t.seq() < r.top: // found further up: the gap is behind it
			visit(t, "")
		case shown:
			if gap {
				visit(nil, earlierLeftOut)
			}
			gap = false
			if t.order == fresh && freshSeen == 1 && l.cut != "" {
				visit(t, t.text(l.cut))
			} else {
				visit(t, "")
			}
		case t.order == optional || t.order == aside && r.kind == RoleWindow:
			gap = gap || t != r.original && !r.covered(t.seq())
		}
	}
	if waiting := r.waiting(l); waiting > 0 {
		visit(nil, r.newerFollow(waiting))
		if r.newest != nil && r.newest.order == fresh && !r.isShown(l, r.newest) {
			visit(r.newest, "")
		}
	}
}

// isShown reports whether a new message is among those that a layout shows in their order.
func (r *roleBuild) isShown(l layout, t *talk) bool {
	return t.seq() <= r.end && (l.fresh == len(r.fresh) || t.seq() < r.fresh[l.fresh].seq())
}

// waiting counts the new messages that are left for the next turns; of what was not read each entry.
func (r *roleBuild) waiting(l layout) int {
	waiting := len(r.fresh) - l.fresh
	if r.held != nil {
		waiting++
	}
	if r.later > 0 {
		waiting += int(r.later - r.end)
	}
	return waiting
}

// leavesOutAbove reports whether messages stand before those that were read for which nothing else stands.
func (r *roleBuild) leavesOutAbove() bool {
	switch r.kind {
	case RoleFull, RoleWindow:
		return r.top > r.role.Since+1
	case RoleSummary:
		return r.top > r.summary.Summary.Through+1
	}
	return false
}

// earlierLeftOut stands in a gap.
const earlierLeftOut = moreBegin + " Earlier messages are left out."

// newerFollow stands behind the messages where others wait.
func (r *roleBuild) newerFollow(waiting int) string {
	switch {
	case r.later > 0:
		return moreBegin + " Many newer messages follow in your next turns."
	case waiting == 1:
		return moreBegin + " 1 newer message follows in your next turn."
	}
	return fmt.Sprintf("%s %d newer messages follow in your next turns.", moreBegin, waiting)
}
