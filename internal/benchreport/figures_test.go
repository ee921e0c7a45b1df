package main

import (
	"os"
	"strings"
	"testing"
)

const output = `goos: linux
BenchmarkAppend/log/writers=1-2   	    2000	    200000 ns/op	 5000 ops/s	  0.60 x_bare
BenchmarkAppend/log/writers=1-2   	    2000	    190000 ns/op	 4000 ops/s	  0.80 x_bare
BenchmarkReady 	 5	 50.77 binary-MB	 177.2 ready-ms
PASS
`

var testRows = []row{
	{work: "appends", dir: ".", bench: "Append/log/writers=1", unit: "ops/s", ratio: "x_bare", than: "of bare", goal: "≥ 0.75", limit: atLeast("x_bare", 0.75)},
	{work: "start", dir: ".", bench: "Ready", unit: "ready-ms", goal: "≤ 40 ms", limit: atMost("ready-ms", 40)},
	{work: "gone", dir: ".", bench: "Gone", unit: "ns/op"},
}

func TestTable(t *testing.T) {
	measured := figures{}
	if err := measured.read(".", output); err != nil {
		t.Fatal(err)
	}
	want := `| work | measured | beside the bare engine | goal | |
|---|---|---|---|---|
| appends | 5000 ops/s | 0.80 of bare | ≥ 0.75 | met |
| start | 177 ready-ms |  | ≤ 40 ms | missed |
| gone | not measured: Gone reports no ns/op | |  | |
`
	if got := table(testRows, measured); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRatiosAreCheckedAgainstThePage(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("docs", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(page, []byte("# B\n"+tableBegins+tableEnds+"end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	measured := figures{}
	if err := measured.read(".", output); err != nil {
		t.Fatal(err)
	}
	rows := testRows[:1]
	if _, _, err := regressed(rows, measured, ""); err == nil {
		t.Error("a page without the ratio passes")
	}
	if err := writePage(table(rows, measured)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for ratio, passes := range map[float64]bool{0.80: true, 0.61: true, 0.59: false, 2: true} {
		measured[keyOf(".", rows[0].bench, "x_bare")] = ratio
		worse, messages, err := regressed(rows, measured, string(text))
		if err != nil || (len(worse) == 0) != passes {
			t.Errorf("%v where the page has 0.80: %v, %v", ratio, messages, err)
		}
		if !passes && !strings.Contains(messages[0], "appends") {
			t.Errorf("the message does not name the row: %v", messages)
		}
	}
	if text, err := os.ReadFile(page); err != nil || !strings.HasPrefix(string(text), "# B\n") || !strings.HasSuffix(string(text), "end\n") {
		t.Errorf("the rest of the page changed: %s, %v", text, err)
	}
}

// TestRowsAreDistinct holds for the page, whose rows are found by what they are called.
func TestRowsAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.work] || (r.short && r.ratio == "") || r.time == "" {
			t.Errorf("%q is there twice, is short without a ratio, or has no time", r.work)
		}
		seen[r.work] = true
	}
}
