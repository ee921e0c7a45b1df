package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/linediff"
)

// beside shows two sights side by side.
func (l *crewLook) beside(ctx context.Context, left, right engine.Sight) error {
	both, err := l.engine.CompareRoles(ctx, l.session, left, right)
	if err != nil {
		return l.explained(l.session, err)
	}
	if l.json {
		return l.app.json(both)
	}
	t := columns{width: max((l.tableWidth()-len(between))/2, 12), paint: l.paint}
	t.add(sightWords(both.Left), " │ ", sightWords(both.Right), l.paint.bold)
	t.add(planWords(both.Left.Plan), " │ ", planWords(both.Right.Plan), l.paint.dim)
	t.add("", " │ ", "", nil)
	t.addLines(both.Lines)
	for _, line := range t.rows {
		l.app.print("%s", line.painted())
	}
	return nil
}

// sightWords says whose sight it is.
func sightWords(sighted engine.Sighted) string {
	if sighted.Request != 0 {
		return fmt.Sprintf("%s, as it was sent for entry %s", sighted.Role, number(sighted.Request))
	}
	return fmt.Sprintf("%s, at entry %s", sighted.Role, number(sighted.At))
}

// between stands between two columns; its sign says how they differ there.
const between = " | "

// columns are two texts side by side, each broken into lines of a width.
type columns struct {
	width int // of each
	paint palette
	rows  []row
}

// addLines adds the lines of two texts. Where lines of the one stand in the place of lines of the other, they stand
// side by side.
func (c *columns) addLines(lines []engine.DiffLine) {
	for at := 0; at < len(lines); {
		if lines[at].Op == linediff.Equal {
			c.add(lines[at].Text, " │ ", lines[at].Text, nil)
			at++
			continue
		}
		var left, right []string
		for ; at < len(lines) && lines[at].Op != linediff.Equal; at++ {
			if lines[at].Op == linediff.Left {
				left = append(left, lines[at].Text)
			} else {
				right = append(right, lines[at].Text)
			}
		}
		for i := range max(len(left), len(right)) {
			switch {
			case i >= len(right):
				c.add(left[i], " < ", "", c.paint.yellow)
			case i >= len(left):
				c.add("", " > ", right[i], c.paint.cyan)
			default:
				c.addOther(left[i], right[i])
			}
		}
	}
}

// add adds a line to each column, broken where it is too long.
func (c *columns) add(left, sign, right string, paint func(string) string) {
	c.addRows(wrapped(left, c.width), sign, wrapped(right, c.width), paint, paint)
}

func (c *columns) addOther(left, right string) {
	c.addRows(wrapped(left, c.width), " ≠ ", wrapped(right, c.width), c.paint.yellow, c.paint.cyan)
}

func (c *columns) addRows(left []string, sign string, right []string, leftPaint, rightPaint func(string) string) {
	for i := range max(len(left), len(right)) {
		one, other := "", ""
		if i < len(left) {
			one = left[i]
		}
		if i < len(right) {
			other = right[i]
		}
		c.rows = append(c.rows, row{{pad(one, c.width, false), leftPaint}, {sign, c.paint.dim}, {other, rightPaint}})
	}
}

// around is how many equal lines are shown before and behind those that differ.
const around = 3

// difference shows the lines that differ between two rounds of a role.
func (l *crewLook) difference(ctx context.Context, role string, rounds roundPair) error {
	from, err := l.sight(ctx, role, 0, rounds.from)
	if err != nil {
		return err
	}
	to, err := l.sight(ctx, role, 0, rounds.to)
	if err != nil {
		return err
	}
	if from.Request == 0 || to.Request == 0 {
		return usage("--diff: rounds count from 1")
	}
	both, err := l.engine.CompareRoles(ctx, l.session, from, to)
	if err != nil {
		return l.explained(l.session, err)
	}
	if l.json {
		return l.app.json(both)
	}
	l.app.print("%s", l.paint.dim(fmt.Sprintf("- %s, %s", sightWords(both.Left), planWords(both.Left.Plan))))
	l.app.print("%s", l.paint.dim(fmt.Sprintf("+ %s, %s", sightWords(both.Right), planWords(both.Right.Plan))))
	l.printDifference(both.Lines)
	return nil
}

// printDifference prints the lines that differ, and a few around them.
func (l *crewLook) printDifference(lines []engine.DiffLine) {
	left := 0 // how many equal lines were left out
	omitted := func() {
		if left > 0 {
			l.app.print("%s", l.paint.dim("… "+count(left, "equal line")))
		}
		left = 0
	}
	for i, line := range lines {
		if line.Op == linediff.Equal && !nearChange(lines, i) {
			left++
			continue
		}
		omitted()
		switch line.Op {
		case linediff.Left:
			l.app.print("%s", l.paint.red(strings.TrimRight("- "+l.shown(line.Text), " ")))
		case linediff.Right:
			l.app.print("%s", l.paint.green(strings.TrimRight("+ "+l.shown(line.Text), " ")))
		default:
			l.app.print("%s", strings.TrimRight("  "+l.shown(line.Text), " "))
		}
	}
	omitted()
}

// nearChange reports whether a line that differs stands close to a place.
func nearChange(lines []engine.DiffLine, at int) bool {
	for _, line := range lines[max(at-around, 0):min(at+around+1, len(lines))] {
		if line.Op != linediff.Equal {
			return true
		}
	}
	return false
}
