package search_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/recall/reorder"
	"github.com/continuo-log/continuo/recall/search"
	"github.com/continuo-log/continuo/recall/vector"
)

// planted makes near vectors of texts with the word marmalade and of questions about a password, which have no word in common.
type planted struct{ isDown *bool }

func (planted) Name() string { return "planted" }

func (planted) Model() (provider, model string) { return "test", "planted" }

func (p planted) Embed(_ context.Context, texts []string) ([][]float32, int, error) {
	if *p.isDown {
		return nil, 0, errors.New("there is no server")
	}
	made := make([][]float32, len(texts))
	for i, text := range texts {
		seed := text
		if strings.Contains(text, "marmalade") || strings.Contains(text, "password") {
			seed = "the same"
		}
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(seed))
		random := rand.New(rand.NewPCG(hash.Sum64(), 1))
		for range 64 {
			made[i] = append(made[i], float32(random.NormFloat64()))
		}
	}
	return made, 0, nil
}

const unanswered = "Which password opened that large gate?"

// TestSearchesCompareEmbeddings: across conversations, of the scope and the filters, and in one; only for questions, and without a server
// what the words find.
func TestSearchesCompareEmbeddings(t *testing.T) {
	everywhere(t, func(p *fixture) {
		day := func(n int, what string) string { return fmt.Sprintf("Day %d, we baked number %d %s", n, n*7, what) }
		var texts []string
		for n := range 30 {
			texts = append(texts, day(n, "bread"))
		}
		p.begin(continuo.Conversation{UserID: "ada", Key: "bread"}, texts...)
		ada := p.begin(continuo.Conversation{UserID: "ada", Key: "ada", Metadata: []byte(`{"tag":"sweet"}`)}, "Say marmalade at noon.", "Fine.")
		bo := p.begin(continuo.Conversation{UserID: "bo", Key: "bo"}, "Bo says marmalade, too.", "Fine.")
		isDown := false
		embedder := planted{&isDown}
		if _, err := (index.Indexer{Log: p.log, Store: p.store}).Run(p.Context(), index.Scope{}, time.Time{}); err != nil {
			p.Fatal(err)
		}
		vectors, _ := p.store.(index.VectorStore)
		if err := (vector.Runner{Log: p.log, Store: vectors, Embedder: embedder}).Run(p.Context()); err != nil {
			p.Fatal(err)
		}
		find := func(request index.Request) (keys []string) {
			p.Helper()
			request.ProjectID, request.Patience = continuo.DefaultProject, patience
			found, err := search.Searcher{Log: p.log, Store: p.store, Vectors: &vector.Finder{Store: vectors, Embedder: embedder}}.Search(p.Context(), request)
			if err != nil {
				p.Fatal(err)
			}
			for _, item := range found.Items {
				if strings.Contains(item.Snippet.Text, "marmalade") {
					keys = append(keys, item.Key)
				}
			}
			slices.Sort(keys)
			return keys
		}
		expect := func(what string, request index.Request, want ...string) {
			p.Helper()
			if got := find(request); !slices.Equal(got, want) {
				p.Errorf("%s: found in %q, want %q", what, got, want)
			}
		}
		expect("the project", index.Request{Query: unanswered}, "ada", "bo")
		expect("a user", index.Request{Query: unanswered, UserID: "bo"}) // too few vectors to compare
		expect("a user", index.Request{Query: unanswered, UserID: "ada"}, "ada")
		expect("a label", index.Request{Query: unanswered, Labels: map[string]string{"tag": "sour"}})
		expect("a role", index.Request{Query: unanswered, Role: continuo.Assistant})
		expect("an exclusion", index.Request{Query: unanswered + " -noon"}, "bo")
		expect("a phrase", index.Request{Query: unanswered + ` "at noon"`}, "ada")
		expect("a phrase that is nowhere", index.Request{Query: unanswered + ` "at midnight"`})
		expect("no question", index.Request{Query: "password"})
		if err := p.log.Delete(p.Context(), bo.ID); err != nil {
			p.Fatal(err)
		}
		if _, err := p.log.Redact(p.Context(), ada, 1, 1, ""); err != nil {
			p.Fatal(err)
		}
		expect("what was removed", index.Request{Query: unanswered})
		p.begin(continuo.Conversation{UserID: "ada", Key: "later"}, "The password is marmalade")
		isDown = true
		expect("without a server", index.Request{Query: unanswered}, "later")
	})
}

// byText orders texts by a number at their end.
type byText struct {
	order func(texts []string) ([]int, error)
	asked *int
}

func (byText) Model() (provider, model string) { return "test", "small" }

func (b byText) Rerank(_ context.Context, _ string, texts []string) ([]int, int, error) {
	*b.asked++
	order, err := b.order(texts)
	return order, 0, err
}

// TestSearchesAreReranked: the first page of a question is; a reranker that fails changes nothing, and all pages together have each match
// once, whatever the order. Words are not reranked.
func TestSearchesAreReranked(t *testing.T) {
	everywhere(t, func(p *fixture) {
		var texts []string
		for n := range 60 {
			texts = append(texts, fmt.Sprintf("The lantern of the harbour, the carpenter and the winter, part %d", n))
		}
		p.begin(continuo.Conversation{Key: "lanterns"}, texts...)
		const question = "What is known about the lantern of the harbour and of the carpenter in winter?"
		reversed := func(texts []string) ([]int, error) {
			order := make([]int, len(texts))
			for i := range order {
				order[i] = len(order) - 1 - i
			}
			return order, nil
		}
		asked := 0
		seqs := func(query string, order func([]string) ([]int, error), pages int) (seqs []int64) {
			p.Helper()
			searcher := search.Searcher{Log: p.log, Store: p.store}
			if order != nil {
				searcher.Reranker = &reorder.Merger{Reranker: byText{order, &asked}}
			}
			request := index.Request{ProjectID: continuo.DefaultProject, Query: query, Limit: 7, Patience: patience}
			for range pages {
				page, err := searcher.Search(p.Context(), request)
				if err != nil {
					p.Fatal(err)
				}
				for _, item := range page.Items {
					seqs = append(seqs, item.Seq)
				}
				if request.Cursor = page.NextCursor; request.Cursor == "" {
					break
				}
			}
			return seqs
		}
		words := seqs(question, nil, 1)
		if got := seqs(question, reversed, 1); !slices.Equal(got[:3], words[:3]) || got[3] == words[3] {
			p.Errorf("reversed it finds %v, by words %v", got, words)
		}
		for name, order := range map[string]func([]string) ([]int, error){
			"down":     func([]string) ([]int, error) { return nil, errors.New("no") },
			"nonsense": func(texts []string) ([]int, error) { return make([]int, len(texts)), nil },
		} {
			if got := seqs(question, order, 1); !slices.Equal(got, words) {
				p.Errorf("%s: it finds %v, by words %v", name, got, words)
			}
		}
		asked = 0
		all, byWords := seqs(question, reversed, 20), seqs(question, nil, 20)
		slices.Sort(all)
		slices.Sort(byWords)
		if !slices.Equal(all, byWords) || len(slices.Compact(slices.Clone(all))) != len(all) {
			p.Errorf("all pages find %v, by words %v", all, byWords)
		}
		if asked != 1 {
			p.Errorf("the reranker was asked for %d of all pages", asked)
		}
		asked = 0
		for _, query := range []string{"lantern", `"the lantern of the harbour"`, "lantern -carpenter"} {
			seqs(query, reversed, 1)
		}
		if asked > 0 {
			p.Errorf("the reranker was asked %d times for words", asked)
		}
	})
}
