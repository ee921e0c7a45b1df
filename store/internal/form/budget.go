package form

import (
	"encoding/json"
	"fmt"

	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// EncodeBudget writes a key's budget; "" for none.
func EncodeBudget(budget auth.Budget) string {
	if budget.IsZero() {
		return ""
	}
	return string(rawjson.MustMarshal(budget))
}

// DecodeBudget reads what EncodeBudget writes.
func DecodeBudget(text string) (budget auth.Budget, err error) {
	if text == "" {
		return budget, nil
	}
	if err := json.Unmarshal([]byte(text), &budget); err != nil {
		return budget, fmt.Errorf("budget of an API key: %w", err)
	}
	return budget, nil
}
