package engine_test

import (
	"context"
	"errors"
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
)

// A role that is not asked, because nothing is new to it, keeps its session, and is shown next what came since.
func TestASessionLastsThroughAPassUnasked(t *testing.T) {
	scripted, attempts := &scriptedRoles{}, 0
	answer := answerTimes(1)
	scripted.answer = func(p rolePrompt) (string, error) {
		if p.role != "plain" {
			return answer(p)
		}
		if attempts++; attempts == 1 { // what it said is news to the others, but shown to nobody once it is asked again
			return "half of an ans", &model.Error{Reason: continuo.ReasonUpstream, Message: "it crashed"}
		}
		return continuo.Placeholder, nil
	}
	logged := &lockedWriter{}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), loggedTo(logged))
	sendMessage(t, e, "Hello")
	before := awaitCycle(t, e)
	bob := scripted.prompts("forgets")
	if len(bob) != 1 || before.Roles[1].Cursor <= seqOf(t, e, "half of an ans") {
		t.Fatalf("Bob, who was asked %d times, did not pass unasked: %+v", len(bob), before.Roles[1])
	}
	sendMessage(t, e, "More?")
	awaitCycle(t, e)
	next := scripted.prompts("forgets")[1]
	if next.session != bob[0].session || strings.Contains(logged.String(), "role_restarted") {
		t.Errorf("Bob, who had %s, was asked in %s:\n%s", bob[0].session, next.session, logged)
	}
	if strings.Contains(next.text, "forgets says 1") || strings.Contains(next.text, "Assistant (Ann): loads says 1") || !strings.Contains(next.text, "User: More?") {
		t.Errorf("Bob, who remembers, was shown\n%s", next.text)
	}
}

// seqOf is the seq of the entry with a text.
func seqOf(t *testing.T, e *testEngine, text string) (seq int64) {
	t.Helper()
	conversation, err := e.Log.Find(t.Context(), continuo.Scope{ProjectID: "default"}, "s")
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range e.Log.Read(t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Content.String() == text {
			seq = entry.Seq
		}
	}
	return seq
}

// slowAgent is an agent whose program starts slowly, or not at all.
type slowAgent struct {
	fakeAgent
	takes func(id string) (time.Duration, error) // the context's time, where it is longer

	mu  sync.Mutex
	ids []string    // of the sessions that it was asked for
	at  []time.Time // when
}

func (s *slowAgent) Open(ctx context.Context, id string) (model.Session, error) {
	s.mu.Lock()
	s.ids, s.at = append(s.ids, id), append(s.at, time.Now())
	s.mu.Unlock()
	takes, err := s.takes(id)
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s.fakeAgent.Open(ctx, id)
}

// newSlowAgentEngine is a newCrewEngine in which Bob has ten minutes for a turn, and an agent that starts as the function says; asked
// gives the time at which Cid, who comes after him, was asked last.
func newSlowAgentEngine(t *testing.T, store continuo.Store, scripted *scriptedRoles, takes func(id string) (time.Duration, error)) (e *testEngine, bob *slowAgent, asked func() time.Time) {
	t.Helper()
	bob = &slowAgent{fakeAgent: fakeAgent{&fakeRole{script: scripted, name: "forgets"}}, takes: takes}
	var mu sync.Mutex
	var at time.Time
	scripted.during = func(p rolePrompt) {
		if mu.Lock(); p.role == "plain" {
			at = time.Now()
		}
		mu.Unlock()
	}
	text := strings.NewReplacer("display_name: Bob,", "display_name: Bob, timeout: 10m,", "roles:", "max_rounds: 1\nroles:").Replace(threeRoleCrew)
	e = newCrewEngine(t, store, scripted, newCrewSource(t, text), func(o *engine.Options) {
		o.Models["forgets"] = engine.Upstream{Model: bob}
		o.CrewDefaults.RestartWait = time.Hour
	})
	return e, bob, func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return at
	}
}

// moments is how far times may be apart that are one: the pause between two turns is not nothing.
const moments = time.Millisecond

// The start of a role's agent and its answer have one time together.
func TestStartAndAnswerShareARolesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted := &scriptedRoles{answer: answerTimes(1), timesOut: func(p rolePrompt) bool { return p.role == "forgets" }}
		e, bob, asked := newSlowAgentEngine(t, storetest.NewMemory(), scripted, func(string) (time.Duration, error) { return 6 * time.Minute, nil })
		sendMessage(t, e, "Hello")
		status := awaitCycle(t, e)
		if took := asked().Sub(bob.at[0]); len(scripted.prompts("forgets")) != 1 || took < 10*time.Minute || took > 10*time.Minute+moments {
			t.Errorf("his turn took %s, in which he was asked %d times", took, len(scripted.prompts("forgets")))
		}
		if status.Roles[1].Failed == "" || status.Roles[2].Answers != 1 {
			t.Errorf("they stand %+v", status.Roles)
		}
	})
}

// A program that does not come up has all of the role's time where there is no session to load, and who reads why the
// role failed learns which setting that is.
func TestAStartHasTheTimeOfTheRolesTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted := &scriptedRoles{answer: answerTimes(1)}
		e, bob, asked := newSlowAgentEngine(t, storetest.NewMemory(), scripted, func(string) (time.Duration, error) { return 24 * time.Hour, nil })
		sendMessage(t, e, "Hello")
		failed := awaitCycle(t, e).Roles[1].Failed
		if took := asked().Sub(bob.at[0]); len(bob.at) != 1 || took < 10*time.Minute || took > 10*time.Minute+moments {
			t.Errorf("it was started %d times within %s", len(bob.at), took)
		}
		if !strings.Contains(failed, "within 10m0s") || !strings.Contains(failed, "the role's timeout, or crew.agent_timeout") {
			t.Errorf("he failed because %s", failed)
		}
	})
}

// A start that takes the whole time leaves none to ask the role, who fails, and is not begun for ever.
func TestAStartThatTakesAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted := &scriptedRoles{answer: answerTimes(1)}
		e, bob, _ := newSlowAgentEngine(t, storetest.NewMemory(), scripted, func(string) (time.Duration, error) { return 10 * time.Minute, nil })
		sendMessage(t, e, "Hello")
		status := awaitCycle(t, e)
		if len(bob.at) != 1 || !strings.Contains(status.Roles[1].Failed, "crew.agent_timeout") || status.Roles[2].Answers != 1 {
			t.Errorf("started %d times, they stand %+v", len(bob.at), status.Roles)
		}
	})
}

// A session that cannot be loaded leaves half of the time for a new one.
func TestALoadThatHangsLeavesTimeForANewSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted := &scriptedRoles{answer: answerTimes(2)}
		e, bob, _ := newSlowAgentEngine(t, storetest.NewMemory(), scripted, func(id string) (time.Duration, error) {
			if id != "" {
				return 24 * time.Hour, nil
			}
			return time.Minute, nil
		})
		sendMessage(t, e, "Hello")
		awaitCycle(t, e)
		for _, one := range scripted.openSessions {
			one.kill()
		}
		sendMessage(t, e, "More?")
		status := awaitCycle(t, e)
		if !slices.Equal(bob.ids, []string{"", "session2", ""}) || status.Roles[1].Answers != 2 {
			t.Fatalf("%q were opened, and he stands %+v", bob.ids, status.Roles[1])
		}
		// Half of what is left after that is waited at most before the program is started once more.
		if waited := bob.at[2].Sub(bob.at[1]); waited < 5*time.Minute || waited > 5*time.Minute+150*time.Second+moments {
			t.Errorf("the new session was started %s after the old one", waited)
		}
	})
}

// However often a program has failed to start: the wait before it is started again leaves time for the start.
func TestTheWaitForARestartLeavesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted, fails := &scriptedRoles{answer: answerTimes(1)}, 1
		e, bob, _ := newSlowAgentEngine(t, storetest.NewMemory(), scripted, func(string) (time.Duration, error) {
			if fails--; fails >= 0 {
				return 0, errors.New("not yet")
			}
			return time.Minute, nil
		})
		sendMessage(t, e, "Hello")
		if status := awaitCycle(t, e); status.Roles[1].Answers != 1 || len(bob.at) != 2 {
			t.Errorf("started %d times, he stands %+v", len(bob.at), status.Roles[1])
		}
	})
}

// Notes are made within the time of the role's turn that shows them; where a model is late with them they are made
// without it.
func TestNotesAreMadeWithinTheRolesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted := &scriptedRoles{answer: answerTimes(1)}
		var noting, bobAsked time.Time
		scripted.timesOut = func(p rolePrompt) bool {
			if p.role == "summarizer" {
				noting = time.Now()
			}
			return p.role == "summarizer" || p.role == "loads" && !noting.IsZero()
		}
		scripted.during = func(p rolePrompt) {
			if p.role == "forgets" {
				bobAsked = time.Now()
			}
		}
		text := strings.NewReplacer("display_name: Ann,", "display_name: Ann, view: memory, timeout: 20s,", "roles:", "summarizer: summarizer\nmax_rounds: 1\nroles:").Replace(threeRoleCrew)
		e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, text), func(o *engine.Options) {
			o.Models["summarizer"] = engine.Upstream{Model: &fakeRole{script: scripted, name: "summarizer"}}
		})
		appendFlood(t, e, 25)
		sendMessage(t, e, "One?")
		awaitCycle(t, e)
		sendMessage(t, e, "Two?")
		status := awaitCycle(t, e)
		if took := bobAsked.Sub(noting); noting.IsZero() || took < 20*time.Second || took > 20*time.Second+moments {
			t.Errorf("notes and turn took %s", took)
		}
		if ann := scripted.prompts("loads"); status.Roles[0].Notes == 0 || !strings.Contains(ann[len(ann)-1].text, "[NOTES]") {
			t.Errorf("Ann, who stands %+v, was shown\n%s", status.Roles[0], ann[len(ann)-1].text)
		}
	})
}
