package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRecordedReportsAreExpected: of each agent's recorded sessions, corrected estimates are less than 3 % off after three reports, but for
// the reports that contradict earlier ones, and the corrections follow none of these.
func TestRecordedReportsAreExpected(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(os.Getenv("CONTINUO_DATA"), "agent-traffic", "*.jsonl.gz"))
	if os.Getenv("CONTINUO_DATA") == "" || len(files) == 0 {
		t.Skip("CONTINUO_DATA names no folder with recorded traffic of agents")
	}
	contradicting := 0
	for _, file := range files {
		e := errors{after: afterRecorded, recorded: true}
		if err := recordedReports(file, &e); err != nil {
			t.Fatal(err)
		}
		if off := mean(e.consistent); off >= 0.03 || len(e.consistent) == 0 {
			t.Errorf("%s: %d estimates are %.2f %% off", filepath.Base(file), len(e.consistent), 100*off)
		}
		if e.followed > 0 {
			t.Errorf("%s: the correction follows %d reports that contradict others", filepath.Base(file), e.followed)
		}
		contradicting += len(e.corrected) - len(e.consistent)
	}
	if contradicting > 2 {
		t.Errorf("%d reports contradict others", contradicting)
	}
}

func TestReportsThatContradictOthers(t *testing.T) {
	session := []report{{estimated: 1000, reported: 300}, {estimated: 1010, reported: 1000}, {estimated: 600, reported: 590}, {estimated: 1020, reported: 700}, {estimated: 1030, reported: 990}}
	for i, want := range []bool{false, false, false, true, false} {
		if got := contradicts(session, i); got != want {
			t.Errorf("report %d contradicts others: %v", i, got)
		}
	}
}
