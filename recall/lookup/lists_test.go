package lookup_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/store/storetest"
)

// TestWhatIsRememberedChangesNothing holds for random conversations that grow, are indexed now and then, and redacted: a
// finder that remembers lists of terms and the words of entries finds what another one finds.
func TestWhatIsRememberedChangesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 2))
	store := storetest.NewMemory()
	log := continuo.NewLog(store, continuo.LogOptions{})
	plain := lookup.Finder{Log: log, Store: store}
	remembering := lookup.Finder{Log: log, Store: store, Lists: &lookup.TermLists{}, Entries: &lookup.Entries{}, Analyzer: &recall.Analyzer{}}
	sentence := func() string {
		text := ""
		for range 1 + random.IntN(6) {
			text += fmt.Sprintf("word%d harbour%d ", random.IntN(12), random.IntN(3))
		}
		return text
	}
	for range 4 {
		conversation, err := log.Create(t.Context(), continuo.Conversation{ProjectID: "p", UserID: "ada"})
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			for range random.IntN(30) {
				entry := continuo.Entry{Role: continuo.User, Content: continuo.Text(sentence())}
				if _, err := log.Append(t.Context(), conversation.ID, []continuo.Entry{entry}, continuo.AppendOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if random.IntN(2) == 0 {
				if _, err := (index.Indexer{Log: log, Store: store}).Run(t.Context(), index.Scope{}, time.Time{}); err != nil {
					t.Fatal(err)
				}
			}
			if conversation, err = log.Conversation(t.Context(), conversation.ID); err != nil {
				t.Fatal(err)
			}
			if conversation.LastSeq > 0 && random.IntN(10) == 0 {
				seq := 1 + random.Int64N(conversation.LastSeq)
				if _, err := log.Redact(t.Context(), conversation, seq, seq, ""); err != nil {
					t.Fatal(err)
				}
				if conversation, err = log.Conversation(t.Context(), conversation.ID); err != nil {
					t.Fatal(err)
				}
			}
			request := lookup.Request{
				Text: sentence(), Conversation: conversation, Candidates: 1 + random.IntN(200),
				Scope: lookup.Scopes()[random.IntN(2)],
			}
			if random.IntN(4) == 0 {
				request.To = conversation.LastSeq / 2
			}
			want, err := plain.Find(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			got, err := remembering.Find(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(summary(got), summary(want)) {
				t.Fatalf("%q found %v, want %v", request.Text, summary(got), summary(want))
			}
		}
	}
}

func summary(items []lookup.Item) (all []string) {
	for _, item := range items {
		all = append(all, fmt.Sprint(item.Owner.ID, item.Entry.Seq, item.Score.Odds, item.Words, item.Weight))
	}
	return all
}
