package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

func newChange() *change {
	return &change{ctx: context.Background(), apply: func(*connection) error { return nil }, done: make(chan struct{}), lead: make(chan struct{})}
}

// blocked starts a change that leads until release is called, which waits for its end.
func blocked(t *testing.T, store *Store) (release func()) {
	t.Helper()
	started, ended, free := make(chan struct{}), make(chan error), make(chan struct{})
	go func() {
		ended <- store.write(context.Background(), func(*connection) error { close(started); <-free; return nil })
	}()
	<-started
	return func() {
		close(free)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func mustEnter(t *testing.T, w *writer, c *change) {
	t.Helper()
	if leads, err := w.enter(c); leads || err != nil {
		t.Fatalf("a change that waits leads: %t, %v", leads, err)
	}
}

func TestACallerThatGivesUpPassesOnTheLead(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{})
	defer store.Close()
	release := blocked(t, store)
	first, second := newChange(), newChange()
	mustEnter(t, store.writer, first)
	mustEnter(t, store.writer, second)
	release()
	<-first.lead
	if !store.writer.withdraw(first) {
		t.Error("a change that was not taken cannot be withdrawn")
	}
	<-second.lead
	if !store.writer.withdraw(second) || store.writer.withdraw(second) {
		t.Error("a change can be withdrawn once")
	}
	newConversation(t, store, "conv_1", 0)
}

func TestChangesThatWaitAreRefusedAtTheEnd(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{})
	release := blocked(t, store)
	waiting := newChange()
	mustEnter(t, store.writer, waiting)
	closed := make(chan error)
	go func() { closed <- store.Close() }()
	<-waiting.done
	if !errors.Is(waiting.err, continuo.ErrClosed) {
		t.Errorf("it is refused with %v", waiting.err)
	}
	release()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestAChangeThatPanicsIsRolledBack(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{})
	defer store.Close()
	newConversation(t, store, "conv_1", 0)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic ends in the writer")
			}
		}()
		_ = store.write(t.Context(), func(conn *connection) error {
			if _, err := conn.exec(switchAgent, "agent", "conv_1", "agent"); err != nil {
				t.Error(err)
			}
			panic("inside")
		})
	}()
	newConversation(t, store, "conv_2", 0)
	c, err := store.Conversation(t.Context(), "conv_1")
	if err != nil || c.ActiveAgent != "" {
		t.Errorf("the agent is %q, %v", c.ActiveAgent, err)
	}
}
