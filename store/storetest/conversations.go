package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

func testCreate(t *testing.T, opener Opener) {
	store := open(t, opener)
	create(t, store, "a", 3)
	c := continuo.Conversation{
		ID: "b", ProjectID: "p", UserID: "ада@example.com / 1", Key: "my key/ö", Kind: continuo.KindAgent, Title: "Titel 😀 'quoted'", ActiveMode: continuo.ModeAgent, ActiveAgent: "Agent ä",
		Metadata: json.RawMessage(`{"z":1.50,"a":{"b":[12345678901234567890]},"<":"\u2028"}`),
		ParentID: "a", ForkSeq: 2, CreatedAt: at(1), UpdatedAt: at(2), LastSeq: 2,
		Lineage: []continuo.Segment{{ConversationID: "a", Through: 2}},
	}
	noError(t, store.Create(t.Context(), c, nil))
	got, err := store.Conversation(t.Context(), "b")
	noError(t, err)
	same(t, "by id", got, c)
	got, err = store.ConversationByKey(t.Context(), "p", c.Key)
	noError(t, err)
	same(t, "by key", got, c)
	listed, err := store.Conversations(t.Context(), continuo.ConversationQuery{ProjectID: "p", Kind: continuo.KindAgent, Limit: 1})
	noError(t, err)
	same(t, "listed", listed, []continuo.Conversation{c})
	plain, err := store.Conversation(t.Context(), "a")
	noError(t, err)
	want := conversation("a")
	want.LastSeq = 3
	same(t, "without the optional fields", plain, want)
	sameEntries(t, "first entries", readAll(t, store, "a"), entries("a", 1, 3))
	sameEntries(t, "a fork's own entries", readAll(t, store, "b"), nil)
}

func testExists(t *testing.T, opener Opener) {
	store := open(t, opener)
	first := conversation("a")
	first.Key, first.LastSeq = "k", 2
	noError(t, store.Create(t.Context(), first, entries("a", 1, 2)))
	for name, change := range map[string]func(*continuo.Conversation){
		"the id":  func(c *continuo.Conversation) { c.Key = "other" },
		"the key": func(c *continuo.Conversation) { c.ID = "b" },
	} {
		again := first
		change(&again)
		again.LastSeq = 5
		if err := store.Create(t.Context(), again, entries(again.ID, 1, 5)); !errors.Is(err, continuo.ErrExists) {
			t.Errorf("%s is taken, but Create says %v", name, err)
		}
	}
	got, err := store.Conversation(t.Context(), "a")
	noError(t, err)
	same(t, "the first conversation", got, first)
	sameEntries(t, "its entries", readAll(t, store, "a"), entries("a", 1, 2))
	sameEntries(t, "the refused one's entries", readAll(t, store, "b"), nil)

	elsewhere := conversation("c")
	elsewhere.ProjectID, elsewhere.Key = "q", "k"
	noError(t, store.Create(t.Context(), elsewhere, nil)) // keys belong to a project
	create(t, store, "d", 0)
	create(t, store, "e", 0) // conversations without a key do not conflict
	if _, err := store.ConversationByKey(t.Context(), "p", ""); !errors.Is(err, continuo.ErrNotFound) {
		t.Errorf("the empty key finds something: %v", err)
	}
}

func testNotFound(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 1)
	title := "x"
	for what, err := range map[string]error{
		"Conversation":                second(store.Conversation(ctx, "none")),
		"ConversationByKey":           second(store.ConversationByKey(ctx, "p", "none")),
		"Update":                      second(store.Update(ctx, "none", continuo.ConversationChange{Title: &title, UpdatedAt: day})),
		"Delete":                      store.Delete(ctx, "none"),
		"Append":                      store.Append(ctx, continuo.Batch{ConversationID: "none", Entries: entries("none", 1, 1)}),
		"Receipt":                     second(store.Receipt(ctx, "a", "none")),
		"Receipt of no conversation":  second(store.Receipt(ctx, "none", "none")),
		"Blob":                        second(store.Blob(ctx, "none")),
		"Create below no such parent": store.Create(ctx, forkOf("b", continuo.Segment{ConversationID: "none", Through: 1}), nil),
	} {
		if !errors.Is(err, continuo.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", what, err)
		}
	}
	sameEntries(t, "entries of no conversation", readAll(t, store, "none"), nil)
	listed, err := store.Conversations(ctx, continuo.ConversationQuery{ProjectID: "none", Limit: 5})
	if err != nil || len(listed) != 0 {
		t.Errorf("an unknown project lists %v, %v", listed, err)
	}
}

func second[T any](_ T, err error) error { return err }

func testList(t *testing.T, opener Opener) {
	store := open(t, opener)
	var want []string
	for i := range 11 {
		c := conversation(fmt.Sprintf("c%02d", i))
		c.UpdatedAt = at(i / 4) // several have the same time
		noError(t, store.Create(t.Context(), c, nil))
		want = append([]string{c.ID}, want...)
	}
	other := conversation("other")
	other.ProjectID = "q"
	noError(t, store.Create(t.Context(), other, nil))
	kinds := map[continuo.Kind][]string{continuo.KindUser: want}
	for i, kind := range []continuo.Kind{continuo.KindTask, continuo.KindAgent, continuo.KindTask, "Übung"} {
		c := conversation(fmt.Sprint("k", i))
		c.Kind, c.UpdatedAt = kind, at(i/4)
		noError(t, store.Create(t.Context(), c, nil))
		kinds[kind] = append([]string{c.ID}, kinds[kind]...)
	}
	for kind, want := range kinds {
		for limit := 1; limit <= 12; limit++ {
			same(t, fmt.Sprintf("pages of %d of kind %q", limit, kind), listKind(t, store, kind, limit), want)
		}
	}
	same(t, "of a kind that is not there", listKind(t, store, "none", 5), []string(nil))
	// An append and a change change a conversation's position in the order.
	appendEntries(t, store, "c03", 1, 1)
	noError(t, store.Append(t.Context(), continuo.Batch{ConversationID: "c05", Entries: func() []continuo.Entry {
		e := entry("c05", 1)
		e.CreatedAt = at(100)
		return []continuo.Entry{e}
	}()}))
	noError(t, second(store.Update(t.Context(), "c01", continuo.ConversationChange{UpdatedAt: at(50)})))
	noError(t, store.Delete(t.Context(), "c10"))
	same(t, "after changes", list(t, store, 3), []string{"c05", "c01", "c09", "c08", "c07", "c06", "c04", "c03", "c02", "c00"})
}

// testSortedList lists by creation, tokens and cost, in pages of every size; equal values are in the order of the ids.
func testSortedList(t *testing.T, opener Opener) {
	store := open(t, opener)
	for i, used := range []struct {
		created       int
		input, output int
		cost          int64
	}{{3, 10, 1, 700}, {1, 0, 0, 0}, {2, 4, 7, 900}, {3, 100, 5, 0}, {0, 0, 0, 0}} {
		c := conversation(fmt.Sprint("c", i))
		c.CreatedAt, c.UpdatedAt = at(used.created), at(i)
		noError(t, store.Create(t.Context(), c, nil))
		for seq := int64(1); seq <= 2 && used.input > 0; seq++ { // two requests, on one day
			e := entry(c.ID, seq)
			e.Role = continuo.Assistant
			e.Round = &continuo.Round{Model: fmt.Sprint("m", seq), Usage: &continuo.Usage{InputTokens: used.input, OutputTokens: used.output}}
			if used.cost > 0 {
				e.Round.Usage.Cost = continuo.Cost{Currency: continuo.USD, Nano: used.cost}
			}
			noError(t, store.Append(t.Context(), continuo.Batch{ConversationID: c.ID, After: seq - 1, Entries: []continuo.Entry{e}}))
		}
	}
	for order, want := range map[continuo.ConversationSort][]string{
		continuo.SortCreated: {"c3", "c0", "c2", "c1", "c4"},
		continuo.SortTokens:  {"c3", "c2", "c0", "c4", "c1"},
		continuo.SortCost:    {"c2", "c0", "c4", "c3", "c1"},
	} {
		for limit := 1; limit <= 6; limit++ {
			query := continuo.ConversationQuery{ProjectID: "p", Sort: order, Limit: limit}
			same(t, fmt.Sprintf("pages of %d by %s", limit, order), listAll(t, store, query), want)
		}
		query := continuo.ConversationQuery{ProjectID: "p", Sort: order, Limit: 2, Since: at(4)}
		same(t, "the filtered ones by "+string(order), listAll(t, store, query), []string{"c4"})
	}
}

func list(t *testing.T, store maintenance.Store, limit int) []string {
	t.Helper()
	return listKind(t, store, continuo.KindUser, limit)
}

func listKind(t *testing.T, store maintenance.Store, kind continuo.Kind, limit int) []string {
	t.Helper()
	return listAll(t, store, continuo.ConversationQuery{ProjectID: "p", Kind: kind, Limit: limit})
}

// listAll reads a list page by page.
func listAll(t *testing.T, store maintenance.Store, query continuo.ConversationQuery) (ids []string) {
	t.Helper()
	for {
		page, err := store.Conversations(t.Context(), query)
		noError(t, err)
		if len(page) > query.Limit {
			t.Fatalf("asked for %d conversations, got %d", query.Limit, len(page))
		}
		for _, c := range page {
			ids = append(ids, c.ID)
			query.Before = continuo.ConversationCursor{UpdatedAt: c.UpdatedAt, ID: c.ID}
			if query.Sort != continuo.SortUpdated {
				activities, err := store.Activities(t.Context(), []string{c.ID})
				noError(t, err)
				query.Before = continuo.ConversationCursor{ID: c.ID, Value: query.Sort.SortValue(c, activities[0].Usage)}
			}
		}
		if len(page) < query.Limit {
			return ids
		}
	}
}

func testUpdate(t *testing.T, opener Opener) {
	store := open(t, opener)
	want := conversation("a")
	want.Kind = continuo.KindTask
	want.Key, want.Metadata, want.LastSeq = "k", json.RawMessage(`{"a":1}`), 2
	noError(t, store.Create(t.Context(), want, entries("a", 1, 2)))
	title, empty, mode, agent := "new title", "", continuo.ModeRun, "writer"
	for i, change := range []continuo.ConversationChange{
		{UpdatedAt: at(1)},
		{UpdatedAt: at(2), Title: &title},
		{UpdatedAt: at(3), ActiveMode: &mode},
		{UpdatedAt: at(3), ActiveAgent: &agent},
		{UpdatedAt: at(4), Metadata: json.RawMessage(`{"b":[1,2.0],"a":null}`)},
		{UpdatedAt: at(5), ActiveAgent: &empty},
		{UpdatedAt: at(6), Title: &empty, Metadata: json.RawMessage(`{}`)},
	} {
		want.UpdatedAt = change.UpdatedAt
		if change.Title != nil {
			want.Title = *change.Title
		}
		if change.ActiveMode != nil {
			want.ActiveMode = *change.ActiveMode
		}
		if change.ActiveAgent != nil {
			want.ActiveAgent = *change.ActiveAgent
		}
		if change.Metadata != nil {
			want.Metadata = change.Metadata
		}
		got, err := store.Update(t.Context(), "a", change)
		noError(t, err)
		same(t, fmt.Sprintf("returned by change %d", i), got, want)
		got, err = store.Conversation(t.Context(), "a")
		noError(t, err)
		same(t, fmt.Sprintf("kept after change %d", i), got, want)
	}
	sameEntries(t, "entries", readAll(t, store, "a"), entries("a", 1, 2))
}

func testDelete(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "stays", 2)
	c := conversation("a")
	c.Key = "k"
	noError(t, store.Create(ctx, c, nil))
	noError(t, store.Append(ctx, continuo.Batch{
		ConversationID: "a", Entries: entries("a", 1, 3), Receipts: []continuo.Receipt{{Key: "once", Fingerprint: "f", First: 1, Last: 3}},
	}))
	noError(t, store.Delete(ctx, "a"))
	expectGone(t, store, "a")
	sameEntries(t, "entries", readAll(t, store, "a"), nil)
	if err := second(store.Receipt(ctx, "a", "once")); !errors.Is(err, continuo.ErrNotFound) {
		t.Errorf("its receipt: %v", err)
	}
	if err := second(store.ConversationByKey(ctx, "p", "k")); !errors.Is(err, continuo.ErrNotFound) {
		t.Errorf("its key: %v", err)
	}
	again := conversation("b")
	again.Key = "k"
	noError(t, store.Create(ctx, again, nil))
	sameEntries(t, "another conversation", readAll(t, store, "stays"), entries("stays", 1, 2))
}

// expectGone checks that no operation shows or changes a deleted conversation.
func expectGone(t *testing.T, store maintenance.Store, id string) {
	t.Helper()
	ctx := t.Context()
	for what, err := range map[string]error{
		"Conversation": second(store.Conversation(ctx, id)),
		"Update":       second(store.Update(ctx, id, continuo.ConversationChange{UpdatedAt: day})),
		"Append":       store.Append(ctx, continuo.Batch{ConversationID: id}),
		"Delete":       store.Delete(ctx, id),
	} {
		if !errors.Is(err, continuo.ErrNotFound) {
			t.Errorf("%s after %s was deleted: %v", what, id, err)
		}
	}
	for _, listed := range list(t, store, 10) {
		if listed == id {
			t.Errorf("%s was deleted but is listed", id)
		}
	}
}
