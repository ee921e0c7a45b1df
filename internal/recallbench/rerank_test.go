package recallbench

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// plantedOrder puts the evidence of a question first, or last, or answers what is no order, or nothing.
type plantedOrder struct {
	evidence map[string][]string // texts, by question
	how      string
}

func (p plantedOrder) Model() (provider, model string) { return "test", "planted" }

func (p plantedOrder) Rerank(_ context.Context, query string, texts []string) ([]int, int, error) {
	var first, rest []int
	for i, text := range texts {
		isEvidence := slices.ContainsFunc(p.evidence[query], func(said string) bool {
			return strings.HasPrefix(said, text[:min(len(text), 200)])
		})
		if isEvidence {
			first = append(first, i)
		} else {
			rest = append(rest, i)
		}
	}
	switch p.how {
	case "wrong":
		slices.Reverse(rest)
		return append(rest, first...), 0, nil
	case "nonsense":
		return make([]int, len(texts)), 0, nil
	case "down":
		return nil, 0, errors.New("there is no server")
	}
	return append(first, rest...), 0, nil
}

// TestReranker measures what a reranker adds where it is right, how little it takes away where it is wrong, and that nothing
// changes where it is down or answers nonsense.
func TestReranker(t *testing.T) {
	for name, gain := range map[string]float64{"locomo.jsonl.gz": .01, "beam.jsonl.gz": .01} {
		conversations := dataFile(t, name)
		if os.Getenv("CONTINUO_LONG") == "" {
			conversations = conversations[:1]
		}
		right := evidenceOf(conversations)
		share := func(how string) float64 {
			options := Options{Settings: []Setting{{Tokens: 1_000}}}
			if how != "" {
				options.Reranker = plantedOrder{right, how}
			}
			found, err := Measure(t.Context(), conversations, options)
			if err != nil {
				t.Fatal(err)
			}
			recall, full := found[0][""].Means()
			t.Logf("%s %q: %.3f / %.3f", name, how, recall, full)
			return recall
		}
		words := share("")
		if with := share("right"); with < words+gain && with < .99 {
			t.Errorf("%s: the right order gives %.3f, words alone %.3f", name, with, words)
		}
		if with := share("wrong"); with < words-.05 {
			t.Errorf("%s: the worst order gives %.3f, words alone %.3f", name, with, words)
		}
		for _, how := range []string{"nonsense", "down"} {
			if with := share(how); with != words {
				t.Errorf("%s: %s gives %.3f, words alone %.3f", name, how, with, words)
			}
		}
	}
}
