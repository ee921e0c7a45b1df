package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/recalls"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/window"
)

// scriptedOrder answers what a function says, and counts how often it is asked.
type scriptedOrder struct {
	order  func(texts []string) ([]int, error)
	asked  int
	tokens int // that it says it has counted
}

func (s *scriptedOrder) Model() (provider, model string) { return "ranks", "small" }

func (s *scriptedOrder) Rerank(_ context.Context, _ string, texts []string) ([]int, int, error) {
	s.asked++
	order, err := s.order(texts)
	return order, s.tokens, err
}

// TestRerankedRecalls: the entry of a turn says what ranked it, a reranker that fails changes nothing, and messages for which
// the words find nothing ask none.
func TestRerankedRecalls(t *testing.T) {
	const question = "What is the password of the harbour gate in Lisbon?"
	reversed := func(texts []string) ([]int, error) {
		order := make([]int, len(texts))
		for i := range order {
			order[i] = len(order) - 1 - i
		}
		return order, nil
	}
	var words []int64
	for _, test := range []struct {
		name, ranker string
		order        func([]string) ([]int, error)
	}{
		{"none", recall.Version, nil},
		{"down", "not reranked: small failed", func([]string) ([]int, error) { return nil, errors.New("no") }},
		{"nonsense", "not reranked: small failed", func(texts []string) ([]int, error) { return make([]int, len(texts)), nil }},
		{"reversed", "reranked by small", reversed},
	} {
		r := newRecalling(t, 0)
		c := r.plans("s")
		reranker := &scriptedOrder{order: test.order}
		views := window.DefaultSettings()
		views.ChatMaxMessages, views.ChatMaxTokens, views.ChatFollowsWindow = 8, 900, false
		options := engine.Options{Models: map[string]engine.Upstream{"demo": {Model: demo.New(demo.Options{})}}, Default: "demo", Views: &views, Index: r.index}
		if test.order != nil {
			options.Reranker = reranker
		}
		e, err := engine.New(r.Log, options, nil)
		if err != nil {
			t.Fatal(err)
		}
		with := &recalling{testEngine: &testEngine{e, r.Log}, t: t, index: r.index}
		explained, err := e.Contexts.ExplainRecall(t.Context(), c, engine.ContextRequest{View: window.Continuity, Query: question}, recalls.ExplainRequest{})
		if err != nil || !strings.HasSuffix(explained.Ranker, test.ranker) {
			t.Errorf("%s: explained as %q, %v", test.name, explained.Ranker, err)
		}
		if explained.Entries[0].Reranked > 0 != (test.name == "reversed") {
			t.Errorf("%s: the first entry has the place %d of the reranker", test.name, explained.Entries[0].Reranked)
		}
		asked := reranker.asked
		with.say("s", "anna", "Thanks!")
		if reranker.asked != asked {
			t.Errorf("%s: the reranker was asked about thanks", test.name)
		}
		c = with.say("s", "anna", question)
		var seqs []int64
		for _, entry := range with.entries(c) {
			if !entry.HoldsRecall() {
				continue
			}
			if !strings.HasSuffix(entry.Recall.Ranker, test.ranker) {
				t.Errorf("%s: ranked by %q", test.name, entry.Recall.Ranker)
			}
			for _, item := range entry.Recall.Items {
				seqs = append(seqs, item.Seq)
			}
		}
		if test.name == "none" {
			words = seqs
		}
		if len(seqs) == 0 || test.name != "reversed" && !slices.Equal(seqs, words) {
			t.Errorf("%s: recalled %v, by words %v", test.name, seqs, words)
		}
		if test.name == "reversed" && !slices.Contains(seqs, words[0]) {
			t.Errorf("the wrong order has lost %d: %v", words[0], seqs)
		}
	}
}
