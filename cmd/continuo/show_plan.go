package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/window"
)

// contextLine summarizes on one line what a request contained.
func contextLine(plan *window.Plan) string {
	totals, forPeople := plan.Totals, forPeopleOnly(plan)
	shown := totals.Kept
	if shown == 0 { // the view recall shows entries in one text, and keeps none
		shown = totals.Recalled
	}
	parts := []string{
		fmt.Sprintf("%s of %s", term.Number(shown), term.Count(totals.Entries-forPeople, "message")),
		term.OfLimit(totals.Tokens, plan.Limits.Tokens, "token"),
	}
	if left := totals.Dropped + totals.Excluded - forPeople; left > 0 {
		parts = append(parts, term.Number(left)+" left out")
	}
	if totals.Summarized > 0 {
		parts = append(parts, term.Number(totals.Summarized)+" summarized")
	}
	if totals.Previewed+totals.Truncated > 0 {
		parts = append(parts, term.Number(totals.Previewed+totals.Truncated)+" shortened")
	}
	if len(plan.Missing) > 0 {
		parts = append(parts, term.Count(len(plan.Missing), "part")+" missing")
	}
	if len(plan.Withheld) > 0 {
		parts = append(parts, "blocks of another provider held back from "+term.Count(len(plan.Withheld), "message"))
	}
	parts = append(parts, "epoch "+term.Number(plan.Window.Epoch))
	if plan.Moved {
		parts = append(parts, "moved")
	}
	return strings.Join(parts, " · ")
}

// placeText says at which entry of a log a request is: behind the last one for a message that is not in the log, with
// what would be recalled for it.
func placeText(at, last int64) string {
	if at > last {
		return fmt.Sprintf("entry %s, %s are in the log", term.Number(at), term.Number(last))
	}
	return fmt.Sprintf("entry %s of %s", term.Number(at), term.Number(last))
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
	t := a.table("", ">")
	row := func(name string, used, limit int) {
		if limit == 0 {
			t.Add(a.paint.Dim(name), term.Number(used), a.paint.Dim("no limit"))
			return
		}
		paint := a.paint.Green
		if used*10 >= limit*9 {
			paint = a.paint.Yellow
		}
		t.Add(a.paint.Dim(name), term.Number(used), "of "+term.Number(limit), paint(term.Blocks(int64(used), int64(limit), barWidth)))
	}
	row("messages", plan.Totals.Messages, plan.Limits.Messages)
	row("characters", plan.Totals.Chars, plan.Limits.Chars)
	row("tokens", plan.Totals.Tokens, plan.Limits.Tokens)
	a.printTable(t, 0)
	more := func(name, words string) { a.print("%s  %s", a.paint.Dim(term.Pad(name, len("characters"))), words) }
	if prompt := plan.Totals.PromptSize; prompt.Tokens > 0 {
		more("prompt", "+ "+term.Count(prompt.Tokens, "token")+": system prompt and tools")
	}
	if p := plan.Profile; p != nil {
		more("profile", profileText(p))
	}
	more("window", windowText(plan))
	if shared := plan.Totals.SharedBytes; shared >= 0 {
		more("cache", "begins with the same "+term.Count(shared, "byte")+" as the request before")
	}
}

// profileText describes what a request shows of what is known of the user.
func profileText(p *window.PlanProfile) string {
	text := fmt.Sprintf("entry %s of %s, %s (%s)", term.Number(p.Seq), p.ConversationID, p.Verdict, p.Reason)
	if p.Size != nil {
		text += ", " + term.Count(p.Size.Tokens, "token")
	}
	return text
}

// windowText describes the position of a view's window.
func windowText(plan *window.Plan) string {
	words := "epoch " + term.Number(plan.Window.Epoch)
	if plan.Window.Start > 1 {
		words += ", from entry " + term.Number(plan.Window.Start) + " on"
	}
	if plan.Window.Limit != "" {
		words += ", placed by the limit on " + plan.Window.Limit
	}
	if plan.Window.CutLimit != "" {
		words += ", tool outputs cut by the limit on " + plan.Window.CutLimit
	}
	if plan.Window.Summary > 0 {
		words += ", behind the summary in entry " + term.Number(plan.Window.Summary)
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
	t := a.table(">entry", "role", "of", "verdict", "reason", ">characters", ">tokens", "begins")
	rows := planRows{app: a, table: t, messages: plan.Messages, shown: plan.Shown(), origins: newOrigins(a.paint)}
	for _, message := range plan.Messages {
		rows.origins.see(message.Entry)
	}
	for i, item := range plan.Items {
		if i == maxPlanRows {
			t.Add(a.paint.Dim("…"), "", "", a.paint.Dim(term.Count(len(plan.Items)-i, "more row")))
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
	t.DropEmpty(2)
	a.printTable(t, a.tableWidth())
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
		a.print("%s %s missing; a line of text replaces each. Put the objects back from a backup of objects.location.",
			a.paint.Red("✘"), term.Count(lost, "attachment"))
	}
	if unsupported > 0 {
		a.print("%s %s cannot be sent in this format; a line of text replaces each.", a.paint.Yellow("!"), term.Count(unsupported, "part"))
	}
	if len(plan.Withheld) > 0 {
		a.print("%s blocks of %s go back to the provider that made them only (models.NAME.provider).",
			a.paint.Yellow("!"), term.Count(len(plan.Withheld), "message"))
	}
}

// planRows turns a plan's items and messages, both in order, into rows of a table.
type planRows struct {
	*app
	table    *term.Table
	messages []window.Message  // those that are still ahead
	shown    []*continuo.Entry // that the plan shows
	origins  *origins
}

// entry returns the entry at seq: from the plan, or from the log.
func (r *planRows) entry(ctx context.Context, w *services, conversation continuo.Conversation, seq int64) (*continuo.Entry, error) {
	bySeq := func(entry *continuo.Entry, seq int64) int { return cmp.Compare(entry.Seq, seq) }
	if i, ok := slices.BinarySearchFunc(r.shown, seq, bySeq); ok {
		return r.shown[i], nil
	}
	for entry, err := range w.engine.Conversations.Read(ctx, conversation, continuo.Range{From: seq, To: seq}) {
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
		r.table.Add(
			r.paint.Dim("·"), r.roleCell(message.Role), "", r.paint.Yellow(what), "",
			term.Number(message.Size.Chars), term.Number(message.Size.Tokens), r.paint.Dim(contentText(message.Content, 300)),
		)
	}
}

// item adds the row of an item, which begins with entry.
func (r *planRows) item(item window.PlanItem, entry *continuo.Entry) {
	words := r.entryText(entry)
	if item.Through > item.Seq {
		run := term.Count(item.Through-item.Seq+1, "entry")
		if words != "" {
			run += ", the first: " + term.Plain(words)
		}
		r.table.Add(
			r.paint.Dim(term.Number(item.Seq)+"–"+term.Number(item.Through)), "", "", r.verdictCell(item.Verdict), item.Reason,
			"", "", r.paint.Dim(run),
		)
		return
	}
	if item.Verdict == window.Dropped || item.Verdict == window.Excluded {
		words = r.paint.Dim(term.Plain(words))
	}
	chars, tokens := sizeCells(item)
	r.table.Add(r.paint.Dim(term.Number(item.Seq)), r.roleCell(entry.Role), r.origins.cell(entry), r.verdictCell(item.Verdict), item.Reason, chars, tokens, words)
}

// missing adds rows for the parts of an entry that could not be shown.
func (r *planRows) missing(missing []continuo.MissingPart, seq int64) {
	for _, m := range missing {
		if m.Seq != seq {
			continue
		}
		words := fmt.Sprintf("part %d, %s", m.Part, term.OneLine(cmp.Or(m.Object, m.Type), 60))
		r.table.Add(r.paint.Dim("·"), "", "", r.paint.Red("missing"), term.OneLine(string(m.Problem), 20), "", "", words)
	}
}

// withheld adds rows for the blocks of an entry that belong to another provider.
func (r *planRows) withheld(withheld []window.WithheldBlocks, seq int64) {
	for _, w := range withheld {
		if w.Seq == seq {
			words := term.OneLine(strings.Join(w.Types, ", "), 60)
			r.table.Add(r.paint.Dim("·"), "", "", r.paint.Yellow("withheld"), term.OneLine("for "+w.Provider, 20), "", "", words)
		}
	}
}

// sizeCells shows how much of an entry is shown: 8 120 → 1 240 if not all.
func sizeCells(item window.PlanItem) (chars, tokens string) {
	switch {
	case item.Before == nil && item.After == nil:
		return "", ""
	case item.After == nil && item.Before.Chars == 0 && item.Before.Tokens == 0:
		return "0", "0"
	case item.After == nil:
		return term.Number(item.Before.Chars) + " → 0", term.Number(item.Before.Tokens) + " → 0"
	case item.Before == nil || item.Verdict == window.Kept:
		return term.Number(item.After.Chars), term.Number(item.After.Tokens)
	}
	return term.Number(item.Before.Chars) + " → " + term.Number(item.After.Chars), term.Number(item.Before.Tokens) + " → " + term.Number(item.After.Tokens)
}

func (a *app) verdictCell(verdict window.Verdict) string {
	switch verdict {
	case window.Kept:
		return a.paint.Green(string(verdict))
	case window.Dropped, window.Excluded:
		return a.paint.Dim(string(verdict))
	}
	return a.paint.Yellow(string(verdict))
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
