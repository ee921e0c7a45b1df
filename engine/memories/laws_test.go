package memories_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/store/storetest"
)

// stores are the engines that every law holds for.
func stores(t *testing.T, test func(t *testing.T, store maintenance.Store)) {
	t.Helper()
	for name, open := range map[string]func(t *testing.T) (maintenance.Store, error){
		"memory": func(*testing.T) (maintenance.Store, error) { return storetest.NewMemory(), nil },
		"sqlite": func(t *testing.T) (maintenance.Store, error) {
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), sqlite.Options{})
		},
		"postgres": func(t *testing.T) (maintenance.Store, error) {
			return postgres.Open(t.Context(), pgtest.Start(t, pgtest.Options{}).Database(t), postgres.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			test(t, store)
		})
	}
}

func newMemories(store maintenance.Store) (*continuo.Log, *memories.Memories) {
	log := continuo.NewLog(store, continuo.LogOptions{})
	return log, memories.New(log, nil, nil, nil, memories.Options{Enabled: true, Logger: slog.New(slog.DiscardHandler)})
}

var scope = continuo.Scope{ProjectID: "p"}

// said is one statement, recognisable by a word that occurs nowhere else.
type said struct {
	word         string
	user         string // whose memory may have it
	conversation string // in which it was written; "" for one that was stated to the memory
	seq          int64
}

// world is a store under random operations, and what must hold in it.
type world struct {
	t        *testing.T
	store    maintenance.Store
	log      *continuo.Log
	memories *memories.Memories
	random   *rand.Rand
	known    map[string]said // that memories may have, by word
	gone     []string        // words that must not be anywhere in a memory
	erased   []string        // words that must not be anywhere in the store
	open     []continuo.Conversation
	exports  []exported // of memories that were not removed since
	next     int
}

// exported is a memory as it was at some time.
type exported struct {
	user string
	data []byte
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil && !errors.Is(err, continuo.ErrNotFound) {
		w.t.Fatal(err)
	}
}

func (w *world) user() string { return []string{"ada", "bo", ""}[w.random.IntN(3)] }

func (w *world) say(user string) (word, text string) {
	w.next++
	word = fmt.Sprintf("zq%dx", w.next)
	return word, []string{"I live in %s.", "Always mention %s in answers.", "I prefer %s to anything.", "My favourite town is %s."}[w.random.IntN(4)]
}

func (w *world) append() {
	if len(w.open) == 0 || w.random.IntN(4) == 0 {
		created, err := w.log.Create(w.t.Context(), continuo.Conversation{ProjectID: "p", UserID: w.user()})
		w.check(err)
		w.open = append(w.open, created)
	}
	c := w.open[w.random.IntN(len(w.open))]
	word, form := w.say(c.UserID)
	entry := continuo.Entry{Role: continuo.User, Content: continuo.Text(fmt.Sprintf(form, word)), NoMemory: w.random.IntN(6) == 0}
	stored, err := w.log.Append(w.t.Context(), c.ID, []continuo.Entry{entry}, continuo.AppendOptions{})
	w.check(err)
	if entry.NoMemory {
		w.gone = append(w.gone, word)
		return
	}
	w.known[word] = said{word, c.UserID, c.ID, stored[0].Seq}
}

func (w *world) fork() {
	if len(w.open) == 0 {
		return
	}
	fork, err := w.log.Fork(w.t.Context(), w.open[w.random.IntN(len(w.open))].ID, 0, continuo.Conversation{UserID: w.user()})
	w.check(err)
	w.open = append(w.open, fork)
}

// remove forgets the words of a conversation's entries, of one seq or of all.
func (w *world) remove(conversation string, seq int64, erased bool) {
	for word, s := range w.known {
		if s.conversation == conversation && (seq == 0 || s.seq == seq) {
			delete(w.known, word)
			w.gone = append(w.gone, word)
			if erased {
				w.erased = append(w.erased, word)
			}
		}
	}
}

func (w *world) redact() {
	if len(w.open) == 0 {
		return
	}
	c, err := w.log.Conversation(w.t.Context(), w.open[w.random.IntN(len(w.open))].ID)
	w.check(err)
	if c.LastSeq == 0 {
		return
	}
	seq := 1 + w.random.Int64N(c.LastSeq)
	redacted, err := w.log.Redact(w.t.Context(), c, seq, seq, "")
	w.check(err)
	for _, e := range redacted {
		if e.Fact == nil && e.Profile == nil {
			w.remove(e.ConversationID, e.Seq, true)
		}
	}
}

func (w *world) delete() {
	if len(w.open) == 0 {
		return
	}
	at := w.random.IntN(len(w.open))
	w.check(w.log.Delete(w.t.Context(), w.open[at].ID))
	w.remove(w.open[at].ID, 0, false)
	w.open = slices.Delete(w.open, at, at+1)
}

func (w *world) giveAway() {
	if len(w.open) == 0 {
		return
	}
	at, user := w.random.IntN(len(w.open)), w.user()
	before := w.open[at]
	changed, err := w.log.Update(w.t.Context(), before.ID, continuo.ConversationChange{UserID: &user})
	w.check(err)
	w.open[at] = changed
	for word, s := range w.known { // what was not read for the old user is read for the new one
		if s.conversation == before.ID {
			s.user = user
			w.known[word] = s
		}
	}
}

func (w *world) forget() {
	user := w.user()
	facts := w.list(user)
	if len(facts) == 0 {
		return
	}
	fact := facts[w.random.IntN(len(facts))]
	sources := w.random.IntN(2) == 0
	w.check(w.memories.Forget(w.t.Context(), scope, memories.Owner{UserID: user}, fact.ID, sources))
	for word, s := range w.known {
		if strings.Contains(fact.Text, word) {
			delete(w.known, word)
			w.gone = append(w.gone, word)
			if sources || s.conversation == "" {
				w.erased = append(w.erased, word)
			}
		}
	}
}

func (w *world) forgetAll() {
	user := w.user()
	w.check(w.memories.ForgetAll(w.t.Context(), scope, memories.Owner{UserID: user}, false))
	w.exports = slices.DeleteFunc(w.exports, func(e exported) bool { return e.user == user })
	for word, s := range w.known {
		if s.user == user {
			delete(w.known, word)
			w.gone = append(w.gone, word)
		}
	}
}

func (w *world) remember() {
	user := w.user()
	word, form := w.say(user)
	_, err := w.memories.Remember(w.t.Context(), scope, memories.Statement{Owner: memories.Owner{UserID: user}, Text: fmt.Sprintf(form, word)})
	w.check(err)
	w.known[word] = said{word: word, user: user}
}

func (w *world) extract() {
	w.check(w.memories.Extract(w.t.Context(), scope, memories.Owner{UserID: w.user()}))
}

func (w *world) export() {
	user := w.user()
	export, err := w.memories.Export(w.t.Context(), scope, memories.Owner{UserID: user})
	w.check(err)
	data, err := json.Marshal(export)
	w.check(err)
	w.exports = append(w.exports, exported{user, data})
}

// importExport takes an older state of a memory in, which knows what was removed since; or another user's, of which it takes nothing.
func (w *world) importExport() {
	if len(w.exports) == 0 {
		return
	}
	from, user := w.exports[w.random.IntN(len(w.exports))], w.user()
	file, err := memories.ReadFile(from.data)
	w.check(err)
	done, err := w.memories.Import(w.t.Context(), scope, memories.Owner{UserID: user}, file, false)
	if from.user != user {
		if !errors.Is(err, continuo.ErrInvalid) {
			w.t.Fatalf("the memory of %q took that of %q in: %+v, %v", user, from.user, done, err)
		}
		return
	}
	w.check(err)
	again, err := w.memories.Import(w.t.Context(), scope, memories.Owner{UserID: user}, file, false)
	w.check(err)
	if again.Added > 0 || again.Known != done.Added+done.Known {
		w.t.Fatalf("a second import says %+v, the first %+v", again, done)
	}
}

func (w *world) list(user string) []memories.Fact {
	facts, err := w.memories.List(w.t.Context(), scope, memories.Query{Owner: memories.Owner{UserID: user}, All: true})
	w.check(err)
	return facts
}

// holds checks the laws.
func (w *world) holds() {
	w.t.Helper()
	for _, user := range []string{"ada", "bo", ""} {
		export, err := w.memories.Export(w.t.Context(), scope, memories.Owner{UserID: user})
		w.check(err)
		data, _ := json.Marshal(export)
		for _, word := range w.gone {
			if strings.Contains(string(data), word) {
				w.t.Fatalf("the memory of %q still knows %s: %s", user, word, data)
			}
		}
		for word, s := range w.known {
			if s.user != user && strings.Contains(string(data), word) {
				w.t.Fatalf("the memory of %q knows %s, which is of %q", user, word, s.user)
			}
		}
		for _, fact := range export.Facts {
			if len(fact.Sources) == 0 {
				w.t.Fatalf("a fact has no source: %+v", fact)
			}
		}
	}
	w.checkRecords()
}

// checkRecords looks for words in everything that the store keeps.
func (w *world) checkRecords() {
	w.t.Helper()
	ids, err := w.store.ConversationIDs(w.t.Context(), "", 1000)
	w.check(err)
	for _, id := range ids {
		records, err := w.store.Records(w.t.Context(), id, maintenance.RecordPosition{}, 10_000)
		w.check(err)
		data, err := json.Marshal(records)
		w.check(err)
		words := w.erased
		if strings.Contains(string(data), `"kind":"memory"`) {
			words = w.gone
		}
		for _, word := range words {
			if strings.Contains(string(data), word) {
				w.t.Fatalf("the store still has %s: %s", word, data)
			}
		}
	}
}

// TestMemoriesUnderRandomOperations says, forks, redacts, deletes, gives away, forgets and extracts at random. No memory
// ever has a word of another user or one that was removed, and what is forgotten is nowhere in the store.
func TestMemoriesUnderRandomOperations(t *testing.T) {
	stores(t, func(t *testing.T, store maintenance.Store) {
		log, m := newMemories(store)
		for seed := range uint64(3) {
			w := &world{t: t, store: store, log: log, memories: m, random: rand.New(rand.NewPCG(seed, 1)), known: map[string]said{}, next: int(seed) * 1000}
			operations := []func(){w.append, w.append, w.append, w.append, w.extract, w.extract, w.fork, w.redact, w.delete, w.giveAway, w.forget, w.remember, w.forgetAll, w.export, w.importExport}
			for range 80 {
				operations[w.random.IntN(len(operations))]()
				if w.random.IntN(4) == 0 {
					w.holds()
				}
			}
			w.holds()
		}
	})
}
