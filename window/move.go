package window

import (
	"slices"
	"sort"

	continuo "github.com/continuo-log/continuo"
)

// move sets the window so that it leaves room for many turns. The first window of a view fills to its limits.
func (b *build) move(epoch int64, need required) {
	if len(b.units) == 0 {
		b.window = continuo.Window{Epoch: epoch, Start: b.in.At + 1}
		return
	}
	b.moved = true
	b.candidates = b.needless(need)
	for _, put := range b.fillings(need) {
		b.giveUp(givenUp(b.candidates, 0))
		w, target, filled := b.fill(need, put)
		w.Epoch, w.Growth, w.Mark = epoch, b.growth, b.chosen
		if pieces, _ := b.layout(w); w.Summary != 0 && shownSummary(pieces) == nil {
			continue // it covers nothing that is left out
		}
		if (put.markers || put.opener != nil) && w.Start > b.in.At && b.newestUser != b.units[len(b.units)-1] {
			continue // a marker and the opener are worth less than the newest message
		}
		b.cutDown(&w, target, need)
		if b.window = w; b.allowed(w, b.bounds) {
			b.setLimits(filled, target, need)
			return
		}
		b.setLimits(filled, target, need) // of the last filling, which holds only what is required
	}
}

// setLimits records the limits that determined the window's start and how far outputs are cut. Filled is the one
// that ended the filling; "" for none.
func (b *build) setLimits(filled string, target Limits, need required) {
	w := &b.window
	w.Limit = filled
	if filled == "" && w.Start > 1 && b.previous != nil {
		w.Limit = b.previous.Limit // an earlier move left out what is before the start
	}
	if w.PreviewBefore == 0 && w.LineBefore == 0 {
		return
	}
	if w.CutLimit = b.cutLimit(*w, target); need.level > Whole {
		w.CutLimit = LimitTokens // only the model's window cuts the open group
	}
}

// filling is what a move may put before the required units and into the gaps.
type filling struct {
	opener  *Unit           // nil for none
	summary *continuo.Entry // nil for none
	markers bool
	leadIn  bool // room is left for the lead-in
}

// fillings lists the fillings that a move tries, the best first. A gap without a marker is worse than a
// window without the opener.
func (b *build) fillings(need required) (fillings []filling) {
	openers := []*Unit{nil}
	if opener := b.fittingOpener(need); opener != nil {
		openers = []*Unit{opener, nil}
	}
	for _, opener := range openers {
		if best := b.bestSummary(); best != nil {
			fillings = append(fillings, filling{opener: opener, summary: best, markers: true})
		}
		fillings = append(fillings, filling{opener: opener, markers: true})
	}
	for _, opener := range openers {
		fillings = append(fillings, filling{opener: opener})
		if b.in.LeadIn != "" {
			fillings = append(fillings, filling{opener: opener, leadIn: true})
		}
	}
	return fillings
}

// fittingOpener returns the opener if it fits beside the required units.
func (b *build) fittingOpener(need required) *Unit {
	opener := b.opener
	if opener == nil || opener == b.newestUser || opener == need.openGroup {
		return nil
	}
	if b.bounds.Exceeded(b.Size(opener, Line).Add(need.size)) != "" {
		return nil
	}
	return opener
}

// fill finds how far back the window can reach, with every tool output cut down unless the view wants whole ones, and up
// to which limits it may be filled. It names the limit that stopped it, "" when it reached the beginning of the log.
func (b *build) fill(need required, put filling) (w continuo.Window, target Limits, ended string) {
	gaps := 1
	if put.summary != nil {
		gaps = 0 // the summary may cover all that is left out
	}
	for ; gaps <= 2; gaps++ { // a second gap only where the newest user message is pinned
		fixed := b.fixedSize(put, gaps)
		target = b.target(fixed, need, put.opener)
		start, limit := b.reach(target, need, put.opener, fixed.Add(need.size))
		w, ended = b.windowFrom(start, put.opener), limit
		w.Markers = put.markers
		if put.summary != nil {
			w.Summary = put.summary.Seq
			if b.markersIn(w) <= gaps {
				break
			}
			continue
		}
		if b.newestUser == nil || !slices.Contains(w.Pins, b.newestUser.First()) {
			break
		}
	}
	return w, target, ended
}

// fixedSize is the size of a filling, with so many markers, besides the range of the log.
func (b *build) fixedSize(put filling, markers int) (fixed continuo.Size) {
	first := put.opener
	if first != nil {
		fixed = b.Size(first, Line)
	}
	if put.summary != nil {
		fixed = fixed.Add(b.sizeOfSummary(put.summary))
	}
	for range markers {
		if put.markers && b.view.Marker != "" {
			fixed = fixed.Add(b.sizeOfMarker())
		}
	}
	begins := first != nil && first.Entries[0].Role == continuo.Assistant
	if b.in.LeadIn != "" && (begins || put.leadIn) {
		fixed = fixed.Add(b.sizeOfLeadIn())
	}
	return fixed
}

// target is how far a move fills the window: to a low-water mark, which leaves room for the next turns. A first window,
// which no request has shown before, fills to the limits.
func (b *build) target(fixed continuo.Size, need required, opener *Unit) Limits {
	share := 1.0
	if b.previous != nil {
		share = b.mark(need, fixed, opener)
	}
	return b.lowered(share, fixed, need)
}

// lowered is a share of what the fixed part of a filling and what exceeds the limits by itself leave of them.
func (b *build) lowered(share float64, fixed continuo.Size, need required) Limits {
	over := b.Limits().over(need.size)
	return b.bounds.Lowered(share, fixed.Add(over), fixed.Add(need.size))
}

// windowFrom returns the window that begins with a unit and pins what must be shown from before the unit.
func (b *build) windowFrom(start int, opener *Unit) continuo.Window {
	w := continuo.Window{Start: b.in.At + 1}
	switch {
	case start == 0 && b.reachedTop:
		w.Start = 1
	case start < len(b.units):
		w.Start = b.units[start].First()
	}
	for _, pin := range []*Unit{opener, b.newestUser} {
		if pin != nil && pin.First() < w.Start {
			w.Pins = append(w.Pins, pin.First())
		}
	}
	slices.Sort(w.Pins)
	return w
}

// reach returns the index of the oldest unit that fits when units are added to the required ones, newest
// first, each in the form that View.Outputs says.
func (b *build) reach(target Limits, need required, opener *Unit, total continuo.Size) (start int, ended string) {
	history := 0
	if b.newestUser != nil && b.isHistory(b.newestUser) {
		history = 1 // it is shown at any position
	}
	sum := lineSum{shaper: b.shaper, known: total}
	add := sum.add
	if b.view.Outputs == WholeOutputs { // required units at a lower level have all others at that level
		add = func(u *Unit) { sum.known = sum.known.Add(b.Size(u, need.level)) }
	}
	for start = len(b.units); start > 0; start-- {
		u := b.units[start-1]
		if start-1 < need.from && u != b.newestUser && u != opener { // else already counted
			add(u)
		}
		if ended := sum.exceeds(target); ended != "" {
			return start, ended
		}
		if b.view.History > 0 && b.isHistory(u) && u != b.newestUser {
			history += len(u.Entries) + len(u.missing)
			if history > b.view.History {
				return start, LimitMessages
			}
		}
	}
	return 0, ""
}

// cutDown gives up as little as the target requires: first what is needed least; if that is not enough, it turns tool
// outputs into previews, oldest first, and then as few as possible into one line. Required units stay as they are.
func (b *build) cutDown(w *continuo.Window, target Limits, need required) {
	n := len(b.candidates)
	if need.level == Whole {
		n = sort.Search(n, func(n int) bool {
			b.giveUp(givenUp(b.candidates[:n], w.Start))
			return b.allowed(*w, target)
		})
	}
	w.GivenUp = givenUp(b.candidates[:n], w.Start)
	b.giveUp(w.GivenUp)
	if need.level >= Preview {
		w.PreviewBefore = b.in.At + 1
	}
	if need.level == Line {
		w.LineBefore = b.in.At + 1
		return
	}
	if w.PreviewBefore == 0 && b.shortest(w, &w.PreviewBefore, target, need) {
		return
	}
	b.shortest(w, &w.LineBefore, target, need)
}

// shortest sets a threshold as low as the target allows, or to its maximum, and reports whether the target is
// met.
func (b *build) shortest(w *continuo.Window, threshold *int64, target Limits, need required) bool {
	first := sort.Search(len(b.units), func(i int) bool { return b.units[i].First() >= w.Start })
	starts := []int64{0}
	if opener := b.opener; opener != nil && opener.Group && slices.Contains(w.Pins, opener.First()) {
		starts = append(starts, opener.Last()+1)
	}
	for _, u := range b.units[min(first, need.from):need.from] {
		if u.Group {
			starts = append(starts, u.Last()+1)
		}
	}
	pieces, ok := b.layout(*w)
	allowed := func(i int) bool {
		*threshold = starts[i]
		return ok && b.fits(pieces, *w, target)
	}
	if allowed(0) {
		return true // without a shorter form of any output
	}
	at := sort.Search(len(starts), allowed)
	*threshold = starts[min(at, len(starts)-1)]
	return at < len(starts)
}

// cutLimit names the limit because of which outputs are cut down. It is never the one on messages, whose number
// cutting does not lower.
func (b *build) cutLimit(w continuo.Window, target Limits) string {
	target.Messages = 0
	w.PreviewBefore, w.LineBefore = 0, 0
	var size continuo.Size
	pieces, _ := b.layout(w)
	for _, p := range pieces {
		size = size.Add(b.size(p, w))
	}
	return target.Exceeded(size)
}
