package fulltext

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Snippet is the excerpt of a match: parts of the texts on one line, joined by " … ", which also marks
// omitted text before and after them.
type Snippet struct {
	Text string `json:"text"`
	// Highlights are the query's words and phrases in Text, in order, without overlaps.
	Highlights []Span `json:"highlights,omitempty"`
}

// Span is a part of a text, in bytes.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

const (
	defaultSnippet = 160
	stretchLimit   = 80 // one per this many characters of a snippet, plus one
	maxStretches   = 4
	smallest       = 24 // characters; a shorter stretch is shown alone and without dots
	dots           = "… "
	dotsChars      = 2
)

// Snippet shows the best parts of the match in at most limit characters (0: 160), cut between words if
// possible and never between a character and its marks. The texts are those that were matched. White space
// becomes one space; control characters are replaced; those that change the writing direction and terminal
// colour codes are left out.
func (m Match) Snippet(texts []string, limit int) Snippet {
	if limit <= 0 {
		limit = defaultSnippet
	}
	stretches := m.stretches(texts, limit)
	if len(stretches) == 0 {
		return Snippet{}
	}
	room, bare := limit-dotsChars*2-(dotsChars+1)*(len(stretches)-1), false
	if room < smallest {
		stretches, room, bare = stretches[:1], limit, true
	}
	for i := range stretches {
		stretches[i].grow(room / len(stretches))
	}
	stretches = inTextOrder(stretches)
	var out line
	for i, stretch := range stretches {
		if !bare && (i > 0 || stretch.hasBefore()) {
			out.dots()
		}
		out.write(stretch, m.spans(stretch))
	}
	if !bare && stretches[len(stretches)-1].hasAfter() {
		out.dots()
	}
	return Snippet{Text: out.text.String(), Highlights: out.spans}
}

// stretches returns the parts to show, the best first.
func (m Match) stretches(texts []string, limit int) []stretch {
	var found []stretch
	most := min(maxStretches, 1+limit/stretchLimit)
	for _, hit := range m.best {
		if hit.Field < 0 || hit.Field >= len(texts) || hit.Start < 0 || hit.End > len(texts[hit.Field]) || hit.Start >= hit.End {
			continue // of other texts
		}
		added := stretch{text: texts[hit.Field], field: hit.Field, begin: hit.Start, end: hit.End}
		near := slices.IndexFunc(found, func(s stretch) bool { return s.joins(added, limit/2) })
		switch {
		case near >= 0:
			found[near].begin, found[near].end = min(found[near].begin, hit.Start), max(found[near].end, hit.End)
		case len(found) < most:
			found = append(found, added)
		}
	}
	return found
}

// spans returns the hits in a stretch: those that the match kept, and all others of the query there.
func (m Match) spans(s stretch) []Span {
	var spans []Span
	for _, hit := range m.Hits {
		if begin, end := max(hit.Start, s.begin), min(hit.End, s.end); hit.Field == s.field && begin < end {
			spans = append(spans, Span{begin, end})
		}
	}
	if m.query.wanted > 0 {
		m.query.scan(s.text[s.begin:s.end], func(f found) bool {
			span := Span{s.begin + f.start, s.begin + f.end}
			cut := span.Start == s.begin && !isBorder(s.text, s.begin) || span.End == s.end && !isBorder(s.text, s.end)
			if f.phrase < m.query.wanted && !cut {
				spans = append(spans, span)
			}
			return true
		})
	}
	return withoutOverlaps(spans)
}

func withoutOverlaps(spans []Span) []Span {
	slices.SortFunc(spans, func(a, b Span) int { return a.Start - b.Start })
	merged := spans[:0]
	for _, span := range spans {
		if n := len(merged); n > 0 && span.Start < merged[n-1].End {
			merged[n-1].End = max(merged[n-1].End, span.End)
		} else {
			merged = append(merged, span)
		}
	}
	return merged
}

// inTextOrder sorts stretches and merges overlapping ones.
func inTextOrder(stretches []stretch) []stretch {
	slices.SortFunc(stretches, func(a, b stretch) int {
		return inOrder(Hit{a.field, a.begin, a.end}, Hit{b.field, b.begin, b.end})
	})
	merged := stretches[:0]
	for _, s := range stretches {
		if n := len(merged); n > 0 && merged[n-1].field == s.field && s.begin <= merged[n-1].end {
			merged[n-1].end = max(merged[n-1].end, s.end)
		} else {
			merged = append(merged, s)
		}
	}
	return merged
}

// line is a snippet while it is written.
type line struct {
	text  strings.Builder
	spans []Span
	blank bool // a space is due
}

func (l *line) dots() {
	l.space()
	l.text.WriteString("…")
	l.blank = true
}

// space writes a pending space, or, before dots, one after other text.
func (l *line) space() {
	if l.text.Len() > 0 {
		l.text.WriteByte(' ')
	}
	l.blank = false
}

// write writes a stretch on one line, and returns the new positions of its spans.
func (l *line) write(s stretch, spans []Span) {
	open := -1 // position of the first of spans in the line
	shown := s.begin
	for i, r := range s.text[s.begin:s.end] {
		at := s.begin + i
		if at < shown {
			continue
		}
		shown = at + colourLen(s.text[at:s.end])
		if open >= 0 && at >= spans[0].End {
			l.spans = append(l.spans, Span{open, l.text.Len()})
			open, spans = -1, spans[1:]
		}
		for open < 0 && len(spans) > 0 && at >= spans[0].End {
			spans = spans[1:] // nothing of it is visible
		}
		switch {
		case unicode.IsSpace(r):
			l.blank = true
			continue
		case turnsDirection(r), shown > at:
			continue
		case unicode.IsControl(r):
			r = utf8.RuneError
		}
		if l.blank {
			l.space()
		}
		if open < 0 && len(spans) > 0 && at >= spans[0].Start {
			open = l.text.Len()
		}
		l.text.WriteRune(r)
	}
	if open >= 0 {
		l.spans = append(l.spans, Span{open, l.text.Len()})
	}
	l.blank = false
}

// turnsDirection reports whether a character changes the display order of others.
func turnsDirection(r rune) bool {
	return '\u202A' <= r && r <= '\u202E' || '\u2066' <= r && r <= '\u2069'
}
