package server

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/ledger"
)

// A key with a budget is refused when the budget is used up, before anything is stored, and until the period ends.
func TestBudgetOfAKey(t *testing.T) {
	keys := newKeyring(t)
	key, shown := keys.newKey("project")
	_, freeShown := keys.newKey("project")
	now, later := time.Now().UTC(), atomic.Int64{} // days
	checker := auth.NewChecker(keys, auth.Options{Keep: time.Nanosecond})
	clock := func() time.Time { return now.AddDate(0, 0, int(later.Load())) } // of what is spent, too: a day may end while the test runs
	budgets := ledger.BudgetOptions{Key: checker.Key, Now: clock}
	handler := New(engineWith(t, keys.Store, continuo.LogOptions{Now: clock}, engine.Options{Budgets: budgets}), Options{Keys: checker})
	chat := func(shown, session string) *reply {
		t.Helper()
		return ask(t, handler, "POST", "/chat", `{"session_id": "`+session+`", "message": "hello"}`, as(shown)...)
	}
	set := func(budget auth.Budget) {
		t.Helper()
		if _, err := keys.SetKeyBudget(t.Context(), key.ID, budget); err != nil {
			t.Fatal(err)
		}
	}
	set(auth.Budget{Tokens: 1, Period: auth.PeriodDay})
	chat(shown, "a").into(200, &struct{}{}) // it is within the budget until it is answered
	for range 2 {
		refused := chat(shown, "b")
		body := refused.failed(http.StatusTooManyRequests, "budget_exceeded", "")
		wait, err := strconv.Atoi(refused.header.Get("Retry-After"))
		if err != nil || wait < 1 || wait > 24*3600 {
			t.Errorf("Retry-After %q", refused.header.Get("Retry-After"))
		}
		for _, part := range []string{"API key " + key.ID, "of 1 tokens this day", "resets at " + now.AddDate(0, 0, 1).Format(time.DateOnly) + "T00:00:00Z"} {
			if !strings.Contains(body.Error.Message, part) {
				t.Errorf("the message %q lacks %q", body.Error.Message, part)
			}
		}
	}
	ask(t, handler, "GET", "/api/conversations/b", "", as(shown)...).failed(404, "not_found", "")
	chat(freeShown, "b").into(200, &struct{}{})
	ask(t, handler, "POST", "/api/keys", `{"name": "more"}`, as(shown)...).failed(403, "budgeted", "")
	ask(t, handler, "POST", "/api/keys", `{"budget": {"tokens": 5, "period": "year"}}`, as(freeShown)...).failed(400, "invalid_request", "budget")
	later.Store(1)
	chat(shown, "b").into(200, &struct{}{})
	later.Store(0)
	set(auth.Budget{Tokens: 1_000_000, Period: auth.PeriodMonth})
	chat(shown, "b").into(200, &struct{}{})
}

// Budgets of users and projects are the settings'.
func TestBudgetsOfUsersAndProjects(t *testing.T) {
	keys := newKeyring(t)
	_, shown := keys.newKey("project")
	_, otherShown := keys.newKey("other")
	checker := auth.NewChecker(keys, auth.Options{})
	budgets := ledger.BudgetOptions{User: auth.Budget{Tokens: 1}, Project: auth.Budget{Tokens: 1_000_000}}
	handler := New(engineOver(t, keys.Store, engine.Options{Budgets: budgets}), Options{Keys: checker})
	chat := func(shown, session, user string) *reply {
		t.Helper()
		return ask(t, handler, "POST", "/chat", `{"session_id": "`+session+`", "user_id": "`+user+`", "message": "hello"}`, as(shown)...)
	}
	chat(shown, "a", "ada").into(200, &struct{}{})
	if body := chat(shown, "b", "ada").failed(429, "budget_exceeded", ""); !strings.Contains(body.Error.Message, "user ada") {
		t.Errorf("the message is %q", body.Error.Message)
	}
	chat(shown, "c", "bob").into(200, &struct{}{})
	chat(otherShown, "a", "ada").into(200, &struct{}{}) // the user of another project
}
