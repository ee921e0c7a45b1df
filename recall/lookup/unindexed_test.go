package lookup_test

import (
	"fmt"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/store/storetest"
)

// TestALongImportIsFoundBeforeItIsIndexed: the background index has seen nothing of it yet.
func TestALongImportIsFoundBeforeItIsIndexed(t *testing.T) {
	const length = 5_000
	store := storetest.NewMemory()
	finder := lookup.Finder{Log: continuo.NewLog(store, continuo.LogOptions{}), Store: store, Common: &lookup.CommonTerms{}}
	imported := func(secret string) continuo.Conversation {
		entries := make([]continuo.Entry, length)
		for i := range entries {
			entries[i] = continuo.Entry{Role: continuo.User, Content: continuo.Text(fmt.Sprintf("Step %d is done, the next one follows.", i))}
		}
		entries[100].Content = continuo.Text("The password of the harbour gate in Lisbon is " + secret + ".")
		c, err := finder.Log.Import(t.Context(), continuo.Conversation{ProjectID: "p", UserID: "ada"}, entries)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	may := func(seq int64) bool { return seq <= length-80 } // the window shows the others
	for _, scope := range []lookup.Scope{lookup.Conversation, lookup.User} {
		t.Run(string(scope), func(t *testing.T) {
			c := imported("marmalade")
			if scope == lookup.User {
				var err error
				if c, err = finder.Log.Create(t.Context(), continuo.Conversation{ProjectID: "p", UserID: "ada"}); err != nil {
					t.Fatal(err)
				}
			}
			found, err := finder.Find(t.Context(), lookup.Request{
				Text: "What is the password of the harbour gate in Lisbon?", Conversation: c, Scope: scope, Candidates: 300, LeastWeight: 5 << 16, May: may,
			})
			if err != nil || len(found) == 0 || found[0].Entry.Seq != 101 {
				t.Fatalf("found %d, %v", len(found), err)
			}
		})
	}
}
