package markdown

import (
	"strings"

	extensionast "github.com/yuin/goldmark/extension/ast"

	"github.com/continuo-log/continuo/internal/term"
)

// leastColumn is the width below which no column of a table is cut: the table then becomes a list.
const leastColumn = 8

// table draws a table with lines between its columns. Where the width does not suffice, cells are wrapped; where it does
// not suffice for that, each row becomes a list of its cells.
func (r *renderer) table(table *extensionast.Table, width int) []string {
	var rows [][][]run // of cells
	for row := table.FirstChild(); row != nil; row = row.NextSibling() {
		style := ""
		if row.Kind() == extensionast.KindTableHeader {
			style = bold
		}
		var cells [][]run
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, r.inline(cell, style))
		}
		rows = append(rows, cells)
	}
	if len(rows) == 0 || len(rows[0]) == 0 {
		return nil
	}
	widths, fits := columnWidths(rows, width)
	if !fits {
		return records(rows, width)
	}
	var lines []string
	for i, row := range rows {
		lines = append(lines, tableRow(row, widths, table.Alignments)...)
		if i == 0 {
			lines = append(lines, rule(widths))
		}
	}
	return lines
}

// columnWidths shares a width among columns: the widest ones give way first.
func columnWidths(rows [][][]run, width int) (widths []int, fits bool) {
	widths = make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			if i < len(widths) {
				widths[i] = max(widths[i], cellWidth(cell), 1)
			}
		}
	}
	room := width - 3*(len(widths)-1)
	for total(widths) > room {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= leastColumn {
			return nil, false
		}
		widths[widest]--
	}
	return widths, true
}

func total(widths []int) (sum int) {
	for _, width := range widths {
		sum += width
	}
	return sum
}

func cellWidth(cell []run) (width int) {
	for _, part := range cell {
		width += term.Width(part.text)
	}
	return width
}

func tableRow(row [][]run, widths []int, alignments []extensionast.Alignment) []string {
	height := 1
	cells := make([][]string, len(widths))
	for i := range widths {
		if i < len(row) {
			cells[i] = wrap(row[i], widths[i])
		}
		height = max(height, len(cells[i]))
	}
	lines := make([]string, height)
	for y := range lines {
		var parts []string
		for i, width := range widths {
			text := ""
			if y < len(cells[i]) {
				text = cells[i][y]
			}
			alignment := extensionast.AlignNone
			if i < len(alignments) {
				alignment = alignments[i]
			}
			parts = append(parts, aligned(text, width, alignment))
		}
		lines[y] = strings.TrimRight(strings.Join(parts, styled(dim, " │ ")), " ")
	}
	return lines
}

func aligned(text string, width int, alignment extensionast.Alignment) string {
	gap := max(width-term.Width(text), 0)
	switch alignment {
	case extensionast.AlignRight:
		return strings.Repeat(" ", gap) + text
	case extensionast.AlignCenter:
		return strings.Repeat(" ", gap/2) + text + strings.Repeat(" ", gap-gap/2)
	}
	return text + strings.Repeat(" ", gap)
}

func rule(widths []int) string {
	var parts []string
	for _, width := range widths {
		parts = append(parts, strings.Repeat("─", width))
	}
	return styled(dim, strings.Join(parts, "─┼─"))
}

// records writes each row as the cells below each other, with the names of their columns.
func records(rows [][][]run, width int) []string {
	var lines []string
	for i, row := range rows[1:] {
		if i > 0 {
			lines = append(lines, "")
		}
		for j, cell := range row {
			var named []run
			if j < len(rows[0]) {
				named = append(named, rows[0][j]...)
				named = append(named, run{": ", ""})
			}
			lines = append(lines, wrap(append(named, cell...), width)...)
		}
	}
	return lines
}
