package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/window"
)

// kill ends all programs of agents.
func (s *scriptedRoles) kill() {
	s.mu.Lock()
	open := s.openSessions
	s.openSessions = nil
	s.mu.Unlock()
	for _, one := range open {
		one.kill()
	}
}

// checkCrewLog checks the invariants of crews in a session's log: roles speak in turn, each is shown what the others said exactly
// once, placeholders are shown to no role, and each request can be shown again.
func checkCrewLog(t *testing.T, e *testEngine, roles []string) {
	t.Helper()
	conversation, err := e.Log.Find(t.Context(), continuo.Scope{ProjectID: "default"}, "s")
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	speakers := map[int64]string{} // what was said, by whom
	seen := map[string][]int64{}
	cursors := map[string]int64{}
	for entry, err := range e.Log.Read(t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if event := entry.RunEvent; event != nil && (event.Kind == continuo.RunNodeFinished || event.Kind == continuo.CrewRoleFailed) {
			order = append(order, entry.NodeID)
		}
		switch {
		case entry.Hidden || entry.IsPlaceholder() || entry.Error != nil: // what broke off is said again
		case entry.Role == continuo.User:
			speakers[entry.Seq] = ""
		case entry.Role == continuo.Assistant && !entry.Content.IsEmpty():
			speakers[entry.Seq] = entry.Author.RoleName
		}
		if entry.Round == nil || entry.Error != nil {
			continue
		}
		role := entry.NodeID
		shown, err := e.Contexts.Request(t.Context(), conversation, entry.Seq)
		if err != nil || !shown.Same {
			t.Fatalf("the request of entry %d is not made again as it was: %v", entry.Seq, err)
		}
		if strings.Contains(string(shown.Body), continuo.Placeholder) && strings.Contains(string(shown.Body), "): "+continuo.Placeholder) {
			t.Errorf("%s was shown a placeholder: %s", role, shown.Body)
		}
		if entry.Round.Cursor < cursors[role] {
			t.Errorf("the cursor of %s goes back from %d to %d", role, cursors[role], entry.Round.Cursor)
		}
		for seq, who := range speakers {
			if who != role && seq > cursors[role] && seq <= entry.Round.Cursor {
				seen[role] = append(seen[role], seq)
				if !isSummarized(shown.Plan, seq) && !strings.Contains(string(shown.Body), textOfEntry(t, e, conversation, seq)) {
					t.Errorf("the cursor of %s moved past entry %d, which it was not shown: %s", role, seq, shown.Body)
				}
			}
		}
		cursors[role] = entry.Round.Cursor
	}
	for i, role := range order {
		if want := roles[i%len(roles)]; role != want {
			t.Fatalf("turn %d was %s's, not %s's: %v", i, role, want, order)
		}
	}
	for _, role := range roles {
		slices.Sort(seen[role])
		var want []int64
		for seq, who := range speakers {
			if who != role {
				want = append(want, seq)
			}
		}
		slices.Sort(want)
		if !slices.Equal(seen[role], want) {
			t.Errorf("%s has seen %v, not %v", role, seen[role], want)
		}
	}
}

// textOfEntry is what an entry says, as far as it stands on one line.
func textOfEntry(t *testing.T, e *testEngine, conversation continuo.Conversation, seq int64) string {
	t.Helper()
	for entry, err := range e.Log.Read(t.Context(), conversation, continuo.Range{From: seq, To: seq}) {
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(entry.Content.String(), "\n")
		return line
	}
	return ""
}

// A crew whose program is killed after each of the writes that it makes goes on every time: nobody speaks out of turn,
// misses an entry, or sees one twice.
func TestACrewContinuesAfterEveryWrite(t *testing.T) {
	for writes := 1; ; writes++ {
		scripted := &scriptedRoles{answer: answerTimes(2)}
		store := storetest.NewMemory()
		dies := &mortal{Store: store, left: writes, dead: make(chan struct{})}
		first := newCrewEngine(t, dies, scripted, newCrewSource(t, threeRoleCrew), nil)
		message := engine.CrewMessage{Session: testSession, Message: continuo.Text("Hello"), Key: "k", Detached: true}
		ended := make(chan struct{})
		if status, err := first.Crews.Send(t.Context(), message); err == nil {
			go func() {
				defer close(ended)
				run, err := first.Log.Runs().Run(t.Context(), "default", status.RunID)
				for range first.Crews.Follow(t.Context(), run, 0) {
					if err != nil {
						return
					}
				}
			}()
		}
		whole := false
		select {
		case <-dies.dead:
		case <-ended:
			whole = true
		}
		scripted.kill()
		second := newCrewEngine(t, store, scripted, newCrewSource(t, threeRoleCrew), nil)
		if _, err := second.Turns.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := second.Crews.Send(t.Context(), message); err != nil { // again: its sender has received no answer
			t.Fatalf("after %d writes: %v", writes, err)
		}
		if status := awaitCycle(t, second); status.State != continuo.RunFinished {
			t.Fatalf("after %d writes it is %s: %s", writes, status.State, status.Reason)
		}
		if lines := transcript(t, second); strings.Count(strings.Join(lines, "\n"), "user: Hello") != 1 {
			t.Fatalf("after %d writes: %q", writes, lines)
		}
		checkCrewLog(t, second, []string{"ann", "bob", "cid"})
		if t.Failed() {
			t.Fatalf("after %d writes: %q", writes, transcript(t, second))
		}
		if whole {
			t.Logf("the cycle makes %d writes", writes)
			break
		}
	}
}

// Two programs that continue with one crew at once carry out each turn once.
func TestTwoProgramsNeverRunOneCrewTwice(t *testing.T) {
	store := storetest.NewMemory()
	scripted := &scriptedRoles{answer: answerTimes(3)}
	alive := func(o *engine.Options) { o.Turns.Gone = func(string) bool { return false } }
	engines := []*testEngine{newCrewEngine(t, store, scripted, newCrewSource(t, threeRoleCrew), alive), newCrewEngine(t, store, scripted, newCrewSource(t, threeRoleCrew), alive)}
	var sending sync.WaitGroup
	for i := range 6 {
		sending.Go(func() {
			_, err := engines[i%2].Crews.Send(t.Context(), engine.CrewMessage{Session: testSession, Message: continuo.Text(fmt.Sprintf("Message %d.", i)), Detached: true})
			if err != nil {
				t.Error(err)
			}
		})
	}
	sending.Wait()
	for _, e := range engines {
		if status := awaitCycle(t, e); status.State != continuo.RunFinished {
			t.Errorf("it is %s: %s", status.State, status.Reason)
		}
	}
	checkCrewLog(t, engines[0], []string{"ann", "bob", "cid"})
	runs, err := engines[0].Runs.List(t.Context(), continuo.RunQuery{ProjectID: "default", Of: continuo.OfCrews, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		if run.State != continuo.RunFinished {
			t.Errorf("cycle %s is %s", run.ID, run.State)
		}
	}
}

// starts counts how often the program of an agent was started.
func (s *scriptedRoles) starts(name string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.openSessions {
		if one.name == name {
			n++
		}
	}
	return n
}

// Where another program has spoken for a role since, the session of this one is behind, though its id is the same: it
// is not prompted any more.
func TestASessionThatIsBehindIsNotPrompted(t *testing.T) {
	store, scripted := storetest.NewMemory(), &scriptedRoles{answer: answerTimes(3)}
	here, there := newCrewEngine(t, store, scripted, newCrewSource(t, threeRoleCrew), nil), newCrewEngine(t, store, scripted, newCrewSource(t, threeRoleCrew), nil)
	for turn, e := range []*testEngine{here, there, here} {
		sendMessage(t, e, fmt.Sprintf("Message %d.", turn))
		status := awaitCycle(t, e)
		if n := scripted.starts("loads"); n != turn+1 || status.Roles[0].Session != "session1" {
			t.Fatalf("after %d cycles the agent was started %d times, and its session is %s", turn+1, n, status.Roles[0].Session)
		}
	}
	checkCrewLog(t, here, []string{"ann", "bob", "cid"})
}

// unreadableStore is a store that cannot be read while now is set; a write resets it.
type unreadableStore struct {
	continuo.Store
	now atomic.Bool
}

func (b *unreadableStore) Conversation(ctx context.Context, id string) (continuo.Conversation, error) {
	if b.now.Load() {
		return continuo.Conversation{}, fmt.Errorf("read: %w", continuo.ErrUnavailable)
	}
	return b.Store.Conversation(ctx, id)
}

func (b *unreadableStore) Append(ctx context.Context, batch continuo.Batch) error {
	err := b.Store.Append(ctx, batch)
	b.now.Store(false)
	return err
}

// An answer that comes while the log cannot be read stands alone, and is concluded when it can: once, and with the
// cursor that it moves.
func TestAnAnswerWithoutAnEventIsConcluded(t *testing.T) {
	scripted, store := &scriptedRoles{answer: answerTimes(2)}, &unreadableStore{Store: storetest.NewMemory()}
	sent := make(chan struct{})
	scripted.during = func(rolePrompt) {
		<-sent
		store.now.Store(true)
	}
	sendMessage(t, newCrewEngine(t, store, scripted, newCrewSource(t, threeRoleCrew), ownersAlive), "Hello")
	e := newCrewEngine(t, store.Store, scripted, newCrewSource(t, threeRoleCrew), ownersAlive) // which sees all the time
	close(sent)
	if status := awaitCycle(t, e); status.State != continuo.RunFinished {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	orphans := 0
	conversation, err := e.Log.Find(t.Context(), continuo.Scope{ProjectID: "default"}, "s")
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range e.Log.Read(t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Role == continuo.Assistant && entry.RunEvent == nil {
			orphans++
		}
	}
	if orphans == 0 {
		t.Fatal("no answer stood alone: nothing was tried")
	}
	for _, role := range []string{"loads", "forgets"} {
		if n := len(scripted.prompts(role)); n > 3 {
			t.Errorf("%s was asked %d times for two answers and a pass", role, n)
		}
	}
	checkCrewLog(t, e, []string{"ann", "bob", "cid"})
}

// isSummarized reports whether a summary that a plan shows stands for an entry.
func isSummarized(plan *window.Plan, seq int64) bool {
	return slices.ContainsFunc(plan.Items, func(item window.PlanItem) bool {
		return item.Verdict == window.Summarized && item.Seq <= seq && seq <= max(item.Seq, item.Through)
	})
}
