package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/linediff"
	"github.com/continuo-log/continuo/internal/term"
)

// viewText names the role of a side of a comparison.
func viewText(side engine.RoleContext) string {
	if side.Request != 0 {
		return fmt.Sprintf("%s, as it was sent for entry %s", side.Role, term.Number(side.Request))
	}
	return fmt.Sprintf("%s, at entry %s", side.Role, term.Number(side.At))
}

// contextLines is how many equal lines are shown before and after a difference.
const contextLines = 3

// difference shows the lines that differ between two rounds of a role.
func (l *crewContexts) difference(ctx context.Context, role string, rounds roundPair) error {
	from, err := l.query(ctx, role, 0, rounds.from)
	if err != nil {
		return err
	}
	to, err := l.query(ctx, role, 0, rounds.to)
	if err != nil {
		return err
	}
	if from.Request == 0 || to.Request == 0 {
		return usage("--diff: rounds count from 1")
	}
	both, err := l.engine.Crews.CompareRoles(ctx, l.session, from, to)
	if err != nil {
		return l.explained(l.session, err)
	}
	if l.json {
		return l.app.json(both)
	}
	l.printLine("- ", viewText(both.Left)+", "+planText(both.Left.Plan), l.paint.Dim)
	l.printLine("+ ", viewText(both.Right)+", "+planText(both.Right.Plan), l.paint.Dim)
	l.printDifference(both.Lines)
	return nil
}

// printDifference prints the lines that differ, and a few around them.
func (l *crewContexts) printDifference(lines []engine.DiffLine) {
	left := 0 // how many equal lines were omitted
	omitted := func() {
		if left > 0 {
			l.app.print("%s", l.paint.Dim("… "+term.Count(left, "equal line")))
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
			l.printLine("- ", line.Text, l.paint.Red)
		case linediff.Right:
			l.printLine("+ ", line.Text, l.paint.Green)
		default:
			l.printLine("  ", line.Text, nil)
		}
	}
	omitted()
}

// printLine prints a line after a sign, wrapped between words in a terminal.
func (l *crewContexts) printLine(sign, text string, paint func(string) string) {
	lines := []string{text}
	if l.width > 0 {
		lines = term.Wrap(text, max(l.width-len(sign), 12))
	}
	for _, line := range lines {
		line = strings.TrimRight(sign+line, " ")
		if paint != nil {
			line = paint(line)
		}
		l.app.print("%s", line)
	}
}

// nearChange reports whether a line that differs is close to an index.
func nearChange(lines []engine.DiffLine, at int) bool {
	for _, line := range lines[max(at-contextLines, 0):min(at+contextLines+1, len(lines))] {
		if line.Op != linediff.Equal {
			return true
		}
	}
	return false
}
