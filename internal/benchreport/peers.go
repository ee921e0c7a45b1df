package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The harness that runs other products is not part of this repository: it brings their packages. Its own README says how
// it measures. It is found in the folder of the variable, by default beside the checkout.
const (
	peersVariable = "CONTINUO_PEERS"
	peersDefault  = "../shared/bench/peers"
)

// adapter is Continuo as a product that the harness runs. It replaces the harness's own.
//
//go:embed testdata/peer.go.txt
var adapter []byte

const adapterFile = "go-continuo/peer-continuo/main.go"

// peersRun is one run of the harness: a script of it, the products it runs, and the bare engine they are compared with.
type peersRun struct {
	title, script, bare string
	peers               []string
	minutes             int // at most, in a report; the builds of the products take longer than that the first time
}

var peersRuns = []peersRun{
	{
		title: "SQLite and files", script: "run.sh", bare: "raw-sqlite", minutes: 6,
		peers: []string{"raw-sqlite", "raw-sqlite-group", "continuo-sqlite", "continuo-sqlite-full", "mastra-libsql", "langgraph-sqlite", "langchaingo-sqlite", "lc-community-file", "openai-agents-memory"},
	},
	{
		title: "PostgreSQL", script: "run-pg.sh", bare: "raw-pg", minutes: 3,
		peers: []string{"raw-pg", "continuo-pg", "continuo-pg-full", "lc-community-pg", "langgraph-pg"},
	},
}

// peersTables runs the harness and renders what it measured, one table for each run, or says why there is none. The runs
// of a report are bounded in time.
func peersTables(folder string, isBounded bool) string {
	var text strings.Builder
	text.WriteString("\n### Beside other products\n\n")
	work, err := copyHarness(cmp.Or(folder, os.Getenv(peersVariable), peersDefault))
	if err != nil {
		fmt.Fprintln(os.Stderr, "other products:", err)
		fmt.Fprintf(&text, "Not measured: %s names no folder of the harness.\n", peersVariable)
		return text.String()
	}
	for _, run := range peersRuns {
		results, err := run.run(work, isBounded)
		if err != nil {
			fmt.Fprintf(os.Stderr, "other products, %s: %v\n", run.title, err)
			fmt.Fprintf(&text, "%s: not measured, for the harness failed on this machine.\n\n", run.title)
			continue
		}
		text.WriteString(run.table(results))
	}
	return text.String()
}

// copyHarness copies the harness to where it builds the products; what an earlier run built there is used again.
func copyHarness(folder string) (work string, err error) {
	if _, err := os.Stat(filepath.Join(folder, peersRuns[0].script)); err != nil {
		return "", err
	}
	work = filepath.Join(os.TempDir(), "continuo-benchreport")
	if err := os.MkdirAll(work, 0o755); err != nil { //nolint:gosec // the database's user enters it too
		return "", err
	}
	if out, err := exec.Command("cp", "-R", folder+"/.", work).CombinedOutput(); err != nil { //nolint:gosec,noctx // a developer's tool
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return work, os.WriteFile(filepath.Join(work, adapterFile), adapter, 0o600)
}

// run runs the harness's script.
func (p peersRun) run(work string, isBounded bool) (results peersResults, err error) {
	checkout, err := os.Getwd()
	if err != nil {
		return results, err
	}
	out, err := os.MkdirTemp("", "continuo-peers-")
	if err != nil {
		return results, err
	}
	defer os.RemoveAll(out)
	args := []string{"sh", filepath.Join(work, p.script), "-profile", "quick", "-w", "1,2", "-peers", strings.Join(p.peers, ","), "-out", out}
	if isBounded { // timeout ends the script with everything that it started
		args = append([]string{"timeout", fmt.Sprintf("%dm", p.minutes)}, args...)
	}
	command := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // a developer's tool
	command.Env = append(os.Environ(), "OURS_SRC="+checkout, "PEERS_WORK="+work)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	fmt.Fprintln(os.Stderr, strings.Join(command.Args, " "))
	failed := command.Run()
	data, err := os.ReadFile(filepath.Join(out, "results.json")) // what was measured before a failure counts
	if err != nil {
		return results, errors.Join(failed, err)
	}
	return results, json.Unmarshal(data, &results)
}

// peersResults is what is read of the harness's results.
type peersResults struct {
	Peers []struct{ Name, Label, Version string }
	Rows  []struct {
		W    string // the workload: w1 appends, w2 builds
		Peer string
		Key  string
		R    struct {
			PerS  float64 `json:"per_s"`
			P50US float64 `json:"p50_us"`
		}
	}
}

// median returns the median of the repetitions of a workload that a product did.
func (r peersResults) median(workload, key, peer string) (median float64, found bool) {
	var all []float64
	for _, row := range r.Rows {
		if row.W != workload || row.Key != key || row.Peer != peer {
			continue
		}
		value := row.R.PerS
		if workload == "w2" {
			value = row.R.P50US
		}
		if value > 0 {
			all = append(all, value)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	slices.Sort(all)
	return all[len(all)/2], true
}

// table has a row for each product, with ratios to the bare engine.
func (p peersRun) table(results peersResults) string {
	var text strings.Builder
	fmt.Fprintf(&text, "| %s | version | appends/s, 1 conversation | appends/s, 64 conversations | the next 80 of 1 000 messages |\n|---|---|---|---|---|\n", p.title)
	for _, name := range p.peers {
		i := slices.IndexFunc(results.Peers, func(peer struct{ Name, Label, Version string }) bool { return peer.Name == name })
		if i < 0 {
			continue
		}
		fmt.Fprintf(&text, "| %s | %s |", results.Peers[i].Label, results.Peers[i].Version)
		for _, column := range []struct{ workload, key, format string }{{"w1", "fsync/1", "%.0f"}, {"w1", "fsync/64", "%.0f"}, {"w2", "80m/1000", "%.0f µs"}} {
			value, found := results.median(column.workload, column.key, name)
			bare, there := results.median(column.workload, column.key, p.bare)
			switch {
			case !found:
				text.WriteString(" – |")
			case !there || name == p.bare:
				fmt.Fprintf(&text, " "+column.format+" |", value)
			default:
				fmt.Fprintf(&text, " "+column.format+" (%.2f times bare) |", value, value/bare)
			}
		}
		text.WriteString("\n")
	}
	text.WriteString("\n")
	return text.String()
}
