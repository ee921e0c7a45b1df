package maintenance_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/storetest"
)

// TestLossesAreReportedBeforeACopy: what only the destination has is reported, and nothing else.
func TestLossesAreReportedBeforeACopy(t *testing.T) {
	source, target := furnished(t, storetest.NewMemory()), newFixture(t, storetest.NewMemory())
	copier := maintenance.Copier{From: source.store, To: target.store}
	losses := func(want maintenance.Losses) {
		t.Helper()
		found, err := copier.Losses(t.Context())
		if want.Example == "" {
			found.Example = ""
		}
		if err != nil || found != want {
			t.Errorf("%+v, %v; want %+v", found, err, want)
		}
	}
	losses(maintenance.Losses{})
	if _, err := (&maintenance.Copier{From: source.store, To: &stopping{target.store, 3}, Workers: 1}).Copy(t.Context()); err == nil {
		t.Fatal("the copy was not stopped")
	}
	losses(maintenance.Losses{}) // a copy that continues
	_, err := copier.Copy(t.Context())
	source.must(err)
	losses(maintenance.Losses{})

	source.change() // it deletes one or two
	before, err := copier.Losses(t.Context())
	if err != nil || before.Unknown == 0 || before.Newer != 0 {
		t.Errorf("after deletions from the source: %+v, %v", before, err)
	}
	_, err = copier.Copy(t.Context())
	source.must(err)
	own := target.addConversation(1)
	losses(maintenance.Losses{Unknown: 1, Example: own.ID})
	source.must(target.store.Delete(t.Context(), own.ID))
	title := "renamed at the destination"
	shared := source.addConversation(1)
	_, err = copier.Copy(t.Context())
	source.must(err)
	_, err = target.log.Update(t.Context(), shared.ID, continuo.ConversationChange{Title: &title})
	source.must(err)
	losses(maintenance.Losses{Newer: 1, Example: shared.ID})
}

// TestWhatIsRetiredSinceTheLastCopyIsRetiredInTheCopy: a parent that was deleted or archived after it was copied,
// while its forks stay, and no object that is still needed is discarded.
func TestWhatIsRetiredSinceTheLastCopyIsRetiredInTheCopy(t *testing.T) {
	for name, open := range map[string]func(*testing.T) maintenance.Store{
		"memory": func(*testing.T) maintenance.Store { return storetest.NewMemory() }, "file": openFile, "database": openDatabase,
	} {
		t.Run(name, func(t *testing.T) {
			source, target := newFixture(t, storetest.NewMemory()), newFixture(t, open(t))
			deleted, archived := source.addConversation(4), source.addConversation(4)
			for _, parent := range []continuo.Conversation{deleted, archived} {
				source.turn(parent, "turn_"+parent.ID, true)
				source.fork(parent.ID, 1) // before the large output
				source.fork(parent.ID, 5)
			}
			copier := maintenance.Copier{From: source.store, To: target.store}
			_, err := copier.Copy(t.Context())
			source.must(err)

			source.must(source.log.Delete(t.Context(), deleted.ID))
			_, err = source.archivist().Archive(t.Context(), archived.ID)
			source.must(err)
			if _, err := copier.Verify(t.Context()); err == nil {
				t.Error("the stores differ, and verify does not say so")
			}
			if _, err := copier.Copy(t.Context()); err != nil {
				t.Fatal(err)
			}
			same(t, source, target)
			names, err := target.store.Discards(t.Context(), 100)
			target.must(err)
			for _, name := range names {
				if strings.HasPrefix(name, archived.ID) {
					t.Errorf("the copy would remove %s, which the archive needs", name)
				}
			}
		})
	}
}

// TestVerifyComparesKeysAndBlobs: they are no records of a conversation, and are compared all the same.
func TestVerifyComparesKeysAndBlobs(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"a project": func(p *fixture) { p.must(p.store.CreateProject(t.Context(), auth.Project{ID: "new"})) },
		"a key": func(p *fixture) {
			p.must(p.store.CreateKey(t.Context(), auth.Key{ID: "k9", ProjectID: "acme", Hash: "h"}))
		},
		"a revoked key": func(p *fixture) {
			_, err := p.store.RevokeKey(t.Context(), "k1", time.Unix(5, 0))
			p.must(err)
		},
		"an envelope": func(p *fixture) {
			_, err := p.log.PutEnvelope(t.Context(), continuo.Envelope{Model: "another"})
			p.must(err)
		},
	} {
		source, target := furnished(t, storetest.NewMemory()), newFixture(t, storetest.NewMemory())
		copier := maintenance.Copier{From: source.store, To: target.store}
		_, err := copier.Copy(t.Context())
		source.must(err)
		if _, err := copier.Verify(t.Context()); err != nil {
			t.Errorf("%s: before: %v", name, err)
		}
		change(source)
		if _, err := copier.Verify(t.Context()); err == nil {
			t.Errorf("%s is missing from the copy, and verify does not say so", name)
		}
	}
}

// fleeting is an object store from which somebody removes an object as soon as it was listed.
type fleeting struct {
	continuo.ObjectStore
	name string
}

func (f fleeting) ReadObject(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if name == f.name {
		if err := f.DeleteObject(ctx, name); err != nil {
			return nil, err
		}
	}
	return f.ObjectStore.ReadObject(ctx, name, offset, length)
}

// TestObjectsAreCopiedWhileTheyGo: one that is removed meanwhile does not stop the copy of the others.
func TestObjectsAreCopiedWhileTheyGo(t *testing.T) {
	from, to := storetest.NewObjects(), storetest.NewObjects()
	for _, name := range []string{"c/1", "c/2", "c/3"} {
		if err := from.PutObject(t.Context(), name, strings.NewReader("object "+name)); err != nil {
			t.Fatal(err)
		}
	}
	copied, err := maintenance.CopyObjects(t.Context(), fleeting{from, "c/2"}, to, nil)
	if err != nil || copied != 2 {
		t.Errorf("%d copied, %v", copied, err)
	}
	if again, err := maintenance.CopyObjects(t.Context(), from, to, nil); err != nil || again != 0 {
		t.Errorf("again: %d copied, %v", again, err)
	}
	if err := from.PutObject(t.Context(), "c/1", strings.NewReader("OBJECT c/1")); err != nil {
		t.Fatal(err)
	}
	if again, err := maintenance.CopyObjects(t.Context(), from, to, nil); err != nil || again != 1 {
		t.Errorf("one was made again: %d copied, %v", again, err)
	}
}

// silent is a store that archives and cannot say so.
type silent struct{ maintenance.Store }

func (s silent) Archive(ctx context.Context, seen continuo.Conversation, at time.Time) error {
	return errors.Join(s.Store.Archive(ctx, seen, at), errSilence)
}

var errSilence = errors.New("the connection was lost")

// TestAnArchiveIsKeptWhenItsCommitIsUncertain: it may be all that there is.
func TestAnArchiveIsKeptWhenItsCommitIsUncertain(t *testing.T) {
	p := newFixture(t, storetest.NewMemory())
	conversation := p.addConversation(3)
	before := p.kept(conversation.ID)
	archivist := p.archivist()
	archivist.Store = silent{p.store}
	if _, err := archivist.Archive(t.Context(), conversation.ID); !errors.Is(err, errSilence) {
		t.Fatalf("archived, and the store said nothing: %v", err)
	}
	if _, err := p.archivist().Restore(t.Context(), conversation.ID); err != nil {
		t.Fatal(err)
	}
	if after := p.kept(conversation.ID); len(after) != len(before) {
		t.Errorf("%d records became %d", len(before), len(after))
	}
}
