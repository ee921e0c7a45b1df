package window

import (
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// required is what a request must hold.
type required struct {
	from      int   // index of the first unit that is not cut down further than level
	openGroup *Unit // nil when the newest unit is no group
	level     Level // of the open group
	size      continuo.Size
}

// require finds what the request must hold: the newest user message whole, and the open group, which is cut
// down only as far as the model's window requires. It fails if they exceed that window.
func (b *build) require() (required, error) {
	need := required{from: len(b.units)}
	if len(b.units) == 0 {
		return need, nil
	}
	if b.view.History > 0 && b.openCycle() != 0 {
		return b.requireCycle()
	}
	user := b.newestUserSize()
	need.size = user
	if newest := b.units[len(b.units)-1]; newest.Group {
		need.openGroup, need.from = newest, len(b.units)-1
		for need.level < Line && b.OverWindow(user.Add(b.Size(newest, need.level))) {
			need.level++
		}
		need.size = user.Add(b.Size(newest, need.level))
	}
	if b.OverWindow(need.size) {
		return need, b.Overflow(b.Limits(), b.parts(user, need.openGroup))
	}
	return need, nil
}

// parts lists what a request must hold: a user message, and a group at its shortest; nil for none.
func (b *build) parts(user continuo.Size, open *Unit) continuo.OverflowError {
	parts := continuo.OverflowError{NewestUser: user}
	if open != nil {
		parts.OpenGroup = b.Size(open, Line)
	}
	return parts
}

// newestUserSize is the size of the newest user message, 0 where the log has none.
func (b *build) newestUserSize() continuo.Size {
	if b.newestUser == nil {
		return continuo.Size{}
	}
	return b.Size(b.newestUser, Whole)
}

// requireCycle requires the open cycle, whole.
func (b *build) requireCycle() (required, error) {
	need := required{from: slices.Index(b.units, b.newestUser)}
	if need.from < 0 { // the scan stopped within the cycle, which exceeds the model's window
		need.from = 0
		need.size = b.newestUserSize()
	}
	for _, u := range b.units[need.from:] {
		need.size = need.size.Add(b.Size(u, Whole))
	}
	if b.OverWindow(need.size) {
		user := b.newestUserSize()
		return need, b.Overflow(b.Limits(), continuo.OverflowError{NewestUser: user, OpenCycle: need.size.Less(user)})
	}
	return need, nil
}
