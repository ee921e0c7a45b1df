package continuo_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/store/storetest"
	"pgregory.net/rapid"
)

// cachedLogs are logs over one store, as of several processes, and one that keeps nothing in memory.
type cachedLogs struct {
	store    maintenance.Store
	logs     []*continuo.Log
	plain    *continuo.Log
	made     []string
	seen     map[string][]continuo.Conversation // values as readers may still have them
	archives map[string][]maintenance.Record
	backups  map[string][]maintenance.Record
}

// TestTheCacheIsInvisible runs random operations on logs that share a store, and expects that each reads what a log
// without a cache reads. In SQLite, each has the file open for itself, as processes have.
func TestTheCacheIsInvisible(t *testing.T) {
	limits := []int64{0, 200_000, 64 << 10}
	t.Run("memory", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			store := storetest.NewMemory()
			checkCaches(rt, store, []maintenance.Store{store, store, store}, limits)
		})
	})
	t.Run("sqlite", func(t *testing.T) {
		path, stores := filepath.Join(t.TempDir(), "continuo.db"), make([]maintenance.Store, len(limits)+1)
		for i := range stores {
			store, err := sqlite.Open(t.Context(), path, sqlite.Options{Synchronous: sqlite.Normal})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			stores[i] = store
		}
		rapid.Check(t, func(rt *rapid.T) { checkCaches(rt, stores[0], stores[1:], limits) })
	})
}

// checkCaches makes a log for each limit of a cache, over stores that have the same conversations.
func checkCaches(rt *rapid.T, store maintenance.Store, stores []maintenance.Store, limits []int64) {
	c := &cachedLogs{
		store: store, plain: continuo.NewLog(store, continuo.LogOptions{CacheBytes: -1}),
		seen: map[string][]continuo.Conversation{}, archives: map[string][]maintenance.Record{}, backups: map[string][]maintenance.Record{},
	}
	for i, limit := range limits {
		c.logs = append(c.logs, continuo.NewLog(stores[i], continuo.LogOptions{CacheBytes: limit}))
	}
	rt.Repeat(map[string]func(*rapid.T){
		"create": c.create, "append": c.append, "fork": c.fork, "redact": c.redact, "delete": c.delete,
		"archive": c.archive, "restore": c.restore, "back up": c.backUp, "put back": c.putBack,
		"snapshot": c.snapshot, "": c.check,
	})
}

func (c *cachedLogs) log(rt *rapid.T) *continuo.Log { return rapid.SampledFrom(c.logs).Draw(rt, "log") }

// conversation reads the row of one that exists.
func (c *cachedLogs) conversation(rt *rapid.T) continuo.Conversation {
	if len(c.made) == 0 {
		rt.Skip("there is none yet")
	}
	found, err := c.plain.Conversation(context.Background(), rapid.SampledFrom(c.made).Draw(rt, "conversation"))
	if err != nil {
		rt.Skip("it is deleted")
	}
	return found
}

func someMessages(rt *rapid.T) []continuo.Entry {
	entries := make([]continuo.Entry, rapid.IntRange(1, 12).Draw(rt, "entries"))
	for i := range entries {
		text := strings.Repeat("word ", rapid.SampledFrom([]int{1, 1, 10, 2000, 20_000}).Draw(rt, "words"))
		entries[i] = continuo.Entry{Role: rapid.SampledFrom([]continuo.Role{continuo.User, continuo.Assistant}).Draw(rt, "role"), Content: continuo.Text(text)}
	}
	return entries
}

func (c *cachedLogs) create(rt *rapid.T) {
	if len(c.made) > 2 {
		rt.Skip("the others are to be read more often")
	}
	made, err := c.log(rt).Import(context.Background(), continuo.Conversation{}, someMessages(rt))
	if err != nil {
		rt.Fatal(err)
	}
	c.made = append(c.made, made.ID)
}

func (c *cachedLogs) append(rt *rapid.T) {
	_, err := c.log(rt).Append(context.Background(), c.conversation(rt).ID, someMessages(rt), continuo.AppendOptions{})
	if err != nil && !errors.Is(err, continuo.ErrArchived) {
		rt.Fatal(err)
	}
}

func (c *cachedLogs) fork(rt *rapid.T) {
	parent := c.conversation(rt)
	if len(c.made) > 5 {
		rt.Skip("the others are to be read more often")
	}
	made, err := c.log(rt).Fork(context.Background(), parent.ID, rapid.Int64Range(0, parent.LastSeq).Draw(rt, "at"), continuo.Conversation{})
	if err == nil {
		c.made = append(c.made, made.ID)
	} else if !errors.Is(err, continuo.ErrArchived) {
		rt.Fatal(err)
	}
}

func (c *cachedLogs) redact(rt *rapid.T) {
	conversation := c.conversation(rt)
	from := rapid.Int64Range(1, max(conversation.LastSeq, 1)).Draw(rt, "from")
	to := min(from+rapid.Int64Range(0, 3).Draw(rt, "more"), conversation.LastSeq)
	_, err := c.log(rt).Redact(context.Background(), conversation, from, to, "")
	if err != nil && !errors.Is(err, continuo.ErrArchived) && conversation.LastSeq > 0 {
		rt.Fatal(err)
	}
}

func (c *cachedLogs) delete(rt *rapid.T) {
	if err := c.log(rt).Delete(context.Background(), c.conversation(rt).ID); err != nil {
		rt.Fatal(err)
	}
}

func (c *cachedLogs) records(rt *rapid.T, id string) []maintenance.Record {
	records, err := c.store.Records(context.Background(), id, maintenance.RecordPosition{}, 10_000)
	if err != nil {
		rt.Fatal(err)
	}
	return records
}

func (c *cachedLogs) archive(rt *rapid.T) {
	conversation := c.conversation(rt)
	records := c.records(rt, conversation.ID)
	if c.store.Archive(context.Background(), conversation, conversation.UpdatedAt) == nil {
		c.archives[conversation.ID] = records[1:]
	}
}

func (c *cachedLogs) restore(rt *rapid.T) {
	conversation := c.conversation(rt)
	if conversation.ArchivedAt.IsZero() {
		rt.Skip("it is not archived")
	}
	if err := c.store.PutArchived(context.Background(), conversation.ID, conversation.ArchivedAt, c.archives[conversation.ID]); err != nil {
		rt.Fatal(err)
	}
	if err := c.store.Restore(context.Background(), conversation.ID); err != nil {
		rt.Fatal(err)
	}
}

// backUp copies the records of a conversation, as they may be put back after it has changed or is gone.
func (c *cachedLogs) backUp(rt *rapid.T) {
	if conversation := c.conversation(rt); conversation.ArchivedAt.IsZero() && len(conversation.Lineage) == 0 {
		c.backups[conversation.ID] = c.records(rt, conversation.ID)
	}
}

func (c *cachedLogs) putBack(rt *rapid.T) {
	if len(c.backups) == 0 {
		rt.Skip("there is none yet")
	}
	ids := []string{}
	for id := range c.backups {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	id := rapid.SampledFrom(ids).Draw(rt, "backup")
	if now, err := c.plain.Conversation(context.Background(), id); err == nil {
		backup := c.backups[id][0].Conversation
		if !now.ArchivedAt.IsZero() || now.LastSeq > backup.LastSeq {
			rt.Skip("it has more entries now")
		}
	} else if c.isInherited(id) {
		rt.Skip("forks keep entries of the deleted conversation")
	}
	if err := c.store.PutRecords(context.Background(), id, c.backups[id]); err != nil {
		rt.Fatal(err)
	}
}

func (c *cachedLogs) isInherited(id string) bool {
	return slices.ContainsFunc(c.made, func(made string) bool {
		fork, err := c.plain.Conversation(context.Background(), made)
		return err == nil && slices.ContainsFunc(fork.Lineage, func(s continuo.Segment) bool { return s.ConversationID == id })
	})
}

// check reads with one of the logs after each operation.
func (c *cachedLogs) check(rt *rapid.T) {
	if len(c.made) > 0 {
		c.read(rt)
	}
}

// read compares what a log and one without a cache read, with a new value of the conversation or one that was read before
// other changes.
func (c *cachedLogs) read(rt *rapid.T) {
	id := rapid.SampledFrom(c.made).Draw(rt, "read conversation")
	now, err := c.plain.Conversation(context.Background(), id)
	exists := err == nil
	if exists {
		c.seen[id] = append(c.seen[id], now)
	}
	if len(c.seen[id]) == 0 {
		return // it was deleted before it was seen
	}
	age := min(rapid.SampledFrom([]int{0, 0, 0, 1, 2, 5}).Draw(rt, "age"), len(c.seen[id])-1)
	conversation := c.seen[id][len(c.seen[id])-1-age]
	r := continuo.Range{
		From: max(rapid.Int64Range(-conversation.LastSeq, conversation.LastSeq).Draw(rt, "from"), 0), Backward: rapid.Bool().Draw(rt, "backward"),
		Expect: rapid.SampledFrom([]int{0, 1, 30}).Draw(rt, "expect"), Keeps: rapid.Bool().Draw(rt, "keeps"),
	}
	if rapid.IntRange(0, 3).Draw(rt, "to?") == 0 {
		r.To = rapid.Int64Range(0, conversation.LastSeq).Draw(rt, "to")
	}
	most := rapid.SampledFrom([]int{1, 3, 1000}).Draw(rt, "at most")
	log := c.log(rt)
	entries := log.Read(context.Background(), conversation, r)
	if exists && age == 0 && rapid.Bool().Draw(rt, "by id") {
		entries = log.Entries(context.Background(), id, r)
	}
	got, gotErr := taken(entries, most)
	want, wantErr := take(c.plain, conversation, r, most)
	if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
		rt.Fatalf("%+v of %s: got %d entries, %v; want %d, %v\n%+v\n%+v", r, conversation.ID, len(got), gotErr, len(want), wantErr, got, want)
	}
}

func take(log *continuo.Log, conversation continuo.Conversation, r continuo.Range, most int) ([]continuo.Entry, error) {
	return taken(log.Read(context.Background(), conversation, r), most)
}

func taken(entries iter.Seq2[continuo.Entry, error], most int) (taken []continuo.Entry, err error) {
	for entry, err := range entries {
		if err != nil {
			return taken, err
		}
		if taken = append(taken, entry); len(taken) == most {
			break
		}
	}
	return taken, nil
}

func (c *cachedLogs) snapshot(rt *rapid.T) {
	conversation := c.conversation(rt)
	limit := rapid.IntRange(1, 20).Draw(rt, "limit")
	log := c.log(rt)
	snapshot, gotErr := log.Snapshot(context.Background(), conversation, limit)
	if rapid.Bool().Draw(rt, "by id") {
		snapshot, gotErr = log.Latest(context.Background(), conversation.ID, limit)
	}
	want, wantErr := c.plain.Snapshot(context.Background(), conversation, limit)
	if (gotErr == nil) != (wantErr == nil) {
		rt.Fatalf("got %v, want %v", gotErr, wantErr)
	}
	if gotErr != nil {
		return
	}
	got := snapshot.Entries()
	if n := min(len(got), len(want.Entries())); !reflect.DeepEqual(got[len(got)-n:], want.Entries()[len(want.Entries())-n:]) {
		rt.Fatalf("got %+v, want %+v", got, want.Entries())
	}
	r := continuo.Range{Backward: rapid.Bool().Draw(rt, "backward")}
	all, err := take(c.plain, conversation, r, 1000)
	r.Snapshot = snapshot
	if shared, sharedErr := take(log, conversation, r, 1000); fmt.Sprint(sharedErr) != fmt.Sprint(err) || !reflect.DeepEqual(shared, all) {
		rt.Fatalf("with the snapshot: got %+v, %v, want %+v, %v", shared, sharedErr, all, err)
	}
}

// A value of a conversation that was read before another process redacted it does not bring back what was removed.
func TestARedactionOfAnotherProcessIsSeenWithAnOldValue(t *testing.T) {
	log, store, parent := longLog(t, 30, 0)
	other := continuo.NewLog(store.Store, continuo.LogOptions{})
	fork, err := log.Fork(t.Context(), parent.ID, 20, continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	for seq := int64(20); seq > 0; seq -= 19 { // in the middle of what the cache has, and its first entry
		for _, conversation := range []continuo.Conversation{parent, fork} {
			if _, err := take(log, conversation, continuo.Range{Backward: true, Expect: 30}, 30); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := other.Redact(t.Context(), parent, seq, seq, ""); err != nil {
			t.Fatal(err)
		}
		for _, conversation := range []continuo.Conversation{parent, fork} {
			one := continuo.Range{From: seq, To: seq}
			if got, err := take(log, conversation, one, 1); err != nil || got[0].Redacted == nil {
				t.Errorf("entry %d of %s: got %+v, %v", seq, conversation.ID, got, err)
			}
			snapshot, err := log.Snapshot(t.Context(), conversation, 30)
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range snapshot.Entries() {
				if entry.Seq == seq && entry.Redacted == nil {
					t.Errorf("the snapshot of %s has entry %d: %q", conversation.ID, seq, entry.Content)
				}
			}
		}
	}
}

func TestEntriesInUseAreNotFetchedAgain(t *testing.T) {
	log, store, conversation := longLog(t, 300, 0)
	fetched := func(what string, r continuo.Range, most int, want ...int) {
		t.Helper()
		store.pages = nil
		if taken, err := take(log, conversation, r, most); err != nil || len(taken) != most {
			t.Fatalf("%s: %d entries, %v", what, len(taken), err)
		}
		if !slices.Equal(store.pages, want) {
			t.Errorf("%s: fetched pages of %d, want %d", what, store.pages, want)
		}
	}
	fetched("the newest", continuo.Range{Backward: true, Expect: 76}, 80, 80)
	fetched("the newest again", continuo.Range{Backward: true, Expect: 80}, 80)
	fetched("the first", continuo.Range{}, 2, 4)
	fetched("the first again", continuo.Range{}, 2)
	fetched("older ones", continuo.Range{Backward: true, Expect: 80}, 84, 4)
	for range 2 {
		if _, err := log.Append(t.Context(), conversation.ID, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("more")}}, continuo.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	conversation.LastSeq += 2
	fetched("the newest after an append", continuo.Range{Backward: true, Expect: 80}, 80)
	if _, err := log.Redact(t.Context(), conversation, 250, 250, ""); err != nil {
		t.Fatal(err)
	}
	conversation, err := log.Conversation(t.Context(), conversation.ID)
	if err != nil {
		t.Fatal(err)
	}
	fetched("the newest after a redaction, which has read some", continuo.Range{Backward: true, Expect: 76}, 80, 54)
}

func TestPagesAreReported(t *testing.T) {
	reported := []bool{}
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{PageRead: func(fromMemory bool) { reported = append(reported, fromMemory) }})
	conversation, err := log.Import(t.Context(), continuo.Conversation{}, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("Hello")}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := take(log, conversation, continuo.Range{}, 1); err != nil {
			t.Fatal(err)
		}
	}
	if want := []bool{false, true}; !slices.Equal(reported, want) {
		t.Errorf("from memory: %v, want %v", reported, want)
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	store := &fetching{Store: storetest.NewMemory()}
	log := continuo.NewLog(store, continuo.LogOptions{CacheBytes: 1 << 20})
	for range 50 {
		entries := make([]continuo.Entry, 20)
		for i := range entries {
			entries[i] = continuo.Entry{Role: continuo.User, Content: continuo.Text(strings.Repeat("word ", 400))}
		}
		conversation, err := log.Import(t.Context(), continuo.Conversation{}, entries)
		if err == nil {
			_, err = take(log, conversation, continuo.Range{Backward: true, Expect: 20}, 20)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, want := log.CachedBytes(), int64(1<<20); got > want || got < want/2 {
		t.Errorf("the cache has %d bytes, its bound is %d", got, want)
	}
}

// Readers of one conversation share what is kept, while it grows.
func TestReadersAtOnceShareTheCache(t *testing.T) {
	log, _, conversation := longLog(t, 20, 0)
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for last := int64(0); last < 120; {
				now, err := log.Conversation(t.Context(), conversation.ID)
				if err != nil {
					t.Error(err)
					return
				}
				last = now.LastSeq
				want := last
				for entry, err := range log.Read(t.Context(), now, continuo.Range{Backward: true}) {
					if err != nil || entry.Seq != want || entry.Content.String() != fmt.Sprint("message ", want) {
						t.Errorf("got entry %d, %q, %v, want %d", entry.Seq, entry.Content.String(), err, want)
						return
					}
					want--
				}
			}
		})
	}
	for i := 21; i <= 120; i++ {
		if _, err := log.Append(t.Context(), conversation.ID, []continuo.Entry{{Role: continuo.User, Content: continuo.Text(fmt.Sprint("message ", i))}}, continuo.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	running.Wait()
}
