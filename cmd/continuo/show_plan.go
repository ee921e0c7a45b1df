package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// contextLine summarizes on one line what a request contained.
func contextLine(plan *window.Plan) string {
	totals, forPeople := plan.Totals, forPeopleOnly(plan)
	parts := []string{
		fmt.Sprintf("%s of %s", number(totals.Kept), count(totals.Entries-forPeople, "message")),
		ofLimit(totals.Tokens, plan.Limits.Tokens, "token"),
	}
	if left := totals.Dropped + totals.Excluded - forPeople; left > 0 {
		parts = append(parts, number(left)+" left out")
	}
	if totals.Summarized > 0 {
		parts = append(parts, number(totals.Summarized)+" summarized")
	}
	if totals.Previewed+totals.Truncated > 0 {
		parts = append(parts, number(totals.Previewed+totals.Truncated)+" shortened")
	}
	if len(plan.Missing) > 0 {
		parts = append(parts, count(len(plan.Missing), "part")+" missing")
	}
	if len(plan.Withheld) > 0 {
		parts = append(parts, "blocks of another provider held back from "+count(len(plan.Withheld), "message"))
	}
	parts = append(parts, "epoch "+number(plan.Window.Epoch))
	if plan.Moved {
		parts = append(parts, "moved")
	}
	return strings.Join(parts, " · ")
}

// uiOnly is the reason for which a plan excludes entries that no model ever sees, such as the record of a run.
const uiOnly = "ui_only"

// forPeopleOnly counts the entries of a plan's conversation that are no messages for a model. The plan of an answer
// comes without its items: then it counts all entries that are excluded regardless of the budget.
func forPeopleOnly(plan *window.Plan) (n int64) {
	if len(plan.Items) == 0 {
		return plan.Totals.Excluded
	}
	for _, item := range plan.Items {
		if item.Verdict == window.Excluded && item.Reason == uiOnly {
			n += max(item.Through, item.Seq) - item.Seq + 1
		}
	}
	return n
}

// showUse prints how much of each limit a plan uses, and the position of its window.
func (a *app) showUse(plan *window.Plan) {
	const barWidth = 24
	t := table{right: []bool{false, true}}
	row := func(name string, used, limit int) {
		if limit == 0 {
			t.add(cell{name, a.paint.dim}, plain(number(used)), cell{"no limit", a.paint.dim})
			return
		}
		paint := a.paint.green
		if used*10 >= limit*9 {
			paint = a.paint.yellow
		}
		t.add(cell{name, a.paint.dim}, plain(number(used)), plain("of "+number(limit)), cell{bar(used, limit, barWidth), paint})
	}
	row("messages", plan.Totals.Messages, plan.Limits.Messages)
	row("characters", plan.Totals.Chars, plan.Limits.Chars)
	row("tokens", plan.Totals.Tokens, plan.Limits.Tokens)
	for _, line := range t.lines(0) {
		a.print("%s", line)
	}
	more := func(name, words string) { a.print("%s  %s", a.paint.dim(pad(name, len("characters"), false)), words) }
	if prompt := plan.Totals.PromptSize; prompt.Tokens > 0 {
		more("besides", count(prompt.Tokens, "token")+" of system messages and tools")
	}
	more("window", windowWords(plan))
	if shared := plan.Totals.SharedBytes; shared >= 0 {
		more("cache", "begins with the same "+count(shared, "byte")+" as the request before")
	}
}

// windowWords describes the position of a view's window.
func windowWords(plan *window.Plan) string {
	words := "epoch " + number(plan.Window.Epoch)
	if plan.Window.Start > 1 {
		words += ", from entry " + number(plan.Window.Start) + " on"
	}
	if plan.Window.Limit != "" {
		words += ", placed by the limit on " + plan.Window.Limit
	}
	if plan.Window.Summary > 0 {
		words += ", behind the summary in entry " + number(plan.Window.Summary)
	}
	if plan.Moved {
		words += ", moves with this request"
	}
	return words
}

// maxPlanRows bounds the rows of a plan that are printed by default; --json has all.
const maxPlanRows = 2000

// showPlan prints a plan's verdicts as a table, with the attachments that are missing below their entries.
func (a *app) showPlan(ctx context.Context, w *services, conversation continuo.Conversation, plan *window.Plan) error {
	t := table{right: []bool{true, false, false, false, false, true, true}}
	head := func(text string) cell { return cell{text, a.paint.dim} }
	t.add(head("entry"), head("role"), head("of"), head("verdict"), head("reason"), head("characters"), head("tokens"), head("begins"))
	rows := planRows{app: a, table: &t, messages: plan.Messages, origins: newOrigins(a.paint)}
	for _, message := range plan.Messages {
		rows.origins.see(message.Entry)
	}
	for i, item := range plan.Items {
		if i == maxPlanRows {
			t.add(head("…"), head(""), head(""), head(count(len(plan.Items)-i, "more row")))
			break
		}
		entry, err := rows.entry(ctx, w, conversation, item.Seq)
		if err != nil {
			return err
		}
		rows.markersBefore(item.Seq)
		rows.item(item, entry)
		rows.missing(plan.Missing, item.Seq)
		rows.withheld(plan.Withheld, item.Seq)
	}
	rows.markersBefore(plan.At + 1)
	t.dropEmpty(2, 1)
	for _, line := range t.lines(a.tableWidth()) {
		a.print("%s", line)
	}
	a.explainMissing(plan)
	return nil
}

// explainMissing explains the parts and blocks that a request omits.
func (a *app) explainMissing(plan *window.Plan) {
	lost, unsupported := 0, 0
	for _, m := range plan.Missing {
		if m.Problem == continuo.PartUnsupported {
			unsupported++
		} else {
			lost++
		}
	}
	if lost > 0 {
		a.print("%s %s missing; a line of text stands in each place. Put the objects back from a backup of objects.location.",
			a.paint.red("✘"), count(lost, "attachment"))
	}
	if unsupported > 0 {
		a.print("%s %s cannot be sent in this format; a line of text stands in each place.", a.paint.yellow("!"), count(unsupported, "part"))
	}
	if len(plan.Withheld) > 0 {
		a.print("%s blocks of %s go back to the provider that made them only (models.NAME.provider).",
			a.paint.yellow("!"), count(len(plan.Withheld), "message"))
	}
}

// planRows turns a plan's items and messages, both in order, into rows of a table.
type planRows struct {
	*app
	table    *table
	messages []window.Message // those that are still ahead
	origins  *origins
}

// entry returns the entry at seq: from the plan's messages, or from the log.
func (r *planRows) entry(ctx context.Context, w *services, conversation continuo.Conversation, seq int64) (*continuo.Entry, error) {
	for i := range r.messages {
		if r.messages[i].Seq == seq && r.messages[i].Entry != nil {
			return r.messages[i].Entry, nil
		}
		if r.messages[i].Seq > seq {
			break
		}
	}
	for entry, err := range w.log.Read(ctx, conversation, continuo.Range{From: seq, To: seq}) {
		return &entry, err
	}
	return nil, fmt.Errorf("entry %d: %w", seq, continuo.ErrNotFound)
}

// markersBefore adds rows for the plan's texts that are no entries, up to the message of seq.
func (r *planRows) markersBefore(seq int64) {
	for len(r.messages) > 0 && (r.messages[0].Seq == 0 || r.messages[0].Seq < seq) {
		message := r.messages[0]
		r.messages = r.messages[1:]
		if message.Seq != 0 {
			continue
		}
		what := "marker"
		switch {
		case message.Role == continuo.Tool:
			what = "made up"
		case message.Entry != nil && message.Entry.Summary != nil:
			what = "summary"
		}
		r.table.add(
			cell{"·", r.paint.dim}, r.roleCell(message.Role), plain(""), cell{what, r.paint.yellow}, plain(""),
			plain(number(message.Size.Chars)), plain(number(message.Size.Tokens)), cell{contentWords(message.Content, 300), r.paint.dim},
		)
	}
}

// item adds the row of an item, which begins with entry.
func (r *planRows) item(item window.PlanItem, entry *continuo.Entry) {
	words := r.wordsOf(entry)
	if item.Through > item.Seq {
		run := count(item.Through-item.Seq+1, "entry")
		if words.text != "" {
			run += ", the first: " + words.text
		}
		r.table.add(
			cell{number(item.Seq) + "–" + number(item.Through), r.paint.dim}, plain(""), plain(""), r.verdictCell(item.Verdict), plain(item.Reason),
			plain(""), plain(""), cell{run, r.paint.dim},
		)
		return
	}
	if item.Verdict == window.Dropped || item.Verdict == window.Excluded {
		words.paint = r.paint.dim
	}
	chars, tokens := sizeCells(item)
	r.table.add(cell{number(item.Seq), r.paint.dim}, r.roleCell(entry.Role), r.origins.cell(entry), r.verdictCell(item.Verdict), plain(item.Reason), chars, tokens, words)
}

// missing adds rows for the parts of an entry that could not be shown.
func (r *planRows) missing(missing []continuo.MissingPart, seq int64) {
	for _, m := range missing {
		if m.Seq != seq {
			continue
		}
		words := fmt.Sprintf("part %d, %s", m.Part, oneLine(cmp.Or(m.Object, m.Type), 60))
		r.table.add(cell{"·", r.paint.dim}, plain(""), plain(""), cell{"missing", r.paint.red}, plain(oneLine(string(m.Problem), 20)), plain(""), plain(""), plain(words))
	}
}

// withheld adds rows for the blocks of an entry that belong to another provider.
func (r *planRows) withheld(withheld []window.WithheldBlocks, seq int64) {
	for _, w := range withheld {
		if w.Seq == seq {
			words := oneLine(strings.Join(w.Types, ", "), 60)
			r.table.add(cell{"·", r.paint.dim}, plain(""), plain(""), cell{"withheld", r.paint.yellow}, plain(oneLine("for "+w.Provider, 20)), plain(""), plain(""), plain(words))
		}
	}
}

// sizeCells shows how much of an entry is shown: 8 120 → 1 240 if not all.
func sizeCells(item window.PlanItem) (chars, tokens cell) {
	switch {
	case item.Before == nil && item.After == nil:
		return plain(""), plain("")
	case item.After == nil && item.Before.Chars == 0 && item.Before.Tokens == 0:
		return plain("0"), plain("0")
	case item.After == nil:
		return plain(number(item.Before.Chars) + " → 0"), plain(number(item.Before.Tokens) + " → 0")
	case item.Before == nil || item.Verdict == window.Kept:
		return plain(number(item.After.Chars)), plain(number(item.After.Tokens))
	}
	return plain(number(item.Before.Chars) + " → " + number(item.After.Chars)), plain(number(item.Before.Tokens) + " → " + number(item.After.Tokens))
}

func (a *app) verdictCell(verdict window.Verdict) cell {
	switch verdict {
	case window.Kept:
		return cell{string(verdict), a.paint.green}
	case window.Dropped, window.Excluded:
		return cell{string(verdict), a.paint.dim}
	}
	return cell{string(verdict), a.paint.yellow}
}

// showMessages prints a rendering's messages as JSON, each on its own, or a text.
func (a *app) showRendering(messages []json.RawMessage, text string) error {
	if text != "" {
		a.text(strings.TrimRight(text, "\n") + "\n")
	}
	if messages == nil {
		return nil
	}
	return a.json(messages)
}
