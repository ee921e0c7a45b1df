package index_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/storetest"
)

// TestANewVersionEmptiesTheIndexes fails when the terms of a text change.
func TestANewVersionEmptiesTheIndexes(t *testing.T) {
	if fulltext.Version != 2 {
		t.Error("the terms of texts have changed, and the indexes that there are have the old ones: give every store a migration that empties its index, then set the number here")
	}
}

func TestAnEntryIsFoundAsSoonAsItIsThere(t *testing.T) {
	everywhere(t, func(p *fixture) {
		c := p.begin("plans", "We meet in Köln", "我们星期五在上海见面。")
		p.finds("köln", "plans#1")
		p.finds("上海", "plans#2", c)
		for i := range 5 {
			p.later()
			c = p.append(c, userEntries(fmt.Sprintf("needle%d in the hay", i))...)
			p.finds(fmt.Sprintf("needle%d", i), fmt.Sprintf("plans#%d", i+3))
			p.finds(fmt.Sprintf("needle%d", i), fmt.Sprintf("plans#%d", i+3), c)
		}
	})
}

func TestAnItemSaysWhereAndWhat(t *testing.T) {
	everywhere(t, func(p *fixture) {
		c := p.begin("Staging keys", "Where are the keys?", "Bob has the <keys> of staging.")
		items := p.all(index.Request{Query: "keys staging"})
		if names(items) != "Staging-keys#2 Staging-keys#0" {
			p.Fatalf("found %s", names(items))
		}
		entry := items[0]
		text := entry.Snippet.Text
		if entry.ConversationID != c.ID || entry.Title != "Staging keys" || entry.Role != continuo.Assistant || !entry.CreatedAt.Equal(p.now) || text != "Bob has the <keys> of staging." {
			p.Errorf("%+v", entry)
		}
		if spans := entry.Snippet.Highlights; len(spans) != 2 || text[spans[0].Start:spans[0].End] != "keys" {
			p.Errorf("%+v", entry.Snippet)
		}
		if title := items[1]; title.Role != "" || !title.CreatedAt.Equal(c.CreatedAt) || title.Snippet.Text != "Staging keys" {
			p.Errorf("%+v", title)
		}
	})
}

func TestTheBestComesFirstThenTheNewest(t *testing.T) {
	everywhere(t, func(p *fixture) {
		long := strings.Repeat("other words in between ", 60)
		p.begin("a", "refund "+long, "the refund status", "no", "refund "+long)
		p.later()
		p.begin("b", "refund "+long)
		p.finds("refund", "a#2 b#1 a#4 a#1")
		if got := names(p.search(index.Request{Query: "refund", Limit: 2}).Items); got != "a#2 b#1" {
			p.Errorf("found %s", got)
		}
	})
}

func TestFilters(t *testing.T) {
	everywhere(t, func(p *fixture) {
		c := p.begin("needle", "needle 1", "needle 2", "needle 3", "needle 4", "needle 5")
		for want, request := range map[string]index.Request{
			"needle#5 needle#3 needle#1": {Role: continuo.User},
			"needle#4 needle#2":          {Role: continuo.Assistant, Conversation: &c},
			"":                           {Role: continuo.System},
			"needle#4 needle#3 needle#2": {From: 2, To: 4, Conversation: &c},
			"needle#5 needle#4":          {From: 4, Conversation: &c},
			"needle#5 needle#4 needle#3 needle#2 needle#1":          {Conversation: &c},
			"needle#0 needle#5 needle#4 needle#3 needle#2 needle#1": {},
		} {
			request.Query = "needle"
			if got := names(p.all(request)); got != want {
				p.Errorf("%+v found %q, want %q", request, got, want)
			}
		}
		p.finds(`needle -"needle 3"`, "needle#0 needle#5 needle#4 needle#2 needle#1")
	})
}

// Tasks and the work of agents repeat what people said: they are left out, or searched alone.
func TestKindsAreKeptApart(t *testing.T) {
	everywhere(t, func(p *fixture) {
		begin := func(kind continuo.Kind, key string) continuo.Conversation {
			c, err := p.log.Create(p.Context(), continuo.Conversation{Kind: kind, Title: key, Key: key})
			if err != nil {
				p.Fatal(err)
			}
			p.later()
			return p.append(c, userEntries("needle")...)
		}
		begin(continuo.KindUser, "user")
		begin(continuo.KindTask, "task")
		agent := begin(continuo.KindAgent, "agent")
		for kind, want := range map[string]string{"": "user#1", "user": "user#1", "task": "task#1", "agent": "agent#1", "all": "agent#1 task#1 user#1"} {
			if got := names(p.all(index.Request{Query: "needle", Kinds: index.KindsOf(kind)})); got != want {
				p.Errorf("kind %q: found %q, want %q", kind, got, want)
			}
		}
		if got := names(p.all(index.Request{Query: "needle", Conversation: &agent, Kinds: index.KindsOf("user")})); got != "agent#1" {
			p.Errorf("in one conversation: found %q", got)
		}
		first := p.search(index.Request{Query: "needle", Limit: 1})
		if _, err := p.searcher().Search(p.Context(), index.Request{ProjectID: continuo.DefaultProject, Query: "needle", Limit: 1, Cursor: first.NextCursor, Kinds: index.KindsOf("task")}); !errors.Is(err, index.ErrCursor) {
			p.Errorf("a cursor of other kinds: %v", err)
		}
	})
}

func TestAForkFindsWhatItBeganWith(t *testing.T) {
	everywhere(t, func(p *fixture) {
		parent := p.begin("parent", "needle 1", "hay", "needle 3", "needle 4")
		child, err := p.log.Fork(p.Context(), parent.ID, 3, continuo.Conversation{Key: "child", Title: "child"})
		if err != nil {
			p.Fatal(err)
		}
		child = p.append(child, userEntries("needle of the child", "needle of the child")...)
		grandchild, err := p.log.Fork(p.Context(), child.ID, 4, continuo.Conversation{Key: "grandchild", Title: "grandchild"})
		if err != nil {
			p.Fatal(err)
		}
		grandchild = p.append(grandchild, userEntries("needle of the grandchild")...)
		check := func() {
			p.Helper()
			p.finds("needle", "child#3 child#1 child#5 child#4", child)
			p.finds("needle", "grandchild#3 grandchild#1 grandchild#5 grandchild#4", grandchild)
			if got := names(p.all(index.Request{Query: "needle", Conversation: &grandchild, Limit: 1})); got != "grandchild#3 grandchild#1 grandchild#5 grandchild#4" {
				p.Errorf("by one: %s", got)
			}
		}
		check()
		p.finds("needle", "parent#4 parent#3 parent#1 child#5 child#4 grandchild#5")

		// What is gone or archived is only found by those that begin with it.
		if err := p.store.Archive(p.Context(), parent, p.now); err != nil {
			p.Fatal(err)
		}
		check()
		p.finds("needle", "child#5 child#4 grandchild#5")
		if err := p.log.Delete(p.Context(), child.ID); err != nil {
			p.Fatal(err)
		}
		p.finds("needle", "grandchild#3 grandchild#1 grandchild#5 grandchild#4", grandchild)
		p.finds("needle", "grandchild#5")
		archived := p.again(parent)
		if _, err := p.searcher().Search(p.Context(), index.Request{ProjectID: continuo.DefaultProject, Conversation: &archived, Query: "needle"}); !errors.Is(err, continuo.ErrArchived) {
			p.Errorf("a search in an archived conversation: %v", err)
		}
	})
}

func TestRemovedEntriesAreNotFound(t *testing.T) {
	everywhere(t, func(p *fixture) {
		c := p.begin("c", "needle one", "needle two", "needle three")
		p.later()
		p.begin("d", "needle four")
		c = p.append(c, continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("needle that only people see"), Hidden: true})
		p.finds("needle", "d#1 c#3 c#2 c#1")
		if _, err := p.log.Redact(p.Context(), c, 2, 2, ""); err != nil {
			p.Fatal(err)
		}
		p.finds("needle", "d#1 c#3 c#1")
		p.finds("needle", "c#3 c#1", c)
		p.finds("two", "")

		// Redacted before it was indexed, and looked for by the word that replaces it.
		c = p.append(c, userEntries("", "needle five")[1:]...)
		if _, err := p.log.Redact(p.Context(), c, 5, 5, ""); err != nil {
			p.Fatal(err)
		}
		if items := p.search(index.Request{Query: "redacted", Conversation: &c, Patience: -1}).Items; len(items) > 0 {
			p.Errorf("found %s in the log", names(items))
		}
		p.finds("redacted", "")
		title := "another"
		if _, err := p.log.Update(p.Context(), c.ID, continuo.ConversationChange{Title: &title}); err != nil {
			p.Fatal(err)
		}
		p.finds("another", "c#0")
		if err := p.log.Delete(p.Context(), c.ID); err != nil {
			p.Fatal(err)
		}
		p.finds("needle", "d#1")
	})
}

func TestProjectsAreApart(t *testing.T) {
	everywhere(t, func(p *fixture) {
		c := p.begin("mine", "needle")
		if _, err := p.log.Import(p.Context(), continuo.Conversation{ProjectID: "other", Key: "theirs", Title: "needle"}, userEntries("needle")); err != nil {
			p.Fatal(err)
		}
		p.finds("needle", "mine#1")
		if got := names(p.all(index.Request{ProjectID: "other", Query: "needle"})); got != "theirs#1 theirs#0" && got != "theirs#0 theirs#1" {
			p.Errorf("found %s", got)
		}
		if got := names(p.all(index.Request{ProjectID: "third", Query: "needle"})); got != "" {
			p.Errorf("found %s", got)
		}
		if _, err := p.searcher().Search(p.Context(), index.Request{ProjectID: "other", Conversation: &c, Query: "needle"}); !errors.Is(err, continuo.ErrNotFound) {
			p.Errorf("a conversation of another project: %v", err)
		}
	})
}

// leaky is a store whose index knows no projects.
type leaky struct{ maintenance.Store }

func (l leaky) Hits(ctx context.Context, query index.HitQuery) ([]index.Hit, error) {
	query.ProjectID = "other"
	return l.Store.Hits(ctx, query)
}

func TestProjectsAreApartWhateverTheIndexSays(t *testing.T) {
	p := newFixture(t, leaky{storetest.NewMemory()})
	if _, err := p.log.Import(t.Context(), continuo.Conversation{ProjectID: "other", Key: "theirs", Title: "needle"}, userEntries("needle")); err != nil {
		t.Fatal(err)
	}
	p.run(index.Indexer{}, index.Scope{})
	p.finds("needle", "")
	if got := len(p.all(index.Request{ProjectID: "other", Query: "needle"})); got != 2 {
		t.Errorf("the others find %d: the test shows nothing", got)
	}
}

// TestPagesHaveEachHitOnce pages through more matches than are ranked together, while others are added.
func TestPagesHaveEachHitOnce(t *testing.T) {
	everywhere(t, func(p *fixture) {
		var conversations []continuo.Conversation
		want := map[string]bool{}
		for i := range 5 {
			p.later()
			var texts []string
			for n := range 100 {
				texts = append(texts, "needle "+strings.Repeat("needle hay ", (n*7)%13))
				want[fmt.Sprintf("c%d#%d", i, n+1)] = true
			}
			conversations = append(conversations, p.begin(fmt.Sprintf("c%d", i), texts...))
		}
		for _, limit := range []int{23, 150, 200} {
			p.pagesOnce(index.Request{Query: "needle", Limit: limit}, want, conversations[0])
		}
		one := map[string]bool{}
		for n := range 100 {
			one[fmt.Sprintf("c3#%d", n+1)] = true
		}
		p.pagesOnce(index.Request{Query: "needle", Limit: 9, Conversation: &conversations[3]}, one, conversations[3])
	})
}

// pagesOnce pages while entries are added to a conversation.
func (p *fixture) pagesOnce(request index.Request, want map[string]bool, busy continuo.Conversation) {
	p.Helper()
	found := map[string]int{}
	var before index.Item
	for page := 0; ; page++ {
		result := p.search(request)
		for i, item := range result.Items {
			found[names([]index.Item{item})]++
			if i > 0 && item.Score > before.Score {
				p.Errorf("a page is not in order")
			}
			before = item
		}
		if result.NextCursor == "" {
			break
		}
		request.Cursor = result.NextCursor
		p.later()
		p.append(busy, userEntries("needle that came later")...)
		if request.Conversation != nil {
			*request.Conversation = p.again(*request.Conversation)
		}
	}
	for name := range want {
		if found[name] != 1 {
			p.Errorf("limit %d: %s came %d times", request.Limit, name, found[name])
		}
	}
}

// TestAChunkIsValidAfterItsEnd: what a cursor names may be gone when it comes back.
func TestAChunkIsValidAfterItsEnd(t *testing.T) {
	everywhere(t, func(p *fixture) {
		texts := slices.Repeat([]string{"needle"}, 100) // they are better, but older than the 200 that are ranked first
		c := p.begin("c", append(texts, slices.Repeat([]string{"a needle in the hay"}, 50)...)...)
		p.later()
		p.begin("d", slices.Repeat([]string{"a needle in the hay"}, 150)...)
		request := index.Request{Query: "needle", Limit: 10}
		first := p.search(request)
		if len(first.Items) != 10 || first.Items[9].Key != "d" {
			p.Fatalf("found %s", names(first.Items))
		}
		if _, err := p.log.Redact(p.Context(), c, 101, 103, ""); err != nil { // 101 is the 200th
			p.Fatal(err)
		}
		request.Cursor = first.NextCursor
		seen := map[string]bool{}
		for _, item := range append(first.Items, p.all(request)...) {
			name := names([]index.Item{item})
			if seen[name] {
				p.Errorf("%s came twice", name)
			}
			seen[name] = true
		}
		if len(seen) != 297 {
			p.Errorf("found %d, want 297", len(seen))
		}
	})
}

func TestMissingIndexEntriesAreReported(t *testing.T) {
	everywhere(t, func(p *fixture) {
		c := p.begin("c", "needle one", "hay")
		p.finds("needle", "c#1")
		c = p.append(c, userEntries("needle three")...)
		p.later()
		p.begin("d", "needle four")
		result := p.search(index.Request{Query: "needle", Patience: -1})
		if got := names(result.Items); got != "c#1" || !result.Incomplete || result.Waiting != 2 {
			p.Errorf("found %s, %+v", got, result)
		}
		// In one conversation the rest is read from the log.
		result = p.search(index.Request{Query: "needle", Patience: -1, Conversation: &c})
		if got := names(result.Items); got != "c#3 c#1" || result.Incomplete {
			p.Errorf("found %s, %+v", got, result)
		}
		first := p.search(index.Request{Query: "needle", Patience: -1, Conversation: &c, Limit: 1})
		p.finds("needle", "d#1 c#3 c#1")
		// The cursor came from the log, and continues in the index.
		rest := p.search(index.Request{Query: "needle", Conversation: &c, Limit: 1, Cursor: first.NextCursor})
		if got := names(append(first.Items, rest.Items...)); got != "c#3 c#1" || rest.NextCursor != "" {
			p.Errorf("found %s, and %q", got, rest.NextCursor)
		}
	})
}

func TestALongTailIsReadPageByPage(t *testing.T) {
	everywhere(t, func(p *fixture) {
		texts := slices.Repeat([]string{"hay"}, 4500)
		texts[0], texts[2400], texts[4499] = "needle", "needle", "needle"
		c := p.begin("c", texts...)
		request := index.Request{Query: "needle", Patience: -1, Conversation: &c}
		first := p.search(request)
		if names(first.Items) != "c#4500" || first.NextCursor == "" {
			p.Errorf("found %s, cursor %q", names(first.Items), first.NextCursor)
		}
		if got := names(p.all(request)); got != "c#4500 c#2401 c#1" {
			p.Errorf("found %s", got)
		}
	})
}

func TestWrongRequestsAreExplained(t *testing.T) {
	everywhere(t, func(p *fixture) {
		c := p.begin("c", slices.Repeat([]string{"needle"}, 30)...)
		good := p.search(index.Request{Query: "needle", Limit: 3}).NextCursor
		decoded, err := base64.RawURLEncoding.DecodeString(good)
		if err != nil {
			p.Fatal(err)
		}
		cursor := func(old, changed string) string {
			if !strings.Contains(string(decoded), old) {
				p.Fatalf("there is no %s in %s", old, decoded)
			}
			return base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(decoded), old, changed, 1)))
		}
		for want, request := range map[string]index.Request{
			"has no words":                     {Query: "?!"},
			"only excludes words":              {Query: "-needle"},
			"role is \"robot\"":                {Query: "needle", Role: "robot"},
			"limit is 201":                     {Query: "needle", Limit: 201},
			"limit is -1":                      {Query: "needle", Limit: -1},
			"from must not come after to":      {Query: "needle", Conversation: &c, From: 3, To: 2},
			"name it":                          {Query: "needle", From: 3},
			"begin with 1":                     {Query: "needle", Conversation: &c, From: -3},
			"not a next_cursor of this search": {Query: "needle", Cursor: "nonsense"},
			"not a next_cursor of this":        {Query: "needle", Cursor: strings.Repeat("A", 3000)},
			"not a next_cursor of":             {Query: "needle", Cursor: cursor(`"v":1`, `"v":2`)},
			"not a next_cursor":                {Query: "needle", Cursor: cursor(`"v":1`, `"v":1,"x":1`)},
			"not a":                            {Query: "needle", Cursor: base64.RawURLEncoding.EncodeToString(append(decoded, "{}"...))},
			"another search":                   {Query: "needles", Cursor: good},
			"another search: cont":             {Query: "needle", Role: continuo.User, Cursor: good},
			"another search: continue":         {Query: "needle", ProjectID: "other", Cursor: good},
			"another search: continue with":    {Query: "needle", Conversation: &c, Cursor: good},
		} {
			if request.ProjectID == "" {
				request.ProjectID = continuo.DefaultProject
			}
			if _, err := p.searcher().Search(p.Context(), request); !errors.Is(err, continuo.ErrInvalid) || !strings.Contains(err.Error(), want) {
				p.Errorf("%+v: %v, want %q", request, err, want)
			}
		}
		ctx, cancel := context.WithCancel(p.Context())
		cancel()
		if _, err := p.searcher().Search(ctx, index.Request{ProjectID: continuo.DefaultProject, Query: "needle"}); !errors.Is(err, context.Canceled) {
			p.Errorf("a cancelled search: %v", err)
		}
	})
}

// TestASearchDoesNotFindItself: what a model searched for is not found in what it was shown.
func TestASearchDoesNotFindItself(t *testing.T) {
	store := storetest.NewMemory()
	log := continuo.NewLog(store, continuo.LogOptions{})
	call := continuo.FunctionCall("c", "conversation_search", `{}`)
	conversation, err := log.Import(t.Context(), continuo.Conversation{}, []continuo.Entry{
		{Role: continuo.User, Content: continuo.Text("the refund came")},
		{Role: continuo.Assistant, Content: continuo.Null(), ToolCalls: []continuo.ToolCall{call}},
		{Role: continuo.Tool, ToolCallID: "c", ToolName: "conversation_search", Content: continuo.Text("#1 user\n> the refund came")},
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := index.Searcher{Log: log, Store: store}.Search(t.Context(), index.Request{ProjectID: conversation.ProjectID, Query: "refund"})
	if err != nil || len(found.Items) != 1 || found.Items[0].Seq != 1 {
		t.Errorf("found %+v, %v", found.Items, err)
	}
}

func TestSearchWithoutAnIndex(t *testing.T) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	conversation, err := log.Import(t.Context(), continuo.Conversation{}, userEntries("needle", "hay", "needle"))
	if err != nil {
		t.Fatal(err)
	}
	searcher := index.Searcher{Log: log}
	request := index.Request{ProjectID: conversation.ProjectID, Query: "needle"}
	if _, err := searcher.Search(t.Context(), request); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("a search of the project: %v, want ErrInvalid", err)
	}
	request.Conversation = &conversation
	if found, err := searcher.Search(t.Context(), request); err != nil || len(found.Items) != 2 || found.Incomplete {
		t.Errorf("a search of the conversation found %+v, %v, want two entries", found, err)
	}
}
