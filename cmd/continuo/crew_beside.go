package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/window"
)

// comparisonWidth is the largest width of a table of two contexts.
const comparisonWidth = 100

// compareEntries shows, entry by entry, what two roles see.
func (l *crewContexts) compareEntries(ctx context.Context, left, right engine.RoleContextQuery) error {
	both, err := l.engine.Crews.CompareRoles(ctx, l.session, left, right)
	if err != nil {
		return l.explained(l.session, err)
	}
	if l.json {
		return l.app.json(both)
	}
	width := min(l.tableWidth(), comparisonWidth)
	for _, side := range []engine.RoleContext{both.Left, both.Right} {
		l.app.print("%s", l.paint.Bold(term.Fit(viewText(side), width)))
		for _, line := range term.Wrap(planText(side.Plan), width) {
			l.app.print("%s", l.paint.Dim(line))
		}
	}
	b := newComparisonTable(l, both)
	if l.plan {
		l.app.print("")
		l.printUse(b.names, both, width)
	}
	l.app.print("")
	return b.print(ctx, width)
}

// printUse prints how much of its limits each of two plans uses.
func (l *crewContexts) printUse(names [2]string, both *engine.Comparison, width int) {
	t := l.table("", ">", ">")
	t.Add("", l.paint.Dim(names[0]), l.paint.Dim(names[1]))
	for _, measure := range []struct {
		name string
		of   func(*window.Plan) (used, limit int)
	}{
		{"messages", func(p *window.Plan) (int, int) { return p.Totals.Messages, p.Limits.Messages }},
		{"characters", func(p *window.Plan) (int, int) { return p.Totals.Chars, p.Limits.Chars }},
		{"tokens", func(p *window.Plan) (int, int) { return p.Totals.Tokens, p.Limits.Tokens }},
		{"besides, in tokens", func(p *window.Plan) (int, int) { return p.Totals.PromptSize.Tokens, 0 }},
	} {
		row := []string{l.paint.Dim(measure.name)}
		for _, plan := range []*window.Plan{both.Left.Plan, both.Right.Plan} {
			used, limit := measure.of(plan)
			words := term.Number(used)
			if limit > 0 {
				words += " of " + term.Number(limit)
			}
			row = append(row, words)
		}
		t.Add(row...)
	}
	l.app.printTable(t, width)
}

// comparedRange is a range of the log with the item of each of two plans; nil if the plan was made before it.
type comparedRange struct {
	from, through int64
	items         [2]*window.PlanItem
}

// compareRanges yields the ranges of the log for which each of two plans has one verdict, in order.
func compareRanges(left, right *window.Plan) iter.Seq[comparedRange] {
	return func(yield func(comparedRange) bool) {
		plans, at := [2]*window.Plan{left, right}, [2]int{}
		for next := int64(1); next <= max(left.At, right.At); {
			part := comparedRange{from: next, through: max(left.At, right.At)}
			for side, plan := range plans {
				for at[side] < len(plan.Items) && lastSeq(plan.Items[at[side]]) < next {
					at[side]++
				}
				if at[side] == len(plan.Items) {
					continue
				}
				item := &plan.Items[at[side]]
				if item.Seq > next {
					part.through = min(part.through, item.Seq-1)
					continue
				}
				part.items[side], part.through = item, min(part.through, lastSeq(*item))
			}
			if !yield(part) {
				return
			}
			next = part.through + 1
		}
	}
}

func lastSeq(item window.PlanItem) int64 { return max(item.Seq, item.Through) }

// hiddenReason returns why no role of a crew ever sees the range: it is a record of the crew, or a role had nothing to
// add. Otherwise it is "".
func (p comparedRange) hiddenReason() string {
	for _, item := range p.items {
		if item != nil && item.Verdict == window.Excluded && (item.Reason == uiOnly || item.Reason == "placeholder") {
			return item.Reason
		}
	}
	return ""
}

// markOwnSummary marks a summary that only one side sees as one that the other side never sees: it was made for one role.
func (p *comparedRange) markOwnSummary() {
	for side, item := range p.items {
		other := p.items[1-side]
		if isShown(item) && other != nil && !isShown(other) && slices.Contains([]string{"notes", "catch_up", "summary"}, item.Reason) {
			p.items[1-side] = &window.PlanItem{Seq: p.from, Verdict: window.Excluded}
		}
	}
}

// isShown reports whether a role sees an entry itself.
func isShown(item *window.PlanItem) bool {
	if item == nil {
		return false
	}
	switch item.Verdict {
	case window.Kept, window.Previewed, window.Truncated, window.Recalled:
		return true
	}
	return false
}

// visibilityText describes what a role sees of an entry.
func visibilityText(item *window.PlanItem) string {
	if item == nil {
		return "not yet there"
	}
	switch item.Verdict {
	case window.Kept:
		return "whole"
	case window.Previewed, window.Truncated:
		return "shortened"
	case window.Recalled:
		return "recalled"
	case window.Summarized:
		if words, ok := map[string]string{"notes": "in its notes", "catch_up": "in a catch-up"}[item.Reason]; ok {
			return words
		}
		return "in a summary"
	}
	switch item.Reason {
	case "seen", "own_message":
		return "not repeated"
	case "next_turn", "after_ask":
		return "later"
	case "before_reset":
		return "before reset"
	}
	return "left out"
}

// comparisonRow is a row of the table: a range, what each side sees of it, and how they differ.
type comparisonRow struct {
	part  comparedRange
	views [2]string
	sign  string
}

// isAlike reports whether the next row shows the same on both sides. A tool's result counts with the call before it,
// whose message has a line for it.
func (r comparisonRow) isAlike(next comparisonRow) bool {
	for side, item := range next.part.items {
		isResult := item != nil && item.Role == continuo.Tool && isShown(item) && isShown(r.part.items[side])
		if next.views[side] != r.views[side] && !isResult {
			return false
		}
	}
	return true
}

// comparisonTable is what two roles see of each entry.
type comparisonTable struct {
	*crewContexts
	names    [2]string
	plans    [2]*window.Plan
	rows     []comparisonRow
	shown    [2]int         // how many entries only this side sees
	both     int            // how many both see
	hidden   map[string]int // entries that are not in the table, by reason
	messages map[int64]*continuo.Entry
}

func newComparisonTable(l *crewContexts, both *engine.Comparison) *comparisonTable {
	b := &comparisonTable{
		crewContexts: l, names: columnNames(both.Left, both.Right), plans: [2]*window.Plan{both.Left.Plan, both.Right.Plan},
		hidden: map[string]int{}, messages: map[int64]*continuo.Entry{},
	}
	for _, plan := range b.plans {
		for _, message := range plan.Messages {
			if message.Entry != nil && message.Seq != 0 {
				b.messages[message.Seq] = message.Entry
			}
		}
	}
	for part := range compareRanges(b.plans[0], b.plans[1]) {
		b.add(part)
	}
	return b
}

// columnNames are short names for two contexts, with their positions if both are of one role.
func columnNames(left, right engine.RoleContext) (names [2]string) {
	const most = 16
	for i, side := range []engine.RoleContext{left, right} {
		names[i] = term.OneLine(side.Role, most)
		switch {
		case left.Role != right.Role:
		case side.Request != 0:
			names[i] += " for " + term.Number(side.Request)
		default:
			names[i] += " at " + term.Number(side.At)
		}
	}
	return names
}

// add adds a range.
func (b *comparisonTable) add(part comparedRange) {
	if reason := part.hiddenReason(); reason != "" {
		b.hidden[reason] += int(part.through - part.from + 1)
		return
	}
	part.markOwnSummary()
	row := comparisonRow{part: part, views: [2]string{visibilityText(part.items[0]), visibilityText(part.items[1])}}
	switch left, right := isShown(part.items[0]), isShown(part.items[1]); {
	case left && !right:
		b.shown[0]++ // a shown entry is a range of its own
		row.sign = "<"
	case right && !left:
		b.shown[1]++
		row.sign = ">"
	case row.views[0] != row.views[1]:
		row.sign = "≠"
	default:
		row.sign = "│"
	}
	if isShown(part.items[0]) && isShown(part.items[1]) {
		b.both++
	}
	for side, item := range part.items {
		if b.plan && item != nil && item.Reason != "" {
			row.views[side] += " · " + term.OneLine(item.Reason, 40)
		}
	}
	b.rows = append(b.rows, row)
}

// rowsShown is how many equal rows are shown in sequence; of more, only the first and the last are.
const rowsShown = 4

// print prints the differences, and the table.
func (b *comparisonTable) print(ctx context.Context, width int) error {
	for _, line := range term.Wrap(b.differenceText(), width) {
		b.app.print("%s", line)
	}
	b.app.print("")
	if len(b.rows) > 0 {
		if err := b.printRows(ctx, width); err != nil {
			return err
		}
	}
	if words := b.hiddenText(); words != "" {
		for _, line := range term.Wrap(words, width) {
			b.app.print("%s", b.paint.Dim(line))
		}
	}
	return nil
}

// differenceText describes what one side sees and the other does not.
func (b *comparisonTable) differenceText() string {
	words := fmt.Sprintf("Both are shown %s", term.Count(b.both, "entry"))
	for side, name := range b.names {
		words += fmt.Sprintf("; %s alone %s", name, term.Number(b.shown[side]))
	}
	return words + "."
}

// hiddenText describes the entries that are not in the table.
func (b *comparisonTable) hiddenText() string {
	total, reasons := 0, []string{}
	for _, reason := range []string{uiOnly, "placeholder"} {
		if n := b.hidden[reason]; n > 0 {
			total += n
			reasons = append(reasons, reason+" "+term.Number(n))
		}
	}
	switch {
	case total == 0:
		return ""
	case b.plan:
		return fmt.Sprintf("Besides, %s that no role is shown: %s.", term.Count(total, "entry"), strings.Join(reasons, ", "))
	}
	return fmt.Sprintf("Besides, %s that no role is shown: records of the crew, and turns with nothing to add.", term.Count(total, "entry"))
}

func (b *comparisonTable) printRows(ctx context.Context, width int) error {
	t := b.table(">entry", "who", b.names[0], " ", b.names[1], "begins")
	for from := 0; from < len(b.rows); {
		if t.Len() >= maxPlanRows {
			t.Add(b.paint.Dim("…"), "", "", "", "", b.paint.Dim(term.Count(len(b.rows)-from, "more row")))
			break
		}
		end := from + 1
		for end < len(b.rows) && b.rows[from].isAlike(b.rows[end]) {
			end++
		}
		if err := b.addAlike(ctx, t, b.rows[from:end]); err != nil {
			return err
		}
		from = end
	}
	b.app.printTable(t, width)
	return nil
}

// addAlike adds rows in which each side sees the same. Of many it adds the first and the last.
func (b *comparisonTable) addAlike(ctx context.Context, t *term.Table, rows []comparisonRow) error {
	for i, row := range rows {
		if len(rows) > rowsShown && i > 0 && i < len(rows)-1 {
			if i == 1 {
				folded := rows[1 : len(rows)-1]
				t.Add(b.cells(rangeText(folded[0].part.from, folded[len(folded)-1].part.through), "", row,
					b.paint.Dim(term.Count(entriesIn(folded), "entry")+", the same"))...)
			}
			continue
		}
		entry, err := b.entry(ctx, row.part.from)
		if err != nil {
			return err
		}
		speaker, words := speakerOf(entry), b.entryText(entry)
		if n := entriesIn(rows[i : i+1]); n > 1 {
			speaker, words = "", b.paint.Dim(term.Count(n, "entry")+", the first: "+term.Plain(words))
		}
		t.Add(b.cells(rangeText(row.part.from, row.part.through), speaker, row, words)...)
	}
	return nil
}

// cells are those of a row of the table.
func (b *comparisonTable) cells(seqs, speaker string, row comparisonRow, words string) []string {
	sign := b.paint.Bold(row.sign)
	if row.sign == "│" {
		sign = b.paint.Dim(row.sign)
	}
	return []string{seqs, speaker, b.seenCell(row, 0), sign, b.seenCell(row, 1), words}
}

func (b *comparisonTable) seenCell(row comparisonRow, side int) string {
	const most = 26
	paint := b.paint.Yellow
	switch item := row.part.items[side]; {
	case item != nil && item.Verdict == window.Kept:
		paint = b.paint.Green
	case item == nil || item.Verdict == window.Dropped || item.Verdict == window.Excluded:
		paint = b.paint.Dim
	}
	return paint(term.Fit(row.views[side], most))
}

// entry returns the entry at seq: from the messages of the plans, or from the log.
func (b *comparisonTable) entry(ctx context.Context, seq int64) (*continuo.Entry, error) {
	if entry := b.messages[seq]; entry != nil {
		return entry, nil
	}
	for entry, err := range b.services.engine.Conversations.Read(ctx, b.conversation, continuo.Range{From: seq, To: seq}) {
		return &entry, err
	}
	return nil, fmt.Errorf("entry %d: %w", seq, continuo.ErrNotFound)
}

// speakerOf is the name of an entry's author for people.
func speakerOf(entry *continuo.Entry) string {
	const most = 12
	name := ""
	if entry.Author != nil {
		name = cmp.Or(entry.Author.DisplayName, entry.Author.RoleName)
	}
	switch entry.Role {
	case continuo.User:
		return term.OneLine(cmp.Or(name, "User"), most)
	case continuo.Assistant:
		return term.OneLine(cmp.Or(name, entry.NodeID, string(entry.Role)), most)
	}
	if entry.Summary != nil {
		if entry.PartType == continuo.PartNotes {
			return "notes"
		}
		return "summary"
	}
	return string(entry.Role)
}

func rangeText(from, through int64) string {
	if from == through {
		return term.Number(from)
	}
	return term.Number(from) + "–" + term.Number(through)
}

// entriesIn counts the entries of rows.
func entriesIn(rows []comparisonRow) (n int) {
	for _, row := range rows {
		n += int(row.part.through - row.part.from + 1)
	}
	return n
}
