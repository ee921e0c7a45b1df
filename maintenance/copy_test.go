package maintenance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func openDatabase(t *testing.T) maintenance.Store {
	t.Helper()
	store, err := postgres.Open(t.Context(), pgtest.Shared(t).Database(t), postgres.Options{Partitions: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func openFile(t *testing.T) maintenance.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "c.db"), sqlite.Options{Synchronous: sqlite.Normal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// furnished is a store with everything in it that there can be.
func furnished(t *testing.T, store maintenance.Store) *fixture {
	p := newFixture(t, store)
	p.must(store.CreateProject(t.Context(), auth.Project{ID: "acme", CreatedAt: time.Unix(1, 5).UTC()}))
	key := auth.Key{ID: "k1", ProjectID: "acme", Name: "n", Hash: "h", CreatedAt: time.Unix(2, 7).UTC(), ExpiresAt: time.Unix(1e9, 0).UTC()}
	p.must(store.CreateKey(t.Context(), key))
	key.ID = "k2"
	p.must(store.CreateKey(t.Context(), key))
	_, err := store.RevokeKey(t.Context(), "k2", time.Unix(3, 0).UTC())
	p.must(err)
	_, err = p.log.PutEnvelope(t.Context(), continuo.Envelope{Model: "m", System: []string{"s"}})
	p.must(err)

	plain := p.addConversation(300)
	p.turn(plain, "turn_1", true)
	p.turn(plain, "turn_2", false)
	parent := p.addConversation(2)
	fork := p.fork(parent.ID, 4)
	p.fork(fork.ID, 5)
	p.must(p.log.Delete(t.Context(), parent.ID)) // stays for its forks
	archived := p.addConversation(1)
	_, err = p.archivist().Archive(t.Context(), archived.ID)
	p.must(err)
	_, err = p.log.Redact(t.Context(), plain, 5, 6, "wish")
	if err != nil && !strings.Contains(err.Error(), "busy") {
		t.Fatal(err)
	}
	p.must(p.log.Delete(t.Context(), p.addConversation(1).ID))
	return p
}

// everything is all that a store keeps.
func (p *fixture) everything() map[string]string {
	p.Helper()
	all := map[string]string{}
	ids, err := p.store.ConversationIDs(p.Context(), "", 1000)
	p.must(err)
	for _, id := range ids {
		for i, record := range p.kept(id) {
			if record.Turn != nil {
				record.Turn.LeaseUntil, record.Turn.LeaseExpired = time.Time{}, false
			}
			text, err := json.Marshal(record)
			p.must(err)
			all[fmt.Sprint(id, " ", i)] = string(text)
		}
	}
	hashes, err := p.store.BlobHashes(p.Context(), "", 1000)
	p.must(err)
	keys, err := p.store.Keys(p.Context(), "")
	p.must(err)
	projects, err := p.store.Projects(p.Context())
	p.must(err)
	all["rest"] = fmt.Sprintf("%+v %+v %+v", hashes, keys, projects)
	return all
}

func same(t *testing.T, from, to *fixture) {
	t.Helper()
	a, b := from.everything(), to.everything()
	for key, text := range a {
		if b[key] != text {
			t.Errorf("%s:\n%s\nbecame\n%s", key, text, b[key])
		}
	}
	if len(a) != len(b) {
		t.Errorf("%d records became %d", len(a), len(b))
	}
}

// TestACopyHasEverything copies there and back, and again after changes of all kinds.
func TestACopyHasEverything(t *testing.T) {
	for name, open := range map[string]func(*testing.T) maintenance.Store{
		"memory to file": openFile,
		"to memory":      func(*testing.T) maintenance.Store { return storetest.NewMemory() },
	} {
		t.Run(name, func(t *testing.T) { copiesEverything(t, storetest.NewMemory(), open(t)) })
	}
	t.Run("file to memory", func(t *testing.T) { copiesEverything(t, openFile(t), storetest.NewMemory()) })
	t.Run("file to database", func(t *testing.T) { copiesEverything(t, openFile(t), openDatabase(t)) })
	t.Run("database to file", func(t *testing.T) { copiesEverything(t, openDatabase(t), openFile(t)) })
}

func copiesEverything(t *testing.T, from, to maintenance.Store) {
	source, target := furnished(t, from), newFixture(t, to)
	var mu sync.Mutex
	last := maintenance.Progress{}
	copier := maintenance.Copier{From: from, To: to, Progress: func(p maintenance.Progress) {
		mu.Lock()
		defer mu.Unlock()
		last = p
	}}
	done, err := copier.Copy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if done.FromSHA256 != done.ToSHA256 || done.Written == 0 || done.Passes != 2 || last.Conversations != last.Total || last.Total != done.Conversations {
		t.Errorf("%+v, progress %+v", done, last)
	}
	same(t, source, target)

	again, err := copier.Copy(t.Context())
	if err != nil || again.Written != 0 || again.Passes != 1 || again.ToSHA256 != done.ToSHA256 {
		t.Errorf("a second copy: %+v, %v", again, err)
	}
	if verified, err := copier.Verify(t.Context()); err != nil || verified.FromSHA256 != done.FromSHA256 {
		t.Errorf("verify: %+v, %v", verified, err)
	}

	source.change()
	if _, err := copier.Verify(t.Context()); err == nil {
		t.Error("the stores differ, and verify does not say so")
	}
	if _, err := copier.Copy(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, source, target)
}

// change changes each kind of thing.
func (p *fixture) change() {
	p.Helper()
	ids, err := p.store.ConversationIDs(p.Context(), "", 1000)
	p.must(err)
	title := "another title"
	for i, id := range ids {
		conversation, err := p.log.Conversation(p.Context(), id)
		if err != nil {
			continue // a deleted one that forks begin with
		}
		if !conversation.ArchivedAt.IsZero() {
			_, err := p.archivist().Restore(p.Context(), id)
			p.must(err)
			continue
		}
		switch i % 3 {
		case 0:
			_, err = p.log.Append(p.Context(), id, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("new")}}, continuo.AppendOptions{Key: "new"})
		case 1:
			_, err = p.log.Update(p.Context(), id, continuo.ConversationChange{Title: &title})
		case 2:
			err = p.log.Delete(p.Context(), id)
		}
		p.must(err)
	}
	_, err = p.archivist().Archive(p.Context(), p.addConversation(9).ID)
	p.must(err)
	p.addConversation(1)
}

// stopping is a store that fails after some writes.
type stopping struct {
	maintenance.Store
	left int
}

func (s *stopping) PutRecords(ctx context.Context, id string, records []maintenance.Record) error {
	if s.left--; s.left < 0 {
		return context.DeadlineExceeded
	}
	return s.Store.PutRecords(ctx, id, records)
}

// TestAStoppedCopyContinues stops a copy after every number of writes and then lets it finish.
func TestAStoppedCopyContinues(t *testing.T) {
	source := furnished(t, storetest.NewMemory())
	for stop := range 6 {
		target := newFixture(t, storetest.NewMemory())
		broken := maintenance.Copier{From: source.store, To: &stopping{target.store, stop}, Workers: 1}
		if _, err := broken.Copy(t.Context()); err == nil {
			t.Fatalf("it was not stopped after %d writes", stop)
		}
		if _, err := (&maintenance.Copier{From: source.store, To: target.store}).Copy(t.Context()); err != nil {
			t.Fatal(err)
		}
		same(t, source, target)
	}
}

// TestACopyOfAStoreInUse appends while the copy runs.
func TestACopyOfAStoreInUse(t *testing.T) {
	source, target := furnished(t, storetest.NewMemory()), newFixture(t, storetest.NewMemory())
	conversation := source.addConversation(0)
	appended := 0
	copier := maintenance.Copier{From: source.store, To: target.store, Workers: 1, Progress: func(maintenance.Progress) {
		if appended++; appended > 12 {
			return
		}
		if _, err := source.log.Append(t.Context(), conversation.ID, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("meanwhile")}}, continuo.AppendOptions{}); err != nil {
			t.Error(err)
		}
	}}
	done, err := copier.Copy(t.Context())
	if err != nil || done.FromSHA256 != done.ToSHA256 {
		t.Fatalf("%+v, %v", done, err)
	}
	same(t, source, target)
	grown, copied := source.now(conversation.ID), target.now(conversation.ID)
	copied.Revision = grown.Revision // each store has its own
	if !reflect.DeepEqual(grown, copied) {
		t.Error("the conversation that grew is not the same")
	}
}

// TestACopyOfAForkThatWentOnBringsItsDeletedParentBack copies over a fork that is alone in keeping its parent.
func TestACopyOfAForkThatWentOnBringsItsDeletedParentBack(t *testing.T) {
	for name, to := range map[string]maintenance.Store{"memory": storetest.NewMemory(), "file": openFile(t), "database": openDatabase(t)} {
		t.Run(name, func(t *testing.T) {
			source, target := newFixture(t, storetest.NewMemory()), newFixture(t, to)
			parent := source.addConversation(5)
			fork := source.fork(parent.ID, 4)
			source.must(source.log.Delete(t.Context(), parent.ID))
			copier := maintenance.Copier{From: source.store, To: to}
			_, err := copier.Copy(t.Context())
			source.must(err)
			_, err = target.log.Append(t.Context(), fork.ID, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("went on")}}, continuo.AppendOptions{})
			source.must(err)
			if done, err := copier.Copy(t.Context()); err != nil || done.FromSHA256 != done.ToSHA256 {
				t.Errorf("%+v, %v", done, err)
			}
			same(t, source, target)
		})
	}
}
