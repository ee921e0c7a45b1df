package lookup

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/recall"
)

// TestTheBestPlacesAreChosen compares with the definition: the sums of rarities, spread to the neighbours, all in order.
func TestTheBestPlacesAreChosen(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 8))
	for range 200 {
		request := Request{Conversation: continuo.Conversation{ID: "b"}, Scope: User, To: 2_000, Candidates: 1 + random.IntN(400)}
		terms := recall.Terms("lantern harbour carpenter")
		hits := found{}
		for range len(terms) + 1 {
			var list termHits
			for seq := range int64(1 + random.IntN(1_500)) {
				if random.IntN(3) == 0 {
					if random.IntN(2) == 0 {
						list.own = append(list.own, seq)
						continue
					}
					list.others = append(list.others, index.Hit{ConversationID: "bb", Seq: seq})
				}
			}
			hits.terms = append(hits.terms, list)
		}
		got, statistics := choose(request, terms, hits, nil)
		scores := map[place]int64{}
		for i, list := range hits.terms {
			rarity := recall.Rarity(int64(list.len()), statistics.Documents)
			var all []index.Hit
			for _, seq := range slices.Backward(list.own) {
				all = append(all, index.Hit{ConversationID: "b", Seq: seq})
			}
			all = append(all, list.others...)
			if i == 0 {
				all = all[:min(len(all), maxSignals)]
			}
			for _, hit := range all {
				scores[placeOf(request, hit)] += rarity
			}
		}
		around := maps.Clone(scores)
		for p, score := range scores {
			for apart := int64(1); apart <= reach; apart++ {
				score /= 2
				for _, beside := range []place{{p.conversation, p.seq - apart}, {p.conversation, p.seq + apart}} {
					around[beside] = max(around[beside], score)
				}
			}
		}
		want := slices.SortedFunc(maps.Keys(around), func(a, b place) int {
			return compareScored(scored{a, around[a]}, scored{b, around[b]})
		})
		want = want[:min(len(want), request.Candidates)]
		slices.SortFunc(want, comparePlaces)
		if !slices.Equal(got, want) {
			t.Fatalf("chosen are %v, want %v", got, want)
		}
	}
}
