package index_test

import (
	"cmp"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/indextest"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// fixture is a log with conversations, whose clock advances only when the test advances it.
type fixture struct {
	testing.TB
	store maintenance.Store
	log   *continuo.Log

	mu  sync.Mutex
	now time.Time
}

// everywhere runs a test over each store.
func everywhere(t *testing.T, test func(p *fixture)) {
	indextest.Everywhere(t, func(t *testing.T, store maintenance.Store) { test(newFixture(t, store)) })
}

func newFixture(t testing.TB, store maintenance.Store) *fixture {
	p := &fixture{TB: t, store: store, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	p.log = continuo.NewLog(store, continuo.LogOptions{Now: p.time, Objects: storetest.NewObjects(), MaxInlineOutput: 200})
	return p
}

func (p *fixture) searcher() index.Searcher { return index.Searcher{Log: p.log, Store: p.store} }

func (p *fixture) time() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

func (p *fixture) later() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(time.Second)
}

// begin makes a conversation of the default project whose key is its title.
func (p *fixture) begin(title string, texts ...string) continuo.Conversation {
	p.Helper()
	c, err := p.log.Import(p.Context(), continuo.Conversation{Title: title, Key: strings.ReplaceAll(title, " ", "-")}, userEntries(texts...))
	if err != nil {
		p.Fatal(err)
	}
	return c
}

func userEntries(texts ...string) []continuo.Entry {
	entries := make([]continuo.Entry, len(texts))
	for i, text := range texts {
		entries[i] = continuo.Entry{Role: []continuo.Role{continuo.User, continuo.Assistant}[i%2], Content: continuo.Text(text)}
	}
	return entries
}

// append appends and returns the conversation as it is then.
func (p *fixture) append(c continuo.Conversation, entries ...continuo.Entry) continuo.Conversation {
	p.Helper()
	if _, err := p.log.Append(p.Context(), c.ID, entries, continuo.AppendOptions{}); err != nil {
		p.Fatal(err)
	}
	return p.again(c)
}

func (p *fixture) again(c continuo.Conversation) continuo.Conversation {
	p.Helper()
	c, err := p.log.Conversation(p.Context(), c.ID)
	if err != nil {
		p.Fatal(err)
	}
	return c
}

// patience is long enough to index what the tests append, also on a slow machine.
const patience = 5 * time.Minute

func (p *fixture) search(request index.Request) index.Result {
	p.Helper()
	if request.ProjectID == "" {
		request.ProjectID = continuo.DefaultProject
	}
	request.Patience = cmp.Or(request.Patience, patience)
	result, err := p.searcher().Search(p.Context(), request)
	if err != nil {
		p.Fatalf("%+v: %v", request, err)
	}
	if result.Problem != nil {
		p.Errorf("%+v: %v", request, result.Problem)
	}
	return result
}

// all pages through a search.
func (p *fixture) all(request index.Request) []index.Item {
	p.Helper()
	return indextest.AllPages(p, request, p.search)
}

func names(items []index.Item) string { return indextest.Names(items) }

// finds checks what a query finds in the project and, with conversations given, in each of those instead.
func (p *fixture) finds(query, want string, in ...continuo.Conversation) {
	p.Helper()
	if len(in) == 0 {
		if got := names(p.all(index.Request{Query: query})); got != want {
			p.Errorf("%s found %q, want %q", query, got, want)
		}
	}
	for _, c := range in {
		if got := names(p.all(index.Request{Query: query, Conversation: &c})); got != want {
			p.Errorf("%s found %q in %s, want %q", query, got, c.Key, want)
		}
	}
}
