package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
)

// ErrBudget says that a budget is used up.
var ErrBudget = errors.New("the budget is used up")

// BudgetError names the budget that is used up.
type BudgetError struct {
	Of     string // whose it is, such as "API key 7k3mqv0z2x9a"
	Used   string // how much of what, such as "1200 of 1000 tokens"
	Period auth.Period
	Resets time.Time // when the budget is reset
	Wait   time.Duration
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("the budget of %s is used up: %s this %s; it resets at %s", e.Of, e.Used, e.Period, e.Resets.Format(time.RFC3339))
}

// Is makes errors.Is match ErrBudget.
func (e *BudgetError) Is(target error) bool { return target == ErrBudget }

// BudgetOptions configures Budgets.
type BudgetOptions struct {
	// Key finds a key by its id. Default: no key has a budget.
	Key func(ctx context.Context, id string) (auth.Key, error)
	// User and Project are the budgets of each user and each project. Default none.
	User, Project auth.Budget
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Budgets refuses requests whose payer has used up a budget. It is safe for concurrent use.
//
// Requests in flight count with their estimated input until what they used is stored. So a budget is exceeded by at most
// one request in each process, and the answers of those that were in flight.
type Budgets struct {
	log     *continuo.Log
	options BudgetOptions

	mu       sync.Mutex
	inFlight map[owner]amount
}

// owner is whose a budget is.
type owner struct{ project, key, user string }

// amount is what requests use.
type amount struct{ tokens, costNano int64 }

// NewBudgets makes Budgets over a log.
func NewBudgets(log *continuo.Log, options BudgetOptions) *Budgets {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Budgets{log: log, options: options, inFlight: map[owner]amount{}}
}

// limit is a budget of a payer.
type limit struct {
	owner
	auth.Budget
	of    string
	query continuo.SpendingQuery
}

// Admit reserves what a request to a model is estimated to use, until release is called, once: when what it used is stored.
// It fails with a *BudgetError.
func (b *Budgets) Admit(ctx context.Context, payer continuo.Payer, tokens, costNano int64) (release func(), err error) {
	limits, err := b.limits(ctx, payer)
	if err != nil || len(limits) == 0 {
		return func() {}, err
	}
	others := b.reserve(limits, amount{tokens, costNano})
	release = sync.OnceFunc(func() { b.reserve(limits, amount{-tokens, -costNano}) })
	now := b.options.Now()
	for i, limit := range limits {
		begin, next := limit.Span(now)
		limit.query.From = continuo.DayOf(begin)
		sums, err := b.log.Spent(ctx, limit.query)
		if err == nil {
			err = limit.check(sums, others[i], next, now)
		}
		if err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}

// limits are the budgets that a payer has.
func (b *Budgets) limits(ctx context.Context, payer continuo.Payer) (limits []limit, err error) {
	if payer.KeyID != "" && b.options.Key != nil {
		key, err := b.options.Key(ctx, payer.KeyID)
		switch {
		case errors.Is(err, continuo.ErrNotFound): // of another store
		case err != nil:
			return nil, fmt.Errorf("budget of API key %s: %w", payer.KeyID, err)
		case !key.Budget.IsZero():
			limits = append(limits, limit{
				owner{project: payer.ProjectID, key: payer.KeyID},
				key.Budget, "API key " + payer.KeyID,
				continuo.SpendingQuery{ProjectID: payer.ProjectID, KeyID: &payer.KeyID},
			})
		}
	}
	if payer.UserID != "" && !b.options.User.IsZero() {
		limits = append(limits, limit{
			owner{project: payer.ProjectID, user: payer.UserID},
			b.options.User, "user " + payer.UserID,
			continuo.SpendingQuery{ProjectID: payer.ProjectID, UserID: &payer.UserID},
		})
	}
	if !b.options.Project.IsZero() {
		limits = append(limits, limit{
			owner{project: payer.ProjectID}, b.options.Project, "project " + payer.ProjectID, continuo.SpendingQuery{ProjectID: payer.ProjectID},
		})
	}
	return limits, nil
}

// reserve adds to what is in flight, and returns what was before.
func (b *Budgets) reserve(limits []limit, more amount) (before []amount) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, limit := range limits {
		now := b.inFlight[limit.owner]
		before = append(before, now)
		now.tokens, now.costNano = now.tokens+more.tokens, now.costNano+more.costNano
		if now == (amount{}) {
			delete(b.inFlight, limit.owner)
		} else {
			b.inFlight[limit.owner] = now
		}
	}
	return before
}

// check compares what was spent, and what is in flight, with the budget.
func (l limit) check(sums []continuo.Spending, inFlight amount, next, now time.Time) error {
	var spent continuo.Spent
	for _, sum := range sums {
		spent.Add(sum.Spent)
	}
	refused := &BudgetError{Of: l.of, Period: l.Period, Resets: next, Wait: next.Sub(now)}
	if refused.Period == "" {
		refused.Period = auth.PeriodMonth
	}
	switch used, cost := spent.Tokens()+inFlight.tokens, spent.CostNano+inFlight.costNano; {
	case l.Tokens > 0 && used >= l.Tokens:
		refused.Used = fmt.Sprintf("%d of %d tokens", used, l.Tokens)
	case l.CostNano > 0 && cost >= l.CostNano:
		refused.Used = fmt.Sprintf("%s of %s", Dollars(cost), Dollars(l.CostNano))
	default:
		return nil
	}
	return refused
}

// Dollars writes an amount in billionths of a US dollar exactly, with two decimals or as many as it has.
func Dollars(nano int64) string {
	decimals := fmt.Sprintf("%09d", nano%1e9)
	return fmt.Sprintf("$%d.%s", nano/1e9, decimals[:2]+strings.TrimRight(decimals[2:], "0"))
}
