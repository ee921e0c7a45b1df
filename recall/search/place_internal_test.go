package search

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTheFirstPlacesAreThoseOfAll compares with the order of all places and their neighbours.
func TestTheFirstPlacesAreThoseOfAll(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		found, scores, orders := newPlaces(), map[place]int64{}, map[place]int64{}
		for range 400 {
			at := place{fmt.Sprint("c", random.IntN(5)), random.Int64N(300)}
			score, order := 1+random.Int64N(50), 1+at.seq
			found.add(at, score, order)
			scores[at], orders[at] = scores[at]+score, order
		}
		for _, withNeighbours := range []bool{false, true} {
			want := allInOrder(scores, orders, withNeighbours)
			for _, most := range []int{1, 20, 200, 10_000} {
				if got := found.inOrder(withNeighbours, most); !slices.Equal(got, want[:min(most, len(want))]) {
					t.Fatalf("the first %d: %v\nwant %v", most, got, want)
				}
			}
		}
	}
}

func allInOrder(scores, orders map[place]int64, withNeighbours bool) []place {
	worth := map[place]int64{}
	for at, score := range scores {
		worth[at] = max(worth[at], score)
		for apart := int64(1); withNeighbours && apart <= neighbourReach && at.seq > 0; apart++ {
			score /= 2
			for _, seq := range []int64{at.seq - apart, at.seq + apart} {
				if beside := (place{at.conversation, seq}); seq > 0 {
					worth[beside] = max(worth[beside], score)
				}
			}
		}
	}
	var all []place
	for at := range worth {
		all = append(all, at)
	}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(worth[b], worth[a]), cmp.Compare(orders[b], orders[a]), cmp.Compare(a.conversation, b.conversation), cmp.Compare(b.seq, a.seq))
	})
	return all
}
