package window

import (
	"errors"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// Build decides what the view shows of a log. It fails with a *continuo.OverflowError when the newest user
// message and the open group do not fit into the model's window; a limit of the view that they exceed applies
// only to the other messages. The same input and log give an equal plan.
func (v View) Build(source Source, in Input) (*Plan, error) {
	if err := v.Check(); err != nil {
		return nil, err
	}
	source, in, err := Begin(source, in)
	if err != nil {
		return nil, fmt.Errorf("build view %s: %w", v.title(), err)
	}
	b := newBuild(expecting(source, v.Limits.Messages), v, in)
	if err := b.scan(); err != nil {
		return nil, fmt.Errorf("build view %s: %w", v.title(), err)
	}
	if err := b.findFixed(); err != nil {
		return nil, fmt.Errorf("build view %s: %w", v.title(), err)
	}
	if err := b.position(); err != nil {
		return nil, err
	}
	return b.plan(), nil
}

// build is the state of one Build.
type build struct {
	*Request
	source Source

	rowsRead   int64
	excluded   []Exclusion
	deleted    []int64       // seqs of entries that a scanned one deletes
	units      []*Unit       // the scanned units, oldest first
	reachedTop bool          // the scan saw the whole log
	needed     continuo.Size // the part of the scanned units that the request must hold
	previous   *continuo.Window
	epochFrom  int64 // the newest seq of the oldest scanned request of the previous window's epoch
	growth     int   // recorded by a move
	chosen     int   // the mark of a move of a view that is Priced; 0 before it is chosen

	candidates []candidate // of a move, what is needed least first

	newestUser *Unit // nil when the log has no user message
	opener     *Unit // nil when the view has none
	pinned     pins

	summaries []*continuo.Entry // that the view may show

	prompt  continuo.Size // without the profile
	profile profile       // that the request has

	bounds Limits // the limits of the request, at least the size of what it must hold
	window continuo.Window
	moved  bool
	pieces []piece // of the last layout; its memory is used again

	markerSize, leadInSize, summarySize continuo.Size   // of these messages; zero before they were measured
	measured                            *continuo.Entry // the summary that summarySize is for
}

// pins are units by the seqs of their first entries: a few.
type pins []*Unit

// at returns the unit that begins at a seq, nil for none.
func (p pins) at(seq int64) *Unit {
	for _, u := range p {
		if u.First() == seq {
			return u
		}
	}
	return nil
}

// add adds a unit, unless one that begins at its seq is there.
func (p *pins) add(u *Unit) {
	if p.at(u.First()) == nil {
		*p = append(*p, u)
	}
}

func newBuild(source Source, view View, in Input) *build {
	return &build{Request: NewRequest(view, view.Hash(), in), source: source, prompt: in.Prompt}
}

// scan reads units, newest first, until no window could hold more.
func (b *build) scan() error {
	assemble := Assembler{view: b.view, attempts: true}
	floor := lineSum{shaper: b.shaper} // size of the scanned units, everything cut down as far as possible
	history := 0                       // messages that View.History bounds
	b.reachedTop = true
	for entry, err := range b.source.Backward(b.in.At) {
		if err != nil {
			return err
		}
		b.rowsRead++
		w := b.Learn(entry)
		if b.previous == nil {
			b.previous = w
		}
		if w != nil && w.Epoch == b.previous.Epoch {
			b.epochFrom = entry.Seq
		}
		b.learnSummary(entry)
		u := assemble.Add(entry)
		if u == nil {
			continue
		}
		b.units = append(b.units, u)
		floor.add(u)
		if b.countsAsHistory(u) {
			history += len(u.Entries) + len(u.missing)
		}
		b.learnRequired(u)
		if b.scannedEnough(u, &floor, history) {
			b.reachedTop = u.First() == 1
			break
		}
	}
	b.excluded, b.deleted = assemble.Finish(), assemble.deleted
	slices.Reverse(b.units)
	return nil
}

// countsAsHistory reports whether a unit, read backward, is before the current cycle. Until the newest user
// message is found, a finished cycle counts as history and an open one does not.
func (b *build) countsAsHistory(u *Unit) bool {
	if b.newestUser != nil {
		return true
	}
	newest := b.units[0] // the scan appends, newest first
	return !newest.Unfinished() && !newest.IsUser()
}

// scannedEnough reports whether older units are irrelevant, because no window holds them.
func (b *build) scannedEnough(u *Unit, floor *lineSum, history int) bool {
	if b.view.History > 0 && history > b.view.History {
		return true
	}
	if b.previous != nil && u.First() <= b.previous.Start {
		return true
	}
	if b.view.History > 0 && b.newestUser == nil && b.units[0].Unfinished() && !b.OverWindow(floor.exact()) {
		return false // the open cycle is shown whole
	}
	return floor.exceeds(b.Around(b.needed)) != ""
}

// learnRequired adds a unit, read backward, to what the request must hold.
func (b *build) learnRequired(u *Unit) {
	newest := b.units[0] // the scan appends, newest first
	inCycle := b.view.History > 0 && b.newestUser == nil && newest.Unfinished()
	isUser := b.newestUser == nil && u.IsUser()
	if isUser {
		b.newestUser = u
	}
	if isUser || inCycle || u == newest && u.Group {
		b.needed = b.needed.Add(b.Size(u, Whole))
	}
}

// findFixed finds what may be shown from before the scanned range: the newest user message, the opener, and
// the pins of the last window.
func (b *build) findFixed() error {
	if b.newestUser == nil && !b.reachedTop {
		entry, err := b.source.LatestUser(b.in.At)
		if err != nil && !errors.Is(err, continuo.ErrNotFound) {
			return err
		}
		if err == nil && !slices.Contains(b.deleted, entry.Seq) {
			b.rowsRead++
			b.newestUser = &Unit{Entries: []*continuo.Entry{entry}}
		}
	}
	if b.newestUser != nil {
		b.pinned.add(b.newestUser)
	}
	if b.view.Opener != OpenerNone && len(b.units) > 0 {
		opener, err := b.unitFrom(1)
		if err != nil {
			return err
		}
		if opener != nil && (b.view.Opener == OpenerFirst || opener.Entries[0].Role == continuo.System) {
			b.opener = opener
			b.pinned.add(opener)
		}
	}
	if b.previous == nil {
		return nil
	}
	if err := b.findSummary(); err != nil {
		return err
	}
	for _, seq := range b.previous.Pins {
		if b.pinned.at(seq) != nil {
			continue
		}
		u, err := b.unitFrom(seq)
		if err != nil {
			return err
		}
		if u != nil && u.First() == seq {
			b.pinned.add(u)
		}
	}
	return nil
}

// maxOpenerRows bounds how many entries are searched for an opener.
const maxOpenerRows = 32

// unitFrom returns the first unit at or shortly after seq, nil when none is found within maxOpenerRows.
func (b *build) unitFrom(seq int64) (*Unit, error) {
	for _, u := range b.units {
		if u.First() == seq {
			return u, nil
		}
	}
	var entries []*continuo.Entry
	head := opening{view: &b.view}
	rows := 0
	for entry, err := range b.source.Forward(seq) {
		if err != nil {
			return nil, err
		}
		rows++
		b.rowsRead++
		if entry.Seq > b.in.At || head.ends(entry) {
			break
		}
		if exclude(&b.view, entry) == "" {
			entries = append(entries, entry)
		}
		if rows == maxOpenerRows {
			return nil, nil
		}
	}
	assemble := Assembler{view: b.view, attempts: true, deleted: b.deleted}
	var first *Unit
	for _, entry := range slices.Backward(entries) {
		if u := assemble.Add(entry); u != nil {
			first = u
		}
	}
	if first == nil {
		return nil, nil
	}
	return b.known(first), nil
}

// opening reads a log forward as long as entries may belong to its first unit.
type opening struct {
	view *View
	head *continuo.Entry // nil before one was found
}

// ends reports whether an entry is after the first unit, so that later entries cannot change the unit.
func (o *opening) ends(e *continuo.Entry) bool {
	switch {
	case e.Hidden || exclude(o.view, e) != "":
		return false
	case o.head == nil || IsFailedAttempt(o.head):
		o.head = e
		return false
	case o.head.HasCalls():
		return e.Role != continuo.Tool
	case o.head.Role == continuo.User || o.head.IsCue():
		return !IsFailedAttempt(e) && !isResume(e) && !repeats(e, o.head)
	}
	return true
}

// known returns the existing unit for the same entries: one entry has one unit. It returns nil for an entry
// that the scan left out.
func (b *build) known(u *Unit) *Unit {
	if slices.ContainsFunc(b.excluded, func(e Exclusion) bool { return e.Entry.Seq == u.First() }) {
		return nil
	}
	if pinned := b.pinned.at(u.First()); pinned != nil {
		return pinned
	}
	for _, scanned := range b.units {
		if scanned.First() == u.First() {
			return scanned
		}
	}
	return u
}
