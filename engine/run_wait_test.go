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
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
)

// rounds is a workflow of many quick steps.
const rounds = `
id: rounds
nodes:
  begin: {brief: Begin.}
  work: {brief: Work.}
edges:
  - begin -> work
  - {from: work, to: work, when: visit < 20, max: 20}
`

// usually leaves an engine of these tests the pause between steps that it has by default.
func usually(t *testing.T, text string) func(*engine.Options) {
	return func(o *engine.Options) { withWorkflow(t, text)(o); o.StepPause = 0 }
}

// holdTool holds its first call until it is let go or stopped; later ones are done at once.
type holdTool struct {
	counted
	once           sync.Once
	entered, letGo chan struct{}
}

func newHoldTool() *holdTool {
	return &holdTool{counted: counted{name: "hold"}, entered: make(chan struct{}), letGo: make(chan struct{})}
}

func (h *holdTool) Run(ctx context.Context, _ tool.Call) tool.Result {
	h.once.Do(func() {
		close(h.entered)
		select {
		case <-h.letGo:
		case <-ctx.Done():
		}
	})
	return tool.Result{Content: "held"}
}

// holding lets the third visit of the step work call the tool hold, and answers everything else at once.
func holding(a stepRequest) (string, error) {
	if last := a.messages[len(a.messages)-1]; a.step == "work" && a.visit == "3" && strings.HasPrefix(last, "user: ") {
		return "call hold {}", nil
	}
	return "fine", nil
}

// Who waits in another process for a conversation, or interrupts its turn, is answered while a run goes on there. In
// the bubble the steps take no time, so that only the pause between them lets anybody in.
func TestAWaitingTurnOfAnotherProcessRunsDuringARun(t *testing.T) {
	for _, policy := range []engine.OnBusy{engine.Wait, engine.Interrupt} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, hold := storetest.NewMemory(), newHoldTool()
				m := &scriptedModel{answer: holding}
				tools := func(o *engine.Options) {
					usually(t, rounds)(o)
					o.Tools, o.Policy = tool.Set{hold}, tool.Policy{Otherwise: tool.Allow}
				}
				one, two := newRunEngine(t, store, m, tools), newRunEngine(t, store, m, tools)
				run := startOf(t, one, "rounds")
				<-hold.entered
				answered := make(chan error, 1)
				go func() { answered <- chatThrough(context.WithoutCancel(t.Context()), two, run.ConversationID, policy) }()
				synctest.Wait()
				if len(answered) > 0 {
					t.Fatalf("the chat did not wait for the step that was in progress: %v", <-answered)
				}
				if policy == engine.Wait {
					close(hold.letGo) // who interrupts must not need that
				}
				status := awaitRun(t, one, run)
				if status.State != continuo.RunFinished {
					t.Errorf("the run is %s: %s", status.State, status.Reason)
				}
				if err := <-answered; err != nil {
					t.Errorf("the chat: %v", err)
				}
				before, after := stepsAround(t, one, run)
				if before < 3 || after == 0 || before+after != 21 { // three steps came before the one that is held
					t.Errorf("%d steps were finished before the chat was answered and %d after it, of 21", before, after)
				}
			})
		})
	}
}

// chatThrough sends a message and reads its turn to the end.
func chatThrough(ctx context.Context, e *testEngine, session string, policy engine.OnBusy) error {
	ask := request(session, "And now?")
	ask.OnBusy = policy
	chat, err := e.Turns.Chat(ctx, ask)
	if err != nil {
		return err
	}
	for _, err := range chat.Events {
		if err != nil {
			return err
		}
	}
	return nil
}

// stepsAround counts the steps of a run that finished before the conversation's answer that is not of the run, and
// after it.
func stepsAround(t *testing.T, e *testEngine, run continuo.Run) (before, after int) {
	t.Helper()
	conversation, err := e.Log.Conversation(t.Context(), run.ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	answered := false
	for entry, err := range e.Log.Read(t.Context(), conversation, continuo.Range{}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case entry.RunID == "" && entry.Role == continuo.Assistant:
			answered = true
		case entry.RunEvent == nil || entry.RunEvent.Kind != continuo.RunNodeFinished:
		case answered:
			after++
		default:
			before++
		}
	}
	if !answered {
		t.Error("the chat has no answer")
	}
	return before, after
}

// Who follows a run that waits for a person is told when the program ends, and not before.
func TestDrainEndsReadersOfAWaitingRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newRunEngine(t, storetest.NewMemory(), &scriptedModel{answer: answerWell}, withWorkflow(t, sideBySide))
		run := startOf(t, e, "side")
		awaitRun(t, e, run)
		ctx, leave := context.WithCancel(context.WithoutCancel(t.Context()))
		defer leave()
		answered := make(chan error, 1)
		go func() {
			var last error
			for _, err := range e.Runs.Follow(ctx, run, 0) {
				last = err
			}
			answered <- last
		}()
		synctest.Wait()
		if len(answered) > 0 {
			t.Fatalf("the run waits, and its reader was sent away: %v", <-answered)
		}
		e.Drain()
		synctest.Wait() // at once: no time passes
		select {
		case err := <-answered:
			if !errors.Is(err, engine.ErrClosing) {
				t.Errorf("the reader is told %v", err)
			}
		default:
			t.Error("the reader is not told")
		}
	})
}

// An engine that continues with a run whose step another one carries out ends without that step's end, and leaves it be.
func TestCloseDoesNotWaitForAnotherEnginesStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, entered, open := storetest.NewMemory(), make(chan struct{}, 1), make(chan struct{})
		m := &scriptedModel{answer: func(a stepRequest) (string, error) {
			if a.step == "work" {
				entered <- struct{}{}
				<-open
			}
			return "fine", nil
		}}
		one, two := newRunEngine(t, store, m, withWorkflow(t, sideBySide)), newRunEngine(t, store, m, withWorkflow(t, sideBySide))
		run := startOf(t, one, "side")
		<-entered
		if _, err := two.Runs.Resume(t.Context(), run, true); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it looks on by now
		patience, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := two.Close(patience); err != nil || patience.Err() != nil {
			t.Errorf("it ended only when it was interrupted: %v, %v", err, patience.Err())
		}
		if now, err := one.Runs.Get(t.Context(), continuo.Scope{ProjectID: "default"}, run.ID); err != nil || now.State != continuo.RunRunning || now.TurnID == "" {
			t.Errorf("the step of the other is gone: %+v, %v", now, err)
		}
		close(open)
		if status := awaitRun(t, one, run); status.State != continuo.RunWaiting || !slices.Equal(finishedNodes(eventsOf(t, one, run)), []string{"work 1 node_finished"}) {
			t.Errorf("it is %s: %s", status.State, status.Reason)
		}
	})
}
