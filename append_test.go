package continuo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

func userEntry(text string) continuo.Entry {
	return continuo.Entry{Role: continuo.User, Content: continuo.Text(text)}
}

// twoLogs are two programs on one store, and a conversation with one entry, whose end the first one has in memory.
func twoLogs(t *testing.T) (a, b *continuo.Log, id string) {
	store := storetest.NewMemory()
	a, b = continuo.NewLog(store, continuo.LogOptions{}), continuo.NewLog(store, continuo.LogOptions{})
	c, err := a.Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, a, c.ID, continuo.AppendOptions{}, userEntry("one"))
	return a, b, c.ID
}

func mustAppend(t *testing.T, log *continuo.Log, id string, options continuo.AppendOptions, entries ...continuo.Entry) []continuo.Entry {
	t.Helper()
	stored, err := log.Append(t.Context(), id, entries, options)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// The end of a conversation that a program has in memory may be out of date: that is found out before anything is refused.
func TestAppendBesideAnotherProgram(t *testing.T) {
	call := continuo.Entry{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{continuo.FunctionCall("c1", "f", "{}")}}
	result := continuo.Entry{Role: continuo.Tool, ToolCallID: "c1", Content: continuo.Text("r")}
	t.Run("a key that the other has used", func(t *testing.T) {
		a, b, id := twoLogs(t)
		mustAppend(t, b, id, continuo.AppendOptions{Key: "k"}, userEntry("two"))
		if got := mustAppend(t, a, id, continuo.AppendOptions{Key: "k"}, userEntry("two")); got[0].Seq != 2 {
			t.Errorf("the entry is %d, want the other program's 2", got[0].Seq)
		}
	})
	t.Run("a seq that the other's entry has made right", func(t *testing.T) {
		a, b, id := twoLogs(t)
		mustAppend(t, b, id, continuo.AppendOptions{}, userEntry("two"))
		mustAppend(t, a, id, continuo.AppendOptions{ExpectSeq: 3}, userEntry("three"))
	})
	t.Run("a call that the other has made", func(t *testing.T) {
		a, b, id := twoLogs(t)
		mustAppend(t, b, id, continuo.AppendOptions{}, call)
		mustAppend(t, a, id, continuo.AppendOptions{}, result)
	})
	t.Run("a call that the other has answered", func(t *testing.T) {
		a, b, id := twoLogs(t)
		mustAppend(t, a, id, continuo.AppendOptions{}, call)
		mustAppend(t, b, id, continuo.AppendOptions{}, result)
		mustAppend(t, a, id, continuo.AppendOptions{}, userEntry("next"))
	})
}

// Appends of three programs to one conversation at once: each entry has the seq that was acknowledged.
func TestAppendsOfThreePrograms(t *testing.T) {
	store := storetest.NewMemory()
	var logs []*continuo.Log
	for range 3 {
		logs = append(logs, continuo.NewLog(store, continuo.LogOptions{}))
	}
	c, err := logs[0].Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		acked = map[string]int64{}
	)
	for w := range 12 {
		all.Go(func() {
			for i := range 30 {
				text := fmt.Sprintf("%d-%d", w, i)
				got, err := logs[w%3].Append(t.Context(), c.ID, []continuo.Entry{userEntry(text)}, continuo.AppendOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked[text] = got[0].Seq
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if c, err = logs[0].Conversation(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	for e, err := range logs[0].Read(t.Context(), c, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if text := e.Content.String(); acked[text] != e.Seq {
			t.Errorf("%q is entry %d, and was acknowledged as %d", text, e.Seq, acked[text])
		}
		delete(acked, e.Content.String())
	}
	if len(acked) > 0 {
		t.Errorf("acknowledged and not in the log: %v", acked)
	}
}

// overtaken is a store to which another program appends first, before the first races batches.
type overtaken struct {
	continuo.Store
	races int
	late  int
}

func (s *overtaken) Append(ctx context.Context, batch continuo.Batch) error {
	if s.races > 0 {
		s.races--
		other := continuo.NewLog(s.Store, continuo.LogOptions{})
		if _, err := other.Append(ctx, batch.ConversationID, []continuo.Entry{userEntry("faster")}, continuo.AppendOptions{}); err != nil {
			return err
		}
	}
	err := s.Store.Append(ctx, batch)
	if errors.As(err, new(*continuo.ConflictError)) {
		s.late++
	}
	return err
}

// A program that is always slower than others keeps trying: no caller asked for a certain seq.
func TestAnAppendLosesAsManyRacesAsThereAre(t *testing.T) {
	store := &overtaken{Store: storetest.NewMemory()}
	log := continuo.NewLog(store, continuo.LogOptions{})
	c, err := log.Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	store.races = 100
	if got := mustAppend(t, log, c.ID, continuo.AppendOptions{}, userEntry("slow")); got[0].Seq != 101 || store.late != 100 {
		t.Errorf("entry %d after %d races", got[0].Seq, store.late)
	}
	store.races = 100
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := log.Append(ctx, c.ID, []continuo.Entry{userEntry("gone")}, continuo.AppendOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that has left: %v", err)
	}
}

// stuck is a store that finds every batch too late, although nothing was appended: it is damaged.
type stuck struct{ continuo.Store }

func (s stuck) Append(_ context.Context, batch continuo.Batch) error {
	return &continuo.ConflictError{Want: batch.After + 1, Have: batch.After + 2}
}

func TestAnAppendToADamagedStoreEnds(t *testing.T) {
	log := continuo.NewLog(stuck{storetest.NewMemory()}, continuo.LogOptions{})
	c, err := log.Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), c.ID, []continuo.Entry{userEntry("one")}, continuo.AppendOptions{}); !errors.As(err, new(*continuo.ConflictError)) {
		t.Errorf("%v", err)
	}
}

func TestAForkWithMetadataThatIsNoJSON(t *testing.T) {
	log, id := sqliteLog(t)
	_, err := log.Fork(t.Context(), id, 0, continuo.Conversation{Metadata: json.RawMessage(`nonsense`)})
	if !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// lookingUp counts the look-ups of output refs.
type lookingUp struct {
	continuo.Store
	count int
}

func (s *lookingUp) Entries(ctx context.Context, id string, query continuo.EntryQuery) ([]continuo.Entry, error) {
	if query.OutputRef != "" {
		s.count++
	}
	return s.Store.Entries(ctx, id, query)
}

// TestOutputRefsAreTheirOwn appends results of calls whose ids are used again, through two logs over one store: each has
// a ref of its own. A log that has made a conversation knows its refs without a look-up, but for those whose hashes of 32
// bits are equal: two of 4 000 are in one run of 500, with another seed in each.
func TestOutputRefsAreTheirOwn(t *testing.T) {
	store := &lookingUp{Store: storetest.NewMemory()}
	first, second := continuo.NewLog(store, continuo.LogOptions{}), continuo.NewLog(store, continuo.LogOptions{})
	c, err := first.Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, first, c.ID, continuo.AppendOptions{}, continuo.Entry{Role: continuo.User, Content: continuo.Text("go")})
	taken := map[string]bool{}
	call := func(log *continuo.Log, ids ...string) {
		t.Helper()
		calls, results := continuo.Entry{Role: continuo.Assistant}, []continuo.Entry{}
		for _, id := range ids {
			calls.ToolCalls = append(calls.ToolCalls, continuo.FunctionCall(id, "f", "{}"))
			results = append(results, continuo.Entry{Role: continuo.Tool, ToolCallID: id, Content: continuo.Text("done")})
		}
		mustAppend(t, log, c.ID, continuo.AppendOptions{}, calls)
		for _, stored := range mustAppend(t, log, c.ID, continuo.AppendOptions{}, results...) {
			if stored.OutputRef == "" || taken[stored.OutputRef] {
				t.Errorf("the ref of %s is %q, which is empty or another entry's", stored.ToolCallID, stored.OutputRef)
			}
			taken[stored.OutputRef] = true
		}
	}
	for i := range 5000 { // more than are remembered
		call(first, fmt.Sprintf("call_%d", i))
		if i == 4000 && store.count > 5 {
			t.Errorf("%d refs were looked up although none could be taken", store.count)
		}
	}
	call(first, "call_1", "call/1", "call_3")
	call(second, "call_1", "call_4999", "other")
	call(first, "other", "call_3")
	for _, ref := range []string{"call_1", "call_1-", "other-"} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(taken)), func(have string) bool {
			return strings.HasPrefix(have, "@state/logs/tool-results/"+ref)
		}) {
			t.Errorf("no ref begins with %s", ref)
		}
	}
}
