package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/conversations"
)

// usageOperations say what was spent.
func (s *Service) usageOperations() []Operation {
	return []Operation{
		define(Operation{
			ID: "showUsage", Method: "GET", Path: "/api/usage", Tag: "service", Summary: "add up what requests to models used and cost",
			Answers: answers(ok("The sums.")),
		}, s.ShowUsage),
	}
}

// UsageQuery selects what GET /api/usage adds up.
type UsageQuery struct {
	UserFilter
	// What the sums are grouped and sorted by, in this order: some of `day`, `key`, `user` and `model`.
	By string `query:"by" default:"day,model"`
	// Only requests of this API key, by its id. The default is those of all callers.
	KeyID *string `query:"key_id" doc:"minLength=1,maxLength=64"`
	// Only requests of this day or later, in UTC, such as `2026-11-01`.
	From *string `query:"from" doc:"format=date"`
	// Only requests of this day or earlier.
	To *string `query:"to" doc:"format=date"`

	groups []continuo.SpendingGroup
}

// Check refuses unknown groups, what is no day, and days that end before they begin.
func (in *UsageQuery) Check() (err error) {
	if in.groups, err = SpendingGroups(in.By); err != nil {
		return Refuse("by", "by: %s", err)
	}
	for _, given := range []struct {
		name string
		day  *string
	}{{"from", in.From}, {"to", in.To}} {
		if given.day == nil {
			continue
		}
		if _, err := time.Parse(time.DateOnly, *given.day); err != nil {
			return Refuse(given.name, "%s must be a day such as 2026-11-01, not %q", given.name, Bounded(*given.day))
		}
	}
	if in.From != nil && in.To != nil && *in.From > *in.To {
		return Refuse("to", "from is %s and to is %s: from must not come after to", *in.From, *in.To)
	}
	return nil
}

// SpendingGroups reads a list of groups such as day,model.
func SpendingGroups(list string) ([]continuo.SpendingGroup, error) {
	known := []continuo.SpendingGroup{continuo.SpendingByDay, continuo.SpendingByKey, continuo.SpendingByUser, continuo.SpendingByModel}
	var groups []continuo.SpendingGroup
	for name := range strings.SplitSeq(list, ",") {
		group := continuo.SpendingGroup(strings.TrimSpace(name))
		switch {
		case !slices.Contains(known, group):
			return nil, fmt.Errorf("given %q; allowed: day, key, user and model, one or more, such as day,model", Bounded(name))
		case slices.Contains(groups, group):
			return nil, fmt.Errorf("%s is there twice", group)
		}
		groups = append(groups, group)
	}
	return groups, nil
}

// UsageRow is what the requests of a group used. It has the members by which the sums are grouped.
type UsageRow struct {
	// The day of the answers, in UTC. With `by=day`, like the others with theirs.
	Day string `json:"day,omitempty"`
	// The id of the caller's API key; empty for requests without a key, and of the server itself.
	KeyID *string `json:"key_id,omitempty"`
	// The user of the conversation; empty for none.
	UserID *string `json:"user_id,omitempty"`
	// As the provider names it.
	Model string `json:"model,omitempty"`
	// The provider of the model.
	Provider string `json:"provider,omitempty"`
	conversations.Usage
}

// UsageRows converts sums to the form for clients.
func UsageRows(sums []continuo.Spending, by []continuo.SpendingGroup) []UsageRow {
	rows := []UsageRow{}
	for _, sum := range sums {
		row := UsageRow{Day: sum.Day, Model: sum.Model, Provider: sum.Provider, Usage: conversations.UsageOf(sum.Spent)}
		if slices.Contains(by, continuo.SpendingByKey) {
			row.KeyID = &sum.KeyID
		}
		if slices.Contains(by, continuo.SpendingByUser) {
			row.UserID = &sum.UserID
		}
		rows = append(rows, row)
	}
	return rows
}

// ShowUsage adds up what requests to models used and cost.
//
// Every request of the project counts, with those for summaries, memory and embeddings, and those whose answers failed; also
// of conversations that were deleted, archived or redacted since. A sum is written in the commit of its answer, so it is
// exact; the requests of an answer that a crash cut off are not known. A key that is bound to a user sees that user's. Costs
// are at the prices of the time of each request.
func (s *Service) ShowUsage(ctx context.Context, scope continuo.Scope, in UsageQuery) (All[UsageRow], error) {
	query := continuo.SpendingQuery{ProjectID: scope.ProjectID, KeyID: in.KeyID, From: valueOf(in.From), To: valueOf(in.To), By: in.groups}
	user, err := in.user(scope)
	if err != nil {
		return All[UsageRow]{}, err
	}
	if user != "" {
		query.UserID = &user
	}
	sums, err := s.Engine.Ledger.Spent(ctx, query)
	if err != nil {
		return All[UsageRow]{}, err
	}
	return All[UsageRow]{Data: UsageRows(sums, in.groups)}, nil
}
