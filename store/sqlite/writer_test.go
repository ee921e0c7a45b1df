package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

func newChange() *change {
	return &change{ctx: context.Background(), apply: func(*connection) error { return nil }, done: make(chan struct{})}
}

// blocked starts a change that the writer works on until release is called, which waits for its end.
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
	if err := w.enter(c); err != nil {
		t.Fatal(err)
	}
}

func TestACallerThatGivesUpChangesNothing(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{})
	defer store.Close()
	release := blocked(t, store)
	first, second := newChange(), newChange()
	first.apply = func(*connection) error { t.Error("a change that was withdrawn is made"); return nil }
	mustEnter(t, store.writer, first)
	mustEnter(t, store.writer, second)
	if !store.writer.withdraw(first) || store.writer.withdraw(first) {
		t.Error("a change that waits can be withdrawn once")
	}
	release()
	<-second.done
	if store.writer.withdraw(second) {
		t.Error("a change that was made can be withdrawn")
	}
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

func TestAPanicLeavesTheOtherChangesOfItsCommit(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{})
	defer store.Close()
	newConversation(t, store, "conv_1", 0)
	release := blocked(t, store)
	switchTo := func(agent string) func(*connection) error {
		return func(conn *connection) error { _, err := conn.exec(switchAgent, agent, "conv_1", agent); return err }
	}
	first, panics := newChange(), newChange()
	first.apply = switchTo("first")
	panics.apply = func(conn *connection) error { _ = switchTo("never")(conn); panic("inside") }
	mustEnter(t, store.writer, first)
	mustEnter(t, store.writer, panics)
	release()
	if <-first.done; first.err != nil {
		t.Error(first.err)
	}
	if <-panics.done; panics.panicked == nil {
		t.Error("the panic is lost")
	}
	if c, err := store.Conversation(t.Context(), "conv_1"); err != nil || c.ActiveAgent != "first" {
		t.Errorf("the agent is %q, %v", c.ActiveAgent, err)
	}
}
