package reorder_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/continuo-log/continuo/recall/reorder"
)

// scripted answers with an order.
type scripted struct {
	order []int
	err   error
}

func (scripted) Model() (provider, model string) { return "test", "small" }

func (s scripted) Rerank(context.Context, string, []string) ([]int, int, error) {
	return s.order, 0, s.err
}

func Example() {
	texts := []string{"Oslo", "Rome", "Pisa", "Bergen", "Turin", "Bari"} // as words rank them
	merger := &reorder.Merger{Reranker: scripted{order: []int{5, 4, 3, 2, 1, 0}}}
	order := merger.Merge(context.Background(), "Which town is it?", texts)
	for _, index := range order.Merged {
		fmt.Println(texts[index], order.Places[index])
	}
	fmt.Println(order.By)
	// Output:
	// Oslo 6
	// Rome 5
	// Pisa 4
	// Bari 1
	// Bergen 3
	// Turin 2
	// reranked by small
}

func TestWhatIsNoOrderChangesNothing(t *testing.T) {
	for name, reranker := range map[string]scripted{
		"down": {err: errors.New("no")}, "too short": {order: []int{1, 0}}, "twice": {order: []int{0, 0, 1}}, "outside": {order: []int{0, 1, 3}}, "none": {},
	} {
		failed := 0
		merger := &reorder.Merger{Reranker: reranker, Failed: func(_ context.Context, err error) { failed++ }}
		if order := merger.Merge(t.Context(), "q", []string{"a", "b", "c"}); order.Merged != nil || order.By != "not reranked: small failed" || failed != 1 {
			t.Errorf("%s: %+v, %d failures are reported", name, order, failed)
		}
		if order := merger.Merge(t.Context(), "q", []string{"a"}); order.By != "" {
			t.Errorf("%s: one text gives %+v", name, order)
		}
	}
	if order := (*reorder.Merger)(nil).Merge(t.Context(), "q", []string{"a", "b"}); order.By != "" || order.Merged != nil {
		t.Errorf("without a reranker: %+v", order)
	}
}

// TestAllOrdersAreMerged: each text is there once, and the best of both are among the first four.
func TestAllOrdersAreMerged(t *testing.T) {
	for n := 2; n <= reorder.MaxTexts; n++ {
		order := make([]int, n)
		for i := range order {
			order[i] = n - 1 - i
		}
		merged := (&reorder.Merger{Reranker: scripted{order: order}}).Merge(t.Context(), "q", make([]string, n)).Merged
		first := slices.Clone(merged[:min(n, 4)])
		slices.Sort(merged)
		for i, index := range merged {
			if i != index {
				t.Fatalf("%d texts give %v", n, merged)
			}
		}
		if !slices.Contains(first, 0) || !slices.Contains(first, n-1) {
			t.Errorf("of %d texts the first are %v", n, first)
		}
	}
}
