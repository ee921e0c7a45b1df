package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// othersUnit is the unit of a benchmark's figure that is no result: the share of the processors that other programs, and
// other machines on the same hardware, took while it ran. Its best value is that of the run that was disturbed least.
const othersUnit = "others"

// disturbed is the share from which on a ratio says nothing of the program: the bare engine and Continuo wait for the
// processor differently.
const disturbed = 0.15

// load is the processor time that the machine has used up to a moment.
type load struct {
	at   time.Time
	used time.Duration
}

func loadNow() load {
	text, _ := os.ReadFile("/proc/stat") // only Linux has it; elsewhere no other load is seen
	line, _, _ := strings.Cut(string(text), "\n")
	return load{time.Now(), usedOf(line)}
}

// usedOf adds up the first line of /proc/stat: user, nice, system, irq, softirq and steal in hundredths of a second; see
// proc_stat(5). It leaves out idle and iowait, and guests, which are in user.
func usedOf(line string) time.Duration {
	const tick = 10 * time.Millisecond
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0
	}
	var used time.Duration
	for _, i := range []int{1, 2, 3, 6, 7, 8} {
		ticks, _ := strconv.ParseInt(fields[i], 10, 64)
		used += time.Duration(ticks) * tick
	}
	return used
}

// othersSince is the share of the processors that others took since an earlier moment, beside a program's own time.
func (l load) othersSince(before load, own time.Duration) float64 {
	others := l.used - before.used - own
	return max(0, float64(others)/float64(l.at.Sub(before.at))/float64(runtime.NumCPU()))
}
