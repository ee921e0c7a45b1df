package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// answered is an entry that answers a request. Of the models, only m has a price.
func answered(id string, seq int64, when time.Time, model string, input, cached int) continuo.Entry {
	e := entry(id, seq)
	e.Role, e.CreatedAt = continuo.Assistant, when
	e.Round = &continuo.Round{View: "chat", Model: model, Usage: &continuo.Usage{InputTokens: input, CachedTokens: cached, CacheWriteTokens: 1, OutputTokens: 2}}
	if model == "m" {
		e.Round.Usage.Cost = continuo.Cost{Nano: int64(7 * input), Currency: continuo.USD}
	}
	return e
}

// activity reads the activity of one conversation.
func activity(t *testing.T, store maintenance.Store, id string) continuo.Activity {
	t.Helper()
	found, err := store.Activities(t.Context(), []string{"none", id})
	noError(t, err)
	if len(found) != 1 || found[0].ConversationID != id {
		t.Fatalf("the activities of %s are %+v", id, found)
	}
	return found[0]
}

func testUsage(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 1)
	same(t, "of no request", activity(t, store, "a").Usage, []continuo.UsageCount(nil))
	next := int64(2)
	add := func(entries ...continuo.Entry) {
		t.Helper()
		for i := range entries {
			entries[i].Seq, entries[i].ID = next+int64(i), fmt.Sprintf("a%d", next+int64(i))
		}
		noError(t, store.Append(ctx, continuo.Batch{ConversationID: "a", After: next - 1, Entries: entries}))
		next += int64(len(entries))
	}
	add(answered("a", 0, day, "m", 100, 0))
	silent := answered("a", 0, day, "m", 0, 0)
	silent.Round.Usage = nil
	add(answered("a", 0, day, "m", 200, 50), entry("a", 0), answered("a", 0, day, "n", 10, 10), silent)
	later := day.AddDate(0, 0, 1)
	add(answered("a", 0, later, "m", 30, 10))
	first, second := day.UTC().Format("2006-01-02"), later.UTC().Format("2006-01-02")
	want := []continuo.UsageCount{
		{Day: first, Model: "n", Requests: 1, InputTokens: 10, CachedTokens: 10, CacheWriteTokens: 1, OutputTokens: 2, LastSeq: 5, Shares: "100"},
		{Day: first, Model: "m", Requests: 3, InputTokens: 300, CachedTokens: 50, CacheWriteTokens: 2, OutputTokens: 4, CostNano: 2100, Priced: 2, LastSeq: 6, Shares: "000025---"},
		{Day: second, Model: "m", Requests: 1, InputTokens: 30, CachedTokens: 10, CacheWriteTokens: 1, OutputTokens: 2, CostNano: 210, Priced: 1, LastSeq: 7, Shares: "033"},
	}
	same(t, "usage", activity(t, open(t, opener), "a").Usage, want)
	create(t, store, "b", 0)
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "b", Entries: []continuo.Entry{answered("b", 1, day, "n", 5, 0)}}))
	totals, err := store.Totals(ctx, continuo.ConversationQuery{ProjectID: "p"})
	noError(t, err)
	same(t, "totals", totals, continuo.Totals{Conversations: 2, Usage: []continuo.UsageCount{
		{Day: first, Model: "m", Requests: 3, InputTokens: 300, CachedTokens: 50, CacheWriteTokens: 2, OutputTokens: 4, CostNano: 2100, Priced: 2},
		{Day: first, Model: "n", Requests: 2, InputTokens: 15, CachedTokens: 10, CacheWriteTokens: 2, OutputTokens: 4},
		{Day: second, Model: "m", Requests: 1, InputTokens: 30, CachedTokens: 10, CacheWriteTokens: 1, OutputTokens: 2, CostNano: 210, Priced: 1},
	}})
	for range 30 {
		add(answered("a", 0, later, "m", 2, 1))
	}
	if shares := activity(t, store, "a").Usage[2].Shares; len(shares) != continuo.MaxSharesText || shares[:6] != "050050" {
		t.Errorf("the newest shares are %q", shares)
	}
	noError(t, store.PutRecords(ctx, "b", []maintenance.Record{{Entry: new(answered("b", 1, day, "n", 5, 0))}, {Entry: new(answered("b", 2, day, "n", 5, 0))}}))
	if used := activity(t, store, "b").Usage; used[0].Requests != 2 || used[0].InputTokens != 10 {
		t.Errorf("after records of entries that were there: %+v", used)
	}
	noError(t, store.Delete(ctx, "a"))
	totals, err = store.Totals(ctx, continuo.ConversationQuery{ProjectID: "p"})
	noError(t, err)
	if totals.Conversations != 1 || len(totals.Usage) != 1 || totals.Usage[0].InputTokens != 10 {
		t.Errorf("after a deletion: %+v", totals)
	}
}

func testActivities(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	for i, id := range []string{"running", "failed", "finished", "empty", "child"} {
		c := conversation(id)
		c.UpdatedAt, c.ActiveMode = at(10+i), continuo.ModeChat
		if id == "child" {
			c.ParentID, c.ActiveMode, c.Key = "running", continuo.ModeAgent, "session x:1"
		}
		noError(t, store.Create(ctx, c, nil))
	}
	for id, state := range map[string]continuo.TurnState{"running": "", "failed": continuo.TurnFailed, "finished": continuo.TurnFinished} {
		begun := begin(t, store, id, "t")
		if state != "" {
			_, err := store.UpdateTurn(ctx, continuo.TurnUpdate{ConversationID: id, TurnID: "t", Fence: begun.Fence, State: state})
			noError(t, err)
		}
	}
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "finished", Entries: []continuo.Entry{answered("finished", 1, at(12), "m", 1, 0)}}))
	if a := activity(t, store, "running"); a.Children != 1 || a.Turn.ID != "t" || a.Turn.State != continuo.TurnRunning {
		t.Errorf("the activity is %+v", a)
	}
	if a := activity(t, store, "empty"); a.Turn.ID != "" || a.Run.ID != "" || a.Children != 0 {
		t.Errorf("the activity of nothing is %+v", a)
	}
	for name, test := range map[string]struct {
		query continuo.ConversationQuery
		want  []string
	}{
		"active":  {continuo.ConversationQuery{State: continuo.ActivityActive}, []string{"running"}},
		"failed":  {continuo.ConversationQuery{State: continuo.ActivityFailed}, []string{"failed"}},
		"idle":    {continuo.ConversationQuery{State: continuo.ActivityIdle}, []string{"child", "empty", "finished"}},
		"mode":    {continuo.ConversationQuery{Mode: continuo.ModeAgent}, []string{"child"}},
		"parent":  {continuo.ConversationQuery{ParentID: "running"}, []string{"child"}},
		"key":     {continuo.ConversationQuery{KeyPrefix: "session x:"}, []string{"child"}},
		"model":   {continuo.ConversationQuery{Model: "m"}, []string{"finished"}},
		"since":   {continuo.ConversationQuery{Since: at(13)}, []string{"child", "empty"}},
		"several": {continuo.ConversationQuery{Since: at(13), Mode: continuo.ModeChat, State: continuo.ActivityIdle}, []string{"empty"}},
	} {
		test.query.ProjectID, test.query.Limit = "p", 10
		found, err := store.Conversations(ctx, test.query)
		noError(t, err)
		var ids []string
		for _, c := range found {
			ids = append(ids, c.ID)
		}
		if slices.Sort(ids); !slices.Equal(ids, test.want) {
			t.Errorf("%s: %v, want %v", name, ids, test.want)
		}
		totals, err := store.Totals(ctx, test.query)
		noError(t, err)
		if totals.Conversations != int64(len(test.want)) {
			t.Errorf("%s: the totals are of %d", name, totals.Conversations)
		}
	}
}
