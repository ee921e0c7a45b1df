package search

import (
	"fmt"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
)

// page is the matches that one call shows, and how far the search went.
type page struct {
	limit   int // maximum number of matches
	chars   int // maximum number of characters in total
	stretch stretch

	blocks   []string
	used     int            // characters of the blocks and the lines between them
	found    map[int64]bool // the seqs of the matches that are shown
	last     int64          // the seq of the last of them
	searched int64          // seq of the last entry read; 0 for none
	inPart   int            // entries without a match of whose output only a preview was searched
	full     bool           // not all matches fit
	done     bool           // the whole range was searched

	ranked bool // the best matches are shown first
	skip   int  // matches that are left out
	shown  int  // matches that were shown or left out
	more   bool // there may be more matches than those that were ranked
}

// forNote is the space reserved for the last lines, in characters.
const forNote = 350

// add shows a match; false when there is no room for it.
func (p *page) add(m *match) bool {
	block := m.String()
	size := utf8.RuneCountInString(block) + 2
	if len(p.blocks) == p.limit || len(p.blocks) > 0 && p.used+size+forNote > p.chars {
		p.full = true
		return false
	}
	p.blocks = append(p.blocks, block)
	p.shown++
	p.used += size
	p.last = m.entry.Seq
	p.found[p.last] = true
	return true
}

// outcome returns one line that says what was found.
func (p *page) outcome(query string) string {
	number := fmt.Sprintf("%d matches", len(p.blocks))
	if len(p.blocks) == 1 {
		number = "1 match"
	}
	if p.full {
		number += " and more"
	}
	return fmt.Sprintf(`Found %s for "%s"`, number, tool.OneLine(query, 60))
}

// content returns the matches, and a line about entries that were not searched.
func (p *page) content() string {
	notes := "[" + p.note() + "]"
	if p.inPart > 0 {
		notes = "[" + p.partNote() + "]\n" + notes
	}
	return strings.Join(append(p.blocks, notes), "\n\n")
}

// partNote names the tool that searches what this one does not.
func (p *page) partNote() string {
	outputs := "1 large tool output was"
	if p.inPart > 1 {
		outputs = fmt.Sprintf("%d large tool outputs were", p.inPart)
	}
	return outputs + " searched in its preview only: fs.search with the path @state/logs/tool-results/ searches the whole"
}

func (p *page) note() string {
	none := ""
	if len(p.blocks) == 0 {
		none = "nothing matches: "
	}
	switch {
	case p.full && p.ranked:
		return fmt.Sprintf("there are more matches: continue with skip: %d", p.shown)
	case p.ranked && p.done && p.more:
		return none + "these are the best matches: for others ask more exactly, or with from and to"
	case p.full:
		return fmt.Sprintf("there are more matches: continue with before: %d", p.last)
	case !p.done && p.searched == 0:
		return "the time was up before an entry was searched: ask for less with from and to"
	case !p.done:
		return fmt.Sprintf("the time is up and the entries before #%d were not searched: continue with before: %d", p.searched, p.searched)
	case p.stretch.from > 1:
		return fmt.Sprintf("%sthe search went back to #%d, as from says", none, p.stretch.from)
	}
	return none + "the beginning of the conversation was reached"
}

// String writes the match for a model: a line about the entry, then lines of it, the matching ones marked
// with ">". All lines of the entry are indented.
func (m *match) String() string {
	var text strings.Builder
	text.WriteString(header(m.entry))
	var before line
	for i, line := range m.lines() {
		if i > 0 && m.between(before, line) {
			text.WriteString("\n  …")
		}
		sign := "\n  "
		if line.matches && !m.beside {
			sign = "\n> "
		}
		text.WriteString(sign + m.shown(line))
		before = line
	}
	if m.more {
		text.WriteString("\n  … and more lines that match")
	}
	return text.String()
}

func header(entry *continuo.Entry) string {
	words := []string{fmt.Sprintf("#%d", entry.Seq), string(entry.Role)}
	for _, name := range []string{entry.Name, entry.ToolName} {
		if name != "" {
			words = append(words, "("+tool.OneLine(name, 60)+")")
		}
	}
	if !entry.CreatedAt.IsZero() {
		words = append(words, entry.CreatedAt.UTC().Format("2006-01-02T15:04Z"))
	}
	if entry.OutputRef != "" {
		words = append(words, entry.OutputRef)
	}
	return strings.Join(words, " ")
}

// line is one shown line, a hit or a neighbour of one; at is the offset around which it is shortened.
type line struct {
	hit
	matches bool
}

// lines returns the hits and one line on each side of each, in order and without duplicates. Empty lines are
// left out.
func (m *match) lines() []line {
	var lines []line
	for i, h := range m.hits {
		text := m.fields[h.field].text
		if h.begin > 0 {
			begin, end := lineAround(text, h.begin-1)
			before := line{hit: hit{field: h.field, begin: begin, end: end, at: end - begin}}
			if len(lines) == 0 || inOrder(lines[len(lines)-1].hit, before.hit) < 0 {
				lines = m.with(lines, before)
			}
		}
		lines = append(lines, line{hit: h, matches: true})
		if h.end < len(text) {
			begin, end := lineAround(text, h.end+1)
			after := line{hit: hit{field: h.field, begin: begin, end: end}}
			if i+1 == len(m.hits) || !after.sameLine(m.hits[i+1]) {
				lines = m.with(lines, after)
			}
		}
	}
	return lines
}

// with appends a line unless it is empty.
func (m *match) with(lines []line, l line) []line {
	if strings.TrimSpace(m.fields[l.field].text[l.begin:l.end]) == "" {
		return lines
	}
	return append(lines, l)
}

// between reports whether there is text between two lines of one field.
func (m *match) between(a, b line) bool {
	return a.field == b.field && strings.TrimSpace(m.fields[a.field].text[a.end:b.begin]) != ""
}

// The maximum number of characters shown of a line, and how many of them precede the match.
const (
	maxHitLine   = 240
	maxOtherLine = 120
	beforeMatch  = 80
)

func (m *match) shown(l line) string {
	field := m.fields[l.field]
	most := maxOtherLine
	if l.matches {
		most = maxHitLine
	}
	text := shorten(field.text[l.begin:l.end], l.at, most)
	if l.begin == 0 {
		text = field.label + text
	}
	return text
}

// shorten returns a line, or the part around an offset if it is longer than most characters.
func shorten(line string, at, most int) string {
	line = strings.TrimRight(line, " \t\r")
	at = min(at, len(line))
	first, shown := at, 0
	for ; first > 0 && shown < beforeMatch; shown++ {
		_, size := utf8.DecodeLastRuneInString(line[:first])
		first -= size
	}
	last := first
	for shown = 0; last < len(line) && shown < most; shown++ {
		_, size := utf8.DecodeRuneInString(line[last:])
		last += size
	}
	for ; first > 0 && shown < most; shown++ { // the line's end is near: show more before it
		_, size := utf8.DecodeLastRuneInString(line[:first])
		first -= size
	}
	text := tool.Printable(line[first:last])
	if first > 0 {
		text = "…" + text
	}
	if last < len(line) {
		text += "…"
	}
	return text
}
