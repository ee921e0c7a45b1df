package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// benchmark is a benchmark function, with all of its cases that rows need.
type benchmark struct {
	dir, name, time string
	cpus            int // 0: all
	env             []string
	cases           []string // of rows, "" for one without cases
}

// benchmarks returns what rows need, each function once for each number of processors.
func benchmarks(rows []row) (all []benchmark) {
	for _, r := range rows {
		if r.cpus > runtime.NumCPU() {
			continue
		}
		name, rest, _ := strings.Cut(r.bench, "/")
		i := slices.IndexFunc(all, func(b benchmark) bool { return b.dir == r.dir && b.name == name && b.cpus == r.cpus })
		if i < 0 {
			i = len(all)
			all = append(all, benchmark{dir: r.dir, name: name, time: r.time, cpus: r.cpus, env: r.env})
		}
		all[i].cases = append(all[i].cases, rest)
	}
	return all
}

// pattern selects the cases, level by level.
func (b benchmark) pattern() string {
	pattern := "^Benchmark" + b.name + "$"
	for level := 0; ; level++ {
		var names []string
		for _, c := range b.cases {
			parts := strings.Split(c, "/")
			if c == "" || level >= len(parts) {
				return pattern
			}
			names = append(names, regexp.QuoteMeta(parts[level]))
		}
		slices.Sort(names)
		pattern += "/^(" + strings.Join(slices.Compact(names), "|") + ")$"
	}
}

// isIn reports whether the benchmark has figures.
func (b benchmark) isIn(f figures) bool {
	prefix := place(b.dir, b.cpus) + " " + b.name
	for key := range f {
		if strings.HasPrefix(key, prefix+" ") || strings.HasPrefix(key, prefix+"/") {
			return true
		}
	}
	return false
}

// run runs the benchmark once and adds what it measured.
func (b benchmark) run(f figures) error {
	args := []string{"go", "test", b.dir, "-run", "^$", "-bench", b.pattern(), "-benchtime", b.time, "-timeout", "20m"}
	if b.cpus > 0 {
		taskset, err := exec.LookPath("taskset")
		if err != nil {
			fmt.Fprintf(os.Stderr, "not measured with %d processors: %v\n", b.cpus, err)
			return nil
		}
		args = append([]string{taskset, "-c", fmt.Sprintf("0-%d", b.cpus-1)}, args...)
	}
	command := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // a developer's tool
	command.Env = append(os.Environ(), b.env...)
	command.Stderr = os.Stderr
	fmt.Fprintln(os.Stderr, strings.Join(args, " "))
	before := loadNow()
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", b.name, err, out)
	}
	own := command.ProcessState.UserTime() + command.ProcessState.SystemTime() // with all that it has started
	f.add(keyOf(place(b.dir, b.cpus), b.name, othersUnit), othersUnit, loadNow().othersSince(before, own))
	return f.read(place(b.dir, b.cpus), string(out))
}
