package search_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/recall/reorder"
	recallsearch "github.com/continuo-log/continuo/recall/search"
)

// lastFirst answers with the reversed order, and notes for whom it was asked.
type lastFirst struct{ payers *[]continuo.Payer }

func (lastFirst) Model() (provider, model string) { return "test", "small" }

func (l lastFirst) Rerank(ctx context.Context, _ string, texts []string) ([]int, int, error) {
	payer, _ := continuo.PayerOf(ctx)
	*l.payers = append(*l.payers, payer)
	order := make([]int, len(texts))
	for i := range order {
		order[i] = len(order) - 1 - i
	}
	return order, 0, nil
}

// TestTheSearcherOfTheEngineRanks: with its reranker, which is charged to the owner of the conversation; an expression asks nobody.
func TestTheSearcherOfTheEngineRanks(t *testing.T) {
	var texts []string
	for i := range 8 {
		texts = append(texts, fmt.Sprintf("The lantern of the harbour and the carpenter in winter, number %d", i))
	}
	p := newFixture(t, userEntries(texts...)...)
	const question = `{"query":"Where is the lantern of the harbour of the carpenter in winter?"}`
	words, _ := seqs(p.search(question))
	var payers []continuo.Payer
	p.tool.Searcher = func() recallsearch.Searcher {
		return recallsearch.Searcher{Log: p.tool.Log, Store: p.tool.Index, Reranker: &reorder.Merger{Reranker: lastFirst{&payers}}}
	}
	p.conversation.UserID = "ada"
	reranked, _ := seqs(p.search(question))
	before, after := strings.Fields(words), strings.Fields(reranked)
	if len(after) != 8 || strings.Join(after[:3], " ") != strings.Join(before[:3], " ") || after[3] != before[7] {
		t.Errorf("reranked %v, by words %v", after, before)
	}
	p.search(`{"query":"lantern.*harbour","regex":true}`)
	if len(payers) != 1 || payers[0].UserID != "ada" || payers[0].ProjectID != p.conversation.ProjectID {
		t.Errorf("the reranker was asked for %+v", payers)
	}
}
