package window

import (
	"slices"
	"sort"

	continuo "github.com/continuo-log/continuo"
)

// place decides where the window stands: where it stood, if that fits, else where a move puts it.
func (b *build) place() error {
	if b.previous != nil {
		w := *b.previous
		if b.summaryAt(w.Summary) == nil {
			w.Summary = 0 // it was redacted since
		}
		if b.allowed(w, b.limits()) {
			b.window = w
			return nil
		}
		return b.move(b.previous.Epoch + 1)
	}
	b.window = continuo.Window{Epoch: 1, Start: 1, Markers: true}
	if b.reachedTop && b.allowed(b.window, b.limits()) {
		return nil
	}
	return b.move(1)
}

// piece is one unit of a layout at its level, or, without a unit, a summary or a marker.
type piece struct {
	unit     *unit
	summary  *continuo.Entry
	level    level
	messages []continuo.Message
}

// layout lists what a window shows, in order. It reports false when a pin cannot be found.
func (b *build) layout(w continuo.Window) (pieces []piece, ok bool) {
	shown := int64(0) // the last seq that is shown or stands before a marked gap
	gaps := gaps{build: b, markers: w.Markers, summary: b.summaryAt(w.Summary)}
	add := func(u *unit, from int64) {
		if from > shown+1 {
			pieces = append(pieces, gaps.between(shown+1, from-1)...)
		}
		if u != nil {
			l := levelIn(w, u)
			pieces = append(pieces, piece{unit: u, level: l, messages: u.at(b.shaper, l).messages})
			shown = u.last()
		}
	}
	for _, seq := range w.Pins {
		pin := b.pinned[seq]
		if pin == nil {
			return nil, false
		}
		if pin == b.opener {
			shown = pin.first() - 1 // what stands before it is never shown, so nothing is left out
		}
		add(pin, pin.first())
	}
	from := w.Start
	for _, u := range b.units {
		if u.first() < w.Start || slices.Contains(w.Pins, u.first()) {
			continue
		}
		add(u, from)
		from = shown + 1 // no gaps from here on
	}
	return pieces, true
}

func levelIn(w continuo.Window, u *unit) level {
	switch {
	case u.first() < w.LineBefore:
		return line
	case u.first() < w.PreviewBefore:
		return preview
	default:
		return whole
	}
}

func (b *build) marker() continuo.Message {
	message := continuo.Message{Role: continuo.User, Content: continuo.Text(b.view.Marker)}
	message.Size = b.shaper.size(&message, false)
	return message
}

// allowed reports whether a window shows the newest user message and keeps to the limits.
func (b *build) allowed(w continuo.Window, limits budget) bool {
	pieces, ok := b.layout(w)
	if !ok {
		return false
	}
	var size continuo.Size
	history, sawUser := 0, b.newestUser == nil
	for _, p := range pieces {
		sawUser = sawUser || p.unit == b.newestUser
		for _, message := range p.messages {
			size = size.Add(message.Size)
			if p.unit != nil && b.isHistory(p.unit) {
				history++
			}
		}
	}
	return sawUser && limits.exceeded(size) == "" && (b.view.History == 0 || history <= b.view.History)
}

// isHistory reports whether a unit stands before the cycle, or the cycle is over.
func (b *build) isHistory(u *unit) bool {
	if b.newestUser == nil {
		return true
	}
	newest := b.units[len(b.units)-1]
	return u.first() < b.newestUser.first() || !newest.unfinished() && newest != b.newestUser
}

// required is what a request cannot do without.
type required struct {
	from      int   // index of the first unit that is not cut down any further than level
	openGroup *unit // nil when the newest unit is no group
	level     level // of the open group
	size      continuo.Size
}

// require finds what the request must hold and cuts the open group down as far as the limits make it.
func (b *build) require(limits budget) (required, error) {
	need := required{from: len(b.units)}
	if b.view.History > 0 && b.openCycle() != 0 {
		return b.requireCycle(limits)
	}
	var user continuo.Size
	if b.newestUser != nil {
		user = b.newestUser.at(b.shaper, whole).size
	}
	need.size = user
	if newest := b.units[len(b.units)-1]; newest.group {
		need.openGroup, need.from = newest, len(b.units)-1
		for need.level = whole; need.level < line && limits.exceeded(user.Add(newest.at(b.shaper, need.level).size)) != ""; {
			need.level++
		}
		need.size = user.Add(newest.at(b.shaper, need.level).size)
	}
	if limits.exceeded(need.size) != "" {
		return need, b.overflow(limits, user, need.openGroup)
	}
	return need, nil
}

// requireCycle requires the open cycle, whole.
func (b *build) requireCycle(limits budget) (required, error) {
	need := required{from: slices.Index(b.units, b.newestUser)}
	user := b.newestUser.at(b.shaper, whole).size
	if need.from < 0 {
		return need, b.overflow(limits, user, b.units[len(b.units)-1])
	}
	for _, u := range b.units[need.from:] {
		need.size = need.size.Add(u.at(b.shaper, whole).size)
	}
	if limits.exceeded(need.size) != "" {
		return need, b.overflow(limits, user, b.units[len(b.units)-1])
	}
	return need, nil
}

func (b *build) overflow(limits budget, user continuo.Size, openGroup *unit) error {
	err := &continuo.OverflowError{
		View: b.view.Name, Limits: continuo.Size{Messages: limits.Messages, Chars: limits.Chars, Tokens: limits.Tokens},
		Prompt: b.in.Prompt, NewestUser: user,
	}
	if openGroup != nil {
		err.OpenGroup = openGroup.at(b.shaper, line).size
	}
	return err
}

// move puts the window where it leaves room for many turns.
func (b *build) move(epoch int64) error {
	limits := b.limits()
	if len(b.units) == 0 {
		b.window = continuo.Window{Epoch: epoch, Start: b.in.At + 1}
		return nil
	}
	// A message that was let in is not refused later because an estimate turned out too low.
	need, err := b.require(b.limitsBy(1))
	if err != nil {
		return err
	}
	opener := b.openerWithin(limits, need)
	for _, filling := range b.fillings() {
		w, target, filled := b.fill(limits, need, opener, filling)
		w.Epoch = epoch
		if pieces, _ := b.layout(w); w.Summary != 0 && shownSummary(pieces) == nil {
			continue // nothing is left out that it covers
		}
		if filling.markers && w.Start > b.in.At && b.newestUser != b.units[len(b.units)-1] {
			continue // a marker is worth less than the newest message
		}
		b.cutDown(&w, target, need)
		if b.allowed(w, limits) {
			if w.Limit = filled; filled == "" {
				w.Limit = b.bindingLimit(w, target)
			}
			b.window, b.moved = w, true
			return nil
		}
	}
	// What is required was measured above; only an opener can still be in the way.
	w, target, filled := b.fill(limits, need, nil, filling{})
	w.Epoch, w.Limit = epoch, filled
	b.cutDown(&w, target, need)
	b.window, b.moved = w, true
	return nil
}

// openerWithin returns the opener if it leaves at least half of the limits to the rest.
func (b *build) openerWithin(limits budget, need required) *unit {
	opener := b.opener
	if opener == nil || opener == b.newestUser || opener == need.openGroup {
		return nil
	}
	size := opener.at(b.shaper, line).size
	double := size.Add(size)
	if limits.exceeded(double) != "" || limits.exceeded(size.Add(need.size)) != "" {
		return nil
	}
	return opener
}

// fill finds how far back the window can reach with every tool output cut down, and up to which limits
// it may be filled. It names the limit that ended it, "" when it reached the top.
func (b *build) fill(limits budget, need required, opener *unit, put filling) (w continuo.Window, target budget, ended string) {
	gaps := 1
	if put.summary != nil {
		gaps = 0 // it may stand for all that is left out
	}
	for ; gaps <= 2; gaps++ { // a second gap only where the newest user message is pinned
		var fixed continuo.Size
		if opener != nil {
			fixed = opener.at(b.shaper, line).size
		}
		if put.summary != nil {
			fixed = fixed.Add(b.summaryMessage(put.summary).Size)
		}
		for range gaps {
			if put.markers && b.view.Marker != "" {
				fixed = fixed.Add(b.marker().Size)
			}
		}
		target = limits.lowered(b.view.LowWater, fixed, fixed.Add(need.size))
		start, limit := b.reach(target, need, opener, fixed.Add(need.size))
		w, ended = b.windowFrom(start, opener), limit
		w.Markers = put.markers
		if put.summary != nil {
			w.Summary = put.summary.Seq
			if b.markersIn(w) <= gaps {
				break
			}
			continue
		}
		if b.newestUser == nil || !slices.Contains(w.Pins, b.newestUser.first()) {
			break
		}
	}
	return w, target, ended
}

// windowFrom returns the window that begins with a unit and pins what must be shown from before it.
func (b *build) windowFrom(start int, opener *unit) continuo.Window {
	w := continuo.Window{Start: b.in.At + 1}
	switch {
	case start == 0 && b.reachedTop:
		w.Start = 1
	case start < len(b.units):
		w.Start = b.units[start].first()
	}
	for _, pin := range []*unit{opener, b.newestUser} {
		if pin != nil && pin.first() < w.Start {
			w.Pins = append(w.Pins, pin.first())
		}
	}
	slices.Sort(w.Pins)
	return w
}

// reach returns the index of the oldest unit that fits when units are added to what is required, newest
// first.
func (b *build) reach(target budget, need required, opener *unit, total continuo.Size) (start int, ended string) {
	history := 0
	if b.newestUser != nil && b.isHistory(b.newestUser) {
		history = 1 // it is shown wherever it stands
	}
	for start = len(b.units); start > 0; start-- {
		u := b.units[start-1]
		size := u.at(b.shaper, line).size
		if start-1 >= need.from || u == b.newestUser || u == opener {
			size = continuo.Size{} // counted already
		}
		if ended := target.exceeded(total.Add(size)); ended != "" {
			return start, ended
		}
		if b.view.History > 0 && b.isHistory(u) && u != b.newestUser {
			history += len(u.at(b.shaper, line).messages)
			if history > b.view.History {
				return start, limitMessages
			}
		}
		total = total.Add(size)
	}
	return 0, ""
}

// cutDown makes as few tool outputs previews as the target asks for, oldest first, and if that is not
// enough, as few as it takes one line. What is required stays as it is.
func (b *build) cutDown(w *continuo.Window, target budget, need required) {
	if need.level >= preview {
		w.PreviewBefore = b.in.At + 1
	}
	if need.level == line {
		w.LineBefore = b.in.At + 1
		return
	}
	if w.PreviewBefore == 0 && b.shortest(w, &w.PreviewBefore, target, need) {
		return
	}
	b.shortest(w, &w.LineBefore, target, need)
}

// shortest sets a threshold as low as the target allows, or to its highest, and reports whether the
// target is kept.
func (b *build) shortest(w *continuo.Window, threshold *int64, target budget, need required) bool {
	first := sort.Search(len(b.units), func(i int) bool { return b.units[i].first() >= w.Start })
	places := []int64{0}
	for _, u := range b.units[first:need.from] {
		if u.group {
			places = append(places, u.last()+1)
		}
	}
	at := sort.Search(len(places), func(i int) bool {
		*threshold = places[i]
		return b.allowed(*w, target)
	})
	*threshold = places[min(at, len(places)-1)]
	return at < len(places)
}

// bindingLimit names the limit for which outputs were cut down.
func (b *build) bindingLimit(w continuo.Window, target budget) string {
	w.PreviewBefore, w.LineBefore = 0, 0
	var size continuo.Size
	pieces, _ := b.layout(w)
	for _, p := range pieces {
		for _, message := range p.messages {
			size = size.Add(message.Size)
		}
	}
	return target.exceeded(size)
}

// openCycle returns the seq of the user message whose cycle is not over, 0 when there is none.
func (b *build) openCycle() int64 {
	if b.newestUser == nil || len(b.units) == 0 {
		return 0
	}
	newest := b.units[len(b.units)-1]
	if !newest.unfinished() || newest.first() < b.newestUser.first() {
		return 0
	}
	return b.newestUser.first()
}
