package recall_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/recall"
)

func Example() {
	documents := []recall.Document{
		{Seq: 1, Role: continuo.User, Text: "We decided to deploy with Kubernetes.", Tokens: 9},
		{Seq: 2, Role: continuo.Assistant, Text: "Noted.", Tokens: 2},
		{Seq: 3, Role: continuo.User, Text: "My favourite colour is green.", Tokens: 7},
		{Seq: 4, Role: continuo.Assistant, Text: "A good choice.", Tokens: 4},
	}
	best := recall.Rank("How do we make a deployment?", recall.Statistics{}, documents)[0]
	fmt.Println(documents[best.Index].Text)
	// Output: We decided to deploy with Kubernetes.
}

// talk is a conversation of random sentences.
func talk(random *rand.Rand, n int, named bool) []recall.Document {
	vocabulary := strings.Fields(`always deploying deployed red garden March 12 2024 Kubernetes winter prefer when I ask about
		painting sailed boats 京都 東京の天気 database crashed? restarted Müller's file_read`)
	documents := make([]recall.Document, n)
	for i := range documents {
		var text []string
		for range 1 + random.IntN(30) {
			text = append(text, vocabulary[random.IntN(len(vocabulary))])
		}
		d := recall.Document{
			ConversationID: fmt.Sprint(i / 40), Seq: int64(i%40 + 1), Role: continuo.User, Text: strings.Join(text, " "), Tokens: len(text),
			At: time.Date(2024, 3, 12+i/10, 0, 0, 0, 0, time.UTC),
		}
		if i%2 == 1 {
			d.Role = continuo.Assistant
		}
		if named {
			d.Speaker = []string{"Anna", "Bo"}[i%2]
		}
		documents[i] = d
	}
	return documents
}

func TestRankIsAPermutationAndRepeatable(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2))
	for _, n := range []int{0, 1, 2, 90} {
		for _, named := range []bool{false, true} {
			documents := talk(random, n, named)
			for _, query := range []string{"", "?", "When did Anna deploy in March?", "東京", strings.Repeat("boats ", 4000), "\xff red"} {
				ranked := recall.Rank(query, recall.Statistics{}, documents)
				seen := map[int]bool{}
				for i, s := range ranked {
					seen[s.Index] = true
					if i > 0 && ranked[i-1].Value < s.Value {
						t.Fatalf("%q: %+v comes before %+v", query, ranked[i-1], s)
					}
				}
				if len(seen) != n || len(ranked) != n {
					t.Fatalf("%q: ranked %d of %d documents", query, len(seen), n)
				}
				if again := recall.Rank(query, recall.Statistics{}, documents); !reflect.DeepEqual(again, ranked) {
					t.Fatalf("%q: the second ranking differs", query)
				}
			}
		}
	}
}

// TestOtherFormsNeighboursAndSpeakersCount has one case for each reason why a search for all words misses.
func TestOtherFormsNeighboursAndSpeakersCount(t *testing.T) {
	filler := func(seq int64) recall.Document {
		return recall.Document{Seq: seq, Role: continuo.User, Text: fmt.Sprintf("Number %d of the small remarks about weather and lunch.", seq), Tokens: 12}
	}
	for name, c := range map[string]struct {
		query string
		text  string
	}{
		"another form":      {"When did we choose the database?", "We chose a database at last: it is sqlite."},
		"an irregular form": {"Who taught the sailing class?", "Teaching people to sail is what Maria does."},
		"some words only":   {"How is the reactor's coolant pump scheduled for maintenance?", "The pump is looked after on Mondays."},
	} {
		t.Run(name, func(t *testing.T) {
			var documents []recall.Document
			for seq := range int64(40) {
				documents = append(documents, filler(seq+1))
			}
			documents[17].Text = c.text
			if best := recall.Rank(c.query, recall.Statistics{}, documents)[0]; best.Index != 17 {
				t.Errorf("the best is %q", documents[best.Index].Text)
			}
		})
	}
	t.Run("the answer after the question", func(t *testing.T) {
		var documents []recall.Document
		for seq := range int64(40) {
			d := filler(seq + 1)
			d.Speaker = []string{"Jon", "Gina"}[seq%2]
			documents = append(documents, d)
		}
		documents[17].Text = "Will you share the honey garlic chicken recipe?"
		documents[18].Text = "I can write it down for you and mail it."
		ranked := recall.Rank("How will the honey garlic chicken recipe be shared?", recall.Statistics{}, documents)
		if ranked[0].Index+ranked[1].Index != 17+18 {
			t.Errorf("the best are %d and %d, want 17 and 18", ranked[0].Index, ranked[1].Index)
		}
	})
}

func BenchmarkRank(b *testing.B) {
	for _, n := range []int{100, 1000, 2000} {
		documents := talk(rand.New(rand.NewPCG(1, 1)), n, false)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				recall.Rank("When did the garden boats crash in winter?", recall.Statistics{}, documents)
			}
		})
	}
}

// TestAnAnalyzerChangesNoRanking ranks random choices of documents again and again, in several goroutines.
func TestAnAnalyzerChangesNoRanking(t *testing.T) {
	analyzer := &recall.Analyzer{}
	documents := talk(rand.New(rand.NewPCG(9, 9)), 300, true)
	var group sync.WaitGroup
	for seed := range uint64(4) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for range 30 {
				first := random.IntN(200)
				some := documents[first : first+random.IntN(100)]
				query := []string{"When did Anna deploy in March?", "東京 boats", "gardens paint always", "file_read databases"}[random.IntN(4)]
				fresh, again := recall.NewCorpus(recall.Statistics{}, some), analyzer.Corpus(recall.Statistics{}, some)
				if want, got := fresh.Rank(query), again.Rank(query); !reflect.DeepEqual(got, want) {
					t.Errorf("%q: ranked %+v, want %+v", query, got, want)
				}
				if want, got := fresh.Matches(query), again.Matches(query); !reflect.DeepEqual(got, want) {
					t.Errorf("%q: matches %+v, want %+v", query, got, want)
				}
				if want, got := fresh.Weigher(query).Text(documents[first].Text), again.Weigher(query).Text(documents[first].Text); got != want {
					t.Errorf("%q: weighs %d, want %d", query, got, want)
				}
			}
		})
	}
	group.Wait()
}

// TestAsks: texts that ask something or refer to what was said are told from other ones.
func TestAsks(t *testing.T) {
	for text, want := range map[string]bool{
		"Is the gate locked?":                       true,
		"the gate, is it locked":                    false,
		"how do i open the gate":                    true,
		"大门的密码是什么？":                                 true,
		"Write the password that we discussed.":     true,
		"Remind me of the password.":                true,
		"Take the file that I mentioned last time.": true,
		"Rename the file.":                          false,
		"I just measured my waist, and it is 96 cm": false,
		"大门开着。":                                     false,
		"":                                          false,
		"!":                                         false,
	} {
		if recall.Asks(text) != want {
			t.Errorf("%q: asks is %v", text, !want)
		}
	}
}

// TestPlacesOfOneConversationCount: where an entry stands counts within its own conversation; for one that is alone in its
// conversation, such as a fact, it makes no difference how many others are ranked with it.
func TestPlacesOfOneConversationCount(t *testing.T) {
	alone := recall.Document{ConversationID: "facts", Seq: 1, Text: "The harbour gate is locked in winter.", Tokens: 8}
	documents := append(talk(rand.New(rand.NewPCG(1, 1)), 40, false), alone)
	place := func(documents []recall.Document, document int) float64 {
		for _, part := range recall.NewCorpus(recall.Statistics{}, documents).Explain("Is the harbour gate locked?", document) {
			if part.Feature == "position" {
				return part.Value
			}
		}
		return 0
	}
	if at := place(documents, 40); at != 0 {
		t.Errorf("the only entry of a conversation is at %v", at)
	}
	if first, last := place(documents, 0), place(documents, 39); first >= 0 || last != -first || last > .5 {
		t.Errorf("the first entry is at %v, the last at %v", first, last)
	}
}
