// Command benchreport runs the benchmarks of docs/benchmarks.md, each beside the bare engine that it is compared with,
// and writes the page's table.
//
//	go run ./internal/benchreport            run all and write docs/benchmarks.md
//	go run ./internal/benchreport -short     run the short ones and check their ratios against the page
//
// A ratio is measured by the benchmark itself, which runs the bare engine in turn with Continuo, so that it carries over
// to other machines; a figure in milliseconds does not.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

const page = "docs/benchmarks.md"

func main() {
	short := flag.Bool("short", false, "run the short benchmarks only, and compare their ratios with "+page+" instead of writing it")
	count := flag.Int("count", 3, "how often each benchmark runs; the best counts")
	only := flag.String("only", "", "run the benchmarks whose name contains this text, and print their rows")
	flag.Parse()
	if err := run(*short, *count, *only); err != nil {
		fmt.Fprintln(os.Stderr, "benchreport:", err)
		os.Exit(1)
	}
}

func run(short bool, count int, only string) error {
	rows := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return (short && !r.short) || !strings.Contains(r.bench, only) })
	if len(rows) == 0 {
		return fmt.Errorf("no benchmark has %q in its name", only)
	}
	measured := figures{}
	if err := measure(rows, measured, short, count); err != nil {
		return err
	}
	if short && only == "" {
		return compare(rows, measured, count)
	}
	text := table(rows, measured)
	fmt.Print(text)
	if only != "" {
		return nil
	}
	return writePage(text)
}

// measure runs the benchmarks that rows need and adds their figures.
func measure(rows []row, measured figures, short bool, count int) error {
	for _, bench := range benchmarks(rows) {
		if err := bench.run(measured, short, count); err != nil {
			return err
		}
	}
	return nil
}

// attempts is how often the benchmarks of a worse ratio run: a moment in which the machine is busy passes, a
// regression stays.
const attempts = 3

// compare compares the ratios with those of the page.
func compare(rows []row, measured figures, count int) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		worse, messages, err := regressed(rows, measured, string(text))
		if err != nil {
			return err
		}
		if len(worse) == 0 {
			fmt.Print(table(rows, measured))
			return nil
		}
		if attempt == attempts {
			return fmt.Errorf("these ratios are worse by more than a quarter:\n  %s", strings.Join(messages, "\n  "))
		}
		if err := measure(worse, measured, true, count); err != nil {
			return err
		}
	}
}

// benchmark is a benchmark function, with all of its cases that rows need.
type benchmark struct {
	dir, name, time string
	env             []string
}

func benchmarks(rows []row) []benchmark {
	var all []benchmark
	for _, r := range rows {
		name, _, _ := strings.Cut(r.bench, "/")
		if !slices.ContainsFunc(all, func(b benchmark) bool { return b.dir == r.dir && b.name == name }) {
			all = append(all, benchmark{dir: r.dir, name: name, time: r.time, env: r.env})
		}
	}
	return all
}

// run adds the best of the measured figures of each case to all.
func (b benchmark) run(all figures, short bool, count int) error {
	pattern := "^Benchmark" + b.name + "$"
	if cases := casesOf(b.name, short); cases != "" {
		pattern += "/" + cases
	}
	command := exec.Command("go", "test", b.dir, "-run", "^$", "-bench", pattern, "-benchtime", b.time, "-count", fmt.Sprint(count), "-timeout", "60m") //nolint:gosec,noctx // a developer's tool
	command.Env = append(os.Environ(), b.env...)
	command.Stderr = os.Stderr
	fmt.Fprintln(os.Stderr, strings.Join(command.Args, " "))
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", b.name, err, out)
	}
	return all.read(b.dir, string(out))
}

// casesOf returns a pattern of the cases of a benchmark that rows need, "" for all.
func casesOf(name string, short bool) string {
	if !short {
		return ""
	}
	var cases []string
	for _, r := range rows {
		if first, rest, found := strings.Cut(r.bench, "/"); first == name && found && r.short {
			first, _, _ = strings.Cut(rest, "/")
			cases = append(cases, first)
		}
	}
	if len(cases) == 0 {
		return ""
	}
	slices.Sort(cases)
	return "^(" + strings.Join(slices.Compact(cases), "|") + ")$"
}

func machine() string {
	return fmt.Sprintf("%s, %s/%s, %d processors", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
}
