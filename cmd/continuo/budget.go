package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine/ledger"
	"github.com/continuo-log/continuo/internal/term"
)

// budgets are the budgets of the settings, and of the store's keys.
func (w *services) budgets() ledger.BudgetOptions {
	b := w.settings.Budgets
	return ledger.BudgetOptions{
		Key:     auth.NewChecker(w.store, auth.Options{}).Key, // which caches keys
		User:    auth.Budget{Tokens: b.UserTokens, CostNano: nano(b.UserCost), Period: auth.Period(b.Period)},
		Project: auth.Budget{Tokens: b.ProjectTokens, CostNano: nano(b.ProjectCost), Period: auth.Period(b.Period)},
	}
}

// nano is an amount in billionths.
func nano(dollars float64) int64 { return int64(math.Round(dollars * 1e9)) }

// budgetFlags are the flags of a key's budget.
type budgetFlags struct {
	Tokens tokenCount `name:"budget-tokens" placeholder:"TOKENS" help:"How many tokens, input and output together, its requests to models may use in a period, such as 250k or 1M."`
	Cost   *float64   `name:"budget-cost" placeholder:"DOLLARS" help:"What its requests to models may cost in a period, in US dollars."`
	Period string     `name:"budget-period" enum:"day,month" default:"month" help:"When the budget is reset: each day or each month, in UTC. Default: month."`
}

// budget is what the flags say.
func (f *budgetFlags) budget() (auth.Budget, error) {
	budget := auth.Budget{Tokens: int64(f.Tokens), Period: auth.Period(f.Period)}
	if f.Cost != nil {
		if !(*f.Cost <= 1e9 && nano(*f.Cost) > 0) { // 0 would be no bound
			return auth.Budget{}, usage("--budget-cost: give an amount of dollars, such as 5")
		}
		budget.CostNano = nano(*f.Cost)
	}
	if budget.IsZero() {
		return auth.Budget{}, nil
	}
	return budget, nil
}

// tokenCount is a number of tokens on the command line: 1200, 250k, 1M.
type tokenCount int64

// UnmarshalText reads the number.
func (c *tokenCount) UnmarshalText(text []byte) error {
	digits, unit := strings.TrimSpace(string(text)), 1.0
	switch {
	case strings.HasSuffix(strings.ToLower(digits), "k"):
		digits, unit = digits[:len(digits)-1], 1e3
	case strings.HasSuffix(strings.ToUpper(digits), "M"):
		digits, unit = digits[:len(digits)-1], 1e6
	}
	number, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(number > 0 && number*unit < 1e15) {
		return fmt.Errorf("give a number of tokens, such as 250k or 1M, not %q", text)
	}
	*c = tokenCount(number * unit)
	return nil
}

// budgetText describes a budget; "" for none.
func budgetText(b auth.Budget) string {
	var parts []string
	if b.Tokens > 0 {
		parts = append(parts, term.Count(b.Tokens, "token"))
	}
	if b.CostNano > 0 {
		parts = append(parts, ledger.Dollars(b.CostNano))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + " a " + string(b.Period)
}

type budgetKeyCommand struct {
	Key string `arg:"" help:"Which one: its id, or the whole key."`
	budgetFlags
	None bool `help:"Remove the budget."`
}

func (budgetKeyCommand) Help() string {
	return `Sets what the requests to models of an API key may use in a day or a month, or removes the bound. What the key has used in the present period counts. Servers on the store obey within five seconds.

Examples:

    continuo keys budget 7k3mqv0z2x9a --budget-tokens 1M --budget-period day
    continuo keys budget 7k3mqv0z2x9a --budget-cost 5
    continuo keys budget 7k3mqv0z2x9a --none`
}

// Run sets the budget.
func (c *budgetKeyCommand) Run(ctx context.Context, a *app) error {
	budget, err := c.budget()
	switch {
	case err != nil:
		return err
	case budget.IsZero() != c.None:
		return usage("give --budget-tokens or --budget-cost, or --none to remove the budget")
	}
	w, err := a.wireStore(ctx, openExisting)
	if err != nil {
		return err
	}
	defer w.Close()
	key, err := w.findKey(ctx, a, c.Key)
	if err != nil {
		return err
	}
	audit.Targets(ctx, key.ID)
	if _, err := w.store.SetKeyBudget(ctx, key.ID, budget); err != nil {
		return fmt.Errorf("set the budget of API key %s: %w", key.ID, err)
	}
	text := budgetText(budget)
	if text == "" {
		text = "none"
	}
	a.print("budget of %s: %s", key.ID, text)
	return nil
}
