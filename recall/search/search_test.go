package search_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/indextest"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/recall/search"
	"github.com/continuo-log/continuo/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

type fixture struct {
	testing.TB
	log   *continuo.Log
	store index.Store
	now   time.Time
}

func newFixture(t testing.TB, store maintenance.Store) *fixture {
	p := &fixture{TB: t, store: store, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	p.log = continuo.NewLog(store, continuo.LogOptions{Now: func() time.Time { return p.now }})
	return p
}

// everywhere runs a test over each store: all give the same results.
func everywhere(t *testing.T, test func(p *fixture)) {
	indextest.Everywhere(t, func(t *testing.T, store maintenance.Store) { test(newFixture(t, store)) })
}

// begin makes a conversation; a text after "Name: " is by that name.
func (p *fixture) begin(c continuo.Conversation, texts ...string) continuo.Conversation {
	p.Helper()
	c, err := p.log.Import(p.Context(), c, entries(texts...))
	if err != nil {
		p.Fatal(err)
	}
	p.now = p.now.Add(time.Minute)
	return c
}

func entries(texts ...string) []continuo.Entry {
	var all []continuo.Entry
	for i, text := range texts {
		role := []continuo.Role{continuo.User, continuo.Assistant}[i%2]
		name, said, ok := strings.Cut(text, ": ")
		if !ok {
			name, said = "", text
		}
		all = append(all, continuo.Entry{Role: role, Name: name, Content: continuo.Text(said)})
	}
	return all
}

// patience is long enough to index what the tests append, also on a slow machine.
const patience = 5 * time.Minute

func (p *fixture) search(request index.Request) index.Result {
	p.Helper()
	if request.ProjectID == "" {
		request.ProjectID = continuo.DefaultProject
	}
	request.Patience = cmp.Or(request.Patience, patience)
	result, err := search.Searcher{Log: p.log, Store: p.store}.Search(p.Context(), request)
	if err != nil {
		p.Fatalf("%+v: %v", request, err)
	}
	return result
}

// all pages through a search.
func (p *fixture) all(request index.Request) []index.Item {
	p.Helper()
	return indextest.AllPages(p, request, p.search)
}

func names(items []index.Item) string { return indextest.Names(items) }

func (p *fixture) finds(request index.Request, want string) {
	p.Helper()
	if got := names(p.all(request)); got != want {
		p.Errorf("%q found %q, want %q", request.Query, got, want)
	}
}

// TestAQuestionAsItIsAskedFindsItsAnswer: no answer has all words of its question, or their forms.
func TestAQuestionAsItIsAskedFindsItsAnswer(t *testing.T) {
	texts := []string{
		"Gina: Hello! How was the weekend?", "Jon: Quiet. I read a little.",
		"Gina: my wife and I just left for our European vacation!", "Jon: Enjoy it.",
		"Gina: I lost the job at the bakery, so I opened a shop for clothes.", "Jon: Good for you.",
		"Gina: The cat is called Pepper now.", "Jon: Ha.", "Gina: Rain again.", "Jon: As always in March.",
	}
	everywhere(t, func(p *fixture) {
		c := p.begin(continuo.Conversation{Key: "c", UserID: "ada"}, texts...)
		for question, want := range map[string]string{
			"When did Gina and her wife go on a European vacation?":              "c#3",
			"Why did Gina decide to open her own clothing shop that year?":       "c#5",
			"What is the name of the cat that Gina adopted, was it Pepper then?": "c#7",
		} {
			for scope, request := range map[string]index.Request{"conversation": {Conversation: &c}, "project": {}, "user": {UserID: "ada"}} {
				request.Query = question
				if found := p.search(request).Items; len(found) == 0 || names(found[:1]) != want {
					p.Errorf("%s: %q found %q", scope, question, names(found))
				}
			}
		}
		if found := p.search(index.Request{Query: "When did Gina go on a European vacation?", UserID: "eve"}).Items; len(found) > 0 {
			p.Errorf("another user's words: %q", names(found))
		}
	})
}

func TestPhrasesAndExclusionsAreConditions(t *testing.T) {
	everywhere(t, func(p *fixture) {
		p.begin(continuo.Conversation{Key: "c", Title: "Refunds of May"},
			"The refund status is open", "status of the refund", "a refund came", "an authentication problem", "nothing here")
		for query, want := range map[string]string{
			`"refund status"`:             "c#1",
			`"refund status" came`:        "c#1",
			`refund -status`:              "c#3 c#0",
			`refund -"refund status"`:     "c#2 c#3 c#0",
			`auth*`:                       "c#4",
			`refund status`:               "c#2 c#1 c#3 c#0",
			`refunded statuses`:           "c#0 c#1 c#2 c#3",
			`authentic`:                   "c#4",
			`the`:                         "c#1 c#2",
			`unknown`:                     "",
			`"refund" -status -came -may`: "",
		} {
			got := strings.Fields(names(p.all(index.Request{Query: query})))
			wanted := strings.Fields(want)
			slices.Sort(got)
			slices.Sort(wanted)
			if !slices.Equal(got, wanted) {
				p.Errorf("%q found %q, want %q", query, got, wanted)
			}
		}
		p.finds(index.Request{Query: "refund", Role: continuo.Assistant}, "c#2")
		if first := p.search(index.Request{Query: "status refund"}).Items; !slices.Contains([]string{"c#1", "c#2"}, names(first[:1])) {
			p.Errorf("an entry with all words comes after others: %s", names(first))
		}
		for _, wrong := range []string{"", "-refund", "…", strings.Repeat("x ", 600)} {
			if _, err := (search.Searcher{Log: p.log, Store: p.store}).Search(p.Context(), index.Request{ProjectID: continuo.DefaultProject, Query: wrong}); !errors.Is(err, continuo.ErrInvalid) {
				p.Errorf("%.20q: %v, want ErrInvalid", wrong, err)
			}
		}
	})
}

func TestRangesAndWhatIsGone(t *testing.T) {
	everywhere(t, func(p *fixture) {
		c := p.begin(continuo.Conversation{Key: "c"}, "needle one", "needle two", "needle three", "needle four")
		p.finds(index.Request{Query: "needle", Conversation: &c, From: 2, To: 3}, "c#3 c#2")
		fork, err := p.log.Fork(p.Context(), c.ID, 2, continuo.Conversation{Key: "fork"})
		if err != nil {
			p.Fatal(err)
		}
		p.finds(index.Request{Query: "needle", Conversation: &fork}, "fork#1 fork#2")
		if _, err := p.log.Redact(p.Context(), c, 2, 2, ""); err != nil {
			p.Fatal(err)
		}
		p.finds(index.Request{Query: "needle", Conversation: &fork}, "fork#1")
		p.finds(index.Request{Query: "two"}, "")
		if err := p.log.Delete(p.Context(), c.ID); err != nil {
			p.Fatal(err)
		}
		p.finds(index.Request{Query: "needle"}, "")
		p.finds(index.Request{Query: "needle", Conversation: &fork}, "fork#1")
	})
}

// TestPagesHaveEachMatchOnce pages through more matches than are ranked together, while others are added.
func TestPagesHaveEachMatchOnce(t *testing.T) {
	everywhere(t, func(p *fixture) {
		var last continuo.Conversation
		for i := range 3 {
			var texts []string
			for n := range 130 {
				texts = append(texts, "needle "+strings.Repeat("hay ", (n*7)%13))
			}
			last = p.begin(continuo.Conversation{Key: fmt.Sprintf("c%d", i)}, texts...)
		}
		for _, limit := range []int{37, 200} {
			request := index.Request{Query: "needle", Limit: limit}
			seen := map[string]int{}
			for {
				page := p.search(request)
				for i := range page.Items {
					seen[names(page.Items[i:i+1])]++
				}
				if request.Cursor = page.NextCursor; request.Cursor == "" {
					break
				}
				if _, err := p.log.Append(p.Context(), last.ID, entries("needle that came later"), continuo.AppendOptions{}); err != nil {
					p.Fatal(err)
				}
				p.now = p.now.Add(time.Second)
			}
			for i := range 3 {
				for n := range 130 {
					if name := fmt.Sprintf("c%d#%d", i, n+1); seen[name] != 1 {
						p.Errorf("limit %d: %s came %d times", limit, name, seen[name])
					}
				}
			}
		}
		wrong := p.search(index.Request{Query: "needle", Limit: 1}).NextCursor
		if _, err := (search.Searcher{Log: p.log, Store: p.store}).Search(p.Context(), index.Request{ProjectID: continuo.DefaultProject, Query: "hay", Cursor: wrong}); !errors.Is(err, index.ErrCursor) {
			p.Errorf("a cursor of another search: %v", err)
		}
	})
}

// leaky is a store whose index knows no projects.
type leaky struct{ maintenance.Store }

func (l leaky) AnyHits(ctx context.Context, query index.HitQuery) ([][]index.Hit, error) {
	query.ProjectID = "other"
	return l.Store.AnyHits(ctx, query)
}

func TestProjectsAreApartWhateverTheIndexSays(t *testing.T) {
	p := newFixture(t, leaky{storetest.NewMemory()})
	p.begin(continuo.Conversation{ProjectID: "other", Key: "theirs"}, "needle")
	if found := p.search(index.Request{ProjectID: "other", Query: "needle"}).Items; len(found) != 1 {
		t.Fatalf("the others find %s: the test shows nothing", names(found))
	}
	p.finds(index.Request{Query: "needle"}, "")
}

func TestASearchWithoutAnIndex(t *testing.T) {
	p := newFixture(t, storetest.NewMemory())
	c := p.begin(continuo.Conversation{Key: "c"}, "needle", "hay", "needle")
	searcher := search.Searcher{Log: p.log}
	request := index.Request{ProjectID: c.ProjectID, Query: "needle"}
	if _, err := searcher.Search(t.Context(), request); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("a search of the project: %v, want ErrInvalid", err)
	}
	request.Conversation = &c
	if found, err := searcher.Search(t.Context(), request); err != nil || len(found.Items) != 2 {
		t.Errorf("found %+v, %v", found.Items, err)
	}
}

// TestAnOldPhraseOfCommonWordsIsRanked: each word is in more newer entries than are listed for one word.
func TestAnOldPhraseOfCommonWordsIsRanked(t *testing.T) {
	p := newFixture(t, storetest.NewMemory())
	texts := []string{"alpha beta"}
	for range 2_100 {
		texts = append(texts, "alpha alone", "beta alone")
	}
	c := p.begin(continuo.Conversation{Key: "c"}, texts...)
	for scope, request := range map[string]index.Request{"conversation": {Conversation: &c}, "project": {}} {
		for _, query := range []string{`"alpha beta"`, `"alpha beta" alone`} {
			request.Query = query
			found := p.search(request)
			if names(found.Items) != "c#1" || found.Items[0].Score == 0 || found.NextCursor != "" {
				p.Errorf("%s: %s found %q, %+v", scope, query, names(found.Items), found)
			}
		}
	}
}

// counting counts how often each entry is read.
type counting struct {
	maintenance.Store
	reads map[continuo.EntryPlace]int
}

func (c *counting) EntriesAt(ctx context.Context, places []continuo.EntryPlace, maxBytes int64) ([]continuo.Entry, error) {
	for _, place := range places {
		c.reads[place]++
	}
	return c.Store.EntriesAt(ctx, places, maxBytes)
}

// TestNoEntryIsReadAgainAndAgain searches for a phrase of words that very many entries have, and few one after the other: once
// an entry is ranked, and once it is looked at for what was not.
func TestNoEntryIsReadAgainAndAgain(t *testing.T) {
	store := &counting{Store: storetest.NewMemory(), reads: map[continuo.EntryPlace]int{}}
	p := newFixture(t, store)
	var texts []string
	for i := range 3000 {
		text := fmt.Sprintf("the lantern of house %d", i)
		if i%105 == 104 { // 19 of the newest 2 000, and 9 before
			text = fmt.Sprintf("lantern the %d", i)
		}
		texts = append(texts, text)
	}
	c := p.begin(continuo.Conversation{}, texts...)
	p.search(index.Request{Query: `"lantern the"`, Conversation: &c}) // indexes the entries
	clear(store.reads)
	result := p.search(index.Request{Query: `"lantern the"`, Conversation: &c})
	if len(result.Items) != 20 || result.NextCursor == "" {
		t.Errorf("found %s, want 20 of the 28 entries with the phrase, and where to go on", names(result.Items))
	}
	for place, n := range store.reads {
		if n > 2 {
			t.Fatalf("entry %d was read %d times for one page", place.Seq, n)
		}
	}
}
