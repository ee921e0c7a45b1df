package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine/ledger"
	"github.com/continuo-log/continuo/store/storetest"
)

var now = time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC)

func budgetsOver(t *testing.T, budget auth.Budget) (*continuo.Log, *ledger.Budgets) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	return log, ledger.NewBudgets(log, ledger.BudgetOptions{
		Key: func(_ context.Context, id string) (auth.Key, error) {
			if id != "k" {
				return auth.Key{}, continuo.ErrNotFound
			}
			return auth.Key{ID: id, Budget: budget}, nil
		},
		Now: func() time.Time { return now },
	})
}

// Requests in flight count, so that many at once do not all get the last of a budget.
func TestRequestsInFlightCount(t *testing.T) {
	_, budgets := budgetsOver(t, auth.Budget{Tokens: 100})
	payer := continuo.Payer{ProjectID: "p", KeyID: "k"}
	first, err := budgets.Admit(t.Context(), payer, 60, 0)
	if err != nil {
		t.Fatal(err)
	}
	second, err := budgets.Admit(t.Context(), payer, 60, 0) // the one that exceeds the budget
	if err != nil {
		t.Fatal(err)
	}
	if _, err := budgets.Admit(t.Context(), payer, 1, 0); !errors.Is(err, ledger.ErrBudget) {
		t.Errorf("a third request: %v", err)
	}
	if _, err := budgets.Admit(t.Context(), continuo.Payer{ProjectID: "p", KeyID: "other"}, 1, 0); err != nil {
		t.Errorf("another key: %v", err)
	}
	first()
	first() // releases once
	if _, err := budgets.Admit(t.Context(), payer, 1, 0); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
	second()
}

func TestWhatWasSpentCounts(t *testing.T) {
	payer := continuo.Payer{ProjectID: "p", KeyID: "k"}
	for name, test := range map[string]struct {
		budget  auth.Budget
		spent   continuo.Spent
		day     string
		refused bool
		resets  time.Time
	}{
		"tokens":           {auth.Budget{Tokens: 10}, continuo.Spent{InputTokens: 6, OutputTokens: 4}, "2026-03-15", true, time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)},
		"fewer tokens":     {auth.Budget{Tokens: 10}, continuo.Spent{InputTokens: 6, OutputTokens: 3}, "2026-03-15", false, now},
		"this month":       {auth.Budget{Tokens: 10}, continuo.Spent{InputTokens: 99}, "2026-03-01", true, time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)},
		"last month":       {auth.Budget{Tokens: 10}, continuo.Spent{InputTokens: 99}, "2026-02-28", false, now},
		"today":            {auth.Budget{CostNano: 10, Period: auth.PeriodDay}, continuo.Spent{CostNano: 10}, "2026-03-15", true, time.Date(2026, 3, 16, 0, 0, 0, 0, time.UTC)},
		"yesterday":        {auth.Budget{CostNano: 10, Period: auth.PeriodDay}, continuo.Spent{CostNano: 10}, "2026-03-14", false, now},
		"without a budget": {auth.Budget{}, continuo.Spent{InputTokens: 1 << 40}, "2026-03-15", false, now},
	} {
		t.Run(name, func(t *testing.T) {
			log, budgets := budgetsOver(t, test.budget)
			one := continuo.Spending{ProjectID: "p", KeyID: "k", Day: test.day, Spent: test.spent}
			if err := log.Charge(t.Context(), one); err != nil {
				t.Fatal(err)
			}
			_, err := budgets.Admit(t.Context(), payer, 0, 0)
			var budget *ledger.BudgetError
			if errors.As(err, &budget) != test.refused || err != nil && !test.refused {
				t.Fatalf("got %v", err)
			}
			if test.refused && (!budget.Resets.Equal(test.resets) || budget.Wait != test.resets.Sub(now)) {
				t.Errorf("it resets at %v in %v", budget.Resets, budget.Wait)
			}
		})
	}
}

func TestDollars(t *testing.T) {
	for nano, want := range map[int64]string{
		0: "$0.00", 5e9: "$5.00", 5e8: "$0.50", 1_234_567_890: "$1.23456789", 3e6: "$0.003", 1: "$0.000000001",
	} {
		if got := ledger.Dollars(nano); got != want {
			t.Errorf("%d is %s, want %s", nano, got, want)
		}
	}
}
