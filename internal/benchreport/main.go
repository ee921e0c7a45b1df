// Command benchreport runs the benchmarks of docs/benchmarks.md, each beside the bare engine that it is compared with,
// and other products beside Continuo, and writes the page's tables.
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
	"runtime"
	"slices"
	"strings"
	"time"
)

const page = "docs/benchmarks.md"

// options are the flags.
type options struct {
	short  bool
	count  int
	budget time.Duration
	only   string
	peers  string
}

func main() {
	var o options
	flag.BoolVar(&o.short, "short", false, "run the short benchmarks only, and compare their ratios with "+page+" instead of writing it")
	flag.IntVar(&o.count, "count", 3, "how often each benchmark runs, if there is time; the best counts")
	flag.DurationVar(&o.budget, "budget", 16*time.Minute, "no benchmark runs again after this time")
	flag.StringVar(&o.only, "only", "", "run the benchmarks whose name contains this text, and print their rows; \"peers\" runs the other products alone")
	flag.StringVar(&o.peers, "peers", "", "the folder of the harness that runs other products (default CONTINUO_PEERS, or ../shared/bench/peers)")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "benchreport:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if o.only == "peers" {
		fmt.Print(peersTables(o.peers, false))
		return nil
	}
	rows := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return (o.short && !r.short) || !strings.Contains(r.bench, o.only) })
	if len(rows) == 0 {
		return fmt.Errorf("no benchmark has %q in its name", o.only)
	}
	if o.short && o.only == "" {
		return check(rows, o)
	}
	measured, began := figures{}, time.Now()
	if err := measured.measure(rows, 1, began.Add(o.budget)); err != nil {
		return err
	}
	peers := ""
	if o.only == "" {
		peers = peersTables(o.peers, true)
	}
	if err := measured.measure(rows, o.count-1, began.Add(o.budget)); err != nil {
		return err
	}
	text := table(rows, measured)
	fmt.Print(text, peers)
	if o.only != "" {
		return nil
	}
	return writePage(text + peers)
}

// measure runs the benchmarks that rows need so many times and adds their figures. The first time, all run; again only
// those that begin before the deadline.
func (f figures) measure(rows []row, times int, deadline time.Time) error {
	for range times {
		for _, bench := range benchmarks(rows) {
			if len(f) > 0 && bench.isIn(f) && time.Now().After(deadline) {
				continue
			}
			if err := bench.run(f); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	// attempts is how often the benchmarks of a worse ratio run again: a moment in which the machine is busy passes, a
	// regression stays.
	attempts = 3
	// shortDeadline is the time after which the short form runs nothing a second time, except for worse ratios.
	shortDeadline = 2 * time.Minute
)

// check compares the ratios with those of the page. It leaves out rows whose ratio was so different from one run to the
// next when the page was written that a comparison would say nothing.
func check(rows []row, o options) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	if !hasTable(string(text)) {
		fmt.Printf("%s has no table yet, so that nothing is compared: run make bench-report\n", page)
		return nil
	}
	steady, wide, err := comparable(rows, string(text))
	if err != nil {
		return err
	}
	for _, r := range wide {
		fmt.Printf("not compared, for its runs differ by more than a quarter in %s: %s\n", page, r.work)
	}
	measured, deadline := figures{}, time.Now().Add(shortDeadline)
	if err := measured.measure(steady, min(o.count, 2), deadline); err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		worse, messages, err := regressed(steady, measured, string(text))
		if err != nil {
			return err
		}
		if len(worse) == 0 || attempt == attempts {
			fmt.Print(table(steady, measured))
			return verdict(worse, messages, measured)
		}
		if err := measured.measure(worse, 1, time.Now().Add(time.Hour)); err != nil {
			return err
		}
	}
}

// verdict fails for the rows that are worse although a run of theirs had the machine for itself.
func verdict(worse []row, messages []string, measured figures) error {
	var failed []string
	for i, r := range worse {
		if others := measured.others(r); others > disturbed {
			fmt.Printf("NOT JUDGED, for other programs took %.0f %% of the processors or more in each run: %s\n", 100*others, messages[i])
		} else {
			failed = append(failed, messages[i])
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("these ratios are worse by more than a quarter:\n  %s", strings.Join(failed, "\n  "))
	}
	return nil
}

func machine() string {
	return fmt.Sprintf("%s, %s/%s, %d processors", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
}
