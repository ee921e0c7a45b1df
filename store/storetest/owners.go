package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/maintenance"
)

func testKeyChange(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	for _, id := range []string{"a", "b"} {
		c := conversation(id)
		c.Key = "key of " + id
		noError(t, store.Create(ctx, c, nil))
	}
	elsewhere := conversation("c")
	elsewhere.ProjectID, elsewhere.Key = "q", "elsewhere"
	noError(t, store.Create(ctx, elsewhere, nil))
	change := func(id, key string) error {
		got, err := store.Update(ctx, id, continuo.ConversationChange{Key: &key, UpdatedAt: at(1)})
		if err == nil {
			same(t, "the key of "+id, got.Key, key)
		}
		return err
	}
	finds := func(key, id string) {
		t.Helper()
		got, err := store.ConversationByKey(ctx, "p", key)
		if id == "" && !errors.Is(err, continuo.ErrNotFound) || id != "" && got.ID != id {
			t.Errorf("the key %q finds %q (%v), want %q", key, got.ID, err, id)
		}
	}
	expectError(t, "another's key", change("a", "key of b"), continuo.ErrExists)
	finds("key of a", "a")
	finds("key of b", "b")
	noError(t, change("a", "key of a")) // its own
	finds("key of a", "a")
	noError(t, change("a", "elsewhere")) // of another project
	finds("elsewhere", "a")
	finds("key of a", "")
	noError(t, change("b", "key of a")) // free again
	finds("key of a", "b")
	finds("key of b", "")
	noError(t, change("b", ""))
	finds("key of a", "")
	finds("", "")
	noError(t, change("a", "")) // two without a key
	noError(t, change("b", "later"))
	finds("later", "b")
	noError(t, store.Delete(ctx, "b"))
	noError(t, change("a", "later"))
	finds("later", "a")
}

func testUsers(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 1)
	ada, bob, noUser := "ada", "bob", ""
	for i, step := range []struct {
		change continuo.ConversationChange
		want   string
	}{
		{continuo.ConversationChange{Claim: &noUser}, ""},
		{continuo.ConversationChange{Claim: &ada}, ada},
		{continuo.ConversationChange{Claim: &bob}, ada}, // it has a user
		{continuo.ConversationChange{}, ada},
		{continuo.ConversationChange{UserID: &bob}, bob},
		{continuo.ConversationChange{UserID: &noUser, Claim: &ada}, ""},
	} {
		step.change.UpdatedAt = at(i)
		got, err := store.Update(ctx, "a", step.change)
		noError(t, err)
		kept, err := store.Conversation(ctx, "a")
		noError(t, err)
		same(t, fmt.Sprintf("the user after change %d", i), []string{got.UserID, kept.UserID}, []string{step.want, step.want})
	}
	noError(t, second(store.Update(ctx, "a", continuo.ConversationChange{UserID: &ada, UpdatedAt: at(9)})))
	noError(t, store.Create(ctx, forkOf("b", continuo.Segment{ConversationID: "a", Through: 1}), nil))
	noError(t, store.Delete(ctx, "a"))
	records, err := store.Records(ctx, "a", maintenance.RecordPosition{}, 1)
	noError(t, err)
	same(t, "the user of what was deleted", records[0].Conversation.UserID, "")
}

// owned are conversations with the id of their number, from the oldest on.
var owned = []struct{ user, metadata string }{
	{"ada", `{"plan":"pro","seats":3}`},
	{"", `{"plan":"pro"}`},
	{"bob", `{"plan":"pro","seats":"3","quote\"d":"a'b\\"}`},
	{"ada", `{"plan":"free","beta":true,"seats":3.0}`},
	{"ada", `{"plan":["pro"],"beta":"true"}`},
	{"bob", ``},
	{"ada", `{"plan":null,"beta":{"plan":"pro"},"nul":"\u0000"}`},
	{"ada", `{"plan":"pro","plan":"free"}`},
	{"ada", `{"plan":"pro","long":"x"}`},
}

func fillOwned(t *testing.T, store maintenance.Store) {
	t.Helper()
	for i, o := range owned {
		c := conversation(fmt.Sprint(i))
		c.UserID, c.UpdatedAt = o.user, at(i/2)
		if o.metadata != "" {
			c.Metadata = json.RawMessage(o.metadata)
		}
		noError(t, store.Create(t.Context(), c, nil))
	}
}

// filters are filters of conversations, with the ids that they find, the newest first.
var filters = []struct {
	user   string
	labels map[string]string
	want   []string
}{
	{"", nil, []string{"8", "7", "6", "5", "4", "3", "2", "1", "0"}},
	{"ada", nil, []string{"8", "7", "6", "4", "3", "0"}},
	{"bob", nil, []string{"5", "2"}},
	{"Ada", nil, nil},
	{"", map[string]string{"plan": "pro"}, []string{"8", "2", "1", "0"}},
	{"ada", map[string]string{"plan": "pro"}, []string{"8", "0"}},
	{"ada", map[string]string{"plan": "free"}, []string{"7", "3"}},
	{"", map[string]string{"seats": "3"}, []string{"2", "0"}},
	{"", map[string]string{"seats": "3.0"}, []string{"3"}},
	{"", map[string]string{"seats": "3", "plan": "pro"}, []string{"2", "0"}},
	{"bob", map[string]string{"seats": "3", "plan": "pro"}, []string{"2"}},
	{"", map[string]string{"beta": "true"}, []string{"4", "3"}},
	{"", map[string]string{`quote"d`: `a'b\`}, []string{"2"}},
	{"", map[string]string{"plan": "null"}, nil},
	{"", map[string]string{"plan": ""}, nil},
	{"", map[string]string{"nul": "\x01"}, nil},
	{"", map[string]string{"none": "pro"}, nil},
}

func testFilteredLists(t *testing.T, opener Opener) {
	store := open(t, opener)
	fillOwned(t, store)
	for _, filter := range filters {
		for limit := 1; limit <= 10; limit++ {
			query := continuo.ConversationQuery{ProjectID: "p", UserID: filter.user, Labels: filter.labels, Limit: limit}
			same(t, fmt.Sprintf("pages of %d of %q with %v", limit, filter.user, filter.labels), listAll(t, store, query), filter.want)
		}
		other := continuo.ConversationQuery{ProjectID: "q", UserID: filter.user, Labels: filter.labels, Limit: 10}
		same(t, "in another project", listAll(t, store, other), []string(nil))
	}
	c, err := store.Conversation(t.Context(), "3")
	noError(t, err)
	noError(t, store.Archive(t.Context(), c, at(60)))
	archived := continuo.ConversationQuery{ProjectID: "p", UserID: "ada", Labels: map[string]string{"plan": "free"}, Archived: true, Limit: 5}
	same(t, "archived", listAll(t, store, archived), []string{"3"})
	noError(t, second(store.Update(t.Context(), "8", continuo.ConversationChange{Metadata: json.RawMessage(`{"plan":"free"}`), UpdatedAt: at(70)})))
	archived.Archived = false
	same(t, "after a change of metadata", listAll(t, store, archived), []string{"8", "7"})
}

func testFilteredFinds(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	fillOwned(t, store)
	for i := range owned {
		id := fmt.Sprint(i)
		appendRunEvents(t, store, id, 1, runEvent{id, continuo.RunBegan})
		noError(t, store.Index(ctx, index.Batch{ConversationID: id, Through: 1, Documents: []index.Document{{Seq: 1, Added: at(i).UnixNano(), Terms: []string{"word"}}}}))
	}
	for _, filter := range filters {
		for _, prefix := range []bool{false, true} {
			query := index.HitQuery{ProjectID: "p", UserID: filter.user, Labels: filter.labels, Terms: []index.Term{{Text: "word", Prefix: prefix}}, Limit: 2}
			same(t, fmt.Sprintf("places of %q with %v", filter.user, filter.labels), conversationsOfHits(t, store, query), filter.want)
		}
		if len(filter.labels) > 0 {
			continue
		}
		runs := continuo.RunQuery{ProjectID: "p", UserID: filter.user, Limit: 2}
		same(t, fmt.Sprintf("runs of %q", filter.user), listRuns(t, store, runs), filter.want)
	}
}

// conversationsOfHits reads the conversations of places page by page.
func conversationsOfHits(t *testing.T, store maintenance.Store, query index.HitQuery) (ids []string) {
	t.Helper()
	for {
		page, err := store.Hits(t.Context(), query)
		noError(t, err)
		for _, position := range page {
			ids, query.Before = append(ids, position.ConversationID), position
		}
		if len(page) < query.Limit {
			return ids
		}
	}
}
