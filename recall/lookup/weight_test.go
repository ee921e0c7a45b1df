package lookup_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
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
	finder := lookup.Finder{Log: continuo.NewLog(store, continuo.LogOptions{}), Store: store}
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
