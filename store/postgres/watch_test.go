package postgres

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// watcher is a store whose changes are watched.
type watcher struct {
	t       *testing.T
	changed chan []string
	lost    chan struct{}
	stop    func()
}

// watch watches a store and returns when it is connected.
func watch(t *testing.T, s *Store) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	h := &watcher{t: t, changed: make(chan []string, 1000), lost: make(chan struct{}, 10)}
	var done sync.WaitGroup
	done.Go(func() {
		s.WatchChanges(ctx, func(ids []string) { h.changed <- ids }, func() { h.lost <- struct{}{} })
	})
	h.stop = func() { cancel(); done.Wait() }
	t.Cleanup(h.stop)
	if ids := h.next(); ids != nil {
		t.Fatalf("it began with %q, not with nil for any", ids)
	}
	return h
}

func (h *watcher) next() []string {
	h.t.Helper()
	select {
	case ids := <-h.changed:
		return ids
	case <-time.After(5 * time.Minute):
		h.t.Fatal("nothing was reported")
		return nil
	}
}

// until waits for a hint of a conversation.
func (h *watcher) until(id string) {
	h.t.Helper()
	for !slices.Contains(h.next(), id) {
	}
}

func createAt(t *testing.T, s *Store, id string) {
	t.Helper()
	conversation := continuo.Conversation{ID: id, ProjectID: "p", ActiveMode: continuo.ModeChat, CreatedAt: sometime, UpdatedAt: sometime}
	if err := s.Create(t.Context(), conversation, nil); err != nil {
		t.Fatal(err)
	}
}

func appendAt(t *testing.T, s *Store, id string, seq int64) {
	t.Helper()
	entry := continuo.Entry{ID: id + "_entry", ConversationID: id, Seq: seq, Role: continuo.User, CreatedAt: sometime, Content: continuo.Text("hello")}
	if err := s.Append(t.Context(), continuo.Batch{ConversationID: id, After: seq - 1, Entries: []continuo.Entry{entry}}); err != nil {
		t.Fatal(err)
	}
}

func TestChangesAreReportedToOtherProcessesOnly(t *testing.T) {
	url := newDatabase(t, 0)
	one, other := openAt(t, url, Options{}), openAt(t, url, Options{})
	defer one.Close()
	defer other.Close()
	own, others := watch(t, one), watch(t, other)
	createAt(t, one, "a")
	others.until("a")
	appendAt(t, one, "a", 1)
	others.until("a")
	if err := one.Redact(t.Context(), "a", []continuo.Entry{{ID: "a_entry", ConversationID: "a", Seq: 1, Role: continuo.User, CreatedAt: sometime}}); err != nil {
		t.Fatal(err)
	}
	others.until("a")
	createAt(t, other, "b")
	if ids := own.next(); !slices.Equal(ids, []string{"b"}) {
		t.Errorf("it received %q; want only what the other one did", ids)
	}
}

func TestWatchingContinuesAfterALostConnection(t *testing.T) {
	url := newDatabase(t, 0)
	one, other := openAt(t, url, Options{}), openAt(t, url, Options{})
	defer one.Close()
	defer other.Close()
	watching := watch(t, other)
	for _, id := range []string{"a", "b"} {
		if _, err := one.pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND (query LIKE 'LISTEN%' OR query = '-- ping')`); err != nil {
			t.Fatal(err)
		}
		<-watching.lost
		for watching.next() != nil {
		}
		createAt(t, one, id)
		watching.until(id)
	}
	watching.stop()
	if n := len(watching.lost); n != 0 {
		t.Errorf("it reported a loss %d times more", n)
	}
}

func TestNothingIsReportedWithoutNotify(t *testing.T) {
	url := newDatabase(t, 0)
	silent, one, other := openAt(t, url, Options{NoNotify: true}), openAt(t, url, Options{}), openAt(t, url, Options{})
	defer silent.Close()
	defer one.Close()
	defer other.Close()
	watching := watch(t, other)
	createAt(t, silent, "a")
	createAt(t, one, "b")
	if ids := watching.next(); !slices.Equal(ids, []string{"b"}) {
		t.Errorf("it received %q", ids)
	}
}

// How long after a commit another store receives it: of a single one, and of a series.
func BenchmarkHint(b *testing.B) {
	for name, pause := range map[string]time.Duration{"alone": 2 * hintEvery, "one_after_the_other": 0} {
		b.Run(name, func(b *testing.B) { measureHints(b, pause) })
	}
}

func measureHints(b *testing.B, pause time.Duration) {
	url := newDatabase(b, 0)
	one, other := openAt(b, url, Options{}), openAt(b, url, Options{})
	defer one.Close()
	defer other.Close()
	ctx, cancel := context.WithCancel(b.Context())
	changed := make(chan []string, 1000)
	var watching sync.WaitGroup
	watching.Go(func() { other.WatchChanges(ctx, func(ids []string) { changed <- ids }, func() {}) })
	defer watching.Wait()
	defer cancel()
	<-changed
	conversation := continuo.Conversation{ID: "a", ProjectID: "p", ActiveMode: continuo.ModeChat, CreatedAt: sometime, UpdatedAt: sometime}
	if err := one.Create(ctx, conversation, nil); err != nil {
		b.Fatal(err)
	}
	<-changed
	var delays []time.Duration
	for seq := int64(1); b.Loop(); seq++ {
		time.Sleep(pause)
		entry := continuo.Entry{ID: "e", ConversationID: "a", Seq: seq, Role: continuo.User, CreatedAt: sometime, Content: continuo.Text("hello")}
		if err := one.Append(ctx, continuo.Batch{ConversationID: "a", After: seq - 1, Entries: []continuo.Entry{entry}}); err != nil {
			b.Fatal(err)
		}
		committed := time.Now()
		<-changed
		delays = append(delays, time.Since(committed))
	}
	slices.Sort(delays)
	b.ReportMetric(float64(delays[len(delays)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(delays[len(delays)*99/100].Microseconds()), "p99-µs")
}
