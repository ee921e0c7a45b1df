package term

import (
	"slices"
	"strings"
)

// Table aligns rows in columns, two spaces apart. Cells may be styled.
type Table struct {
	style  Style
	right  []bool // per column: flush right
	headed bool
	rows   [][]string
}

// NewTable begins a table. A heading that begins with > is that of a column that is flush right; a table whose headings
// are all empty but for that sign has none.
func NewTable(style Style, headings ...string) *Table {
	t := &Table{style: style}
	row := make([]string, len(headings))
	for i, heading := range headings {
		name, right := strings.CutPrefix(heading, ">")
		t.right = append(t.right, right)
		row[i] = style.Dim(name)
		t.headed = t.headed || name != ""
	}
	if t.headed {
		t.rows = append(t.rows, row)
	}
	return t
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Fact adds a row with a dim name and a value, unless the value is empty.
func (t *Table) Fact(name, value string) {
	if value != "" {
		t.Add(t.style.Dim(name), value)
	}
}

// Len returns how many rows were added.
func (t *Table) Len() int { return len(t.body()) }

func (t *Table) body() [][]string {
	if t.headed {
		return t.rows[1:]
	}
	return t.rows
}

// DropEmpty removes a column that has no text below its heading.
func (t *Table) DropEmpty(column int) {
	has := func(row []string) bool { return column < len(row) }
	if slices.ContainsFunc(t.body(), func(row []string) bool { return has(row) && row[column] != "" }) {
		return
	}
	for i, row := range t.rows {
		if has(row) {
			t.rows[i] = slices.Delete(row, column, column+1)
		}
	}
	if has := column < len(t.right); has {
		t.right = slices.Delete(t.right, column, column+1)
	}
}

// Lines returns the rows. The last column is truncated so that rows fit the width, and where that is not enough the widest
// of the others that are flush left, in the middle of their cells; 0 truncates nothing.
func (t *Table) Lines(width int) []string {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	t.shrink(widths, width)
	lines := make([]string, len(t.rows))
	for i, row := range t.rows {
		lines[i] = t.line(row, widths, width)
	}
	return lines
}

// The least widths to which the last column and others are truncated.
const (
	lastLeast  = 10
	otherLeast = 14
)

// shrink reduces the widths of columns that are flush left and not the last, the widest first, until rows fit a width.
func (t *Table) shrink(widths []int, width int) {
	if width <= 0 || len(widths) == 0 {
		return
	}
	last := len(widths) - 1
	for {
		used, widest := 2*last, -1
		for i, columns := range widths {
			right := i < len(t.right) && t.right[i]
			switch {
			case i == last && !right:
				used += min(columns, lastLeast)
				continue
			case i < last && !right && columns > otherLeast && (widest < 0 || columns > widths[widest]):
				widest = i
			}
			used += columns
		}
		if used <= width || widest < 0 {
			return
		}
		widths[widest] = max(widths[widest]-(used-width), otherLeast)
	}
}

func (t *Table) line(row []string, widths []int, width int) string {
	var line strings.Builder
	used := 0
	for i, cell := range row {
		if i > 0 {
			line.WriteString("  ")
		}
		right, last := i < len(t.right) && t.right[i], i == len(row)-1
		switch {
		case right:
			cell = padding(cell, widths[i]) + cell
		case !last:
			cell = Pad(FitMiddle(cell, widths[i]), widths[i])
		case width > 0:
			cell = Fit(cell, max(width-used, lastLeast))
		}
		line.WriteString(cell)
		used += widths[i] + 2
	}
	return strings.TrimRight(line.String(), " ")
}
