package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// number formats an integer with a space between thousands: 12 400.
func number[T int | int64](n T) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + " " + digits[at:]
	}
	return sign + digits
}

// count writes a number with its noun: 1 message, 12 entries, 3 keys.
func count[T int | int64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && !strings.HasSuffix(stem, "e") {
		noun = stem + "ie"
	}
	return number(n) + " " + noun + "s"
}

// byteSize writes a size in bytes with a unit: 812 B, 1.4 MB. A MB has 1 000 000 bytes.
func byteSize(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	size := float64(n)
	for _, unit := range []string{"kB", "MB", "GB"} {
		size /= 1000
		if size < 999.95 {
			return strconv.FormatFloat(size, 'f', 1, 64) + " " + unit
		}
	}
	return strconv.FormatFloat(size/1000, 'f', 1, 64) + " TB"
}

// cells is how many columns of a terminal a text takes: two for wide characters, none for marks.
func cells(text string) int {
	width := 0
	for _, r := range text {
		width += runeCells(r)
	}
	return width
}

// runeCells follows East Asian Width (Unicode Annex 11) as far as scripts and emoji go.
func runeCells(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo):
		return 2
	case r >= 0x3000 && r <= 0x303e, r >= 0xff01 && r <= 0xff60, r >= 0x1f300 && r <= 0x1faff:
		return 2
	}
	return 1
}

// fit truncates a text to a width in cells, with an ellipsis if it was truncated.
func fit(text string, width int) string {
	if cells(text) <= width {
		return text
	}
	used := 0
	for at, r := range text {
		if used += runeCells(r); used > width-1 {
			return text[:at] + "…"
		}
	}
	return text
}

// pad fills a text with spaces up to a width in cells; with right, the spaces come first.
func pad(text string, width int, right bool) string {
	fill := strings.Repeat(" ", max(width-cells(text), 0))
	if right {
		return fill + text
	}
	return text + fill
}

// oneLine formats foreign text for a table: white space becomes one space, and characters that could control a terminal
// become visible. It reads no more of the text than limit cells need.
func oneLine(text string, limit int) string {
	var line strings.Builder
	space := false
	for at, r := range text {
		if line.Len() > 8*limit { // no character takes more bytes for each cell, marks aside
			return fit(line.String()+"…", limit)
		}
		switch {
		case unicode.IsSpace(r):
			space = line.Len() > 0
			continue
		case r == utf8.RuneError && !strings.HasPrefix(text[at:], string(utf8.RuneError)):
			r = '\ufffd'
		}
		if space {
			line.WriteByte(' ')
			space = false
		}
		line.WriteRune(visible(r))
	}
	return fit(line.String(), limit)
}

// visible replaces a character that could control a terminal by one that shows it.
func visible(r rune) rune {
	switch {
	case r == 0x7f:
		return '␡'
	case r < 0x20:
		return 0x2400 + r
	case r >= 0x80 && r < 0xa0, isBidi(r):
		return '\ufffd'
	}
	return r
}

// isBidi reports whether a character changes the direction of the text after it.
func isBidi(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

// harmless makes foreign text safe for a terminal: line ends and tabs stay, other characters that could control the
// terminal become visible.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return visible(r)
	}, text)
}

// indent puts a prefix before every line.
func indent(text, prefix string) string {
	return prefix + strings.ReplaceAll(text, "\n", "\n"+prefix)
}

// table aligns rows in columns.
type table struct {
	right []bool // per column: flush right
	rows  [][]cell
}

// cell is a text and its colour function; nil leaves it plain.
type cell struct {
	text  string
	paint func(string) string
}

func plain(text string) cell { return cell{text: text} }

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

// dropEmpty removes a column that has no text from a row on: the rows before it are headings.
func (t *table) dropEmpty(column, from int) {
	for _, row := range t.rows[min(from, len(t.rows)):] {
		if column < len(row) && row[column].text != "" {
			return
		}
	}
	for i, row := range t.rows {
		if column < len(row) {
			t.rows[i] = slices.Delete(row, column, column+1)
		}
	}
	if column < len(t.right) {
		t.right = slices.Delete(t.right, column, column+1)
	}
}

// lines returns the rows, columns two spaces apart. The last column is cut so that rows fit the width; 0
// cuts nothing.
func (t *table) lines(width int) []string {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], cells(c.text))
		}
	}
	lines := make([]string, len(t.rows))
	for i, row := range t.rows {
		lines[i] = t.line(row, widths, width)
	}
	return lines
}

func (t *table) line(row []cell, widths []int, width int) string {
	var line strings.Builder
	used := 0
	for i, c := range row {
		text := c.text
		switch last := i == len(row)-1; {
		case !last || i < len(t.right) && t.right[i]:
			text = pad(text, widths[i], i < len(t.right) && t.right[i])
		case width > 0:
			text = fit(text, max(width-used, 10))
		}
		used += widths[i] + 2
		if c.paint != nil && strings.TrimSpace(text) != "" {
			text = c.paint(text)
		}
		line.WriteString(text)
		if i < len(row)-1 {
			line.WriteString("  ")
		}
	}
	return strings.TrimRight(line.String(), " ")
}

// bar draws a share of a whole as blocks.
func bar(part, whole, width int) string {
	filled := 0
	if whole > 0 {
		filled = min((part*width+whole/2)/whole, width)
	}
	return strings.Repeat("█", filled) + strings.Repeat("░", width-filled)
}

// ofLimit formats how much of a limit is used: 3 120 of 6 000 tokens; without a limit only the number.
func ofLimit(used, limit int, noun string) string {
	if limit == 0 {
		return count(used, noun)
	}
	return fmt.Sprintf("%s of %s", number(used), count(limit, noun))
}
