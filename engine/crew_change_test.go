package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/turn"
)

// clocked is a theatre whose clock is wrong by so much.
func clocked(t *testing.T, store continuo.Store, hand *stagehand, off time.Duration) *testEngine {
	t.Helper()
	log := continuo.NewLog(store, continuo.LogOptions{Now: func() time.Time { return time.Now().Add(off) }})
	return theatreOver(t, log, hand, newBand(t, trio), nil)
}

// ends follows a cycle to its end.
func ends(t testing.TB, e *testEngine, runID string) {
	t.Helper()
	run, err := e.Log.Runs().Run(t.Context(), "default", runID)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range e.Crews.Follow(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// flood puts messages into the session, before the crew is there.
func flood(t testing.TB, e *testEngine, messages int) {
	t.Helper()
	conversation, err := e.Crews.OpenSession(t.Context(), ofTrio)
	if err != nil {
		t.Fatal(err)
	}
	var entries []continuo.Entry
	for i := range messages {
		entries = append(entries, continuo.Entry{Role: continuo.User, Content: continuo.Text(fmt.Sprintf("This is message %d of a flood.", i))})
	}
	if _, err := e.Log.Append(t.Context(), conversation.ID, entries, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
}

// alive lets the other engines of a test go on: a turn of theirs is not taken over.
func alive(o *engine.Options) { o.Turns.Gone = func(string) bool { return false } }

// tells picks the batch that records an event.
func tells(kind continuo.RunEventKind) func(continuo.Batch) bool {
	return func(b continuo.Batch) bool {
		return slices.ContainsFunc(b.Entries, func(e continuo.Entry) bool { return e.RunEvent != nil && e.RunEvent.Kind == kind })
	}
}

// underWay lists the cycles that are under way.
func underWay(t *testing.T, e *testEngine) (ids []string) {
	t.Helper()
	runs, err := e.Runs.List(t.Context(), continuo.RunQuery{ProjectID: "default", Of: continuo.OfCrews, Limit: 100, State: continuo.RunRunning})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		ids = append(ids, run.ID)
	}
	return ids
}

// The order of cycles is that of the log, whatever the clocks of those who began them say.
func TestClocksDoNotOrderCycles(t *testing.T) {
	store, hand := storetest.NewMemory(), &stagehand{answer: once(1)}
	ahead, behind := clocked(t, store, hand, 0), clocked(t, store, hand, -time.Hour)
	ends(t, ahead, say(t, ahead, "One.").RunID)
	ends(t, behind, say(t, behind, "Two.").RunID)
	ends(t, ahead, say(t, ahead, "Three.").RunID)
	shown := 0
	for _, p := range hand.prompts("loads") {
		shown += strings.Count(p.text, "User: Two.")
	}
	if shown != 1 {
		t.Errorf("Ann, who remembers, was shown a message %d times", shown)
	}
}

// A message that comes while a cycle of a program with another clock is under way is heard in it.
func TestClocksDoNotMakeTwoCycles(t *testing.T) {
	store, hand := storetest.NewMemory(), &stagehand{answer: once(1)}
	ahead, behind := clocked(t, store, hand, 0), clocked(t, store, hand, -time.Hour)
	ends(t, ahead, say(t, ahead, "One.").RunID)
	asked, goOn := make(chan struct{}), make(chan struct{})
	var first sync.Once
	hand.during = func(prompted) { first.Do(func() { close(asked); <-goOn }) }
	second := say(t, behind, "Two.")
	<-asked
	third := say(t, ahead, "Three.")
	cycles := underWay(t, ahead)
	close(goOn)
	ends(t, ahead, second.RunID)
	ends(t, ahead, third.RunID)
	if third.RunID != second.RunID || len(cycles) != 1 {
		t.Errorf("the message began another cycle while one was under way: %v", cycles)
	}
}

// A message that comes within a reset, when the cycle was stopped, begins another cycle, and the reset is one of that.
func TestAMessageWithinAReset(t *testing.T) {
	store, hand := storetest.NewMemory(), &stagehand{answer: once(1)}
	held := newHolder(store, tells(continuo.CrewReset))
	one, two := theatre(t, held, hand, newBand(t, trio), nil), theatre(t, store, hand, newBand(t, trio), nil)
	ends(t, one, say(t, one, "The secret.").RunID)
	reset := make(chan error, 1)
	go func() {
		_, err := one.Crews.Reset(context.WithoutCancel(t.Context()), ofTrio, "")
		reset <- err
	}()
	<-held.reached
	ends(t, two, say(t, two, "And now?").RunID)
	close(held.open)
	if err := <-reset; err != nil {
		t.Fatal(err)
	}
	status, err := one.Crews.Status(t.Context(), ofTrio)
	if err != nil || status.Since == 0 || !status.Restorable {
		t.Errorf("the reset was answered as done, and it is %+v, %v", status, err)
	}
	before := len(hand.prompts("plain"))
	hand.answer = once(1)
	ends(t, one, say(t, one, "Again?").RunID)
	if all := hand.prompts("plain")[before:]; len(all) == 0 || strings.Contains(all[0].text, "The secret.") {
		t.Errorf("after the reset Cid was sent %+v", all)
	}
}

// A message that comes within a resume begins another cycle, and the one that was resumed stays as it is.
func TestAMessageWithinAResume(t *testing.T) {
	store := storetest.NewMemory()
	hand := &stagehand{answer: func(prompted) (string, error) {
		return "", &model.Error{Reason: continuo.ReasonUpstream, Message: "out of order"}
	}}
	held := newHolder(store, tells(continuo.RunResumed))
	tireless := func(o *engine.Options) { o.CrewDefaults.Failures = 1000 }
	one, two := theatre(t, held, hand, newBand(t, trio), tireless), theatre(t, store, hand, newBand(t, trio), nil)
	ends(t, one, say(t, one, "Hello").RunID)
	asked, goOn := make(chan struct{}), make(chan struct{})
	var first sync.Once
	hand.answer, hand.during = once(1), func(prompted) { first.Do(func() { close(asked); <-goOn }) }
	resumed := make(chan error, 1)
	go func() {
		_, err := one.Crews.Resume(context.WithoutCancel(t.Context()), ofTrio, true)
		resumed <- err
	}()
	<-held.reached
	say(t, two, "And now?")
	<-asked
	close(held.open)
	if err := <-resumed; err != nil {
		t.Error(err)
	}
	if cycles := underWay(t, one); len(cycles) != 1 {
		t.Errorf("under way are the cycles %v", cycles)
	}
	close(goOn)
	if status := played(t, one); status.State != continuo.RunFinished {
		t.Errorf("it is %s: %s", status.State, status.Reason)
	}
	witness(t, one, []string{"ann", "bob", "cid"})
}

// within has another engine do something while the first role that is asked speaks. The role answers, whatever
// became of its turn, when that is done, or waits for it. To be called in a bubble; the channel tells when it is done.
func (s *stagehand) within(does func()) (done chan struct{}) {
	done = make(chan struct{})
	var first sync.Once
	s.during = func(prompted) {
		first.Do(func() {
			go func() {
				defer close(done)
				does()
			}()
			synctest.Wait()
		})
	}
	return done
}

// heardLate has the turns of a program hear of a stop when the answer under way is whole: they do not look with each event.
func heardLate(o *engine.Options) {
	alive(o)
	o.Turns.Show = turn.ShowImmediate
}

// What a role says in a turn in which the crew is reset does not bring its session back.
func TestAnAnswerWithinAResetBringsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, hand := storetest.NewMemory(), &stagehand{answer: once(1)}
		one, two := theatre(t, store, hand, newBand(t, trio), heardLate), theatre(t, store, hand, newBand(t, trio), heardLate)
		reset := hand.within(func() {
			if _, err := two.Crews.Reset(t.Context(), ofTrio, ""); err != nil {
				t.Error(err)
			}
		})
		ends(t, one, say(t, one, "The secret.").RunID)
		<-reset
		status, err := one.Crews.Status(t.Context(), ofTrio)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(script(t, one), "Ann: loads says 1") {
			t.Fatalf("Ann has not answered: nothing was tried: %q", script(t, one))
		}
		if ann := status.Roles[0]; ann.Session != "" || ann.Answers != 0 || status.Since == 0 {
			t.Errorf("after the reset Ann remembers: %+v", ann)
		}
	})
}

// A role that answers in a turn in which the crew is stopped has had its turn.
func TestAnAnswerWithinAStopCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, hand := storetest.NewMemory(), &stagehand{answer: once(1)}
		one, two := theatre(t, store, hand, newBand(t, trio), heardLate), theatre(t, store, hand, newBand(t, trio), heardLate)
		stopped := hand.within(func() {
			_, err := two.Crews.Stop(t.Context(), ofTrio, "enough")
			if err == nil {
				_, err = two.Crews.Say(t.Context(), engine.CrewMessage{Session: ofTrio, Message: continuo.Text("And now?"), Detached: true})
			}
			if err != nil {
				t.Error(err)
			}
		})
		ends(t, one, say(t, one, "Hello").RunID)
		<-stopped
		if status := played(t, two); status.State != continuo.RunFinished || status.Roles[0].Answers != 1 {
			t.Errorf("it is %s (%s): %+v", status.State, status.Reason, status.Roles)
		}
		witness(t, one, []string{"ann", "bob", "cid"})
	})
}

// stuck is an agent whose program does not come up.
type stuck struct {
	agent
	starts chan<- struct{}
}

func (s stuck) Open(ctx context.Context, _ string) (model.Session, error) {
	s.starts <- struct{}{}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// Who stops a crew does not wait for a program that does not come up, and nor does who speaks next.
func TestAStopDoesNotWaitForAProgramToComeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hand, starts := &stagehand{answer: once(1)}, make(chan struct{}, 2)
		e := theatre(t, storetest.NewMemory(), hand, newBand(t, trio), func(o *engine.Options) {
			o.CrewDefaults.Timeout = 24 * time.Hour
			o.Models["loads"] = engine.Upstream{Model: stuck{agent{&part{stage: hand, name: "loads"}}, starts}}
		})
		say(t, e, "Hello")
		<-starts
		if status, err := e.Crews.Stop(t.Context(), ofTrio, "enough"); err != nil || status.State != continuo.RunStopped {
			t.Fatalf("it is %+v, %v", status, err)
		}
		if err := chatThrough(t.Context(), e, "s", engine.Wait); err != nil {
			t.Errorf("the conversation stays busy although the crew was stopped: %v", err)
		}
	})
}

// Agents that remember are begun anew once after a restore, and not again and again.
func TestASessionLastsAfterARestore(t *testing.T) {
	hand := &stagehand{answer: once(1)}
	text := strings.ReplaceAll(trio, "system_prompt", "view: {kind: delta, chars: 1000}, system_prompt")
	e := theatre(t, storetest.NewMemory(), hand, newBand(t, text), nil)
	flood(t, e, 200)
	say(t, e, "One?")
	played(t, e)
	if _, err := e.Crews.Reset(t.Context(), ofTrio, ""); err != nil {
		t.Fatal(err)
	}
	hand.answer = once(1)
	say(t, e, "Two?")
	played(t, e)
	if _, err := e.Crews.Restore(t.Context(), ofTrio, ""); err != nil {
		t.Fatal(err)
	}
	before := hand.opened
	hand.answer = once(3)
	say(t, e, "Three?")
	played(t, e)
	if begun := hand.opened - before; begun != 2 {
		t.Errorf("%d sessions were begun anew for two roles", begun)
	}
}

// A person who stops a role's turn stops the crew, and that is no failure of the role's: resumed, it is asked again.
func TestATurnThatAPersonStopsIsNoFailure(t *testing.T) {
	hand := &stagehand{answer: once(1)}
	e := theatre(t, storetest.NewMemory(), hand, newBand(t, trio), func(o *engine.Options) {
		o.CrewDefaults.Failures, o.CrewDefaults.Cooldown = 1, time.Hour
	})
	asked := make(chan struct{}, 1)
	hand.hangs = func(p prompted) bool {
		if p.role == "forgets" {
			asked <- struct{}{}
		}
		return p.role == "forgets"
	}
	say(t, e, "Hello")
	<-asked
	status, err := e.Crews.Status(t.Context(), ofTrio)
	if err != nil || status.Speaking != "bob" {
		t.Fatalf("it is %+v, %v", status, err)
	}
	running, err := e.Log.Turns().Turn(t.Context(), status.ConversationID, status.TurnID)
	if err == nil {
		err = e.Turns.Cancel(t.Context(), running)
	}
	if err != nil {
		t.Fatal(err)
	}
	if status = played(t, e); status.State != continuo.RunStopped || status.Reason != "Bob was stopped" {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	hand.mu.Lock()
	hand.hangs = nil
	hand.mu.Unlock()
	if _, err := e.Crews.Resume(t.Context(), ofTrio, true); err != nil {
		t.Fatal(err)
	}
	if status = played(t, e); status.State != continuo.RunFinished || status.Roles[1].Answers != 1 || !status.Roles[1].RestsUntil.IsZero() {
		t.Errorf("it is %s (%s): %+v", status.State, status.Reason, status.Roles[1])
	}
}
