package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// figures maps a package's folder, the name of a benchmark's case and a unit to what was measured.
type figures map[string]float64

func keyOf(dir, bench, unit string) string { return dir + " " + bench + " " + unit }

// resultLine is a line of results: the name with the number of processors behind it, the iterations, then pairs of a
// value and its unit (https://go.googlesource.com/proposal/+/master/design/14313-benchmark-format.md).
var resultLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// read adds the figures of a benchmark's output. Of figures that were measured more than once, the best is kept: it
// is the one that other load on the machine disturbed least.
func (f figures) read(dir, output string) error {
	for line := range strings.Lines(output) {
		match := resultLine.FindStringSubmatch(strings.TrimSpace(line))
		if match == nil {
			continue
		}
		fields := strings.Fields(match[2])
		for i := 0; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return fmt.Errorf("%q: %w", line, err)
			}
			key := keyOf(dir, match[1], fields[i+1])
			if old, found := f[key]; !found || better(fields[i+1], value, old) {
				f[key] = value
			}
		}
	}
	return nil
}

// better compares two values of a unit: more of what is done per second, of a share and of the multiple of a bare engine's
// rate is better, and less of all else.
func better(unit string, a, b float64) bool {
	if moreIsBetter(unit) {
		return a > b
	}
	return a < b
}

func moreIsBetter(unit string) bool {
	return strings.HasSuffix(unit, "/s") || strings.HasPrefix(unit, "x_") || strings.HasSuffix(unit, "%")
}

// table renders the rows in Markdown.
func table(rows []row, measured figures) string {
	var text strings.Builder
	text.WriteString("| work | measured | beside the bare engine | goal | |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		value, found := measured[keyOf(r.dir, r.bench, r.unit)]
		if !found {
			fmt.Fprintf(&text, "| %s | not measured: %s reports no %s | | %s | |\n", r.work, r.bench, r.unit, r.goal)
			continue
		}
		ratio := ""
		if x, found := measured[keyOf(r.dir, r.bench, r.ratio)]; found {
			ratio = fmt.Sprintf("%.2f %s", x, r.than)
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", r.work, r.shown(value), ratio, r.goal, r.verdict(measured))
	}
	return text.String()
}

const (
	tableBegins = "<!-- table: written by make bench-report -->\n"
	tableEnds   = "<!-- end of the table -->\n"
)

// writePage replaces the table of the page.
func writePage(table string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		return fmt.Errorf("%s has no lines %q and %q around the table", page, tableBegins, tableEnds)
	}
	note := fmt.Sprintf("\nMeasured on %s: %s.\n\n", time.Now().UTC().Format("2 January 2006"), machine())
	return os.WriteFile(page, []byte(before+tableBegins+note+table+"\n"+tableEnds+after), 0o644) //nolint:gosec // a page of the docs
}

// regressed returns the rows whose ratio is worse than the page's by more than a quarter, and says how much.
func regressed(rows []row, measured figures, text string) (worse []row, messages []string, err error) {
	for _, r := range rows {
		now, found := measured[keyOf(r.dir, r.bench, r.ratio)]
		before, known := ratioOfPage(text, r.work)
		if !found || !known {
			return nil, nil, fmt.Errorf("%s: no ratio is measured, or %s has none: run make bench-report", r.work, page)
		}
		if change := now / before; (moreIsBetter(r.ratio) && change < 0.75) || (!moreIsBetter(r.ratio) && change > 1.25) {
			worse = append(worse, r)
			messages = append(messages, fmt.Sprintf("%s: %.2f %s, where %s has %.2f", r.work, now, r.than, page, before))
		}
	}
	return worse, messages, nil
}

// ratioOfPage reads the ratio of a row of the page's table.
func ratioOfPage(text, work string) (float64, bool) {
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || strings.TrimSpace(cells[1]) != work {
			continue
		}
		number, _, _ := strings.Cut(strings.TrimSpace(cells[3]), " ")
		ratio, err := strconv.ParseFloat(number, 64)
		return ratio, err == nil
	}
	return 0, false
}
