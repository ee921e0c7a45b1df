package window

import (
	"math"

	continuo "github.com/continuo-log/continuo"
)

// rhythm is how a conversation grows from request to request: messages, characters and tokens.
type rhythm struct{ messages, chars, tokens float64 }

// rhythm returns how the conversation grew in the epoch that a move ends; not known where no request was recorded.
func (b *build) rhythm() (r rhythm, known bool) {
	var size continuo.Size
	requests := 0
	for _, u := range b.units {
		if b.epochFrom == 0 || u.First() < b.epochFrom {
			continue
		}
		size = size.Add(b.Size(u, Whole))
		if u.Entries[0].Role == continuo.Assistant {
			requests++
		}
	}
	if requests == 0 || size.Tokens == 0 {
		return r, false
	}
	n := float64(requests)
	return rhythm{float64(size.Messages) / n, float64(size.Chars) / n, float64(size.Tokens) / n}, true
}

// newestEpoch is how much the newest epoch counts in the average of epochs.
const newestEpoch = 0.25

// average is the rhythm with as many tokens as the average of all epochs, of which the earlier ones are known by a move
// before; 0 for none.
func (r rhythm) average(before int) rhythm {
	if before <= 0 {
		return r
	}
	by := newestEpoch + (1-newestEpoch)*float64(before)/r.tokens
	return rhythm{r.messages * by, r.chars * by, r.tokens * by}
}

// requests is how many requests a window has room for when so much of its limits is filled.
func (r rhythm) requests(limits Limits, filled continuo.Size) float64 {
	requests := math.Inf(1)
	bound := func(limit, filled int, growth float64) {
		if limit > 0 && growth > 0 {
			requests = min(requests, float64(limit-filled)/growth)
		}
	}
	bound(limits.Messages, filled.Messages, r.messages)
	bound(limits.Chars, filled.Chars, r.chars)
	bound(limits.Tokens, filled.Tokens, r.tokens)
	return max(requests, 1)
}

// The marks that a move compares are at most so far from the view's own, in steps.
const (
	marksBelow = 0.10
	marksAbove = 0.15
	markStep   = 0.05
)

// mark returns the share of the limits to which a move fills the window: the view's low-water mark or, in a view that is
// Priced, the one near it that is expected to cost the least.
//
// A move costs what its window costs more at the price of other input than at that of cached input, once, and less for
// each request the longer the window then stays. What remains is worth something in each request: so much that in a
// conversation that grows evenly, at the default prices, the view's own mark is the best. So the mean window is the one
// that the view states, and lower marks are chosen only where they cost less than they take away: before a long unit, or
// where the limit on messages leaves many tokens. Where a cache saves less, a move costs less, and windows are larger;
// where it saves more, they are not smaller.
func (b *build) mark(need required, fixed continuo.Size, opener *Unit) float64 {
	if !b.view.Priced || b.view.LowWater >= 1 {
		return b.view.LowWater
	}
	if recorded := b.in.Recorded; b.chosen == 0 && recorded != nil && recorded.Mark > 0 && recorded.Mark <= markUnit {
		b.chosen = recorded.Mark
	}
	if b.chosen == 0 { // one mark for all fillings that the move tries
		b.giveUp(continuo.GivenUp{}) // what is given up does not make windows smaller
		b.chosen = int(math.Round(b.cheapest(need, fixed, opener) * markUnit))
		b.giveUp(givenUp(b.candidates, 0))
	}
	return float64(b.chosen) / markUnit
}

// markUnit is the unit of recorded marks, a ten-thousandth of the limits.
const markUnit = 10_000

// cheapest is the mark near the view's that is expected to cost the least.
func (b *build) cheapest(need required, fixed continuo.Size, opener *Unit) float64 {
	own := b.view.LowWater
	grows, known := b.rhythm()
	if !known {
		return own
	}
	grows = grows.average(b.previous.Growth)
	b.growth = int(math.Round(grows.tokens))
	usual := float64(continuo.DefaultCachePrices.Saved())
	saved := min(float64(b.in.Prices.Saved()), usual)
	full := grows.requests(b.bounds, continuo.Size{}) * grows.tokens
	worth := 2 * usual * grows.tokens / (full * (1 - own) * (1 - own))
	best, least := own, math.Inf(1)
	for step := -math.Round(marksBelow / markStep); step <= math.Round(marksAbove/markStep); step++ {
		mark := own + step*markStep
		if mark < markStep || mark > 1-markStep {
			continue
		}
		filled := b.filled(b.lowered(mark, fixed, need), need, opener, fixed.Add(need.size))
		requests := grows.requests(b.bounds, filled)
		mean := float64(filled.Tokens) + grows.tokens*requests/2
		const last = 0.5 // of a request: what the one that moves the window again finds left, on average
		if cost := saved*float64(filled.Tokens)/(requests+last) - worth*mean; cost < least {
			best, least = mark, cost
		}
	}
	return best
}

// filled is the size of the newest whole units that fit into limits, with what a window must hold.
func (b *build) filled(target Limits, need required, opener *Unit, total continuo.Size) continuo.Size {
	for i := len(b.units) - 1; i >= 0; i-- {
		u := b.units[i]
		if i >= need.from || u == b.newestUser || u == opener {
			continue
		}
		more := total.Add(b.Size(u, Whole))
		if target.Exceeded(more) != "" {
			break
		}
		total = more
	}
	return total
}
