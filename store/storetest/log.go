package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// newLog returns a log as a process would open it.
func newLog(store maintenance.Store) *continuo.Log {
	return continuo.NewLog(store, continuo.LogOptions{})
}

func userEntry(text string) continuo.Entry {
	return continuo.Entry{Role: continuo.User, Content: continuo.Text(text)}
}

func newConversation(t *testing.T, log *continuo.Log) continuo.Conversation {
	t.Helper()
	c, err := log.Create(t.Context(), continuo.Conversation{Title: "t"})
	noError(t, err)
	return c
}

// readLog reads a conversation from its first entry and expects that there is no gap.
func readLog(t *testing.T, log *continuo.Log, id string) []continuo.Entry {
	t.Helper()
	c, err := log.Conversation(t.Context(), id)
	noError(t, err)
	var found []continuo.Entry
	for e, err := range log.Read(t.Context(), c, continuo.Range{}) {
		noError(t, err)
		found = append(found, e)
		if e.Seq != int64(len(found)) {
			t.Fatalf("conversation %s has seq %d at place %d", id, e.Seq, len(found))
		}
	}
	if c.LastSeq != int64(len(found)) {
		t.Errorf("conversation %s has LastSeq %d but %d entries", id, c.LastSeq, len(found))
	}
	return found
}

const logWriters = 64

// writeAtOnce has 64 writers append to their conversations, and expects every acknowledged entry once, at the
// acknowledged seq, and each writer's entries in order.
func writeAtOnce(t *testing.T, rounds int, logOf func(writer int) *continuo.Log, conversationOf func(writer int) string) {
	t.Helper()
	var mu sync.Mutex
	acknowledged := map[string]map[int64]string{}
	var writers sync.WaitGroup
	for w := range logWriters {
		writers.Go(func() {
			id := conversationOf(w)
			for round := range rounds {
				batch := []continuo.Entry{userEntry(fmt.Sprintf("%d/%d", w, round))}
				if round%2 == 1 { // two entries stay together
					batch = append(batch, userEntry(fmt.Sprintf("%d/%d+", w, round)))
				}
				stored, err := logOf(w).Append(t.Context(), id, batch, continuo.AppendOptions{})
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				mu.Lock()
				for _, e := range stored {
					if acknowledged[id] == nil {
						acknowledged[id] = map[int64]string{}
					}
					if other, twice := acknowledged[id][e.Seq]; twice {
						t.Errorf("seq %d was given to %s and to %s", e.Seq, other, e.Content.String())
					}
					acknowledged[id][e.Seq] = e.Content.String()
				}
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	for id, want := range acknowledged {
		checkAcknowledged(t, readLog(t, logOf(0), id), want)
	}
}

func checkAcknowledged(t *testing.T, found []continuo.Entry, want map[int64]string) {
	t.Helper()
	if len(found) != len(want) {
		t.Errorf("%d entries were acknowledged, %d are there", len(want), len(found))
	}
	last := map[int]int{}
	for i, e := range found {
		if want[e.Seq] != e.Content.String() {
			t.Errorf("seq %d: %q was acknowledged, %q is there", e.Seq, want[e.Seq], e.Content.String())
		}
		var writer, round int
		_, _ = fmt.Sscanf(e.Content.String(), "%d/%d", &writer, &round)
		if round < last[writer] {
			t.Errorf("writer %d: round %d comes after %d", writer, round, last[writer])
		}
		last[writer] = round
		if pair := e.Content.String(); pair[len(pair)-1] == '+' && found[i-1].Content.String()+"+" != pair {
			t.Errorf("seq %d: %q was torn from its batch", e.Seq, pair)
		}
	}
}

func testOneConversation(t *testing.T, opener Opener) {
	log := newLog(open(t, opener))
	id := newConversation(t, log).ID
	writeAtOnce(t, 10, func(int) *continuo.Log { return log }, func(int) string { return id })
}

func testManyConversations(t *testing.T, opener Opener) {
	log := newLog(open(t, opener))
	var ids []string
	for range 16 {
		ids = append(ids, newConversation(t, log).ID)
	}
	writeAtOnce(t, 10, func(int) *continuo.Log { return log }, func(w int) string { return ids[w%len(ids)] })
}

// testTwoStores has two stores, as in two processes, write to the same conversations. Appends may fail after
// too many conflicts, but no entry may be lost or split.
func testTwoStores(t *testing.T, opener Opener) {
	logs := []*continuo.Log{newLog(open(t, opener)), newLog(open(t, opener))}
	id := newConversation(t, logs[0]).ID
	var mu sync.Mutex
	acknowledged := map[int64]string{}
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for round := range 10 {
				stored, err := appendWithRetry(t.Context(), logs[w%2], id, userEntry(fmt.Sprintf("%d/%d", w, round)))
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				mu.Lock()
				acknowledged[stored.Seq] = stored.Content.String()
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	checkAcknowledged(t, readLog(t, logs[0], id), acknowledged)
}

// appendWithRetry retries after a conflict.
func appendWithRetry(ctx context.Context, log *continuo.Log, id string, e continuo.Entry) (continuo.Entry, error) {
	for {
		stored, err := log.Append(ctx, id, []continuo.Entry{e}, continuo.AppendOptions{})
		var conflict *continuo.ConflictError
		switch {
		case errors.As(err, &conflict):
			continue
		case err != nil:
			return continuo.Entry{}, err
		}
		return stored[0], nil
	}
}

func testStaleSeq(t *testing.T, opener Opener) {
	log, ctx := newLog(open(t, opener)), t.Context()
	id := newConversation(t, log).ID
	noError(t, second(log.Append(ctx, id, []continuo.Entry{userEntry("a"), userEntry("b")}, continuo.AppendOptions{ExpectSeq: 1})))
	for _, stale := range []int64{1, 2, 4, 9} {
		_, err := log.Append(ctx, id, []continuo.Entry{userEntry("c")}, continuo.AppendOptions{ExpectSeq: stale})
		var conflict *continuo.ConflictError
		if !errors.As(err, &conflict) || *conflict != (continuo.ConflictError{Want: stale, Have: 3}) {
			t.Errorf("expecting seq %d: %v", stale, err)
		}
	}
	// Of several writers that expect the same seq, one wins.
	var won, lost int
	var mu sync.Mutex
	var writers sync.WaitGroup
	for w := range 16 {
		writers.Go(func() {
			_, err := log.Append(ctx, id, []continuo.Entry{userEntry(fmt.Sprint(w))}, continuo.AppendOptions{ExpectSeq: 3})
			var conflict *continuo.ConflictError
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case errors.As(err, &conflict) && *conflict == continuo.ConflictError{Want: 3, Have: 4}:
				lost++
			default:
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if won != 1 || lost != 15 {
		t.Errorf("%d writers won seq 3 and %d lost it", won, lost)
	}
	readLog(t, log, id)
}

func testKeys(t *testing.T, opener Opener) {
	store := opener(t)
	log, ctx := newLog(store), t.Context()
	id := newConversation(t, log).ID
	request := []continuo.Entry{userEntry("a"), userEntry("b")}
	once := continuo.AppendOptions{Key: "once"}
	var mu sync.Mutex
	var answers [][]continuo.Entry
	var writers sync.WaitGroup
	for range 32 {
		writers.Go(func() {
			stored, err := log.Append(ctx, id, request, once)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			answers = append(answers, stored)
			mu.Unlock()
		})
	}
	writers.Wait()
	closeStore(t, store)

	log = newLog(open(t, opener)) // the key outlives the process
	stored, err := log.Append(ctx, id, request, once)
	noError(t, err)
	for _, answer := range append(answers, stored) {
		if !slices.Equal(seqs(answer), []int64{1, 2}) || answer[1].Content.String() != "b" || answer[0].ID != stored[0].ID {
			t.Errorf("an append with the key returned %v", seqs(answer))
		}
	}
	if _, err := log.Append(ctx, id, []continuo.Entry{userEntry("other")}, once); !errors.Is(err, continuo.ErrKeyReused) {
		t.Errorf("the key for another request: %v", err)
	}
	if found := readLog(t, log, id); len(found) != 2 {
		t.Errorf("%d entries are there, want 2", len(found))
	}
}

// testLogForks builds a chain of forks and reads each through all of its ancestors, also when those
// are deleted.
func testLogForks(t *testing.T, opener Opener) {
	log, ctx := newLog(open(t, opener)), t.Context()
	c := newConversation(t, log)
	chain := []string{c.ID}
	var texts []string
	want := map[string][]string{}
	for generation := range 4 {
		for i := range 70 + generation { // more than one page
			text := fmt.Sprintf("%d/%d", generation, i)
			noError(t, second(log.Append(ctx, c.ID, []continuo.Entry{userEntry(text)}, continuo.AppendOptions{})))
			texts = append(texts, text)
		}
		want[c.ID] = slices.Clone(texts)
		cut := len(texts) - 3*generation // the later ones cut into what they inherited
		fork, err := log.Fork(ctx, c.ID, int64(cut), continuo.Conversation{})
		noError(t, err)
		texts = texts[:cut]
		want[fork.ID] = slices.Clone(texts)
		c, chain = fork, append(chain, fork.ID)
	}
	for len(chain) > 0 {
		for _, id := range chain {
			if got := textsOf(readLog(t, log, id)); !slices.Equal(got, want[id]) {
				t.Errorf("%d conversations are left: %s reads %d entries, want %d", len(chain), id, len(got), len(want[id]))
			}
			readBackward(t, log, id, want[id])
		}
		noError(t, log.Delete(ctx, chain[0]))
		if err := second(log.Conversation(ctx, chain[0])); !errors.Is(err, continuo.ErrNotFound) {
			t.Errorf("a deleted conversation: %v", err)
		}
		chain = chain[1:]
	}
}

func readBackward(t *testing.T, log *continuo.Log, id string, want []string) {
	t.Helper()
	c, err := log.Conversation(t.Context(), id)
	noError(t, err)
	at := len(want)
	for e, err := range log.Read(t.Context(), c, continuo.Range{Backward: true}) {
		noError(t, err)
		at--
		if e.Content.String() != want[at] {
			t.Fatalf("backward at %d: %q, want %q", at, e.Content.String(), want[at])
		}
	}
	latest, err := log.LatestUser(t.Context(), c, c.LastSeq)
	if err != nil || latest.Content.String() != want[len(want)-1] {
		t.Errorf("the latest user entry is %q, %v", latest.Content.String(), err)
	}
}

func textsOf(entries []continuo.Entry) []string {
	var texts []string
	for _, e := range entries {
		texts = append(texts, e.Content.String())
	}
	return texts
}
