package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/historytest"
	"github.com/continuo-log/continuo/internal/pgtest"
)

// faultyReplicas is two replicas that reach their database through proxies with faults.
type faultyReplicas struct {
	t        *testing.T
	random   *rand.Rand // of the goroutine that makes faults
	home     *home
	database *pgtest.Server
	proxies  [2]*databaseProxy
	urls     [2]string
	calm     atomic.Bool // no faults come any more

	mu    sync.Mutex
	slots [2]*killable
}

func newFaultyReplicas(t *testing.T, random *rand.Rand) *faultyReplicas {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(serveAnswer))
	t.Cleanup(upstream.Close)
	b := &faultyReplicas{t: t, random: random, database: pgtest.Start(t, pgtest.Options{Durable: true, ListenTCP: true})}
	b.home = newHome(t, &scripted{url: upstream.URL}, "lease: 2s")
	location, err := url.Parse(b.database.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.slots {
		b.proxies[i] = proxyTo(t, location.Host)
		through := *location
		through.Host = b.proxies[i].address()
		b.urls[i] = through.String()
		b.start(i)
	}
	return b
}

// serveAnswer is an upstream that says a few words.
func serveAnswer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	for text := range 20 {
		if writeChunk(w, map[string]any{"content": fmt.Sprintf("word %d ", text)}, nil) != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-time.After(15 * time.Millisecond):
		case <-r.Context().Done():
			return
		}
	}
	finish := "stop"
	_ = writeChunk(w, map[string]any{}, &finish) // the client may have disconnected
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// start starts a replica in a slot.
func (b *faultyReplicas) start(slot int) {
	b.t.Helper()
	b.home.storeURL = b.urls[slot]
	k := b.home.launch(b.t)
	k.ready(b.t)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slots[slot] = k
}

func (b *faultyReplicas) at(slot int) *killable {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.slots[slot]
}

// pause lets a moment pass.
func (b *faultyReplicas) pause(least int) {
	<-time.After(time.Duration(least+b.random.IntN(300)) * time.Millisecond)
}

// round has every fault happen once to each replica, and restarts the database.
func (b *faultyReplicas) round() {
	b.t.Helper()
	for slot, proxy := range b.proxies {
		for _, f := range []lineFault{slow, partitioned, halfOpen, answersHeld} {
			b.pause(100)
			proxy.set(f)
			b.pause(300)
			if (f == halfOpen || f == answersHeld) && b.random.IntN(2) == 0 {
				proxy.set(partitioned) // what was held is lost
			}
			proxy.set(healthy)
		}
		b.pause(100)
		b.at(slot).kill(b.t)
		b.start(slot)
		b.pause(100)
		if b.random.IntN(2) == 0 {
			b.database.Stop(b.t, pgtest.Fast)
		} else {
			b.database.Kill(b.t)
		}
		b.database.Restart(b.t)
	}
}

// TestHistories lets clients of two replicas use the same conversations at once: they append, with expect_seq and with
// idempotency keys, read, begin turns and cancel them, while replicas are killed, the database is restarted, and
// connections to it break, hang and are slow. For each conversation there is one order of all that they were
// answered, and of what became of the unanswered, that agrees with the rules of a log.
func TestHistories(t *testing.T) {
	t.Parallel()
	random := killTest(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	b := newFaultyReplicas(t, random)
	stop := make(chan struct{})
	var running sync.WaitGroup
	var clients []*recordingClient
	for i := range 6 {
		conversation := &sharedConversation{key: fmt.Sprintf("h%d", i/2), history: historytest.New()}
		if i%2 == 1 {
			conversation = clients[i-1].conversation
		} else {
			b.create(ctx, conversation.key)
		}
		chances := rand.New(rand.NewPCG(random.Uint64(), random.Uint64()))
		w := &recordingClient{t: t, number: i, random: chances, conversation: conversation, calm: &b.calm, any: func() *killable { return b.at(chances.IntN(2)) }}
		clients = append(clients, w)
		running.Go(func() { w.runUntilStopped(ctx, stop) })
	}
	for range rounds(1, 3) { // so few that the log of a conversation stays shorter than a page
		b.round()
	}
	b.calm.Store(true)
	for i := 0; i < len(clients); i += 2 { // on a busy machine no turn may have been answered in time before
		clients[i].conversation.awaitSome(ctx)
	}
	close(stop)
	running.Wait()
	for i := 0; i < len(clients); i += 2 {
		b.checkHistory(ctx, clients[i], clients[i+1])
	}
}

// awaitSome waits until the history of a conversation has something of each kind.
func (s *sharedConversation) awaitSome(ctx context.Context) {
	for until := time.Now().Add(patience); time.Now().Before(until) && ctx.Err() == nil; <-time.After(50 * time.Millisecond) {
		if showsMuch(s.history.Operations()) {
			return
		}
	}
}

// showsMuch reports whether entries were added and read, and turns ended.
func showsMuch(history []historytest.Operation) bool {
	done := map[historytest.Kind]bool{}
	for _, o := range history {
		done[o.Kind] = done[o.Kind] || o.Outcome == historytest.Done
	}
	return done[historytest.Append] && done[historytest.Read] && done[historytest.Begin]
}

// create begins an empty conversation.
func (b *faultyReplicas) create(ctx context.Context, key string) {
	b.t.Helper()
	response, err := b.at(0).do(ctx, http.MethodPost, "/api/conversations", map[string]string{"key": key})
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		b.t.Fatalf("create %s: status %d", key, response.StatusCode)
	}
}

// checkHistory waits until no turn of a conversation runs, and checks its history.
func (b *faultyReplicas) checkHistory(ctx context.Context, one, other *recordingClient) {
	b.t.Helper()
	var final []continuo.Entry
	for until := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
		var turns struct{ Data []continuo.Turn }
		status, err := b.at(0).get(ctx, one.path("/turns?limit=1"), &turns)
		if err == nil && status == http.StatusOK && (len(turns.Data) == 0 || turns.Data[0].State != continuo.TurnRunning) {
			var ok bool
			if _, first := one.read(ctx, b.at(0)); first {
				if final, ok = one.read(ctx, b.at(1)); ok {
					break
				}
			}
		}
		if time.Now().After(until) {
			b.t.Errorf("%s does not come to rest: status %d, %v, %+v", one.conversation.key, status, err, turns.Data)
			return
		}
	}
	history := complete(one.conversation.history.Operations(), final)
	historytest.Check(b.t, one.conversation.key, history)
	counts := map[string]int{}
	for _, o := range history {
		counts[string(o.Kind)+" "+string(o.Outcome)]++
	}
	b.t.Logf("%s: %d entries, %d answers never came, %v", one.conversation.key, len(final), one.unknown+other.unknown, counts)
	if counts["append done"] == 0 || counts["read done"] == 0 || counts["say done"] == 0 {
		b.t.Errorf("%s shows little: %v", one.conversation.key, counts)
	}
}
