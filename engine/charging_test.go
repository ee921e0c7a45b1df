package engine_test

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/ledger"
	"github.com/continuo-log/continuo/engine/recalls"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/window"
)

// noise makes vectors that say nothing, of which its server counts 7 tokens each.
type noise struct{ asked int }

func (*noise) Name() string { return "noise/8" }

func (*noise) Model() (provider, model string) { return "vectors", "noise" }

func (n *noise) Embed(_ context.Context, texts []string) ([][]float32, int, error) {
	n.asked++
	made := make([][]float32, len(texts))
	for i, text := range texts {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(text))
		random := rand.New(rand.NewPCG(hash.Sum64(), 1))
		for range 8 {
			made[i] = append(made[i], float32(random.NormFloat64()))
		}
	}
	return made, 7 * len(texts), nil
}

// ranking are engines over one log with a reranker and an embedder, for a caller with the key k.
type ranking struct {
	*recalling
	reranker scriptedOrder
	embedder noise
	budget   int64 // of the key, in tokens
	caller   context.Context
}

func newRanking(t *testing.T) (*ranking, continuo.Conversation) {
	plain := newRecalling(t, 0)
	c := plain.plans("s")
	r := &ranking{caller: continuo.WithPayer(t.Context(), continuo.Payer{ProjectID: "default", KeyID: "k"})}
	r.reranker.order = func(texts []string) (order []int, err error) {
		for i := range texts {
			order = append(order, i)
		}
		return order, nil
	}
	views := window.DefaultSettings()
	views.ChatMaxMessages, views.ChatMaxTokens, views.ChatFollowsWindow = 8, 900, false
	e, err := engine.New(plain.Log, engine.Options{
		Models: map[string]engine.Upstream{"demo": {Model: demo.New(demo.Options{})}}, Default: "demo", Views: &views, Index: plain.index,
		Reranker: &r.reranker, Embedder: &r.embedder,
		Budgets: ledger.BudgetOptions{Key: func(_ context.Context, id string) (auth.Key, error) {
			return auth.Key{ID: id, Budget: auth.Budget{Tokens: r.budget}}, nil
		}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.recalling = &recalling{testEngine: &testEngine{e, plain.Log}, t: t, index: plain.index}
	return r, c
}

// spent are the requests and input tokens of a model that were charged to anna and to a key.
func (r *ranking) spent(model, key string) (requests, tokens int64) {
	r.t.Helper()
	rows, err := r.Log.Spent(r.t.Context(), continuo.SpendingQuery{
		ProjectID: "default", By: []continuo.SpendingGroup{continuo.SpendingByModel, continuo.SpendingByKey, continuo.SpendingByUser},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, row := range rows {
		if row.Model == model && row.KeyID == key && row.UserID == "anna" {
			requests, tokens = requests+row.Requests, tokens+row.InputTokens
		}
	}
	return requests, tokens
}

const aboutTheGate = "What is the password of the harbour gate in Lisbon?"

// TestRankingsAreChargedToTheCaller: of turns, views and explanations; the tokens that the server counts, or else estimated ones. A request
// that failed is not charged, and one that a budget refuses is not made.
func TestRankingsAreChargedToTheCaller(t *testing.T) {
	r, c := newRanking(t)
	explain := func() string {
		t.Helper()
		explained, err := r.Contexts.ExplainRecall(r.caller, c, engine.ContextRequest{View: window.Continuity, Query: aboutTheGate}, recalls.ExplainRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return explained.Ranker
	}
	r.reranker.tokens = 1234
	if by := explain(); !strings.HasSuffix(by, "reranked by small") {
		t.Fatalf("explained as %q", by)
	}
	if requests, tokens := r.spent("small", "k"); requests != 1 || tokens != 1234 {
		t.Errorf("%d requests with %d tokens are charged", requests, tokens)
	}
	r.reranker.tokens = 0
	explain()
	_, tokens := r.spent("small", "k")
	if estimated := tokens - 1234; estimated < 100 || estimated > 2000 {
		t.Errorf("without the server's count %d tokens are charged", estimated)
	}
	chat, err := r.Turns.Chat(r.caller, engine.ChatRequest{Scope: continuo.Scope{ProjectID: "default", UserID: "anna"}, SessionID: "s", Message: continuo.Text(aboutTheGate)})
	if err != nil {
		t.Fatal(err)
	}
	lastOf(t, chat)
	if requests, _ := r.spent("small", "k"); requests != 3 {
		t.Errorf("%d requests are charged after a turn", requests)
	}
	right := r.reranker.order
	r.reranker.order = func([]string) ([]int, error) { return nil, context.DeadlineExceeded }
	explain()
	if requests, _ := r.spent("small", "k"); requests != 3 {
		t.Errorf("%d requests are charged after one that failed", requests)
	}
	r.reranker.order = right
	_, used := r.spent("small", "k")
	r.budget = used / 2
	asked := r.reranker.asked
	if by := explain(); !strings.HasSuffix(by, "not reranked: small failed") || r.reranker.asked != asked {
		t.Errorf("over the budget it is %q, asked %d times", by, r.reranker.asked-asked)
	}
}

// TestEmbeddingsOfQueriesAreCharged to the caller's key.
func TestEmbeddingsOfQueriesAreCharged(t *testing.T) {
	r, c := newRanking(t)
	if _, err := r.Contexts.Build(r.caller, c, engine.ContextRequest{View: "recall", Query: aboutTheGate}); err != nil {
		t.Fatal(err)
	}
	if requests, tokens := r.spent("noise", "k"); requests != 1 || tokens != 7 {
		t.Errorf("%d requests with %d tokens are charged for a query", requests, tokens)
	}
	if _, err := r.Conversations.Search(r.caller, continuo.Scope{ProjectID: "default"}, index.Request{Query: aboutTheGate, Conversation: &c}); err != nil {
		t.Fatal(err)
	}
	if requests, tokens := r.spent("noise", "k"); requests != 2 || tokens != 14 {
		t.Errorf("%d requests with %d tokens are charged after a search", requests, tokens)
	}
}
