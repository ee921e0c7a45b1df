package telegram

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// delimiter is the second line of a table.
var delimiter = regexp.MustCompile(`^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$`)

// tableHeader returns the index of a paragraph's line that is the header of a table; -1 for none. All lines from there
// on are rows.
func tableHeader(lines []string) int {
	for i := range len(lines) - 1 {
		if strings.Contains(lines[i], "|") && strings.Contains(lines[i+1], "|") && delimiter.MatchString(lines[i+1]) {
			return i
		}
	}
	return -1
}

// layOut writes a table with aligned columns for a monospaced font. A table that would become much longer stays
// unchanged.
func layOut(lines []string) string {
	rows := make([][]string, 0, len(lines)-1)
	for i, line := range lines {
		if i != 1 {
			rows = append(rows, cells(line))
		}
	}
	const room = 4096
	widths, written := columns(rows), strings.Join(lines, "\n")
	size := 0
	for _, row := range rows {
		for i := range row {
			size += widths[i] + len(" | ")
		}
	}
	if size > room+4*len(written) {
		return written
	}
	right := alignments(lines[1])
	var b strings.Builder
	for i, row := range rows {
		b.WriteString(layOutRow(row, widths, right))
		if i == 0 {
			b.WriteString("\n" + rule(widths))
		}
		if i < len(rows)-1 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// cells splits a row. An escaped pipe is part of the text; Markdown within a cell is dropped.
func cells(row string) []string {
	row = strings.TrimPrefix(strings.TrimSpace(row), "|")
	var list []string
	var cell strings.Builder
	for at := 0; at < len(row); at++ {
		switch {
		case strings.HasPrefix(row[at:], `\|`):
			cell.WriteByte('|')
			at++
		case row[at] == '|':
			list = append(list, cellText(cell.String()))
			cell.Reset()
		default:
			cell.WriteByte(row[at])
		}
	}
	if last := cellText(cell.String()); last != "" || len(list) == 0 {
		list = append(list, last)
	}
	return list
}

// cellText is the visible text of a cell.
func cellText(cell string) string {
	r := renderer{}
	r.writeText(strings.TrimSpace(cell))
	return plainText(r.spans)
}

func columns(rows [][]string) (widths []int) {
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], shownWidth(cell))
		}
	}
	return widths
}

// alignments returns the columns that are right-aligned.
func alignments(line string) (right []bool) {
	for _, cell := range strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|") {
		cell = strings.TrimSpace(cell)
		right = append(right, strings.HasSuffix(cell, ":") && !strings.HasPrefix(cell, ":"))
	}
	return right
}

func layOutRow(row []string, widths []int, right []bool) string {
	var b strings.Builder
	for i, cell := range row {
		if i > 0 {
			b.WriteString(" | ")
		}
		pad := strings.Repeat(" ", widths[i]-shownWidth(cell))
		switch {
		case i < len(right) && right[i]:
			b.WriteString(pad + cell)
		case i == len(row)-1:
			b.WriteString(cell)
		default:
			b.WriteString(cell + pad)
		}
	}
	return b.String()
}

// rule is the line below the header.
func rule(widths []int) string {
	parts := make([]string, len(widths))
	for i, w := range widths {
		parts[i] = strings.Repeat("-", w)
	}
	return strings.Join(parts, "-+-")
}

// shownWidth is how many columns a text takes in a monospaced font, with wide characters.
func shownWidth(text string) (columns int) {
	for _, r := range text {
		switch kind := width.LookupRune(r).Kind(); {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
			columns += 2
		default:
			columns++
		}
	}
	return columns
}
