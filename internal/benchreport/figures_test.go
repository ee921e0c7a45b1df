package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
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
| appends | 5000 ops/s | 0.80 (0.60) of bare | ≥ 0.75 | met |
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
	steady := figures{keyOf(".", rows[0].bench, "ops/s"): {5000, 4000}, keyOf(".", rows[0].bench, "x_bare"): {0.8, 0.7}}
	if err := writePage(table(rows, steady)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for ratio, passes := range map[float64]bool{0.80: true, 0.61: true, 0.53: true, 0.52: false, 2: true} { // the worst is 0.70
		measured[keyOf(".", rows[0].bench, "x_bare")] = figure{ratio, ratio}
		worse, messages, err := regressed(rows, measured, string(text))
		if err != nil || (len(worse) == 0) != passes {
			t.Errorf("%v where the page has 0.80: %v, %v", ratio, messages, err)
		}
		if !passes && !strings.Contains(messages[0], "appends") {
			t.Errorf("the message does not name the row: %v", messages)
		}
	}
	if steady, wide, err := comparable(rows, string(text)); err != nil || len(steady) != 1 || len(wide) != 0 {
		t.Errorf("%v, %v, %v", steady, wide, err)
	}
	if steady, wide, err := comparable(rows, strings.Replace(string(text), "(0.70)", "(0.59)", 1)); err != nil || len(steady) != 0 || len(wide) != 1 {
		t.Errorf("a ratio from 0.59 to 0.80 is compared: %v, %v, %v", steady, wide, err)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.HasPrefix(string(text), "# B\n") || !strings.HasSuffix(string(text), "end\n") {
		t.Errorf("the rest of the page changed: %s, %v", text, err)
	}
}

// TestABusyMachineIsNotJudged has a ratio that is worse in runs of which others took a part of the processors.
func TestABusyMachineIsNotJudged(t *testing.T) {
	worse := []row{{work: "appends", dir: ".", bench: "Append/log/writers=1"}}
	for _, c := range []struct {
		others []float64
		fails  bool
	}{{nil, true}, {[]float64{.9, .02}, true}, {[]float64{.02, .9}, true}, {[]float64{.9, .4}, false}} {
		measured := figures{}
		for _, share := range c.others {
			measured.add(keyOf(".", "Append", othersUnit), othersUnit, share)
		}
		if err := verdict(worse, []string{"appends: 0.10"}, measured); (err != nil) != c.fails {
			t.Errorf("others took %v: %v", c.others, err)
		}
	}
	const line = "cpu  1000 100 300 9999 9999 10 20 30 7 0"
	if used := usedOf(line); used != 14600*time.Millisecond {
		t.Errorf("%q is %v", line, used)
	}
	before := load{time.Unix(0, 0), 5 * time.Second}
	after := load{time.Unix(10, 0), 5*time.Second + time.Duration(runtime.NumCPU())*8*time.Second}
	if share := after.othersSince(before, time.Duration(runtime.NumCPU())*5*time.Second); share < .299 || share > .301 {
		t.Errorf("others took 0.3, not %v", share)
	}
}

func TestPatterns(t *testing.T) {
	rows := []row{
		{dir: ".", bench: "Append/log/writers=1", time: "1x"},
		{dir: ".", bench: "Append/log/writers=64"},
		{dir: ".", bench: "Ready", time: "2x"},
		{dir: ".", bench: "Append/log/writers=64", cpus: 1},
	}
	all := benchmarks(rows)
	var got []string
	for _, b := range all {
		got = append(got, fmt.Sprintf("%s %s %d", b.pattern(), b.time, b.cpus))
	}
	want := []string{"^BenchmarkAppend$/^(log)$/^(writers=1|writers=64)$ 1x 0", "^BenchmarkReady$ 2x 0", "^BenchmarkAppend$/^(log)$/^(writers=64)$  1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	measured := figures{}
	if err := measured.read(".", output); err != nil {
		t.Fatal(err)
	}
	if !all[0].isIn(measured) || !all[1].isIn(measured) || all[2].isIn(measured) {
		t.Error("figures of another number of processors count")
	}
}

func TestBetter(t *testing.T) {
	for unit, more := range map[string]bool{
		"ops/s": true, "x_bare": true, "rate-x/forward": true, "requests/s/forward": true, "ns/op": false, "x_1000": false, "cold-x": false, "x-proxy/view": false,
	} {
		if better(unit, 2, 1) != more {
			t.Errorf("more %s is better: %v", unit, !more)
		}
	}
}

func TestTableOfOtherProducts(t *testing.T) {
	var results peersResults
	if err := json.Unmarshal([]byte(`{"peers":[{"name":"raw","label":"bare","version":"1"},{"name":"other","label":"Other","version":"2"}],"rows":[
		{"w":"w1","peer":"raw","key":"fsync/1","r":{"per_s":100}},{"w":"w1","peer":"other","key":"fsync/1","r":{"per_s":40}},
		{"w":"w1","peer":"other","key":"fsync/1","r":{"per_s":50}},{"w":"w1","peer":"other","key":"fsync/1","r":{"per_s":60}},
		{"w":"w2","peer":"raw","key":"80m/1000","r":{"p50_us":10}},{"w":"w2","peer":"other","key":"80m/1000","r":{"p50_us":25}}]}`), &results); err != nil {
		t.Fatal(err)
	}
	got := peersRun{title: "T", bare: "raw", peers: []string{"raw", "other", "absent"}}.table(results)
	want := `| T | version | appends/s, 1 conversation | appends/s, 64 conversations | the next 80 of 1 000 messages |
|---|---|---|---|---|
| bare | 1 | 100 | – | 10 µs |
| Other | 2 | 50 (0.50 times bare) | – | 25 µs (2.50 times bare) |

`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
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

// TestTheAdapterFitsTheHarness compiles Continuo's adapter in a copy of the harness.
func TestTheAdapterFitsTheHarness(t *testing.T) {
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	folder := cmp.Or(os.Getenv(peersVariable), filepath.Join(checkout, peersDefault))
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("SKIPPED: no harness in %s; set %s to its folder", folder, peersVariable)
	}
	work := t.TempDir()
	for _, module := range []string{"go", "go-continuo"} {
		if err := os.CopyFS(filepath.Join(work, module), os.DirFS(filepath.Join(folder, module))); err != nil {
			t.Fatal(err)
		}
	}
	uses := fmt.Sprintf("go 1.26.0\nuse (\n%s\n%s\n%s\n)\n", filepath.Join(work, "go"), filepath.Join(work, "go-continuo"), checkout)
	if err := errors.Join(os.WriteFile(filepath.Join(work, "go.work"), []byte(uses), 0o600), os.WriteFile(filepath.Join(work, adapterFile), adapter, 0o600)); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "go", "vet", "./peer-continuo")
	command.Dir, command.Env = filepath.Join(work, "go-continuo"), append(os.Environ(), "GOWORK="+filepath.Join(work, "go.work"))
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
