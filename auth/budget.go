package auth

import (
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Budget bounds what the requests to models of a key may use in a period; the zero value bounds nothing.
type Budget struct {
	// Tokens bounds input and output tokens together; 0: no bound.
	Tokens int64 `json:"tokens,omitempty"`
	// CostNano bounds the cost, in billionths of a US dollar; 0: no bound. Requests without a known price cost nothing.
	CostNano int64 `json:"cost_nano,omitempty"`
	// Period is how often the budget is reset. Default PeriodMonth.
	Period Period `json:"period,omitempty"`
}

// Period is how long a budget lasts.
type Period string

// The periods, in UTC.
const (
	PeriodDay   Period = "day"
	PeriodMonth Period = "month"
)

// IsZero reports whether the budget bounds nothing.
func (b Budget) IsZero() bool { return b.Tokens == 0 && b.CostNano == 0 }

// Check refuses negative bounds and unknown periods; ErrInvalid.
func (b Budget) Check() error {
	switch {
	case b.Tokens < 0 || b.CostNano < 0:
		return fmt.Errorf("budget: %w: a bound is not negative", continuo.ErrInvalid)
	case b.Period != "" && b.Period != PeriodDay && b.Period != PeriodMonth:
		return fmt.Errorf("budget: %w: the period is day or month, not %.40q", continuo.ErrInvalid, b.Period)
	}
	return nil
}

// Span returns when the budget's present period began, and when the next one begins.
func (b Budget) Span(now time.Time) (begin, next time.Time) {
	year, month, day := now.UTC().Date()
	if b.Period == PeriodDay {
		begin = time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
		return begin, begin.AddDate(0, 0, 1)
	}
	begin = time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	return begin, begin.AddDate(0, 1, 0)
}
