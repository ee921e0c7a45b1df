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
type figures map[string]figure

// figure is the best and the worst of the values that were measured. The best is the one that other load on the machine
// disturbed least; the worst says how much that was.
type figure struct{ best, worst float64 }

// place is where a benchmark runs: the package's folder, and the number of processors if it is not all.
func place(dir string, cpus int) string {
	if cpus == 0 {
		return dir
	}
	return fmt.Sprintf("%s@%d", dir, cpus)
}

func keyOf(place, bench, unit string) string { return place + " " + bench + " " + unit }

// of returns a figure of a row.
func (f figures) of(r row, unit string) (figure, bool) {
	found, ok := f[keyOf(place(r.dir, r.cpus), r.bench, unit)]
	return found, ok
}

// resultLine is a line of results: the name with the number of processors behind it, the iterations, then pairs of a
// value and its unit (https://go.googlesource.com/proposal/+/master/design/14313-benchmark-format.md).
var resultLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// read adds the figures of a benchmark's output.
func (f figures) read(place, output string) error {
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
			f.add(keyOf(place, match[1], fields[i+1]), fields[i+1], value)
		}
	}
	return nil
}

// add adds one value.
func (f figures) add(key, unit string, value float64) {
	old, found := f[key]
	if !found {
		old = figure{value, value}
	}
	if better(unit, value, old.best) {
		old.best = value
	}
	if better(unit, old.worst, value) {
		old.worst = value
	}
	f[key] = old
}

// others is the least share of the processors that others took in a run of a row's benchmark.
func (f figures) others(r row) float64 {
	name, _, _ := strings.Cut(r.bench, "/")
	return f[keyOf(place(r.dir, r.cpus), name, othersUnit)].best
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
	switch {
	case strings.HasPrefix(unit, "rate-x"):
		return true
	case unit == "x_1000": // times the duration with fewer entries
		return false
	}
	return strings.HasSuffix(unit, "/s") || strings.Contains(unit, "/s/") || strings.HasPrefix(unit, "x_") || strings.HasSuffix(unit, "%")
}

// table renders the rows in Markdown.
func table(rows []row, measured figures) string {
	var text strings.Builder
	text.WriteString("| work | measured | beside the bare engine | goal | |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		value, found := measured.of(r, r.unit)
		if !found {
			fmt.Fprintf(&text, "| %s | not measured: %s | | %s | |\n", r.work, r.missing(), r.goal)
			continue
		}
		ratio := ""
		if x, found := measured.of(r, r.ratio); found {
			ratio = shownRatio(x) + " " + r.than
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", r.work, r.shown(value.best), ratio, r.goal, r.verdict(measured))
	}
	return text.String()
}

// shownRatio writes the best ratio, and behind it the worst where it differs.
func shownRatio(x figure) string {
	best, worst := fmt.Sprintf("%.2f", x.best), fmt.Sprintf("%.2f", x.worst)
	if best == worst {
		return best
	}
	return best + " (" + worst + ")"
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

// hasTable reports whether a table was written into the page.
func hasTable(text string) bool {
	_, rest, _ := strings.Cut(text, tableBegins)
	table, _, _ := strings.Cut(rest, tableEnds)
	return strings.TrimSpace(table) != ""
}

// tolerated is the part of a ratio by which it may be worse than the page's.
const tolerated = 0.25

// isWorse reports whether a ratio is worse than another by more than is tolerated.
func isWorse(unit string, now, before float64) bool {
	if moreIsBetter(unit) {
		return now < before*(1-tolerated)
	}
	return now > before*(1+tolerated)
}

// comparable separates the rows whose ratio on the page was steady when it was written from the others.
func comparable(rows []row, text string) (steady, wide []row, err error) {
	for _, r := range rows {
		before, known := ratioOfPage(text, r.work)
		switch {
		case !known:
			return nil, nil, fmt.Errorf("%s has no ratio for %s: run make bench-report", page, r.work)
		case isWorse(r.ratio, before.worst, before.best):
			wide = append(wide, r)
		default:
			steady = append(steady, r)
		}
	}
	return steady, wide, nil
}

// regressed returns the rows whose best ratio is worse than the worst on the page, and says how much: the bare engine and
// Continuo wait for different things, so that the same program has other ratios on another day.
func regressed(rows []row, measured figures, text string) (worse []row, messages []string, err error) {
	for _, r := range rows {
		now, found := measured.of(r, r.ratio)
		before, known := ratioOfPage(text, r.work)
		if !found || !known {
			return nil, nil, fmt.Errorf("%s: no ratio is measured, or %s has none: run make bench-report", r.work, page)
		}
		if isWorse(r.ratio, now.best, before.worst) {
			worse = append(worse, r)
			messages = append(messages, fmt.Sprintf("%s: %.2f %s, where %s has %s", r.work, now.best, r.than, page, shownRatio(before)))
		}
	}
	return worse, messages, nil
}

// ratioCell is what shownRatio writes.
var ratioCell = regexp.MustCompile(`^([0-9.]+)(?: \(([0-9.]+)\))? `)

// ratioOfPage reads the ratio of a row of the page's table.
func ratioOfPage(text, work string) (ratio figure, found bool) {
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || strings.TrimSpace(cells[1]) != work {
			continue
		}
		match := ratioCell.FindStringSubmatch(strings.TrimSpace(cells[3]) + " ")
		if match == nil {
			return ratio, false
		}
		best, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			return ratio, false
		}
		worst, err := strconv.ParseFloat(match[2], 64)
		if err != nil { // there is none
			worst = best
		}
		return figure{best, worst}, true
	}
	return ratio, false
}
