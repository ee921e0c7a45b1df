package window

import (
	"cmp"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// Strategy says what a view shows instead of the entries before its window.
type Strategy string

// The strategies.
const (
	Truncate  Strategy = ""          // the marker
	Summarize Strategy = "summarize" // the summary that covers them, if the log has one, else the marker
)

// SummaryHeading is the first line of a summary.
const SummaryHeading = "[Summary of the earlier conversation]\n"

// IsSummary reports whether an entry is a summary that may be shown to every reader. A redacted one is not.
func IsSummary(e *continuo.Entry) bool {
	return e.PartType == continuo.PartSummary && e.Summary != nil && e.Summary.Role == "" && HoldsSummary(e)
}

// HoldsSummary reports whether an entry has a text that may replace the entries that its Summary names: a
// summary for every reader, or one for some readers.
func HoldsSummary(e *continuo.Entry) bool {
	s := e.Summary
	return s != nil && e.Role == continuo.System && e.Hidden && e.Redacted == nil &&
		s.From >= 1 && s.From <= s.Through && s.Through < e.Seq && strings.TrimSpace(e.Content.String()) != ""
}

// learnSummary keeps a summary that the scan found, if the view shows summaries.
func (b *build) learnSummary(e *continuo.Entry) {
	if b.view.Strategy == Summarize && IsSummary(e) {
		b.summaries = append(b.summaries, e)
	}
}

// findSummary reads the summary that the last window shows, if the scan did not reach it.
func (b *build) findSummary() error {
	if b.view.Strategy != Summarize || b.previous == nil || b.previous.Summary == 0 || b.summaryAt(b.previous.Summary) != nil {
		return nil
	}
	for entry, err := range b.source.Forward(b.previous.Summary) {
		if err != nil {
			return err
		}
		b.rowsRead++
		if entry.Seq == b.previous.Summary && entry.Seq <= b.in.At {
			b.learnSummary(entry)
		}
		break
	}
	return nil
}

// summaryAt returns the summary at a seq; nil for none.
func (b *build) summaryAt(seq int64) *continuo.Entry {
	for _, summary := range b.summaries {
		if summary.Seq == seq {
			return summary
		}
	}
	return nil
}

// bestSummary returns the summary that a move shows: the newest of those that cover the most. Nil for none.
func (b *build) bestSummary() *continuo.Entry {
	if len(b.summaries) == 0 {
		return nil
	}
	return slices.MaxFunc(b.summaries, func(x, y *continuo.Entry) int {
		return cmp.Or(cmp.Compare(x.Summary.Through, y.Summary.Through), cmp.Compare(x.Seq, y.Seq))
	})
}

// summaryMessage is the message that shows a summary. Like a marker, it is not a message of the log.
func (b *build) summaryMessage(summary *continuo.Entry) Message {
	message := Message{Role: continuo.User, Content: continuo.Text(SummaryHeading + strings.TrimSpace(summary.Content.String())), Entry: summary}
	message.Size = b.shaper.size(&message, false)
	return message
}

// sizeOfSummary is the size of a summary's message.
func (b *build) sizeOfSummary(summary *continuo.Entry) continuo.Size {
	if b.summarySize.Messages == 0 || b.measured != summary {
		b.summarySize, b.measured = b.summaryMessage(summary).Size, summary
	}
	return b.summarySize
}

// gaps fills the gaps of a layout: with the summary in the first gap that it covers part of, and with a
// marker where left-out entries are not covered.
type gaps struct {
	*build
	markers      bool
	summary      *continuo.Entry // that the window shows; nil for none
	summaryShown bool
}

// between appends the pieces for the gap from one seq to another.
func (g *gaps) between(pieces []piece, from, to int64) []piece {
	if g.summary == nil {
		return g.marked(pieces, true)
	}
	first, last := covered(g.summary)
	if first > to || last < from {
		return g.marked(pieces, true)
	}
	before, behind := first > from, last < to
	if g.summaryShown {
		return g.marked(pieces, before || behind)
	}
	g.summaryShown = true
	pieces = append(g.marked(pieces, before), piece{summary: g.summary})
	return g.marked(pieces, behind && !before)
}

// covered returns the range that needs no marker: the summary's own, and the summary's entry if it directly
// follows.
func covered(summary *continuo.Entry) (from, through int64) {
	from, through = summary.Summary.From, summary.Summary.Through
	if summary.Seq == through+1 {
		through++
	}
	return from, through
}

// marked appends a marker if one is due and the view has one.
func (g *gaps) marked(pieces []piece, due bool) []piece {
	if !due || !g.markers || g.view.Marker == "" {
		return pieces
	}
	return append(pieces, piece{})
}

// markersIn counts the markers that a window shows.
func (b *build) markersIn(w continuo.Window) (count int) {
	pieces, _ := b.layout(w)
	for _, p := range pieces {
		if p.unit == nil && p.summary == nil && !p.leadIn {
			count++
		}
	}
	return count
}

// shownSummary returns the summary that a layout shows; nil for none.
func shownSummary(pieces []piece) *continuo.Entry {
	for _, p := range pieces {
		if p.summary != nil {
			return p.summary
		}
	}
	return nil
}

// summarized sets the verdict of dropped entries that a summary covers.
func summarized(items []PlanItem, shown *continuo.Entry) []PlanItem {
	if shown == nil {
		return items
	}
	first, final := covered(shown)
	var split []PlanItem
	for _, item := range items {
		last := max(item.Seq, item.Through)
		from, through := max(item.Seq, first), min(last, final)
		if item.Verdict != Dropped || from > through {
			split = append(split, item)
			continue
		}
		split = appendRun(split, item, item.Seq, from-1)
		part := item
		part.Verdict, part.Reason = Summarized, ReasonSummary
		split = appendRun(split, part, from, through)
		split = appendRun(split, item, through+1, last)
	}
	return split
}

// appendRun adds the part of an item from one seq to another, if it is not empty. The size of a part of a
// range is unknown.
func appendRun(items []PlanItem, item PlanItem, from, to int64) []PlanItem {
	if from > to {
		return items
	}
	if item.Through != 0 {
		if from != item.Seq || to != item.Through {
			item.Before, item.After = nil, nil
		}
		item.Through = to
		if from == to {
			item.Through = 0
		}
	}
	item.Seq = from
	return append(items, item)
}
