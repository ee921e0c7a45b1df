package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
)

// replayedVariant are the totals of a variant.
type replayedVariant struct {
	Name   string              `json:"name"`
	Totals engine.ReplayTotals `json:"totals"`
}

// totals are those of the recorded answers, each once, and of the variants.
func (r *replaying) totals() (recorded engine.ReplayTotals, variants []replayedVariant) {
	counted := map[string]bool{}
	for _, variant := range r.request.Variants {
		sums := replayedVariant{Name: variant.Name}
		for i := range r.results {
			result := &r.results[i]
			if result.Variant != variant.Name {
				continue
			}
			sums.Totals.AddReplayed(result)
			if place := fmt.Sprint(result.Conversation, "\x00", result.Seq); !counted[place] && wasBuilt(result) {
				counted[place] = true
				recorded.AddRecorded(result)
			}
		}
		variants = append(variants, sums)
	}
	return recorded, variants
}

// wasBuilt reports whether a request was built, and sent unless it was a dry run.
func wasBuilt(result *engine.ReplayResult) bool {
	return result.State == "built" || result.State == engine.ReplayAnswered || result.State == engine.ReplayFailed
}

// show writes the results.
func (r *replaying) show() error {
	recorded, variants := r.totals()
	if len(r.results) > 0 {
		if err := r.writeReport(recorded, variants); err != nil {
			return err
		}
	}
	if r.JSON {
		for i := range r.results { // what a replay continues from is in the file of results
			r.results[i].Recorded.Round, r.results[i].Replayed.Round = nil, nil
		}
		return r.app.json(struct {
			DryRun   bool                  `json:"dry_run"`
			Recorded engine.ReplayTotals   `json:"recorded"`
			Variants []replayedVariant     `json:"variants"`
			Data     []engine.ReplayResult `json:"data"`
		}{r.DryRun, recorded, variants, append([]engine.ReplayResult{}, r.results...)})
	}
	if len(r.results) == 0 {
		if len(r.request.Conversations) > 0 {
			r.app.note("There are no answers to replay.")
		}
		return nil
	}
	if r.Text {
		r.showTexts()
	} else {
		r.showRows()
	}
	r.showTotals(recorded, variants)
	r.noteProblems()
	return nil
}

// mostRows is how many answers have a row.
const mostRows = 50

// showRows shows a row for each answer, unless there are many.
func (r *replaying) showRows() {
	a := r.app
	built := slices.DeleteFunc(slices.Clone(r.results), func(result engine.ReplayResult) bool { return !wasBuilt(&result) })
	if len(built) == 0 {
		return
	}
	if len(built) > mostRows {
		a.note("%s: --text or --json shows each.", term.Count(len(built), "answer"))
		return
	}
	t := a.table("conversation", ">entry", "variant", ">tokens in", ">shared", ">out", ">cost", ">time", ">alike", "answer")
	for i := range built {
		result := &built[i]
		answer := &result.Replayed
		alike, said := "", term.OneLine(said(answer), 200)
		switch result.State {
		case engine.ReplayAnswered:
			alike = percent(result.Similarity)
		case engine.ReplayFailed:
			alike, said = a.paint.Red("failed"), a.paint.Red(term.OneLine(answer.Error.Message, 200))
		}
		used, variant := answer.Usage, result.Variant
		if used == nil && answer.Error == nil {
			used = answer.Expected
		}
		if len(r.request.Variants) == 1 {
			variant = ""
		}
		in, out, cost := "", "", ""
		if used != nil {
			in, out = term.Number(used.InputTokens), term.Number(used.OutputTokens)
			if used.Cost.Currency != "" {
				cost = fmt.Sprintf("$%.4f", float64(used.Cost.Nano)/continuoNano)
			}
		}
		t.Add(a.paint.Cyan(r.nameOf(result.Conversation)), strconv.FormatInt(result.Seq, 10), term.OneLine(variant, 30), in, sharedOf(answer), out, cost, milliseconds(answer.LatencyMS), alike, said)
	}
	for _, column := range []int{9, 8, 7, 6, 2} {
		t.DropEmpty(column)
	}
	a.printTable(t, a.width)
	a.print("")
}

// nameOf is a conversation's name for people.
func (r *replaying) nameOf(name string) string {
	for _, conversation := range r.request.Conversations {
		if conversation.Name == "" && conversation.ID == name {
			name = nameOf(conversation.Conversation)
			break
		}
	}
	if strings.HasPrefix(name, "conv_") {
		name = term.FitEnd(name, 13)
	}
	return term.FitEnd(term.OneLine(name, 1000), 20) // keys of a source differ at their ends
}

// said is what an answer says, with its calls.
func said(answer *engine.ReplayAnswer) string {
	lines := []string{}
	if strings.TrimSpace(answer.Text) != "" {
		lines = append(lines, strings.TrimSpace(answer.Text))
	}
	for _, call := range answer.ToolCalls {
		lines = append(lines, "→ "+call.Name+"("+call.Arguments+")")
	}
	if answer.Error != nil {
		lines = append(lines, "✘ "+answer.Error.Message)
	}
	return strings.Join(lines, "\n")
}

// showTexts shows recorded and replayed answers side by side.
func (r *replaying) showTexts() {
	a := r.app
	width := a.width
	if width == 0 {
		width = 100
	}
	column := max((width-3)/2, 10)
	for i := range r.results {
		result := &r.results[i]
		if !wasBuilt(result) {
			continue
		}
		head := fmt.Sprintf("%s entry %d", r.nameOf(result.Conversation), result.Seq)
		if result.State == engine.ReplayAnswered {
			head += " · " + percent(result.Similarity) + " alike"
		}
		a.print("%s", a.paint.Bold(head))
		if result.Message != nil {
			a.print("%s", term.Fit("» "+term.OneLine(result.Message.Text, 2*column), 2*column+3))
		}
		left, right := result.Recorded.Model, result.Variant
		if left == "" {
			left = "recorded"
		}
		a.print("%s   %s", term.Pad(a.paint.Dim(term.Fit(term.OneLine(left, column), column)), column), a.paint.Dim(term.Fit(term.OneLine(right, column), column)))
		a.printBeside(term.Wrap(said(&result.Recorded), column), term.Wrap(said(&result.Replayed), column), column)
		a.print("")
	}
}

// printBeside prints two lists of lines in two columns.
func (a *app) printBeside(left, right []string, column int) {
	for i := range max(len(left), len(right)) {
		l, r := "", ""
		if i < len(left) {
			l = left[i]
		}
		if i < len(right) {
			r = right[i]
		}
		a.print("%s", strings.TrimRight(term.Pad(l, column)+" "+a.paint.Dim("│")+" "+r, " "))
	}
}

// showTotals shows the totals, a column for each variant.
func (r *replaying) showTotals(recorded engine.ReplayTotals, variants []replayedVariant) {
	a := r.app
	headings := []string{"", ">recorded"}
	for i, variant := range variants {
		name := term.OneLine(variant.Name, 40)
		if len(variants) > 2 { // whose names leave no room
			short := fmt.Sprintf("(%d)", i+1)
			a.print("%s %s", short, name)
			name = short
		}
		headings = append(headings, ">"+name)
	}
	t := a.table(headings...)
	for _, cells := range r.totalsCells(recorded, variants) {
		cells[0] = a.paint.Dim(cells[0])
		t.Add(cells...)
	}
	a.printTable(t, 0)
}

// totalsCells are the rows of the totals: a name, that of the recorded answers, and those of the variants.
func (r *replaying) totalsCells(recorded engine.ReplayTotals, variants []replayedVariant) (rows [][]string) {
	for _, row := range slices.Concat(r.countRows(), r.costRows(), windowRows(), r.answerRows()) {
		cells := []string{row.name, row.cell(&recorded, true)}
		for i := range variants {
			cells = append(cells, row.cell(&variants[i].Totals, false))
		}
		if slices.ContainsFunc(cells[1:], func(text string) bool { return text != "" && text != "0" }) {
			rows = append(rows, cells)
		}
	}
	return rows
}

// totalsRow is a row of the totals; cell is its text for the recorded answers or a variant, "" for none. A row without a
// text other than 0 is not shown.
type totalsRow struct {
	name string
	cell func(t *engine.ReplayTotals, isRecorded bool) string
}

// ofReplayed is a value that recorded answers do not have.
func ofReplayed(value func(t *engine.ReplayTotals) string) func(*engine.ReplayTotals, bool) string {
	return func(t *engine.ReplayTotals, isRecorded bool) string {
		if isRecorded {
			return ""
		}
		return value(t)
	}
}

// ofRequests is a value that is known where requests were built.
func ofRequests(value func(t *engine.ReplayTotals) string) func(*engine.ReplayTotals, bool) string {
	return func(t *engine.ReplayTotals, _ bool) string {
		if t.Requests == 0 {
			return ""
		}
		return value(t)
	}
}

// numberOf is a number; of imported answers 0 is not known.
func numberOf(value func(t *engine.ReplayTotals) int64) func(*engine.ReplayTotals, bool) string {
	return func(t *engine.ReplayTotals, isRecorded bool) string {
		if isRecorded && value(t) == 0 {
			return ""
		}
		return term.Number(value(t))
	}
}

func (r *replaying) countRows() []totalsRow {
	first := totalsRow{"answers", numberOf(func(t *engine.ReplayTotals) int64 { return int64(t.Answers) })}
	if r.DryRun {
		first = totalsRow{"requests", ofRequests(func(t *engine.ReplayTotals) string { return term.Number(t.Requests) })}
	}
	return []totalsRow{
		first,
		{"failed", ofReplayed(func(t *engine.ReplayTotals) string { return term.Number(t.Failed) })},
		{"not sent", ofReplayed(func(t *engine.ReplayTotals) string { return term.Number(t.Unsent) })},
		{"no request fits", ofReplayed(func(t *engine.ReplayTotals) string { return term.Number(t.Unbuilt) })},
		{"tokens in", numberOf(func(t *engine.ReplayTotals) int64 { return t.InputTokens })},
		{"of them cached", numberOf(func(t *engine.ReplayTotals) int64 { return t.CachedTokens })},
		{"tokens out", numberOf(func(t *engine.ReplayTotals) int64 { return t.OutputTokens })},
	}
}

func (r *replaying) costRows() []totalsRow {
	if !r.DryRun {
		return []totalsRow{{"cost", func(t *engine.ReplayTotals, _ bool) string { return moneyOf(t.CostNano) }}}
	}
	return []totalsRow{
		{"cost, without cache", ofReplayed(func(t *engine.ReplayTotals) string { return moneyOf(t.ExpectedNano) })},
		{"cost, prefixes cached", ofReplayed(func(t *engine.ReplayTotals) string { return moneyOf(t.ExpectedCachedNano) })},
		{"cost, as recorded", func(t *engine.ReplayTotals, isRecorded bool) string {
			if !isRecorded {
				return ""
			}
			return moneyOf(t.CostNano)
		}},
	}
}

func windowRows() []totalsRow {
	return []totalsRow{
		{"prefix share", ofRequests(func(t *engine.ReplayTotals) string {
			return percent(float64(t.SharedBytes) / float64(max(t.Bytes, 1)))
		})},
		{"moves of the window", ofRequests(func(t *engine.ReplayTotals) string { return term.Number(t.Moves) })},
		{"entries left out", ofRequests(func(t *engine.ReplayTotals) string { return term.Number(t.Dropped) })},
		{"entries shortened", ofRequests(func(t *engine.ReplayTotals) string { return term.Number(t.Shortened) })},
		{"entries summarized", ofRequests(func(t *engine.ReplayTotals) string { return term.Number(t.Summarized) })},
	}
}

// answerRows are the times of answers, and how much they have in common with the recorded ones.
func (r *replaying) answerRows() []totalsRow {
	rows := []totalsRow{
		{"first token, mean", func(t *engine.ReplayTotals, _ bool) string {
			return milliseconds(t.FirstDeltaMS / max(int64(t.Timed), 1))
		}},
		{"whole answer, mean", func(t *engine.ReplayTotals, _ bool) string {
			return milliseconds(t.LatencyMS / max(int64(t.Timed), 1))
		}},
	}
	if r.DryRun {
		return rows
	}
	return append(rows,
		totalsRow{"same text", ofReplayed(func(t *engine.ReplayTotals) string { return fmt.Sprintf("%d of %d", t.SameText, t.Answers) })},
		totalsRow{"same calls", ofReplayed(func(t *engine.ReplayTotals) string { return fmt.Sprintf("%d of %d", t.SameCalls, t.Answers) })},
		totalsRow{"alike, mean", ofReplayed(func(t *engine.ReplayTotals) string {
			return percent(t.Similarity / float64(max(t.Answers, 1)))
		})},
	)
}

func (r *replaying) noteProblems() {
	for _, problem := range r.problems() {
		r.app.note("%s %s", r.app.notePaint.Yellow("note:"), problem)
	}
}

// problems counts what was not replayed, by its reason.
func (r *replaying) problems() (all []string) {
	reasons := map[string]int{}
	for _, result := range r.results {
		if result.Problem != "" && result.Variant == r.request.Variants[0].Name || result.Problem != "" && result.State != "skipped" {
			verb := map[bool]string{true: "skipped", false: string(result.State)}[result.State == "skipped"]
			if result.State == "unsent" {
				verb = "not sent"
			}
			if result.State == "unbuilt" {
				verb = "no request"
			}
			reasons[verb+": "+result.Problem]++
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		all = append(all, term.Count(reasons[reason], "answer")+", "+term.OneLine(r.app.secrets.Text(reason), 300))
	}
	return all
}

func percent(share float64) string { return strconv.Itoa(int(100*share)) + " %" }

// moneyOf is an amount, "" for none.
func moneyOf(nano int64) string {
	if nano == 0 {
		return ""
	}
	return fmt.Sprintf("$%.4f", float64(nano)/continuoNano)
}

// milliseconds is a duration, "" for 0.
func milliseconds(ms int64) string {
	if ms == 0 {
		return ""
	}
	if ms < 10_000 {
		return fmt.Sprintf("%.2f s", float64(ms)/1000)
	}
	return term.Duration(time.Duration(ms) * time.Millisecond)
}

// sharedOf is the share of a request that the one before had.
func sharedOf(answer *engine.ReplayAnswer) string {
	if answer.Request == nil || answer.Request.SharedBytes == nil {
		return "–"
	}
	return percent(float64(*answer.Request.SharedBytes) / float64(max(answer.Request.Bytes, 1)))
}
