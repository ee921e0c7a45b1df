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

// newCrewEngineWithClock is a newCrewEngine whose clock is wrong by a duration.
func newCrewEngineWithClock(t *testing.T, store continuo.Store, scripted *scriptedRoles, off time.Duration) *testEngine {
	t.Helper()
	log := continuo.NewLog(store, continuo.LogOptions{Now: func() time.Time { return time.Now().Add(off) }})
	return newCrewEngineOver(t, log, scripted, newCrewSource(t, threeRoleCrew), nil)
}

// awaitEndOfCycle follows a cycle to its end.
func awaitEndOfCycle(t testing.TB, e *testEngine, runID string) {
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

// appendFlood appends messages to the session before the first cycle.
func appendFlood(t testing.TB, e *testEngine, messages int) {
	t.Helper()
	conversation, err := e.Crews.OpenSession(t.Context(), testSession)
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

// ownersAlive says that the owners of turns are alive, so that no turn of another engine is taken over.
func ownersAlive(o *engine.Options) { o.Turns.Gone = func(string) bool { return false } }

// recordsEvent picks the batch that records an event.
func recordsEvent(kind continuo.RunEventKind) func(continuo.Batch) bool {
	return func(b continuo.Batch) bool {
		return slices.ContainsFunc(b.Entries, func(e continuo.Entry) bool { return e.RunEvent != nil && e.RunEvent.Kind == kind })
	}
}

// runningCycles lists the cycles that are in progress.
func runningCycles(t *testing.T, e *testEngine) (ids []string) {
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
	store, scripted := storetest.NewMemory(), &scriptedRoles{answer: answerTimes(1)}
	ahead, behind := newCrewEngineWithClock(t, store, scripted, 0), newCrewEngineWithClock(t, store, scripted, -time.Hour)
	awaitEndOfCycle(t, ahead, sendMessage(t, ahead, "One.").RunID)
	awaitEndOfCycle(t, behind, sendMessage(t, behind, "Two.").RunID)
	awaitEndOfCycle(t, ahead, sendMessage(t, ahead, "Three.").RunID)
	shown := 0
	for _, p := range scripted.prompts("loads") {
		shown += strings.Count(p.text, "User: Two.")
	}
	if shown != 1 {
		t.Errorf("Ann, who remembers, was shown a message %d times", shown)
	}
}

// A message that comes while a cycle of a program with another clock is in progress is part of it.
func TestClocksDoNotMakeTwoCycles(t *testing.T) {
	store, scripted := storetest.NewMemory(), &scriptedRoles{answer: answerTimes(1)}
	ahead, behind := newCrewEngineWithClock(t, store, scripted, 0), newCrewEngineWithClock(t, store, scripted, -time.Hour)
	awaitEndOfCycle(t, ahead, sendMessage(t, ahead, "One.").RunID)
	asked, proceed := make(chan struct{}), make(chan struct{})
	var first sync.Once
	scripted.during = func(rolePrompt) { first.Do(func() { close(asked); <-proceed }) }
	second := sendMessage(t, behind, "Two.")
	<-asked
	third := sendMessage(t, ahead, "Three.")
	cycles := runningCycles(t, ahead)
	close(proceed)
	awaitEndOfCycle(t, ahead, second.RunID)
	awaitEndOfCycle(t, ahead, third.RunID)
	if third.RunID != second.RunID || len(cycles) != 1 {
		t.Errorf("the message began another cycle while one was in progress: %v", cycles)
	}
}

// A message that comes within a reset, when the cycle was stopped, begins another cycle, and the reset is one of that.
func TestAMessageWithinAReset(t *testing.T) {
	store, scripted := storetest.NewMemory(), &scriptedRoles{answer: answerTimes(1)}
	held := newHeldStore(store, recordsEvent(continuo.CrewReset))
	one, two := newCrewEngine(t, held, scripted, newCrewSource(t, threeRoleCrew), nil), newCrewEngine(t, store, scripted, newCrewSource(t, threeRoleCrew), nil)
	awaitEndOfCycle(t, one, sendMessage(t, one, "The secret.").RunID)
	reset := make(chan error, 1)
	go func() {
		_, err := one.Crews.Reset(context.WithoutCancel(t.Context()), testSession, "")
		reset <- err
	}()
	<-held.reached
	awaitEndOfCycle(t, two, sendMessage(t, two, "And now?").RunID)
	close(held.open)
	if err := <-reset; err != nil {
		t.Fatal(err)
	}
	status, err := one.Crews.Status(t.Context(), testSession)
	if err != nil || status.Since == 0 || !status.Restorable {
		t.Errorf("the reset was answered as done, and it is %+v, %v", status, err)
	}
	before := len(scripted.prompts("plain"))
	scripted.answer = answerTimes(1)
	awaitEndOfCycle(t, one, sendMessage(t, one, "Again?").RunID)
	if all := scripted.prompts("plain")[before:]; len(all) == 0 || strings.Contains(all[0].text, "The secret.") {
		t.Errorf("after the reset Cid was sent %+v", all)
	}
}

// A message that comes within a resume begins another cycle, and the one that was resumed stays as it is.
func TestAMessageWithinAResume(t *testing.T) {
	store := storetest.NewMemory()
	scripted := &scriptedRoles{answer: func(rolePrompt) (string, error) {
		return "", &model.Error{Reason: continuo.ReasonUpstream, Message: "out of order"}
	}}
	held := newHeldStore(store, recordsEvent(continuo.RunResumed))
	tireless := func(o *engine.Options) { o.CrewDefaults.Failures = 1000 }
	one, two := newCrewEngine(t, held, scripted, newCrewSource(t, threeRoleCrew), tireless), newCrewEngine(t, store, scripted, newCrewSource(t, threeRoleCrew), nil)
	awaitEndOfCycle(t, one, sendMessage(t, one, "Hello").RunID)
	asked, proceed := make(chan struct{}), make(chan struct{})
	var first sync.Once
	scripted.answer, scripted.during = answerTimes(1), func(rolePrompt) { first.Do(func() { close(asked); <-proceed }) }
	resumed := make(chan error, 1)
	go func() {
		_, err := one.Crews.Resume(context.WithoutCancel(t.Context()), testSession, true)
		resumed <- err
	}()
	<-held.reached
	sendMessage(t, two, "And now?")
	<-asked
	close(held.open)
	if err := <-resumed; err != nil {
		t.Error(err)
	}
	if cycles := runningCycles(t, one); len(cycles) != 1 {
		t.Errorf("in progress are the cycles %v", cycles)
	}
	close(proceed)
	if status := awaitCycle(t, one); status.State != continuo.RunFinished {
		t.Errorf("it is %s: %s", status.State, status.Reason)
	}
	checkCrewLog(t, one, []string{"ann", "bob", "cid"})
}

// within has another engine do something while the first role that is asked speaks. The role answers, whatever
// became of its turn, when that is done, or waits for it. To be called in a bubble; the channel tells when it is done.
func (s *scriptedRoles) within(does func()) (done chan struct{}) {
	done = make(chan struct{})
	var first sync.Once
	s.during = func(rolePrompt) {
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

// handleStopsLate makes turns receive a stop when the current answer is complete, and not with each event.
func handleStopsLate(o *engine.Options) {
	ownersAlive(o)
	o.Turns.Show = turn.ShowImmediate
}

// What a role says in a turn in which the crew is reset does not bring its session back.
func TestAnAnswerWithinAResetBringsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, scripted := storetest.NewMemory(), &scriptedRoles{answer: answerTimes(1)}
		one, two := newCrewEngine(t, store, scripted, newCrewSource(t, threeRoleCrew), handleStopsLate), newCrewEngine(t, store, scripted, newCrewSource(t, threeRoleCrew), handleStopsLate)
		reset := scripted.within(func() {
			if _, err := two.Crews.Reset(t.Context(), testSession, ""); err != nil {
				t.Error(err)
			}
		})
		awaitEndOfCycle(t, one, sendMessage(t, one, "The secret.").RunID)
		<-reset
		status, err := one.Crews.Status(t.Context(), testSession)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(transcript(t, one), "Ann: loads says 1") {
			t.Fatalf("Ann has not answered: nothing was tried: %q", transcript(t, one))
		}
		if ann := status.Roles[0]; ann.Session != "" || ann.Answers != 0 || status.Since == 0 {
			t.Errorf("after the reset Ann remembers: %+v", ann)
		}
	})
}

// A role that answers in a turn in which the crew is stopped has had its turn.
func TestAnAnswerWithinAStopCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, scripted := storetest.NewMemory(), &scriptedRoles{answer: answerTimes(1)}
		one, two := newCrewEngine(t, store, scripted, newCrewSource(t, threeRoleCrew), handleStopsLate), newCrewEngine(t, store, scripted, newCrewSource(t, threeRoleCrew), handleStopsLate)
		stopped := scripted.within(func() {
			_, err := two.Crews.Stop(t.Context(), testSession, "enough")
			if err == nil {
				_, err = two.Crews.Send(t.Context(), engine.CrewMessage{Session: testSession, Message: continuo.Text("And now?"), Detached: true})
			}
			if err != nil {
				t.Error(err)
			}
		})
		awaitEndOfCycle(t, one, sendMessage(t, one, "Hello").RunID)
		<-stopped
		if status := awaitCycle(t, two); status.State != continuo.RunFinished || status.Roles[0].Answers != 1 {
			t.Errorf("it is %s (%s): %+v", status.State, status.Reason, status.Roles)
		}
		checkCrewLog(t, one, []string{"ann", "bob", "cid"})
	})
}

// hangingAgent is an agent whose program never starts.
type hangingAgent struct {
	fakeAgent
	starts chan<- struct{}
}

func (s hangingAgent) Open(ctx context.Context, _ string) (model.Session, error) {
	s.starts <- struct{}{}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// Who stops a crew does not wait for a program that does not come up, and nor does who speaks next.
func TestAStopDoesNotWaitForAProgramToComeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted, starts := &scriptedRoles{answer: answerTimes(1)}, make(chan struct{}, 2)
		e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), func(o *engine.Options) {
			o.CrewDefaults.Timeout = 24 * time.Hour
			o.Models["loads"] = engine.Upstream{Model: hangingAgent{fakeAgent{&fakeRole{script: scripted, name: "loads"}}, starts}}
		})
		sendMessage(t, e, "Hello")
		<-starts
		if status, err := e.Crews.Stop(t.Context(), testSession, "enough"); err != nil || status.State != continuo.RunStopped {
			t.Fatalf("it is %+v, %v", status, err)
		}
		if err := chatThrough(t.Context(), e, "s", engine.Wait); err != nil {
			t.Errorf("the conversation stays busy although the crew was stopped: %v", err)
		}
	})
}

// Agents that remember are started again once after a restore, and not again and again.
func TestASessionLastsAfterARestore(t *testing.T) {
	scripted := &scriptedRoles{answer: answerTimes(1)}
	text := strings.ReplaceAll(threeRoleCrew, "system_prompt", "view: {kind: delta, chars: 1000}, system_prompt")
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, text), nil)
	appendFlood(t, e, 200)
	sendMessage(t, e, "One?")
	awaitCycle(t, e)
	if _, err := e.Crews.Reset(t.Context(), testSession, ""); err != nil {
		t.Fatal(err)
	}
	scripted.answer = answerTimes(1)
	sendMessage(t, e, "Two?")
	awaitCycle(t, e)
	if _, err := e.Crews.Restore(t.Context(), testSession, ""); err != nil {
		t.Fatal(err)
	}
	before := scripted.sessionsOpened
	scripted.answer = answerTimes(3)
	sendMessage(t, e, "Three?")
	awaitCycle(t, e)
	if begun := scripted.sessionsOpened - before; begun != 2 {
		t.Errorf("%d sessions were started again for two roles", begun)
	}
}

// A person who stops a role's turn stops the crew, and that is no failure of the role's: resumed, it is asked again.
func TestATurnThatAPersonStopsIsNoFailure(t *testing.T) {
	scripted := &scriptedRoles{answer: answerTimes(1)}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), func(o *engine.Options) {
		o.CrewDefaults.Failures, o.CrewDefaults.Cooldown = 1, time.Hour
	})
	asked := make(chan struct{}, 1)
	scripted.timesOut = func(p rolePrompt) bool {
		if p.role == "forgets" {
			asked <- struct{}{}
		}
		return p.role == "forgets"
	}
	sendMessage(t, e, "Hello")
	<-asked
	status, err := e.Crews.Status(t.Context(), testSession)
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
	if status = awaitCycle(t, e); status.State != continuo.RunStopped || status.Reason != "Bob was stopped" {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	scripted.mu.Lock()
	scripted.timesOut = nil
	scripted.mu.Unlock()
	if _, err := e.Crews.Resume(t.Context(), testSession, true); err != nil {
		t.Fatal(err)
	}
	if status = awaitCycle(t, e); status.State != continuo.RunFinished || status.Roles[1].Answers != 1 || !status.Roles[1].RestsUntil.IsZero() {
		t.Errorf("it is %s (%s): %+v", status.State, status.Reason, status.Roles[1])
	}
}
