package e2e

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/pgtest"
)

// replicaSet is some replicas with one database, each in a slot that another program takes when it is killed.
type replicaSet struct {
	t        *testing.T
	home     *home
	upstream *scripted

	mu     sync.Mutex
	random *rand.Rand
	slots  []*killable
	// reference is a replica that is never killed: what was received is compared with what it shows.
	reference *killable
}

// newReplicaSet starts replicas on a database.
func newReplicaSet(t *testing.T, upstream *scripted, random *rand.Rand, url string, size int) *replicaSet {
	t.Helper()
	f := &replicaSet{t: t, home: newHome(t, upstream), upstream: upstream, random: random, slots: make([]*killable, size)}
	f.home.storeURL = url
	for i := range f.slots {
		f.slots[i] = f.home.launch(t)
	}
	f.reference = f.home.launch(t)
	for _, k := range append(f.slots, f.reference) {
		k.ready(t)
	}
	return f
}

// any is a replica that serves, or did so a moment ago.
func (f *replicaSet) any() *killable {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.slots[f.random.IntN(len(f.slots))]
}

func (f *replicaSet) intN(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.IntN(n)
}

// replace kills a replica and starts another one in its place.
func (f *replicaSet) replace(slot int) {
	f.t.Helper()
	f.mu.Lock()
	old := f.slots[slot]
	f.mu.Unlock()
	old.kill(f.t)
	k := f.home.launch(f.t)
	k.ready(f.t)
	f.mu.Lock()
	f.slots[slot] = k
	f.mu.Unlock()
}

// play lets every replica, also one that is yet to start, receive a script in a conversation.
func (f *replicaSet) play(conversation string, what script) *playback {
	f.upstream.mu.Lock()
	defer f.upstream.mu.Unlock()
	p := &playback{script: what, answers: map[[32]byte]scriptedAnswer{}}
	for program := 1; program <= maxPrograms; program++ {
		f.upstream.playing[fmt.Sprintf("program-%d %s", program, conversation)] = p
	}
	return p
}

// maxPrograms is how many programs a replica set starts at most.
const maxPrograms = 64

// patience is how long is waited for what must come, however busy the machine is.
const patience = 5 * time.Minute

// roamingClient is a client that takes whichever replica answers.
type roamingClient struct {
	*chatClient
	replicaSet *replicaSet
	appended   []string // texts that it appended without a turn, acknowledged
	retries    int      // how often it went on elsewhere
	turned     atomic.Int64
	broken     int // of them, how many went on, as turns of their own, with one that broke off
}

// retry does something until it succeeds.
func (r *roamingClient) retry(ctx context.Context, what string, do func(k *killable) error) bool {
	until := time.Now().Add(patience)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		err := do(r.replicaSet.any())
		if err == nil {
			return true
		}
		r.retries++
		if ctx.Err() != nil || time.Now().After(until) {
			r.errorf("%s: %v", what, err)
			return false
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// turn runs a turn to its end: begun at one replica, received at any. Where its stream breaks off, the client asks for the
// rest, or makes the request again with its key until it has an answer.
func (r *roamingClient) turn(ctx context.Context, a *attempt) *outcome {
	a.playback = r.replicaSet.play(r.key, a.script)
	again := r.random.IntN(2) == 0
	begun := r.retry(ctx, "begin a turn", func(k *killable) error {
		var err error
		if a.resumes != nil {
			_, err = k.listen(ctx, http.MethodPost, r.path("/turns/"+a.resumes.id+"/resume"), map[string]any{}, r.receive(ctx, a), "Idempotency-Key", fmt.Sprintf("%s-resume-%d", r.key, r.begun))
		} else {
			_, err = k.listen(ctx, http.MethodPost, "/chat", map[string]any{"session_id": r.key, "message": a.message}, r.receive(ctx, a), "Idempotency-Key", a.apiKey)
		}
		switch {
		case a.id == "":
			return err
		case again && (a.end() == nil || a.end().kind == "error"):
			return fmt.Errorf("turn %s broke off: %w, %s", a.id, cmp.Or(err, io.ErrUnexpectedEOF), show(a.end()))
		}
		return nil // what is missing is asked for below
	})
	receivedAll := begun && r.retry(ctx, "hear the rest of turn "+a.id, func(k *killable) error {
		if a.end() != nil {
			return nil
		}
		last := a.events[len(a.events)-1].id
		status, err := k.listen(ctx, http.MethodGet, r.path("/turns/"+a.id+"/events"), nil, r.receive(ctx, a), "Last-Event-ID", strconv.FormatInt(last, 10))
		if err == nil && a.end() == nil {
			err = fmt.Errorf("status %d and no last event", status)
		}
		return err
	})
	if !receivedAll {
		return nil
	}
	var end answer
	if err := a.end().read(&end); err != nil || end.Error != nil && end.Error.Reason != continuo.ReasonInterrupted {
		r.errorf("turn %s ends with %v, %s", a.id, err, show(a.end()))
	}
	r.turned.Add(1)
	if a.before != nil {
		r.broken++
	}
	return r.check(ctx, r.replicaSet.reference, a)
}

// receive takes the events of a stream. A request that is made again gives those of its turn from the start, or those of
// another turn, which resumes it.
func (r *roamingClient) receive(ctx context.Context, a *attempt) func(receivedEvent) {
	return func(e receivedEvent) {
		if e.kind == "turn" {
			if id := turnOf(e); a.id != "" && id != a.id {
				before := *a
				a.before, a.events = &before, nil
			}
			a.id = turnOf(e)
		}
		if n := len(a.events); n > 0 && e.id <= a.events[n-1].id {
			return
		}
		a.events = append(a.events, e)
		if e.kind == "approval" {
			r.approve(ctx, a.id, e)
		}
	}
}

// approve lets a call run, from another replica than the one that asked.
func (r *roamingClient) approve(ctx context.Context, turn string, asked receivedEvent) {
	var call struct{ ID string }
	if err := asked.read(&call); err != nil {
		r.errorf("%v", err)
	}
	r.retry(ctx, "approve "+call.ID, func(k *killable) error {
		response, err := k.do(ctx, http.MethodPost, r.path("/turns/"+turn+"/approvals"), map[string]string{"tool_call_id": call.ID, "decision": "allow"})
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode >= http.StatusInternalServerError {
			return fmt.Errorf("status %d", response.StatusCode)
		}
		return nil // it may have been decided by an earlier try, or the turn has ended
	})
}

// append adds an entry by hand, once.
func (r *roamingClient) append(ctx context.Context) {
	text := fmt.Sprintf("by hand %d %s", len(r.appended), markOf(r.key))
	key := fmt.Sprintf("%s-p%d", r.key, len(r.appended))
	acknowledged := r.retry(ctx, "append", func(k *killable) error {
		body := map[string]any{"entries": []any{map[string]string{"role": "user", "content": text}}}
		response, err := k.do(ctx, http.MethodPost, r.path("/entries"), body, "Idempotency-Key", key)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode >= http.StatusBadRequest {
			return fmt.Errorf("status %d", response.StatusCode)
		}
		return nil
	})
	if acknowledged {
		r.appended = append(r.appended, text)
	}
}

// live uses the replicas until stop is closed.
func (r *roamingClient) live(ctx context.Context, stop <-chan struct{}) {
	var failed *outcome
	for {
		select {
		case <-stop:
			return
		default:
		}
		next := r.begin("tell me", nil, r.random.IntN(4) == 0)
		if failed != nil && failed.failed {
			next = r.resumeTurn(failed, r.random.IntN(2) == 0)
		}
		if failed = r.turn(ctx, next); failed == nil || r.t.Failed() {
			return
		}
		if r.random.IntN(3) == 0 && !failed.failed {
			r.append(ctx)
		}
	}
}

// checkQuiet checks what is left when all is quiet.
func (r *roamingClient) checkQuiet(ctx context.Context, k *killable) {
	entries, err := r.readLog(ctx, k)
	if err != nil {
		r.errorf("%v", err)
		return
	}
	r.checkRules(entries)
	times := map[string]int{}
	for _, e := range entries {
		if e.Role == continuo.User {
			times[e.Content.String()]++
		}
	}
	for _, text := range r.appended {
		if times[text] != 1 {
			r.errorf("the entry %q, which was acknowledged, stands in the log %d times", text, times[text])
		}
	}
	r.checkNoneRunning(ctx, k)
	r.checkOneAtATime(ctx, k)
	if r.t.Failed() {
		r.logEntries(entries)
	}
}

// logEntries logs what the conversation looks like.
func (r *roamingClient) logEntries(entries []continuo.Entry) {
	var text strings.Builder
	for _, e := range entries {
		said := e.Content.String()
		fmt.Fprintf(&text, "\n%d %s %s %s %s %.40q", e.Seq, e.CreatedAt.Format("05.000"), e.ID, e.TurnID, e.Role, said)
	}
	r.t.Logf("%s has%s", r.key, &text)
}

// checkOneAtATime checks that no turn of the conversation began before the one before it had ended.
func (r *roamingClient) checkOneAtATime(ctx context.Context, k *killable) {
	var page struct {
		Data []struct {
			ID        string    `json:"id"`
			StartedAt time.Time `json:"started_at"`
			EndedAt   time.Time `json:"ended_at"`
		}
	}
	if _, err := k.get(ctx, r.path("/turns?limit=200"), &page); err != nil {
		r.errorf("%v", err)
	}
	for i := 1; i < len(page.Data); i++ {
		newer, older := page.Data[i-1], page.Data[i]
		if newer.StartedAt.Before(older.EndedAt) {
			r.errorf("turn %s began at %s, before turn %s ended at %s", newer.ID, newer.StartedAt, older.ID, older.EndedAt)
		}
	}
}

// TestReplicas lets clients use three replicas through everything that happens to machines: replicas are killed
// and replaced, the database is restarted, killed, and taken over by its standby. Clients retry as clients do, at
// whichever replica answers. Nothing that was acknowledged is lost, nothing is there twice, no conversation
// has two turns at once, and every reader receives its turn to the end.
func TestReplicas(t *testing.T) {
	t.Parallel()
	random := killTest(t)
	primary := pgtest.Start(t, pgtest.Options{Durable: true, ListenTCP: true, Replication: true})
	standby := primary.Standby(t, pgtest.Options{Durable: true, ListenTCP: true})
	primary.CommitsWaitFor(t, standby)
	location, err := url.Parse(primary.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	both := pgtest.MultiHostURL(t, strings.TrimPrefix(location.Path, "/"), primary, standby)

	f := newReplicaSet(t, startScripted(t), random, both, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	stop := make(chan struct{})
	var roamers []*roamingClient
	var running sync.WaitGroup
	for i := range 8 {
		r := &roamingClient{chatClient: newChatClient(t, f.upstream, &losses{}, random, fmt.Sprintf("r%d", i)), replicaSet: f}
		roamers = append(roamers, r)
		running.Go(func() { r.live(ctx, stop) })
	}
	pause := func() { <-time.After(time.Duration(300+f.intN(700)) * time.Millisecond) }
	for range rounds(1, 12) {
		for slot := range f.slots {
			pause()
			f.replace(slot)
		}
		pause()
		primary.Stop(t, pgtest.Fast)
		primary.Restart(t)
		pause()
		primary.Kill(t)
		primary.Restart(t)
	}
	standby.CatchUp(t) // what a primary had committed before it was killed is seen again before its standby has it
	pause()
	primary.Kill(t) // for good
	standby.Promote(t)
	pause()
	f.replace(f.intN(len(f.slots)))
	pause()
	turned := func() (sum int) {
		for _, r := range roamers {
			sum += int(r.turned.Load())
		}
		return sum
	}
	least := 2 * len(roamers)
	for until := time.Now().Add(patience); turned() < least && !t.Failed() && time.Now().Before(until); {
		pause() // so busy is the machine
	}
	close(stop)
	running.Wait()
	var broken, moved int
	for _, r := range roamers {
		r.checkQuiet(ctx, f.reference)
		broken, moved = broken+r.broken, moved+r.retries
	}
	turns := turned()
	if t.Failed() {
		for _, k := range f.slots {
			t.Logf("a replica said:\n%s", k.output)
		}
	}
	t.Logf("%d turns in %d conversations, of which %d went on with one that broke off when its request was made again; clients went on elsewhere %d times",
		turns, len(roamers), broken, moved)
	if turns < least {
		t.Errorf("only %d turns ran, want at least %d: the test shows little", turns, least)
	}
}

// TestReadersAtAnotherReplica receives turns at a replica that does not run them while they run: the upstream ends an
// answer only when the reader has received a part of it. It logs the delay.
func TestReadersAtAnotherReplica(t *testing.T) {
	t.Parallel()
	random := killTest(t)
	server := pgtest.Start(t, pgtest.Options{Durable: true})
	f := newReplicaSet(t, startScripted(t), random, server.Database(t), 2)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var running sync.WaitGroup
	var all []*followed
	for i := range 3 { // side by side, half of them in the other direction
		c := newChatClient(t, f.upstream, &losses{}, random, fmt.Sprintf("e%d", i))
		a := c.begin("tell me", nil, false)
		received := make(chan struct{})
		a.playback = &playback{script: script{
			rounds: []scriptedAnswer{{text: prose(c.key, 2000)}}, piece: 16, pace: 2 * time.Millisecond, held: received,
		}}
		release := sync.OnceFunc(func() { close(received) })
		all = append(all, follow(ctx, c, a, f.slots[i%2], f.slots[(i+1)%2], &running, func(e receivedEvent) {
			if e.kind == "delta" {
				release()
			}
		}))
	}
	running.Wait()
	var behind []time.Duration
	for _, one := range all {
		one.readerEnded.Wait()
		behind = append(behind, one.behind()...)
	}
	if t.Failed() {
		return
	}
	slices.Sort(behind)
	t.Logf("behind the replica that runs the turn: median %v, p99 %v, max %v of %d events", share(behind, 0.5), share(behind, 0.99), behind[len(behind)-1], len(behind))
}

// behind returns how much later than at the replica that ran the turn each event came to the reader.
func (f *followed) behind() []time.Duration {
	a := f.turn
	if a.err != nil || f.reader.err != nil || a.end() == nil || len(f.reader.events) < len(a.events) {
		f.client.errorf("%v, %v, %s, %d events of %d", a.err, f.reader.err, show(a.end()), len(f.reader.events), len(a.events))
		return nil
	}
	near := map[int64]time.Time{}
	for _, e := range a.events {
		near[e.id] = e.at
	}
	var behind []time.Duration
	for _, e := range f.reader.events {
		if at, ok := near[e.id]; ok {
			behind = append(behind, e.at.Sub(at))
		}
	}
	return behind
}
