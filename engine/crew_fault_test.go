package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
)

// hangBob lets Bob answer nothing; the channel is closed when he is asked.
func (s *scriptedRoles) hangBob() <-chan struct{} {
	asked := make(chan struct{})
	s.timesOut = func(p rolePrompt) bool {
		if p.role == "forgets" {
			close(asked)
		}
		return p.role == "forgets"
	}
	return asked
}

// A role that hangs loses its turn when its time is up, is not asked twice for it, and the others go on.
func TestARoleThatHangsLosesItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted := &scriptedRoles{answer: answerTimes(1), timesOut: func(p rolePrompt) bool { return p.role == "forgets" }}
		text := strings.Replace(threeRoleCrew, "display_name: Bob,", "display_name: Bob, timeout: 1s,", 1)
		e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, text), nil)
		sendMessage(t, e, "Hello")
		status := awaitCycle(t, e)
		if status.State != continuo.RunFinished || status.Roles[0].Answers != 1 || status.Roles[2].Answers != 1 || status.Roles[1].Cursor != 0 {
			t.Errorf("it is %s (%s): %+v", status.State, status.Reason, status.Roles)
		}
		if failed := status.Roles[1].Failed; !strings.Contains(failed, "took longer than 1s; raise the role's timeout, or crew.agent_timeout") {
			t.Errorf("it failed: %s", failed)
		}
		if n := len(scripted.prompts("forgets")); n != 2 { // in each of the cycle's two rounds
			t.Errorf("the one that hangs was asked %d times", n)
		}
	})
}

// An agent that ends is started again, told who it is, and shown the whole history, once.
func TestAnAgentThatEndsIsShownTheWholeHistoryOnce(t *testing.T) {
	answer := answerTimes(4)
	scripted := &scriptedRoles{}
	scripted.answer = func(p rolePrompt) (string, error) {
		text, _ := answer(p)
		if p.role == "forgets" && len(scripted.prompts("forgets")) == 2 {
			return "", &model.Error{Reason: continuo.ReasonUpstream, Message: "it crashed"}
		}
		return text, nil
	}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), nil)
	sendMessage(t, e, "Hello there.")
	if status := awaitCycle(t, e); status.State != continuo.RunFinished {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	prompts := scripted.prompts("forgets")
	sessions := map[string]int{}
	for i, p := range prompts {
		sessions[p.session]++
		first := sessions[p.session] == 1
		if whole := strings.Contains(p.text, "Assistant (Ann): loads says 1"); whole != first {
			t.Errorf("prompt %d of Bob, in %s, shows the whole history: %t\n%s", i, p.session, whole, p.text)
		}
		if hasPrompt := strings.Contains(p.text, "You are Bob."); hasPrompt != first {
			t.Errorf("prompt %d of Bob tells him who he is: %t", i, hasPrompt)
		}
		if i == 2 && !strings.Contains(p.text, "Assistant (Bob): forgets says 1") {
			t.Errorf("Bob, who has forgotten, was not shown his own words:\n%s", p.text)
		}
	}
	if len(sessions) != 2 {
		t.Errorf("Bob had the sessions %v", sessions)
	}
	// Whatever was shown, the request is in sight.
	for _, p := range scripted.received {
		if !strings.Contains(p.text, "Hello there.") {
			t.Errorf("%s was asked without the request in sight:\n%s", p.role, p.text)
		}
	}
}

// Agents outlive their program where they can load a session, and see then only what is new.
func TestASessionIsLoadedAfterARestart(t *testing.T) {
	store, scripted := storetest.NewMemory(), &scriptedRoles{answer: answerTimes(1)}
	first := newCrewEngine(t, store, scripted, newCrewSource(t, threeRoleCrew), nil)
	sendMessage(t, first, "Hello")
	awaitCycle(t, first)
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, one := range scripted.openSessions {
		if (fakeSession{one}).Alive() {
			t.Errorf("the agent of %s goes on after the program has ended", one.name)
		}
	}
	second := newCrewEngine(t, store, scripted, newCrewSource(t, threeRoleCrew), nil)
	before := len(scripted.prompts("loads"))
	sendMessage(t, second, "More?")
	awaitCycle(t, second)
	loaded := scripted.prompts("loads")[before]
	if strings.Contains(loaded.text, "You are Ann.") || strings.Contains(loaded.text, "loads says 1") || !strings.Contains(loaded.text, "User: More?") {
		t.Errorf("Ann, who remembers, was sent\n%s", loaded.text)
	}
	if whole := scripted.prompts("forgets")[before]; !strings.Contains(whole.text, "You are Bob.") || !strings.Contains(whole.text, "forgets says 1") {
		t.Errorf("Bob, who has forgotten, was sent\n%s", whole.text)
	}
}

// A role whose agent cannot be started, or fails again and again, is left alone for a while.
func TestARoleThatKeepsFailingIsPaused(t *testing.T) {
	starts := 0
	scripted := &scriptedRoles{answer: func(p rolePrompt) (string, error) { return "on and on", nil }}
	scripted.startError = func() error {
		starts++
		return errors.New("no such program")
	}
	text := strings.NewReplacer("connector: loads", "connector: plain", "roles:", "max_rounds: 20\nroles:").Replace(threeRoleCrew)
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, text), func(o *engine.Options) { o.CrewDefaults.Cooldown = time.Hour })
	sendMessage(t, e, "Hello")
	status := awaitCycle(t, e)
	if status.Roles[1].RestsUntil.IsZero() || !strings.Contains(status.Roles[1].Failed, "no such program") {
		t.Errorf("Bob stands %+v", status.Roles[1])
	}
	if starts != 6 { // three turns, each with another try
		t.Errorf("the program was started %d times", starts)
	}
	if status.Roles[0].Answers != 20 || status.Roles[2].Answers != 20 {
		t.Errorf("the others did not go on: %+v", status.Roles)
	}
}

// More than a role's view can hold comes between two of its turns: the cursor moves no further than what was shown.
func TestTheCursorNeverPassesWhatWasNotShown(t *testing.T) {
	for _, kind := range []string{"delta", "full", "{kind: window, newest: 3}", "{kind: summary, newest: 3}", "memory"} {
		t.Run(kind, func(t *testing.T) {
			view := strings.TrimSuffix(strings.TrimPrefix(kind, "{kind: "), "}")
			text := strings.ReplaceAll(threeRoleCrew, "system_prompt", "view: {kind: "+view+", chars: 1000}, system_prompt")
			scripted := &scriptedRoles{answer: answerTimes(1)}
			e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, text), nil)
			appendFlood(t, e, 40)
			sendMessage(t, e, "What now?")
			if status := awaitCycle(t, e); status.State != continuo.RunFinished || status.Reason != "no role has anything to add" {
				t.Fatalf("it is %s: %s", status.State, status.Reason)
			}
			checkCrewLog(t, e, []string{"ann", "bob", "cid"})
			for _, p := range scripted.received {
				if !strings.Contains(p.text, "This is message 0 of a flood.") || !strings.Contains(p.text, "What now?") {
					t.Errorf("%s lost the request, or the newest message, out of sight:\n%s", p.role, p.text)
				}
			}
		})
	}
}

func TestAResetKeepsEverythingAndCanBeTakenBack(t *testing.T) {
	scripted := &scriptedRoles{answer: answerTimes(2)}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), nil)
	sendMessage(t, e, "The first thing.")
	awaitCycle(t, e)
	before := transcript(t, e)
	status, err := e.Crews.Reset(t.Context(), testSession, "k")
	if err != nil || status.Since == 0 || !status.Restorable {
		t.Fatalf("after a reset: %+v, %v", status, err)
	}
	if again, err := e.Crews.Reset(t.Context(), testSession, "k"); err != nil || again.Since != status.Since || again.LastSeq != status.LastSeq {
		t.Errorf("the same reset again: %+v, %v", again, err)
	}
	asked := len(scripted.received)
	scripted.answer = answerTimes(1)
	sendMessage(t, e, "The second thing.")
	awaitCycle(t, e)
	for _, p := range scripted.received[asked:] {
		if strings.Contains(p.text, "The first thing.") {
			t.Errorf("after a reset %s was sent\n%s", p.role, p.text)
		}
	}
	if got := transcript(t, e); !slices.Equal(got[:len(before)], before) {
		t.Errorf("a reset changed the log: %q", got)
	}
	if status, err = e.Crews.Restore(t.Context(), testSession, ""); err != nil || status.Since != 0 || status.Restorable {
		t.Fatalf("after it was taken back: %+v, %v", status, err)
	}
	asked = len(scripted.received)
	scripted.answer = answerTimes(1)
	sendMessage(t, e, "The third thing.")
	awaitCycle(t, e)
	for role := range map[string]bool{"loads": true, "forgets": true, "plain": true} {
		first := slices.IndexFunc(scripted.received[asked:], func(p rolePrompt) bool { return p.role == role })
		if p := scripted.received[asked+first]; !strings.Contains(p.text, "The first thing.") || !strings.Contains(p.text, "The third thing.") {
			t.Errorf("when it was taken back %s was sent\n%s", role, p.text)
		}
	}
	if _, err := e.Crews.Restore(t.Context(), testSession, ""); !errors.Is(err, engine.ErrNoCycle) {
		t.Errorf("it is taken back twice: %v", err)
	}
}

func TestTheSystemPromptIsRepeated(t *testing.T) {
	scripted := &scriptedRoles{answer: answerTimes(4)}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, strings.Replace(threeRoleCrew, "roles:", "reminder_interval: 2\nroles:", 1)), nil)
	sendMessage(t, e, "Hello")
	awaitCycle(t, e)
	for i, p := range scripted.prompts("loads") {
		if reminded := strings.Contains(p.text, "[SYSTEM REMINDER]\nYou are Ann.\n[END REMINDER]"); reminded != (i == 2 || i == 4) {
			t.Errorf("prompt %d of Ann reminds her: %t\n%s", i, reminded, p.text)
		}
	}
}

func TestAStoppedCycleContinuesWhenResumed(t *testing.T) {
	scripted := &scriptedRoles{answer: answerTimes(1)}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), nil)
	asked := scripted.hangBob()
	sendMessage(t, e, "Hello")
	<-asked
	status, err := e.Crews.Stop(t.Context(), testSession, "enough")
	if err != nil || status.State != continuo.RunStopped {
		t.Fatalf("it is %+v, %v", status, err)
	}
	if status = awaitCycle(t, e); status.State != continuo.RunStopped {
		t.Errorf("it is %s: %s", status.State, status.Reason)
	}
	scripted.mu.Lock()
	scripted.timesOut = nil
	scripted.mu.Unlock()
	if _, err := e.Crews.Resume(t.Context(), testSession, true); err != nil {
		t.Fatal(err)
	}
	if status = awaitCycle(t, e); status.State != continuo.RunFinished {
		t.Errorf("resumed, it is %s: %s", status.State, status.Reason)
	}
	checkCrewLog(t, e, []string{"ann", "bob", "cid"})
}

// What a role still says when the crew is reset in its turn stands before the reset, and there is nothing to resume.
func TestAResetInATurnHidesWhatTheTurnLeaves(t *testing.T) {
	scripted := &scriptedRoles{answer: answerTimes(1)}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), nil)
	asked := scripted.hangBob()
	sendMessage(t, e, "The secret plan.")
	<-asked
	status, err := e.Crews.Reset(t.Context(), testSession, "")
	if err != nil {
		t.Fatal(err)
	}
	conversation, err := e.Log.Find(t.Context(), continuo.Scope{ProjectID: "default"}, "s")
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range e.Log.Read(t.Context(), conversation, continuo.Range{From: status.Since + 1}) {
		if err != nil {
			t.Fatal(err)
		}
		if !entry.Hidden {
			t.Errorf("entry %d, %s, stands behind the reset: %s", entry.Seq, entry.Role, entry.Content)
		}
	}
	if _, err := e.Crews.Resume(t.Context(), testSession, true); !errors.Is(err, engine.ErrNoCycle) {
		t.Errorf("there is something to resume: %v", err)
	}
	scripted.mu.Lock()
	scripted.timesOut, scripted.received = nil, nil
	scripted.mu.Unlock()
	sendMessage(t, e, "Something else.")
	if status := awaitCycle(t, e); status.State != continuo.RunFinished {
		t.Errorf("it is %s: %s", status.State, status.Reason)
	}
	for _, p := range scripted.received {
		if strings.Contains(p.text, "secret") || strings.Contains(p.text, "broke off") {
			t.Errorf("%s was shown\n%s", p.role, p.text)
		}
	}
}

// What a role said in an attempt that failed is shown to nobody else when it was asked again.
func TestAnAttemptThatFailedIsNotShownToOthers(t *testing.T) {
	answer, attempts := answerTimes(1), 0
	scripted := &scriptedRoles{}
	scripted.answer = func(p rolePrompt) (string, error) {
		if p.role == "forgets" {
			if attempts++; attempts == 1 {
				return "half of an ans", &model.Error{Reason: continuo.ReasonUpstream, Message: "it crashed"}
			}
		}
		return answer(p)
	}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), nil)
	sendMessage(t, e, "Hello")
	awaitCycle(t, e)
	for _, role := range []string{"loads", "plain"} {
		for _, p := range scripted.prompts(role) {
			if strings.Contains(p.text, "half of") {
				t.Errorf("%s was shown\n%s", role, p.text)
			}
		}
	}
	if again := scripted.prompts("forgets")[1]; !strings.Contains(again.text, "half of an ans") {
		t.Errorf("Bob, who is asked again, was not shown how far he had come:\n%s", again.text)
	}
}

// An agent that says that it was cancelled although nobody did fails, and the others go on.
func TestAnAgentCannotStopTheCrew(t *testing.T) {
	answers := answerTimes(1)
	scripted := &scriptedRoles{answer: func(p rolePrompt) (string, error) {
		if p.role == "forgets" {
			return "", &model.Error{Reason: continuo.ReasonCancelled, Message: "the turn was cancelled"}
		}
		return answers(p)
	}}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), nil)
	sendMessage(t, e, "Hello")
	status := awaitCycle(t, e)
	if status.State != continuo.RunFinished || status.Roles[0].Answers != 1 || status.Roles[2].Answers != 1 {
		t.Errorf("it is %s (%s): %+v", status.State, status.Reason, status.Roles)
	}
	if status.Roles[1].Answers != 0 || status.Roles[1].Failed == "" {
		t.Errorf("Bob, who failed, stands %+v", status.Roles[1])
	}
}

// A role whose turn breaks down each time is not begun for ever, and the others go on.
func TestARoleThatBreaksDownDoesNotHoldUpTheOthers(t *testing.T) {
	answers := answerTimes(1)
	scripted := &scriptedRoles{answer: func(p rolePrompt) (string, error) {
		if p.role == "forgets" {
			panic("out of order")
		}
		return answers(p)
	}}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), nil)
	sendMessage(t, e, "Hello")
	status := awaitCycle(t, e)
	if status.State != continuo.RunFinished || status.Roles[0].Answers != 1 || status.Roles[2].Answers != 1 {
		t.Errorf("it is %s (%s): %+v", status.State, status.Reason, status.Roles)
	}
	if !strings.Contains(status.Roles[1].Failed, "failed 50 times") {
		t.Errorf("Bob stands %+v", status.Roles[1])
	}
}

// Only failures in a row count: a role that answers now and then is never left alone.
func TestAnAnswerForgivesTheFailuresBeforeIt(t *testing.T) {
	asked, answers := 0, answerTimes(20)
	scripted := &scriptedRoles{answer: func(p rolePrompt) (string, error) {
		if p.role == "plain" {
			if asked++; asked%3 != 0 { // both attempts of a turn fail, and in the next it answers
				return "", &model.Error{Reason: continuo.ReasonUpstream, Message: "out of order"}
			}
		}
		return answers(p)
	}}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), func(o *engine.Options) { o.CrewDefaults.Cooldown = time.Hour })
	sendMessage(t, e, "Hello")
	if status := awaitCycle(t, e); status.Roles[2].Answers != 5 || strings.Contains(status.Roles[2].Failed, "in a row") || !status.Roles[2].RestsUntil.IsZero() {
		t.Errorf("Cid stands %+v", status.Roles[2])
	}
}
