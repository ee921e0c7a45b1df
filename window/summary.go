package window

import (
	"cmp"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// Strategy says what a view shows in the place of entries that its window has moved past.
type Strategy string

// The strategies.
const (
	Truncate  Strategy = ""          // the marker
	Summarize Strategy = "summarize" // the summary that covers them, where the log has one, and else the marker
)

// SummaryHeading stands before the text of a summary, as its first line.
const SummaryHeading = "[Summary of the earlier conversation]\n"

// IsSummary reports whether an entry is a summary for everybody that may be shown. One that was redacted is none any more.
func IsSummary(e *continuo.Entry) bool {
	return e.PartType == continuo.PartSummary && e.Summary != nil && e.Summary.Role == "" && HoldsSummary(e)
}

// HoldsSummary reports whether an entry has a text that may be shown in the place of the entries that its Summary names:
// a summary for everybody, or one for some readers.
func HoldsSummary(e *continuo.Entry) bool {
	s := e.Summary
	return s != nil && e.Role == continuo.System && e.Hidden && e.Redacted == nil &&
		s.From >= 1 && s.From <= s.Through && s.Through < e.Seq && strings.TrimSpace(e.Content.String()) != ""
}

// learnSummary keeps a summary that the scan came by, if the view shows any.
func (b *build) learnSummary(e *continuo.Entry) {
	if b.view.Strategy == Summarize && IsSummary(e) {
		b.summaries = append(b.summaries, e)
	}
}

// findSummary reads the summary that the last window shows, where the scan did not come to it.
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
			b.learnSummary(&entry)
		}
		break
	}
	return nil
}

// summaryAt returns the summary that stands at a seq; nil for none.
func (b *build) summaryAt(seq int64) *continuo.Entry {
	for _, summary := range b.summaries {
		if summary.Seq == seq {
			return summary
		}
	}
	return nil
}

// bestSummary returns the summary that a move shows: of those that reach furthest the newest. Nil for none.
func (b *build) bestSummary() *continuo.Entry {
	if len(b.summaries) == 0 {
		return nil
	}
	return slices.MaxFunc(b.summaries, func(x, y *continuo.Entry) int {
		return cmp.Or(cmp.Compare(x.Summary.Through, y.Summary.Through), cmp.Compare(x.Seq, y.Seq))
	})
}

// summaryMessage is what is shown of a summary: like a marker it is no message of the log.
func (b *build) summaryMessage(summary *continuo.Entry) continuo.Message {
	message := continuo.Message{Role: continuo.User, Content: continuo.Text(SummaryHeading + strings.TrimSpace(summary.Content.String())), Entry: summary}
	message.Size = b.shaper.size(&message, false)
	return message
}

// gaps writes what stands in the gaps of a layout: the summary in the first one that it says something of, a marker
// where entries are left out that it does not cover.
type gaps struct {
	*build
	markers bool
	summary *continuo.Entry // that the window shows; nil for none
	told    bool
}

// between returns the pieces for the gap of the entries from and to.
func (g *gaps) between(from, to int64) []piece {
	if g.summary == nil {
		return g.marked(true)
	}
	first, last := covered(g.summary)
	if first > to || last < from {
		return g.marked(true)
	}
	before, behind := first > from, last < to
	if g.told {
		return g.marked(before || behind)
	}
	g.told = true
	pieces := append(g.marked(before), piece{summary: g.summary, messages: []continuo.Message{g.summaryMessage(g.summary)}})
	return append(pieces, g.marked(behind && !before)...)
}

// covered returns the range for which nothing else has to stand: the summary's own, with itself where it stands right
// behind it.
func covered(summary *continuo.Entry) (from, through int64) {
	from, through = summary.Summary.From, summary.Summary.Through
	if summary.Seq == through+1 {
		through++
	}
	return from, through
}

// marked is a marker where one is due and shown at all.
func (g *gaps) marked(due bool) []piece {
	if !due || !g.markers || g.view.Marker == "" {
		return nil
	}
	return []piece{{messages: []continuo.Message{g.marker()}}}
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

// ReasonSummary is why an entry is not shown that a summary stands for.
const ReasonSummary = "summary"

// summarized gives the entries that were dropped and that a summary stands for their verdict.
func summarized(items []continuo.PlanItem, shown *continuo.Entry) []continuo.PlanItem {
	if shown == nil {
		return items
	}
	first, final := covered(shown)
	var told []continuo.PlanItem
	for _, item := range items {
		last := max(item.Seq, item.Through)
		from, through := max(item.Seq, first), min(last, final)
		if item.Verdict != continuo.Dropped || from > through {
			told = append(told, item)
			continue
		}
		told = appendRun(told, item, item.Seq, from-1)
		part := item
		part.Verdict, part.Reason = continuo.Summarized, ReasonSummary
		told = appendRun(told, part, from, through)
		told = appendRun(told, item, through+1, last)
	}
	return told
}

// appendRun adds the part of an item from one seq to another, if there is any. The size of a part of a run is not known.
func appendRun(items []continuo.PlanItem, item continuo.PlanItem, from, to int64) []continuo.PlanItem {
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
