package mirror

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/sqlite"
)

// failing is a store that fails from a write on, as it is for a process that ends there.
type failing struct {
	continuo.Store
	left int
}

var errEnded = errors.New("the process has ended")

func (f *failing) write() error {
	if f.left--; f.left < 0 {
		return errEnded
	}
	return nil
}

func (f *failing) Create(ctx context.Context, conversation continuo.Conversation, entries []continuo.Entry) error {
	if err := f.write(); err != nil {
		return err
	}
	return f.Store.Create(ctx, conversation, entries)
}

func (f *failing) Append(ctx context.Context, batch continuo.Batch) error {
	if err := f.write(); err != nil {
		return err
	}
	return f.Store.Append(ctx, batch)
}

func (f *failing) Update(ctx context.Context, id string, change continuo.ConversationChange) (continuo.Conversation, error) {
	if err := f.write(); err != nil {
		return continuo.Conversation{}, err
	}
	return f.Store.Update(ctx, id, change)
}

func (f *failing) Delete(ctx context.Context, id string) error {
	if err := f.write(); err != nil {
		return err
	}
	return f.Store.Delete(ctx, id)
}

func said(texts ...string) []Message {
	messages := make([]Message, len(texts))
	for i, text := range texts {
		messages[i] = Message{Vendor: "test", Entries: []continuo.Entry{{Role: continuo.User, Content: continuo.Text(text)}}, Plain: true}
	}
	return messages
}

func texts(t *testing.T, log *continuo.Log, like continuo.Conversation) (all []string) {
	t.Helper()
	found, err := Find(t.Context(), log, like)
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range log.Read(t.Context(), found, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry.Content.String())
	}
	return all
}

// A process that ends at any write of Replace leaves all old messages or all new ones, and what it left is in no one's way.
func TestReplaceIsAllOrNothing(t *testing.T) {
	before, after := []string{"a", "b"}, []string{"c", "d", "e"}
	for writes := 0; ; writes++ {
		store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "replace.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		log := continuo.NewLog(store, continuo.LogOptions{})
		like := continuo.Conversation{ProjectID: continuo.DefaultProject, UserID: "ada", Key: Key("test", "s")}
		if err := Replace(t.Context(), log, like, said(before...)); err != nil {
			t.Fatal(err)
		}
		ended := Replace(t.Context(), continuo.NewLog(&failing{Store: store, left: writes}, continuo.LogOptions{}), like, said(after...))
		got := texts(t, log, like)
		if !slices.Equal(got, after) && (ended == nil || !slices.Equal(got, before)) {
			t.Errorf("after %d writes (%v): %q", writes, ended, got)
		}
		opened, err := Open(t.Context(), log, like)
		if err == nil {
			_, err = Append(t.Context(), log, opened.ID, said("f")[0])
		}
		appended := texts(t, log, like)
		late := !slices.Equal(got, after) && slices.Equal(appended, append(slices.Clone(after), "f")) // as if it had ended just now
		if err != nil || !late && !slices.Equal(appended, append(got, "f")) {
			t.Errorf("after %d writes and an append to %q: %q, %v", writes, got, appended, err)
		}
		_ = Replace(t.Context(), continuo.NewLog(&failing{Store: store, left: 4}, continuo.LogOptions{}), like, said("x", "x", "x"))
		if again := texts(t, log, like); !slices.Equal(again, appended) {
			t.Errorf("after %d writes, an append and another replacement that ended: %q, want %q", writes, again, appended)
		}
		if err := Replace(t.Context(), log, like, said("g")); err != nil || !slices.Equal(texts(t, log, like), []string{"g"}) {
			t.Errorf("after %d writes: %q, %v", writes, texts(t, log, like), err)
		}
		if ended == nil {
			return
		}
		if !errors.Is(ended, errEnded) {
			t.Fatal(ended)
		}
	}
}

// What an interrupted Replace left does not come back after Remove.
func TestRemoveAfterAnInterruptedReplace(t *testing.T) {
	for writes := range 8 {
		store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "remove.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		log := continuo.NewLog(store, continuo.LogOptions{})
		like := continuo.Conversation{ProjectID: continuo.DefaultProject, Key: Key("test", "s")}
		if err := Replace(t.Context(), log, like, said("a")); err != nil {
			t.Fatal(err)
		}
		_ = Replace(t.Context(), continuo.NewLog(&failing{Store: store, left: writes}, continuo.LogOptions{}), like, said("b"))
		if err := Remove(t.Context(), log, like); err != nil {
			t.Fatal(err)
		}
		if found, err := Find(t.Context(), log, like); !errors.Is(err, continuo.ErrNotFound) {
			t.Errorf("after %d writes: %s, %v", writes, found.ID, err)
		}
	}
}

// Processes that replace, open and append to one conversation at once: the messages are those of one replacement, whole,
// and what was appended to it.
func TestReplaceAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "once.db")
	like := continuo.Conversation{ProjectID: continuo.DefaultProject, Key: Key("test", "s")}
	const each = 10
	done := make(chan error)
	open := func() *continuo.Log {
		store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return continuo.NewLog(store, continuo.LogOptions{})
	}
	for process := range 3 {
		log := open()
		go func() {
			var err error
			for i := range each {
				name := fmt.Sprint(process, "-", i)
				err = errors.Join(err, Replace(context.Background(), log, like, said(name+" first", name+" second")))
			}
			done <- err
		}()
	}
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	log := open()
	got := texts(t, log, like)
	if len(got) != 2 || got[0][:len(got[0])-len(" first")] != got[1][:len(got[1])-len(" second")] {
		t.Errorf("%q", got)
	}
	if found, err := log.Find(t.Context(), continuo.Scope{ProjectID: like.ProjectID}, like.Key+"/next"); !errors.Is(err, continuo.ErrNotFound) {
		t.Errorf("a replacement is left: %s, %v", found.ID, err)
	}
	if left, err := log.Conversations(t.Context(), continuo.ConversationQuery{ProjectID: like.ProjectID, Limit: 10}); err != nil || len(left) != 1 {
		t.Errorf("%d conversations are left, %v", len(left), err)
	}
}
