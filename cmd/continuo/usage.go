package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/term"
)

type usageCommand struct {
	By    string  `default:"day,model" placeholder:"LIST" help:"What the sums are grouped and sorted by: some of day, key, user and model. Default: day,model."`
	Since *age    `placeholder:"DURATION" xor:"from" help:"Only requests of this long ago or later, such as 7d; whole days."`
	From  string  `placeholder:"DAY" xor:"from" help:"Only requests of this day (UTC) or later, such as 2026-11-01."`
	To    string  `placeholder:"DAY" help:"Only requests of this day or earlier."`
	Key   *string `placeholder:"KEY" help:"Only requests of this API key, by its id."`
	User  *string `placeholder:"USER" help:"Only requests of this user's conversations."`
	JSON  bool    `help:"Write JSON: {data}, as GET /api/usage."`
}

func (usageCommand) Help() string {
	return `Adds up what all requests to models of the project used and cost, at the prices of their time: those of turns, and for summaries, memory and embeddings. Conversations that were deleted since are in it. Without a price for a model its requests are counted as unpriced (continuo config, docs/models.md).

Examples:

    continuo usage
    continuo usage --by key --since 30d
    continuo usage --by user,model --from 2026-11-01 --to 2026-11-30 --json`
}

// Run prints the sums.
func (c *usageCommand) Run(ctx context.Context, a *app) error {
	groups, err := api.SpendingGroups(c.By)
	if err != nil {
		return usage("--by: %v", err)
	}
	for name, day := range map[string]string{"--from": c.From, "--to": c.To} {
		if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
			return usage("%s: given %q; allowed: a day such as 2026-11-01", name, day)
		}
	}
	if c.From != "" && c.To != "" && c.From > c.To {
		return usage("--from %s is after --to %s", c.From, c.To)
	}
	since := ""
	if c.Since != nil {
		since = continuo.DayOf(time.Now().Add(-time.Duration(*c.Since)))
	}
	if c.To != "" && since > c.To {
		return usage("--since begins on %s, after --to %s", since, c.To)
	}
	w, err := a.wireStore(ctx, openExisting)
	if err != nil {
		return err
	}
	defer w.Close()
	query := continuo.SpendingQuery{ProjectID: w.settings.Project, KeyID: c.Key, UserID: c.User, From: c.From, To: c.To, By: groups}
	if since != "" {
		query.From = since
	}
	sums, err := w.store.Spent(ctx, query)
	if err != nil {
		return fmt.Errorf("add up what was spent: %w", err)
	}
	return a.show(c.JSON, api.AllOf(api.UsageRows(sums, groups)), func() { a.printUsage(sums, groups) })
}

// printUsage prints sums, and their sum.
func (a *app) printUsage(sums []continuo.Spending, groups []continuo.SpendingGroup) {
	if len(sums) == 0 {
		a.note("No requests to models in this time.")
		return
	}
	titles := make([]string, 0, len(groups))
	for _, group := range groups {
		titles = append(titles, string(group))
	}
	t := a.table(append(titles, ">requests", ">tokens in", ">cached", ">tokens out", ">cost", ">unpriced")...)
	var total continuo.Spent
	for _, sum := range sums {
		total.Add(sum.Spent)
		t.Add(append(groupCells(sum, groups), spentCells(sum.Spent)...)...)
	}
	if len(sums) > 1 {
		t.Add(append(slices.Concat([]string{"all"}, make([]string, len(groups)-1)), spentCells(total)...)...)
	}
	t.DropEmpty(len(groups) + 5) // of requests without a price
	a.printTable(t, a.width)
}

func groupCells(sum continuo.Spending, groups []continuo.SpendingGroup) []string {
	var cells []string
	for _, group := range groups {
		cells = append(cells, map[continuo.SpendingGroup]string{
			continuo.SpendingByDay: sum.Day, continuo.SpendingByKey: sum.KeyID, continuo.SpendingByUser: term.OneLine(sum.UserID, 64),
			continuo.SpendingByModel: term.OneLine(strings.TrimPrefix(sum.Provider+"/"+sum.Model, "/"), 64),
		}[group])
	}
	return cells
}

func spentCells(s continuo.Spent) []string {
	cost := "–"
	if s.Priced > 0 {
		cost = fmt.Sprintf("$%.4f", float64(s.CostNano)/1e9)
	}
	unpriced := ""
	if missing := s.Requests - s.Priced; missing > 0 {
		unpriced = term.Number(missing)
	}
	return []string{term.Number(s.Requests), term.Number(s.InputTokens), term.Number(s.CachedTokens), term.Number(s.OutputTokens), cost, unpriced}
}
