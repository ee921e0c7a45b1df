package lookup_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/store/storetest"
)

// TestLeastWeight holds for random conversations and queries: a look-up with a least weight finds the same as one without,
// or nothing where no entry that may be shown has the weight. The newest entries of some conversations are not indexed.
func TestLeastWeight(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 1))
	store := storetest.NewMemory()
	finder := lookup.Finder{Log: continuo.NewLog(store, continuo.LogOptions{}), Store: store, Common: &lookup.CommonTerms{}}
	skipped, useful := 0, 0
	for n := range 12 {
		length := 40 + random.IntN(300)
		common := strings.Fields("go on yes deploy billing harbour lantern")
		sentence := func() string {
			var b strings.Builder
			for range 1 + random.IntN(6) {
				if random.IntN(3) == 0 {
					fmt.Fprintf(&b, "word%d ", random.IntN(2*length))
				} else {
					b.WriteString(common[random.IntN(len(common))] + " ")
				}
			}
			return b.String()
		}
		conversation, err := finder.Log.Create(t.Context(), continuo.Conversation{ProjectID: "p", ActiveMode: continuo.ModeChat})
		if err != nil {
			t.Fatal(err)
		}
		write := func(entries int) {
			for range entries {
				entry := continuo.Entry{Role: continuo.User, Content: continuo.Text(sentence())}
				if _, err := finder.Log.Append(t.Context(), conversation.ID, []continuo.Entry{entry}, continuo.AppendOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		write(length)
		if _, err := (index.Indexer{Log: finder.Log, Store: store}).Run(t.Context(), index.Scope{ConversationID: conversation.ID}, time.Time{}); err != nil {
			t.Fatal(err)
		}
		write(n % 3 * 5)
		if conversation, err = finder.Log.Conversation(t.Context(), conversation.ID); err != nil {
			t.Fatal(err)
		}
		for range 25 {
			through := random.Int64N(conversation.LastSeq)
			request := lookup.Request{Text: sentence(), Conversation: conversation}
			whole, err := finder.Find(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			request.LeastWeight, request.May = 5<<16, func(seq int64) bool { return seq <= through }
			found, err := finder.Find(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			needed := false
			for _, item := range whole {
				needed = needed || item.Weight >= request.LeastWeight && request.May(item.Entry.Seq)
			}
			switch {
			case needed:
				useful++
			case len(found) == 0 && len(whole) > 0:
				skipped++
			}
			if (needed || len(found) > 0) && !reflect.DeepEqual(found, whole) {
				t.Errorf("%q: found %d entries, want %d", request.Text, len(found), len(whole))
			}
		}
	}
	if skipped < 20 || useful < 20 {
		t.Errorf("%d look-ups found nothing of use, and %d did: the test shows nothing", skipped, useful)
	}
}

// lookUps counts how often the index is asked.
type lookUps struct {
	index.Store
	asked int
}

func (l *lookUps) AnyHits(ctx context.Context, query index.HitQuery) ([][]index.Hit, error) {
	l.asked++
	return l.Store.AnyHits(ctx, query)
}

// A term that many entries have is looked up once, and again after a redaction.
func TestCommonTerms(t *testing.T) {
	memory := storetest.NewMemory()
	store := &lookUps{Store: memory}
	finder := lookup.Finder{Log: continuo.NewLog(memory, continuo.LogOptions{}), Store: store, Common: &lookup.CommonTerms{}}
	conversation, err := finder.Log.Create(t.Context(), continuo.Conversation{ProjectID: "p", ActiveMode: continuo.ModeChat})
	if err != nil {
		t.Fatal(err)
	}
	entries := make([]continuo.Entry, 100)
	for i := range entries {
		entries[i] = continuo.Entry{Role: continuo.User, Content: continuo.Text("deploy it")}
	}
	if _, err := finder.Log.Append(t.Context(), conversation.ID, entries, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := (index.Indexer{Log: finder.Log, Store: store}).Run(t.Context(), index.Scope{ConversationID: conversation.ID}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	asked := func() int {
		if conversation, err = finder.Log.Conversation(t.Context(), conversation.ID); err != nil {
			t.Fatal(err)
		}
		store.asked = 0
		found, err := finder.Find(t.Context(), lookup.Request{
			Text: "deploy it", Conversation: conversation, LeastWeight: 5 << 16, May: func(int64) bool { return true },
		})
		if err != nil || len(found) > 0 {
			t.Fatalf("found %d entries: %v", len(found), err)
		}
		return store.asked
	}
	got := []int{asked(), asked()}
	if _, err := finder.Log.Redact(t.Context(), conversation, 3, 3, ""); err != nil {
		t.Fatal(err)
	}
	got = append(got, asked(), asked())
	if !finder.IsCommon(conversation, "deploy it", 5<<16) || finder.IsCommon(conversation, "deploy the harbour", 5<<16) || finder.IsCommon(conversation, "deploy it", 1) {
		t.Error("it is not known which texts are common")
	}
	if want := []int{1, 0, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("the index was asked %v times, want %v", got, want)
	}
}
