package window

import (
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// position decides the window's position: unchanged if that fits, otherwise as a move sets it.
func (b *build) position() error {
	if b.previous != nil {
		if stands, err := b.stands(); stands || err != nil {
			return err
		}
	}
	taken, err := b.takenProfile()
	if err != nil {
		return err
	}
	need, err := b.requireBeside(taken)
	if err != nil {
		return err
	}
	b.bounds = b.Around(need.size)
	b.window = continuo.Window{Epoch: 1, Start: 1, Markers: true}
	switch {
	case b.previous != nil:
		b.move(b.previous.Epoch+1, need)
	case !b.reachedTop || !b.allowed(b.window, b.bounds):
		b.move(1, need)
	}
	b.window.Profile = b.profile.ref()
	return nil
}

// stands keeps the position and the profile of the last request, and reports whether the request fits with them.
func (b *build) stands() (bool, error) {
	kept, err := b.keptProfile()
	if err != nil {
		return false, err
	}
	need, err := b.requireBeside(kept)
	if err != nil {
		return false, err
	}
	b.bounds = b.Around(need.size)
	w := *b.previous
	b.giveUp(w.GivenUp)
	if b.summaryAt(w.Summary) == nil {
		w.Summary = 0 // the summary was redacted since
	}
	if kept.plan != nil { // else the view shows none now, and one that it has shown before stays
		w.Profile = kept.ref()
	}
	b.window = w
	return b.allowed(w, b.bounds), nil
}

// piece is one unit of a layout or, without a unit, a summary, a marker or the lead-in.
type piece struct {
	unit    *Unit
	summary *continuo.Entry
	leadIn  bool
}

// layout lists what a window shows, in order, up to the next layout. It returns false when a pin cannot be found.
func (b *build) layout(w continuo.Window) (pieces []piece, ok bool) {
	pieces = b.pieces[:0]
	if cap(pieces) == 0 {
		pieces = make([]piece, 0, len(b.units)+4)
	}
	shown := int64(0) // the last seq that is shown or is before a marked gap
	gaps := gaps{build: b, markers: w.Markers, summary: b.summaryAt(w.Summary)}
	add := func(u *Unit, from int64) {
		if from > shown+1 {
			pieces = gaps.between(pieces, shown+1, from-1)
		}
		if u != nil {
			pieces = append(pieces, piece{unit: u})
			shown = u.Last()
		}
	}
	for _, seq := range w.Pins {
		pin := b.pinned.at(seq)
		if pin == nil {
			return nil, false
		}
		if pin == b.opener {
			shown = pin.First() - 1 // entries before it are never shown, so nothing is left out
		}
		add(pin, pin.First())
	}
	from := w.Start
	for _, u := range b.units {
		if u.First() < w.Start || slices.Contains(w.Pins, u.First()) {
			continue
		}
		add(u, from)
		from = shown + 1 // no gaps from here on
	}
	b.pieces = b.withLeadIn(pieces)
	return b.pieces, true
}

// withLeadIn puts the user message in front of pieces that begin with the assistant, if the renderer needs
// one.
func (b *build) withLeadIn(pieces []piece) []piece {
	if b.in.LeadIn == "" {
		return pieces
	}
	first := slices.IndexFunc(pieces, func(p piece) bool { return p.role() != continuo.System })
	if first < 0 || pieces[first].role() != continuo.Assistant {
		return pieces
	}
	return slices.Insert(pieces, first, piece{leadIn: true})
}

// role is the role of the first message.
func (p piece) role() continuo.Role {
	if p.unit == nil || p.unit.Entries[0].IsCue() || p.unit.Entries[0].HoldsRecall() {
		return continuo.User
	}
	return p.unit.Entries[0].Role
}

// size is the size of a piece of a window's layout.
func (b *build) size(p piece, w continuo.Window) continuo.Size {
	switch {
	case p.unit != nil:
		return b.Size(p.unit, levelIn(w, p.unit))
	case p.summary != nil:
		return b.sizeOfSummary(p.summary)
	case p.leadIn:
		return b.sizeOfLeadIn()
	}
	return b.sizeOfMarker()
}

func (b *build) leadIn() Message { return b.synthetic(b.in.LeadIn) }

func (b *build) sizeOfLeadIn() continuo.Size {
	if b.leadInSize.Messages == 0 {
		b.leadInSize = b.leadIn().Size
	}
	return b.leadInSize
}

func (b *build) sizeOfMarker() continuo.Size {
	if b.markerSize.Messages == 0 {
		b.markerSize = b.marker().Size
	}
	return b.markerSize
}

func levelIn(w continuo.Window, u *Unit) Level {
	switch {
	case u.First() < w.LineBefore:
		return Line
	case u.First() < w.PreviewBefore:
		return Preview
	default:
		return Whole
	}
}

func (b *build) marker() Message { return b.synthetic(b.view.Marker) }

// synthetic is a user message that is not an entry of the log.
func (b *build) synthetic(text string) Message {
	message := Message{Role: continuo.User, Content: continuo.Text(text)}
	message.Size = b.shaper.size(&message, false)
	return message
}

// allowed reports whether a window shows the newest user message and is within the limits.
func (b *build) allowed(w continuo.Window, limits Limits) bool {
	pieces, ok := b.layout(w)
	return ok && b.fits(pieces, w, limits)
}

// fits is allowed for the layout of a window, or of one that differs in how far outputs are cut.
func (b *build) fits(pieces []piece, w continuo.Window, limits Limits) bool {
	var size continuo.Size
	history, sawUser := 0, b.newestUser == nil
	for _, p := range pieces {
		sawUser = sawUser || p.unit == b.newestUser
		one := b.size(p, w)
		size = size.Add(one)
		if b.view.History > 0 && p.unit != nil && b.isHistory(p.unit) {
			history += one.Messages
		}
	}
	return sawUser && limits.Exceeded(size) == "" && (b.view.History == 0 || history <= b.view.History)
}

// isHistory reports whether a unit is before the cycle, or the cycle is over.
func (b *build) isHistory(u *Unit) bool {
	if b.newestUser == nil {
		return true
	}
	newest := b.units[len(b.units)-1]
	return u.First() < b.newestUser.First() || !newest.Unfinished() && newest != b.newestUser
}

// openCycle returns the seq of the user message that began the open cycle, 0 when there is none.
func (b *build) openCycle() int64 {
	if b.newestUser == nil || len(b.units) == 0 {
		return 0
	}
	newest := b.units[len(b.units)-1]
	if !newest.Unfinished() || newest.First() < b.newestUser.First() {
		return 0
	}
	return b.newestUser.First()
}
