package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
)

func TestACancelledWriteChangesNothing(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{})
	defer store.Close()
	newConversation(t, store, "a", 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // whether it waits or has been taken
		if err := store.Append(ctx, continuo.Batch{ConversationID: "a", After: 1, Entries: someEntries("a", 2, 2, "x")}); !errors.Is(err, context.Canceled) {
			t.Errorf("append: %v", err)
		}
		if _, err := store.Conversation(ctx, "a"); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("read: %v", err)
		}
	}
	expectLast(t, store, "a", 1)
}

func TestWaitingForABusyDatabaseIsBounded(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{BusyTimeout: 20 * time.Millisecond})
	defer store.Close()
	newConversation(t, store, "a", 1)
	other, err := sql.Open("sqlite", store.path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	next := continuo.Batch{ConversationID: "a", After: 1, Entries: someEntries("a", 2, 2, "x")}
	if err := store.Append(t.Context(), next); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("append while another process writes: %v", err)
	}
	expectLast(t, store, "a", 1) // readers do not wait
	if _, err := other.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := store.Append(t.Context(), next); err != nil {
		t.Error(err)
	}
	expectLast(t, store, "a", 2)
}

// TestWhatIsDeletedIsGoneFromTheFile looks at the rows that are left of deleted conversations.
func TestWhatIsDeletedIsGoneFromTheFile(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{})
	defer store.Close()
	ctx := t.Context()
	parent := continuo.Conversation{ID: "a", ProjectID: "p", Key: "secret", Title: "secret", Metadata: json.RawMessage(`{"secret":1}`), LastSeq: 5}
	entries := append(someEntries("a", 1, 3, "shared"), someEntries("a", 4, 5, "secret")...)
	if err := store.Create(ctx, parent, entries); err != nil {
		t.Fatal(err)
	}
	for id, through := range map[string]int64{"b": 3, "c": 2} {
		fork := continuo.Conversation{ID: id, ProjectID: "p", ParentID: "a", ForkSeq: through, LastSeq: through, Lineage: []continuo.Segment{{ConversationID: "a", Through: through}}}
		if err := store.Create(ctx, fork, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		id      string
		entries int // that are left
	}{{"a", 3}, {"b", 2}, {"c", 0}} {
		if err := store.Delete(ctx, step.id); err != nil {
			t.Fatal(err)
		}
		var left, secrets int
		err := store.read(ctx, func(conn *connection) error {
			if err := conn.row(`SELECT count(*) FROM entries`, nil, &left); err != nil {
				return err
			}
			return conn.row(`SELECT (SELECT count(*) FROM entries WHERE body LIKE '%secret%') +
				(SELECT count(*) FROM conversations WHERE concat(key, title, metadata) LIKE '%secret%')`, nil, &secrets)
		})
		if err != nil || left != step.entries || secrets != 0 {
			t.Errorf("after %s was deleted, %d entries are left and %d secrets; %v", step.id, left, secrets, err)
		}
	}
	var rows int
	err := store.read(ctx, func(conn *connection) error {
		return conn.row(`SELECT (SELECT count(*) FROM conversations) + (SELECT count(*) FROM lineage)`, nil, &rows)
	})
	if err != nil || rows != 0 {
		t.Errorf("%d rows are left when all are deleted; %v", rows, err)
	}
}

// TestReadersAreBounded holds all connections and finds that one more reader waits.
func TestReadersAreBounded(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{MaxReaders: 2})
	defer store.Close()
	held, release := make(chan struct{}), make(chan struct{})
	for range 2 {
		go func() {
			_ = store.read(context.Background(), func(*connection) error {
				held <- struct{}{}
				<-release
				return nil
			})
		}()
		<-held
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error)
	go func() {
		_, err := store.Conversation(ctx, "a")
		waits <- err
	}()
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Errorf("a third reader: %v, want that it waits until it is cancelled", err)
	}
	close(release)
	if _, err := store.Conversation(t.Context(), "a"); !errors.Is(err, continuo.ErrNotFound) {
		t.Errorf("when they are done: %v", err)
	}
}
