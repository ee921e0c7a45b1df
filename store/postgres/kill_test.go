package postgres

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// workload is conversations that each have a writer, who appends entries and updates a turn, and expects
// that nothing fails.
type workload struct {
	store  *Store
	stop   atomic.Bool
	rounds []int64 // acknowledged, of each conversation
	done   sync.WaitGroup
}

func startWorkload(t *testing.T, store *Store, writers int) *workload {
	t.Helper()
	w := &workload{store: store, rounds: make([]int64, writers)}
	for i := range writers {
		newConversation(t, store, conversationOf(i), 0)
	}
	for i := range writers {
		w.done.Go(func() {
			for !w.stop.Load() {
				if err := w.round(i, w.rounds[i]+1); err != nil {
					t.Errorf("writer %d, round %d: %v", i, w.rounds[i]+1, err)
					return
				}
				atomic.AddInt64(&w.rounds[i], 1)
			}
		})
	}
	return w
}

func conversationOf(i int) string { return fmt.Sprint("conv_", i) }

// entriesOfRound is the number of entries that a round appends.
const entriesOfRound = 3

// round makes each kind of hot change once: a turn begins with an entry, says something, goes over, and ends with an entry.
func (w *workload) round(i int, n int64) (err error) {
	ctx, id := context.Background(), conversationOf(i)
	after := entriesOfRound * (n - 1)
	begin := &continuo.TurnBegin{Turn: continuo.Turn{ConversationID: id, ID: fmt.Sprint("turn_", n), Owner: "one"}, Lease: time.Hour, Events: someEvents(1, 1)}
	if err := w.store.Append(ctx, continuo.Batch{ConversationID: id, After: after, Entries: someEntries(id, after+1, after+1, "text"), Begin: begin}); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	turn := begin.Begun
	update := continuo.TurnUpdate{ConversationID: id, TurnID: turn.ID, Fence: turn.Fence, Events: someEvents(2, 2), Lease: time.Minute}
	if _, err := w.store.UpdateTurn(ctx, update); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	if turn, err = w.store.TakeTurn(ctx, turn, fmt.Sprint("owner ", n), time.Hour); err != nil {
		return fmt.Errorf("take: %w", err)
	}
	update = continuo.TurnUpdate{ConversationID: id, TurnID: turn.ID, Fence: turn.Fence, Events: someEvents(3, 4)}
	if err := w.store.Append(ctx, continuo.Batch{ConversationID: id, After: after + 1, Entries: someEntries(id, after+2, after+2, "text"), Turns: []continuo.TurnUpdate{update}}); err != nil {
		return fmt.Errorf("append with the turn: %w", err)
	}
	if err := w.store.Append(ctx, continuo.Batch{ConversationID: id, After: after + 2, Entries: someEntries(id, after+3, after+3, "text")}); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	update = continuo.TurnUpdate{ConversationID: id, TurnID: turn.ID, Fence: turn.Fence, State: continuo.TurnFinished}
	if _, err := w.store.UpdateTurn(ctx, update); err != nil {
		return fmt.Errorf("end: %w", err)
	}
	return nil
}

func someEvents(first, last int64) []continuo.TurnEvent {
	var events []continuo.TurnEvent
	for id := first; id <= last; id++ {
		events = append(events, continuo.TurnEvent{ID: id, Data: fmt.Appendf(nil, `{"event":%d}`, id)})
	}
	return events
}

// total is how many rounds were acknowledged.
func (w *workload) total() (total int64) {
	for i := range w.rounds {
		total += atomic.LoadInt64(&w.rounds[i])
	}
	return total
}

// after waits until so many more rounds were acknowledged.
func (w *workload) after(t *testing.T, more int64) {
	t.Helper()
	want, giveUp := w.total()+more, time.After(5*time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for w.total() < want && !t.Failed() {
		select {
		case <-giveUp:
			t.Fatalf("%d rounds after five minutes, want %d", w.total(), want)
		case <-tick.C:
		}
	}
}

// end stops the writers and expects that what was acknowledged is there, once, and nothing else.
func (w *workload) end(t *testing.T) {
	t.Helper()
	w.stop.Store(true)
	w.done.Wait()
	for i, rounds := range w.rounds {
		id := conversationOf(i)
		entries, err := w.store.Entries(t.Context(), id, continuo.EntryQuery{From: 1, To: 1 << 40, Limit: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(entries)) != entriesOfRound*rounds {
			t.Errorf("%s has %d entries, want %d", id, len(entries), entriesOfRound*rounds)
		}
		for j := range entries {
			if want := someEntries(id, int64(j)+1, int64(j)+1, "")[0].ID; entries[j].ID != want {
				t.Errorf("entry %d of %s is %s, want %s", entries[j].Seq, id, entries[j].ID, want)
			}
		}
		turns, err := w.store.Turns(t.Context(), continuo.TurnQuery{ConversationID: id, Limit: 1 << 20})
		if err != nil || int64(len(turns)) != rounds {
			t.Errorf("%s has %d turns (%v), want %d", id, len(turns), err, rounds)
		}
		for j := range turns {
			turn := &turns[j]
			events, err := w.store.TurnEvents(t.Context(), id, turn.ID, 0, 99)
			if err != nil || len(events) != 4 || turn.State != continuo.TurnFinished || turn.Fence != 2*(rounds-int64(j)) {
				t.Errorf("turn %+v has %d events (%v)", turn, len(events), err)
			}
		}
	}
}

// TestARestartIsNotNoticed kills the server under 32 writers and starts it again.
func TestARestartIsNotNoticed(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{Replication: true}) // what was acknowledged outlives it
	store := openAt(t, server.URL("postgres"), Options{Patience: 5 * time.Minute})
	defer store.Close()
	work := startWorkload(t, store, 32)
	for range times(1, 3) {
		work.after(t, 64)
		server.Kill(t)
		server.Restart(t)
		work.after(t, 64)
		server.Restart(t) // in order
	}
	work.after(t, 64)
	work.end(t)
}

// TestLostAnswersAreNotNoticed loses what the server answers, over and over: it may have committed.
func TestLostAnswersAreNotNoticed(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{ListenTCP: true})
	network := startNetwork(t, server.URL("postgres"))
	store := openAt(t, network.url, Options{Patience: 5 * time.Minute})
	defer store.Close()
	work := startWorkload(t, store, 8)
	for range times(40, 150) {
		work.after(t, 1)
		network.lose.Store(true)
	}
	network.lose.Store(false)
	work.end(t)
}

// network passes on what the store and the server say to each other.
type network struct {
	url      string // of the server, through the network
	server   string
	listener net.Listener
	lose     atomic.Bool // the next answer, together with its connection
	running  sync.WaitGroup
}

func startNetwork(t *testing.T, address string) *network {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	n := &network{server: parsed.Host, listener: listener}
	parsed.Host = listener.Addr().String()
	n.url = parsed.String()
	n.running.Go(n.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		n.running.Wait()
	})
	return n
}

func (n *network) accept() {
	for {
		client, err := n.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", n.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		n.running.Go(func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		})
		n.running.Go(func() {
			n.answer(client, server)
			_, _ = client.Close(), server.Close()
		})
	}
}

func (n *network) answer(client, server net.Conn) {
	buffer := make([]byte, 1<<16)
	for {
		size, err := server.Read(buffer)
		if err != nil || n.lose.CompareAndSwap(true, false) {
			return
		}
		if _, err := client.Write(buffer[:size]); err != nil {
			return
		}
	}
}

// TestLostConnectionsAreNotNoticed has connections ended while they commit, over and over.
func TestLostConnectionsAreNotNoticed(t *testing.T) {
	for _, partitions := range []int{0, 4} {
		t.Run(fmt.Sprint("partitions=", partitions), func(t *testing.T) {
			url := newDatabase(t, partitions)
			store := openAt(t, url, Options{Patience: 5 * time.Minute, Name: "to be ended"})
			defer store.Close()
			admin, err := pgxpool.New(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer admin.Close()
			work := startWorkload(t, store, 16)
			for range times(12, 60) {
				work.after(t, 4)
				if _, err := admin.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'to be ended' AND datname = current_database()`); err != nil {
					t.Fatal(err)
				}
			}
			work.end(t)
		})
	}
}

// A program that is suspended inside a transaction, or that the network has cut off, keeps its locks. The server aborts the
// transaction before those who wait for the locks give up, and the program retries it.
func TestATransactionOfASuspendedProgramIsAborted(t *testing.T) {
	url := newDatabase(t, 0)
	suspended, other := openAt(t, url, Options{LockTimeout: 200 * time.Millisecond}), openAt(t, url, Options{LockTimeout: time.Minute})
	defer suspended.Close()
	defer other.Close()
	createAt(t, other, "a")
	tries := 0
	err := suspended.transact(t.Context(), "be suspended", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := lock(ctx, tx, "a"); err != nil {
			return err
		}
		if tries++; tries == 1 {
			appendAt(t, other, "a", 1)
		}
		_, err := tx.Exec(ctx, deleteDocuments, "a", []int64{0})
		return err
	}, nil)
	if err != nil || tries < 2 {
		t.Errorf("%d tries: %v", tries, err)
	}
}
