package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/window"
)

// The kinds of needs.
const (
	readsAgain = "reads again"
	quotes     = "quotes"
	edits      = "edits"
)

// need is a part of an earlier result that a step uses: lines of it. Its step reads the lines again, quotes them, or edits the
// file of which they are.
type need struct {
	kind  string
	lines []string
}

// A line is distinctive from so many bytes on; a result is read again where a later one has this share of its distinctive lines.
const (
	distinctive = 24
	sameLines   = 0.9
)

// held counts needs by their kinds, and those of which the request holds nine tenths of the lines.
type held struct{ needs, held map[string]int }

// needsOf finds what the steps of a conversation need, by the index of the assistant entry. Only results of tools are sources,
// and only for lines that no message of the user or call of the model had before.
func needsOf(all []continuo.Entry) map[int][]need {
	found := map[int][]need{}
	newest := map[string]int{}     // result by line
	elsewhere := map[string]bool{} // lines that are not only in results
	files := map[string]int{}      // result by the path that it is of
	for i := range all {
		e := &all[i]
		if e.Hidden {
			continue
		}
		if e.Role == continuo.Tool {
			for _, line := range linesOf(e.Content.String()) {
				newest[line] = i
			}
			continue
		}
		if e.Role == continuo.Assistant {
			found[i] = stepNeeds(all, i, newest, elsewhere, files)
		}
		for _, line := range linesOf(e.Content.String()) {
			elsewhere[line] = true
		}
		for _, call := range e.ToolCalls {
			for _, line := range argumentLines(call.Arguments) {
				elsewhere[line] = true
			}
			if path := pathOf(call.Arguments); path != "" && !isEdit(call.Name) {
				if at := resultOf(all, i, call.ID); at > 0 {
					files[path] = at
				}
			}
		}
	}
	return found
}

// stepNeeds finds what one step needs.
func stepNeeds(all []continuo.Entry, i int, newest map[string]int, elsewhere map[string]bool, files map[string]int) (needs []need) {
	step := &all[i]
	quoted := map[int][]string{}
	note := func(lines []string) {
		for _, line := range lines {
			if at, ok := newest[line]; ok && !elsewhere[line] {
				quoted[at] = append(quoted[at], line)
			}
		}
	}
	note(linesOf(step.Content.String()))
	for _, call := range step.ToolCalls {
		note(argumentLines(call.Arguments))
		if at, ok := files[pathOf(call.Arguments)]; ok && isEdit(call.Name) {
			if lines := linesOf(all[at].Content.String()); len(lines) > 0 {
				needs = append(needs, need{edits, lines})
			}
		}
		if at := resultOf(all, i, call.ID); at > 0 {
			if n, ok := repeated(linesOf(all[at].Content.String()), newest); ok {
				needs = append(needs, n)
			}
		}
	}
	for _, lines := range quoted {
		needs = append(needs, need{quotes, lines})
	}
	return needs
}

// repeated is the need of a result whose lines an earlier result has.
func repeated(lines []string, newest map[string]int) (need, bool) {
	by := map[int]int{}
	for _, line := range lines {
		if at, ok := newest[line]; ok {
			by[at]++
		}
	}
	for _, n := range by {
		if float64(n) >= sameLines*float64(len(lines)) {
			return need{readsAgain, lines}, true
		}
	}
	return need{}, false
}

// resultOf is the index of the result of a call of the entry at an index; 0 for none.
func resultOf(all []continuo.Entry, i int, call string) int {
	for at := i + 1; at < len(all) && all[at].Role == continuo.Tool; at++ {
		if all[at].ToolCallID == call {
			return at
		}
	}
	return 0
}

// linesOf are the distinctive lines of a text.
func linesOf(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= distinctive {
			lines = append(lines, line)
		}
	}
	return lines
}

// argumentLines are the distinctive lines of the texts in a call's arguments.
func argumentLines(arguments string) (lines []string) {
	var value any
	if json.Unmarshal([]byte(arguments), &value) != nil {
		return linesOf(arguments)
	}
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case string:
			lines = append(lines, linesOf(v)...)
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(value)
	return lines
}

// pathOf is the file that a call names; "" for none.
func pathOf(arguments string) string {
	var a map[string]any
	if json.Unmarshal([]byte(arguments), &a) != nil {
		return ""
	}
	for _, key := range []string{"path", "file_path", "filename", "file", "file_name"} {
		if path, ok := a[key].(string); ok && path != "" {
			return path
		}
	}
	if input, ok := a["input"].(string); ok && strings.HasPrefix(input, "§") { // a format of edits that begins with the file
		path, _, _ := strings.Cut(strings.TrimPrefix(input, "§"), "\n")
		return path
	}
	return ""
}

func isEdit(tool string) bool {
	tool = strings.ToLower(tool)
	for _, word := range []string{"edit", "write", "replace", "insert", "patch"} {
		if strings.Contains(tool, word) {
			return true
		}
	}
	return false
}

// add counts the needs of a step that a request holds.
func (h *held) add(needs []need, plan *window.Plan) {
	if len(needs) == 0 {
		return
	}
	shown := map[string]bool{}
	for i := range plan.Messages {
		m := &plan.Messages[i]
		for _, line := range linesOf(m.Content.String()) {
			shown[line] = true
		}
		for _, call := range m.ToolCalls {
			for _, line := range argumentLines(call.Arguments) {
				shown[line] = true
			}
		}
	}
	for _, n := range needs {
		lines := 0
		for _, line := range n.lines {
			if shown[line] {
				lines++
			}
		}
		h.needs[n.kind]++
		if float64(lines) >= sameLines*float64(len(n.lines)) {
			h.held[n.kind]++
		}
	}
}

// compared are the requests of a budget whose windows gave up by use and by age at the same move, from the same window before.
type compared struct {
	requests, moves, alone, given int
	tokens                        [2]int
	holds                         [2]held // by use, by age
}

func (c *compared) missed(i int) (n int) {
	for kind, needs := range c.holds[i].needs {
		n += needs - c.holds[i].held[kind]
	}
	return n
}

// needBudgets are the limits of windows whose needs are counted: many, because moves at other places lose other things.
var needBudgets = []struct {
	name   string
	limits window.Limits
}{
	{"4 000 tokens", window.Limits{Tokens: 4000}},
	{"6 000 tokens", window.Limits{Tokens: 6000}},
	{"8 000 tokens", window.Limits{Tokens: 8000}},
	{"12 000 tokens", window.Limits{Tokens: 12_000}},
	{"16 000 tokens", window.Limits{Tokens: 16_000}},
	{"24 000 tokens", window.Limits{Tokens: 24_000}},
	{"40 messages, 30 000 characters", window.Limits{Messages: 40, Chars: 30_000}},
	{"80 messages, 30 000 characters", window.Limits{Messages: 80, Chars: 30_000}},
	{"80 messages, 120 000 characters", window.Limits{Messages: 80, Chars: 120_000}},
}

// lost prints how many of the needs of steps their requests hold, where a move gives up by use, and where it does by age.
func lost(w io.Writer, o options, logs map[string][]*conversation) error {
	fmt.Fprintln(w, "| budget\t| conversations\t| requests\t| moves\t| alone\t| given up\t| order\t| mean tokens\t| reads again\t| quotes\t| edits\t| missed\t|")
	fmt.Fprintln(w, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, budget := range needBudgets {
		for _, name := range strings.Split(o.sources, ",") {
			all, err := compare(budget.limits, logs[name])
			if err != nil {
				return err
			}
			if all.requests == 0 || len(all.holds[0].needs) == 0 {
				continue
			}
			for i, order := range []string{"by use", "by age"} {
				part := func(kind string) string {
					return fmt.Sprintf("%d of %d", all.holds[i].held[kind], all.holds[i].needs[kind])
				}
				fmt.Fprintf(w, "| %s\t| %s\t| %d\t| %d\t| %d\t| %d\t| %s\t| %d\t| %s\t| %s\t| %s\t| %d\t|\n", budget.name, name, all.requests, all.moves, all.alone, all.given, order,
					all.tokens[i]/all.requests, part(readsAgain), part(quotes), part(edits), all.missed(i))
			}
		}
	}
	return nil
}

// compare replays conversations with a budget.
func compare(limits window.Limits, logs []*conversation) (all compared, err error) {
	all.holds = [2]held{{map[string]int{}, map[string]int{}}, {map[string]int{}, map[string]int{}}}
	view, err := window.DefaultSettings().View(window.Codex)
	if err != nil {
		return all, err
	}
	view.Limits = limits
	for _, c := range logs {
		if !c.outgrows(limits) {
			continue
		}
		needs := needsOf(c.all)
		err := c.pairs(view, &all, func(i int, plans [2]*window.Plan) {
			all.requests++
			for order, plan := range plans {
				all.tokens[order] += plan.Totals.Tokens
				all.holds[order].add(needs[i], plan)
			}
		})
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// pairs builds two requests before every answer: with a window that gives up by use, and with one that gives up by age at the
// same moves. Requests are left out where the second one moves alone, until both move again.
func (c *conversation) pairs(view window.View, all *compared, read func(answer int, plans [2]*window.Plan)) error {
	views := [2]window.View{view, view}
	views[1].ByUse = false
	plain := &conversation{}
	c.entries = c.all[:0:0]
	last, both := -1, true // the newest answer; whether both windows moved at the same time
	for i, entry := range c.all {
		other := entry
		if entry.Role == continuo.Assistant && !entry.Hidden && len(c.entries) > 0 {
			var plans [2]*window.Plan
			var err error
			for order, source := range []*conversation{c, plain} {
				if order == 1 && plans[0].Moved && last >= 0 {
					round := *plain.entries[last].Round
					round.Window = c.entries[last].Round.Window
					plain.entries[last].Round = &round
				}
				plans[order], err = views[order].Build(source, window.Input{At: int64(len(c.entries)), Counter: token.O200k()})
				if err != nil {
					return err
				}
			}
			if plans[0].Moved {
				all.moves++
				g := plans[0].Window.GivenUp
				all.given += len(g.ReadAgain) + len(g.Failed) + len(g.Described)
				both = true
			} else if plans[1].Moved {
				all.alone++
				both = false
			}
			if both {
				read(i, plans)
			}
			entry.Round, other.Round, last = roundOf(plans[0]), roundOf(plans[1]), i
		}
		c.entries, plain.entries = append(c.entries, entry), append(plain.entries, other)
	}
	return nil
}

// roundOf records a window on the answer to a request, as a turn does.
func roundOf(plan *window.Plan) *continuo.Round {
	return &continuo.Round{View: plan.View, ViewHash: plan.ViewHash, At: plan.At, Window: plan.Window}
}
