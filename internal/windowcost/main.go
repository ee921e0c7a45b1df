// Command windowcost replays recorded conversations request by request and prints what their requests cost with each
// way to move a window, beside the least that windows of that size can cost and beside a window written by hand.
//
//	go run ./internal/windowcost [-data folder] [-source coding-agents,beam] [-cached 0.1] [-write 1]
//
// Tokens are those of o200k in the messages, as plans count them. A token that extends the request before is paid at the
// price of cached input, every other at the full price (or that of writing to the cache). The least cost of windows with
// a mean size is that of each message paid in full once, when it is first sent, and at the cached price afterwards. The
// window by hand has the same limit, keeps whole messages and groups in the same form, and is cut back to the share of
// the limit that gives it the same mean size.
//
// It also counts what the steps of coding agents need of earlier results of tools, and how much of it their requests hold:
// where moves give up first what is needed least, and where they shorten outputs by their age alone.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/continuo-log/continuo/interchange"
	"github.com/continuo-log/continuo/window"
)

// options are the flags.
type options struct {
	data    string
	sources string
	most    int
	prices  prices
	prompt  int
}

// promptBytes is how many bytes of a request's body a token of its system messages and tools takes: English text, and JSON.
const promptBytes = 4.3

// prices are those of cached input and of writing to the cache, as parts of the price of other input.
type prices struct{ cached, write float64 }

func main() {
	o := options{}
	flag.StringVar(&o.data, "data", filepath.Join("..", "shared", "data"), "the folder of conversations, NAME.jsonl.gz")
	flag.StringVar(&o.sources, "source", "coding-agents,aider-history,tau2,beam,locomo", "the names of the files")
	flag.IntVar(&o.most, "most", 600, "how many entries of a conversation are replayed at most")
	flag.Float64Var(&o.prices.cached, "cached", 0.1, "the price of cached input, as a part of the price of other input")
	flag.Float64Var(&o.prices.write, "write", 1, "the price of input that is written to the cache, as such a part")
	flag.IntVar(&o.prompt, "prompt", 1700, "the tokens of the system messages and tools of each request, which continuo chat sends with tools.project_dir")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "windowcost:", err)
		os.Exit(1)
	}
}

// budgets are the limits that the requests have.
var budgets = []struct {
	name   string
	limits window.Limits
}{
	{"8 000 tokens", window.Limits{Tokens: 8000}},
	{"80 messages", window.Limits{Messages: 80}},
}

// ways are how windows move.
var ways = []struct {
	name  string
	apply func(*window.View)
}{
	{"mark 0.6", func(v *window.View) { v.LowWater, v.Priced = 0.6, false }},
	{"mark 0.4", func(v *window.View) { v.LowWater, v.Priced = 0.4, false }},
	{"default", func(*window.View) {}},
}

func run(o options) error {
	logs := map[string][]*conversation{}
	names := strings.Split(o.sources, ",")
	for _, name := range names {
		found, err := conversations(filepath.Join(o.data, name+".jsonl.gz"), o.most)
		if err != nil {
			return err
		}
		logs[name] = found
	}
	table := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', 0)
	fmt.Fprintln(table, "| budget\t| conversations\t| window\t| requests\t| moves\t| mean tokens\t| extends, tokens\t| extends, bytes\t| with the prompt\t| cost a request\t| × least\t| × by hand\t|")
	fmt.Fprintln(table, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, budget := range budgets {
		sums := make([]figures, len(ways))
		hands := make([]float64, len(ways))
		for _, name := range names {
			outgrown := slices.DeleteFunc(slices.Clone(logs[name]), func(c *conversation) bool { return !c.outgrows(budget.limits) })
			if len(outgrown) == 0 {
				continue
			}
			hand := byHand(outgrown, budget.limits, o.prices)
			for i, way := range ways {
				f, err := replayAll(outgrown, budget.limits, o.prices, way.apply)
				if err != nil {
					return err
				}
				sums[i].add(f)
				hands[i] += hand.costAt(f.mean()) * float64(f.requests)
				row(table, budget.name, name, way.name, f, o, hand.costAt(f.mean()))
			}
		}
		for i, way := range ways {
			row(table, budget.name, "all", way.name, sums[i], o, hands[i]/float64(max(sums[i].requests, 1)))
		}
	}
	fmt.Fprintln(table)
	if err := lost(table, o, logs); err != nil {
		return err
	}
	fmt.Fprintln(table)
	if err := estimates(table, o, logs); err != nil {
		return err
	}
	return table.Flush()
}

func row(table *tabwriter.Writer, budget, source, way string, f figures, o options, hand float64) {
	requests := float64(f.requests)
	fmt.Fprintf(table, "| %s\t| %s\t| %s\t| %d\t| %d\t| %.0f\t| %.1f %%\t| %.1f %%\t| %.1f %%\t| %.0f\t| %.3f\t| %.3f\t|\n",
		budget, source, way, f.requests, f.moves, f.mean(), 100*f.cached/f.tokens, 100*f.shared(0), 100*f.shared(o.prompt),
		f.cost(o.prices)/requests, f.cost(o.prices)/f.least(o.prices), f.cost(o.prices)/requests/hand)
}

// conversations reads the conversations of a file.
func conversations(path string, most int) ([]*conversation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var found []*conversation
	for document, err := range interchange.Read(filepath.Base(path), file, interchange.Options{}) {
		if err != nil {
			return nil, err
		}
		document.Entries = document.Entries[:min(len(document.Entries), most)]
		c, err := imported(document)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: left out: %v\n", document.Source, err)
			continue
		}
		found = append(found, c)
	}
	return found, nil
}
