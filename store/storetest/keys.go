package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/maintenance"
)

func testProjects(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	none, err := store.Projects(ctx)
	if err != nil || len(none) != 0 {
		t.Errorf("projects of a new database: %v (%v)", none, err)
	}
	made := []auth.Project{{ID: "B", CreatedAt: at(3)}, {ID: "a", CreatedAt: at(2)}, {ID: continuo.DefaultProject, CreatedAt: at(1)}}
	for _, i := range []int{1, 0, 2} {
		noError(t, store.CreateProject(ctx, made[i]))
	}
	expectError(t, "twice", store.CreateProject(ctx, auth.Project{ID: "a", CreatedAt: at(9)}), continuo.ErrExists)
	found, err := open(t, opener).Projects(ctx)
	noError(t, err)
	same(t, "projects", found, made)
}

func testAPIKeys(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	made := []auth.Key{
		{ID: "k3", ProjectID: "P", Hash: "h", CreatedAt: at(9)},
		{ID: "k1", ProjectID: "p", Name: "the first <&> 😀", Hash: "h1", CreatedAt: at(1), ExpiresAt: at(5), Budget: auth.Budget{Tokens: 5, CostNano: 7, Period: auth.PeriodDay}},
		{ID: "k0", ProjectID: "p", UserID: "ada ö", Name: "later", Hash: "h1", CreatedAt: at(2), RevokedAt: at(4)},
		{ID: "k2", ProjectID: "p", Hash: "h2", CreatedAt: at(2)},
	}
	for _, i := range []int{3, 0, 2, 1} {
		noError(t, store.CreateKey(ctx, made[i]))
	}
	again := made[1]
	again.ProjectID, again.Hash = "q", "other"
	expectError(t, "an id twice", store.CreateKey(ctx, again), continuo.ErrExists)
	for _, key := range made {
		found, err := store.Key(ctx, key.ID)
		noError(t, err)
		same(t, key.ID, found, key)
	}
	listed := func(project string, want ...auth.Key) {
		t.Helper()
		found, err := open(t, opener).Keys(ctx, project)
		noError(t, err)
		same(t, "keys of "+project, append([]auth.Key(nil), found...), want)
	}
	listed("", made...)
	listed("p", made[1:]...)
	listed("P", made[0])
	listed("none")
	for id, when := range map[string]time.Time{"k1": at(6), "k0": at(4)} {
		revoked, err := store.RevokeKey(ctx, id, at(6))
		noError(t, err)
		found, err := store.Key(ctx, id)
		noError(t, err)
		if same(t, "revoked "+id, revoked, found); !revoked.RevokedAt.Equal(when) {
			t.Errorf("%s was revoked at %v, want %v", id, revoked.RevokedAt, when)
		}
	}
	for _, budget := range []auth.Budget{{Tokens: 9, Period: auth.PeriodMonth}, {}} {
		changed, err := store.SetKeyBudget(ctx, "k1", budget)
		noError(t, err)
		found, err := store.Key(ctx, "k1")
		noError(t, err)
		if same(t, "a key with another budget", changed, found); found.Budget != budget {
			t.Errorf("the budget is %+v, want %+v", found.Budget, budget)
		}
	}
	expectError(t, "a budget of none", second(store.SetKeyBudget(ctx, "none", auth.Budget{})), continuo.ErrNotFound)
	expectError(t, "revoke none", second(store.RevokeKey(ctx, "none", at(6))), continuo.ErrNotFound)
	expectError(t, "no key", second(store.Key(ctx, "none")), continuo.ErrNotFound)
	listed("P", made[0])
}

func testSessions(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	early := auth.Session{ID: "s1", KeyID: "k1", Hash: "h1", CreatedAt: at(1), ExpiresAt: at(5)}
	late := auth.Session{ID: "s2", KeyID: "k1", Hash: "h2", CreatedAt: at(4), ExpiresAt: at(9)}
	noError(t, store.CreateSession(ctx, early))
	noError(t, store.CreateSession(ctx, late))
	expectError(t, "an id twice", store.CreateSession(ctx, late), continuo.ErrExists)
	for _, session := range []auth.Session{early, late} {
		found, err := open(t, opener).Session(ctx, session.ID)
		noError(t, err)
		same(t, session.ID, found, session)
	}
	noError(t, store.CreateSession(ctx, auth.Session{ID: "s3", KeyID: "k2", Hash: "h3", CreatedAt: at(5), ExpiresAt: at(6)}))
	expectError(t, "an expired one after another began", second(store.Session(ctx, "s1")), continuo.ErrNotFound)
	noError(t, second(store.Session(ctx, "s2")))
	noError(t, store.DeleteSession(ctx, "s2"))
	noError(t, store.DeleteSession(ctx, "s2"))
	expectError(t, "a deleted one", second(store.Session(ctx, "s2")), continuo.ErrNotFound)
	noError(t, second(store.Session(ctx, "s3")))
	keys, err := store.Keys(ctx, "")
	noError(t, err)
	same(t, "keys", len(keys), 0)
}

// testTexts has texts and times that are hard to keep.
func testTexts(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 1)
	for i, bad := range []string{"a\x00b", "\x00", "a\xffb", "\xed\xa0\x80"} {
		title := conversation("b")
		title.Title = bad
		key := conversation("b")
		key.Key = bad
		agent := conversation("b")
		agent.ActiveAgent = bad
		kind := conversation("b")
		kind.Kind = continuo.Kind(bad)
		metadata := conversation("b")
		metadata.Metadata = []byte(`{"a":"` + bad + `"}`)
		for what, err := range map[string]error{
			"a title":          store.Create(ctx, title, nil),
			"a key":            store.Create(ctx, key, nil),
			"a kind":           store.Create(ctx, kind, nil),
			"metadata":         store.Create(ctx, metadata, nil),
			"a new title":      second(store.Update(ctx, "a", continuo.ConversationChange{Title: &bad, UpdatedAt: at(1)})),
			"an agent":         store.Create(ctx, agent, nil),
			"a new agent":      second(store.Update(ctx, "a", continuo.ConversationChange{ActiveAgent: &bad, UpdatedAt: at(1)})),
			"new metadata":     second(store.Update(ctx, "a", continuo.ConversationChange{Metadata: metadata.Metadata, UpdatedAt: at(1)})),
			"a receipt":        store.Append(ctx, continuo.Batch{ConversationID: "a", After: 1, Entries: entries("a", 2, 2), Receipts: []continuo.Receipt{{Key: bad}}}),
			"a project":        store.CreateProject(ctx, auth.Project{ID: bad, CreatedAt: day}),
			"a key's name":     store.CreateKey(ctx, auth.Key{ID: fmt.Sprint(i), Name: bad, CreatedAt: day}),
			"an indexed title": store.Index(ctx, index.Batch{ConversationID: "a", Title: &bad}),
			"a record":         store.PutRecords(ctx, "b", []maintenance.Record{{Conversation: &maintenance.ConversationRecord{Conversation: title}}}),
		} {
			if !errors.Is(err, continuo.ErrInvalid) {
				t.Errorf("%s with %q: %v, want ErrInvalid", what, bad, err)
			}
		}
	}
	sameEntries(t, "entries after what was refused", readAll(t, store, "a"), entries("a", 1, 1))
	// JSON values are kept: an escaped NUL too, and any character in an entry's content.
	c := conversation("c")
	c.Metadata, c.LastSeq = []byte(`{"nul":"\u0000","half":"\ud800"}`), 1
	c.Title, c.Key = "tab\tline\nbell\a\u2028\ufffe😀", "e\u0301 é \u200b"
	c.CreatedAt, c.UpdatedAt = time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)
	e := entry("c", 1)
	e.Content = continuo.Text("nul \x00 in an entry")
	noError(t, store.Create(ctx, c, []continuo.Entry{e}))
	got, err := store.Conversation(ctx, "c")
	noError(t, err)
	same(t, "the conversation", got, c)
	sameEntries(t, "its entry", readAll(t, store, "c"), []continuo.Entry{e})
	got, err = store.ConversationByKey(ctx, "p", c.Key)
	noError(t, err)
	same(t, "by key", got, c)
}
