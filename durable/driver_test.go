package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/turn"
)

// counter is a kind of run without turns: it records steps until there are enough.
type counter struct {
	run  continuo.RunState
	step int
}

func (c *counter) Apply(entry *continuo.Entry) error {
	event := entry.RunEvent
	switch {
	case event == nil:
		return nil
	case event.Kind == continuo.RunNodeFinished && event.Visit != c.step+1:
		return fmt.Errorf("step %d follows step %d", event.Visit, c.step)
	case event.Kind == continuo.RunNodeFinished:
		c.step++
	case event.Kind == continuo.RunEventFinished:
		c.run = continuo.RunFinished
	case event.Kind == continuo.RunEventFailed:
		c.run = continuo.RunFailed
	}
	return nil
}

func (c *counter) RunState() continuo.RunState { return c.run }

func (c *counter) BreakOff(reason string) continuo.Entry {
	return eventEntry("", continuo.RunEvent{Kind: continuo.RunEventFailed, Reason: reason})
}

func eventEntry(node string, event continuo.RunEvent) continuo.Entry {
	return continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: "run_event", Content: continuo.Text("event"), Mode: continuo.ModeRun,
		RunID: "run_1", WorkflowID: "count", NodeID: node, RunEvent: &event,
	}
}

const enough = 20

type countStep struct {
	kind durable.StepKind
	next int
}

func (s countStep) After() countStep { return s }

// countMachine carries a counter on. Fails gives the error of each begin; nil for none.
type countMachine struct {
	*durable.History[*counter]
	fails func() error
}

func (m *countMachine) Open(context.Context, string) (*counter, error) {
	return &counter{run: continuo.RunRunning}, nil
}

func (m *countMachine) Observe(context.Context, *continuo.Entry) error { return nil }

func (m *countMachine) Steps() []countStep {
	switch {
	case m.State.run != continuo.RunRunning:
		return nil
	case m.State.step == enough:
		return []countStep{{durable.Record, 0}}
	}
	return []countStep{{durable.Begin, m.State.step + 1}}
}

func (m *countMachine) Describe(step countStep) durable.Step {
	return durable.Step{Kind: step.kind, Name: "count", Visit: step.next, Attempt: 1, ConversationID: m.Run.ConversationID}
}

func (m *countMachine) Record() []continuo.Entry {
	return []continuo.Entry{eventEntry("", continuo.RunEvent{Kind: continuo.RunEventFinished})}
}

func (m *countMachine) Begin(ctx context.Context, step countStep) error {
	if err := m.fails(); err != nil {
		return err
	}
	_, err := m.Append(ctx, eventEntry("count", continuo.RunEvent{Kind: continuo.RunNodeFinished, Visit: step.next, Attempt: 1}))
	return err
}

func (m *countMachine) Lost(step countStep) durable.Decision[countStep] {
	return durable.Decision[countStep]{Next: &step}
}

func (m *countMachine) Ended(context.Context, countStep, continuo.Turn) (durable.Decision[countStep], error) {
	return durable.Decision[countStep]{}, errors.New("a counter has no turns")
}

func (m *countMachine) Idle(context.Context) {}

func (m *countMachine) IsSupported(context.Context) bool { return true }

// process is one of several programs over a store.
type process struct {
	*durable.Driver
	log  *continuo.Log
	stop func() // the beginning of new work
}

func newProcess(t *testing.T, store continuo.Store, fails func() error) *process {
	t.Helper()
	log := continuo.NewLog(store, continuo.LogOptions{})
	draining, stop := context.WithCancel(context.Background())
	p := &process{log: log, stop: stop}
	keeper := turn.NewKeeper(turn.KeeperOptions{Log: log})
	p.Driver = durable.New(durable.Options{
		Log: log, Keeper: keeper, IsTransient: func(err error) bool { return errors.Is(err, continuo.ErrUnavailable) },
		Open: func(run continuo.Run) durable.Execution {
			m := &countMachine{fails: fails}
			m.History = durable.NewHistory(p.Driver, run, m)
			return durable.Execute(p.Driver, run, durable.Machine[countStep](m))
		},
		Redact:  func(text string) string { return strings.ReplaceAll(text, "secret", "***") },
		Working: func() func() { return func() {} },
		Wait:    time.Minute, StepPause: time.Millisecond, Logger: slog.New(slog.DiscardHandler), Draining: draining, Closing: context.Background(),
	})
	return p
}

// begin begins a run in a conversation of its own.
func begin(t *testing.T, log *continuo.Log) continuo.Run {
	t.Helper()
	conversation, err := log.Create(t.Context(), continuo.Conversation{ProjectID: continuo.DefaultProject})
	if err != nil {
		t.Fatal(err)
	}
	first := eventEntry("", continuo.RunEvent{Kind: continuo.RunBegan, Workflow: strings.Repeat("a", 64)})
	first.Role, first.Hidden, first.PartType = continuo.User, false, ""
	if _, err := log.Append(t.Context(), conversation.ID, []continuo.Entry{first}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	return runOf(t, log)
}

func runOf(t *testing.T, log *continuo.Log) continuo.Run {
	t.Helper()
	run, err := log.Runs().Run(t.Context(), continuo.DefaultProject, "run_1")
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func never() error { return nil }

func TestEachStepCountsOnceWhereSeveralProcessesCarryARunOn(t *testing.T) {
	store := storetest.NewMemory()
	var arrived sync.WaitGroup // all take the first step by the same state
	arrived.Add(3)
	together := func() func() error {
		once := sync.OnceFunc(func() {
			arrived.Done()
			arrived.Wait()
		})
		return func() error {
			once()
			return nil
		}
	}
	first := newProcess(t, store, together())
	run := begin(t, first.log)
	processes := []*process{first, newProcess(t, store, together()), newProcess(t, store, together())}
	var group sync.WaitGroup
	for _, p := range processes {
		group.Go(func() {
			if err := p.Resume(t.Context(), run, true); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, p := range processes {
		p.Wait()
	}
	if got := runOf(t, first.log); got.State != continuo.RunFinished {
		t.Errorf("the run is %s", got.State)
	}
	conversation, err := first.log.Conversation(t.Context(), run.ConversationID)
	if err != nil || conversation.LastSeq != enough+2 {
		t.Errorf("the log has %d entries, %v; want the beginning, %d steps and the end", conversation.LastSeq, err, enough)
	}
}

func TestErrorsOfSteps(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		times  int // how often it comes
		state  continuo.RunState
		reason string
	}{
		"passes":               {continuo.ErrUnavailable, 3, continuo.RunFinished, ""},
		"stays":                {errors.New("the secret is gone"), 1, continuo.RunFailed, "the *** is gone"},
		"needs other settings": {durable.ErrUnsupported, 1, continuo.RunRunning, ""},
		"cannot be read":       {durable.ErrCorrupt, 1, continuo.RunFailed, durable.ErrCorrupt.Error()},
		"the program ends":     {durable.ErrClosing, 1, continuo.RunRunning, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left := test.times
				p := newProcess(t, storetest.NewMemory(), func() error {
					if left--; left >= 0 {
						return test.err
					}
					return nil
				})
				run := begin(t, p.log)
				if err := p.Resume(t.Context(), run, true); err != nil {
					t.Fatal(err)
				}
				p.Wait()
				if got := runOf(t, p.log); got.State != test.state {
					t.Errorf("the run is %s, want %s", got.State, test.state)
				}
				for entry, err := range p.log.Read(t.Context(), conversationOf(t, p.log, run), continuo.Range{Backward: true}) {
					if err != nil || test.reason != "" && entry.RunEvent.Reason != test.reason {
						t.Errorf("%v, the reason %q, want %q", err, entry.RunEvent.Reason, test.reason)
					}
					break
				}
			})
		})
	}
}

func conversationOf(t *testing.T, log *continuo.Log, run continuo.Run) continuo.Conversation {
	t.Helper()
	conversation, err := log.Conversation(t.Context(), run.ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	return conversation
}

func TestARunWhoseProcessIsGoneIsResumedOnceItIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, storetest.NewMemory(), never)
		begin(t, p.log)
		if resumed, err := p.ResumeAbandoned(t.Context(), time.Second); err != nil || resumed != 0 {
			t.Errorf("resumed %d, %v, of a run that has just begun", resumed, err)
		}
		time.Sleep(2 * time.Second)
		if resumed, err := p.ResumeAbandoned(t.Context(), time.Second); err != nil || resumed != 1 {
			t.Errorf("resumed %d, %v, want 1", resumed, err)
		}
		p.Wait()
		if got := runOf(t, p.log); got.State != continuo.RunFinished {
			t.Errorf("the run is %s", got.State)
		}
	})
}

func TestNoWorkerBeginsOnceTheProgramEnds(t *testing.T) {
	p := newProcess(t, storetest.NewMemory(), never)
	run := begin(t, p.log)
	p.stop()
	if err := p.Resume(t.Context(), run, true); !errors.Is(err, durable.ErrClosing) {
		t.Errorf("%v, want ErrClosing", err)
	}
	p.Wait()
	if got := runOf(t, p.log); got.State != continuo.RunRunning {
		t.Errorf("the run is %s", got.State)
	}
}

func TestAChangeIsDecidedAgainWhereTheLogHasGrown(t *testing.T) {
	p := newProcess(t, storetest.NewMemory(), never)
	run := begin(t, p.log)
	history := func() *countMachine {
		m := &countMachine{}
		m.History = durable.NewHistory(p.Driver, run, m)
		return m
	}
	finish := func(c *counter) continuo.Entry {
		return eventEntry("count", continuo.RunEvent{Kind: continuo.RunNodeFinished, Visit: c.step + 1, Attempt: 1})
	}
	rival := history()
	if err := rival.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	var seen []int
	err := history().Change(t.Context(), durable.Once{}, func(c *counter) ([]continuo.Entry, error) {
		if seen = append(seen, c.step); len(seen) == 1 {
			if appended, err := rival.Append(t.Context(), finish(rival.State)); !appended || err != nil {
				t.Errorf("%v, %v", appended, err)
			}
		}
		return []continuo.Entry{finish(c)}, nil
	})
	if err != nil || !slices.Equal(seen, []int{0, 1}) {
		t.Errorf("%v, decided at the steps %v", err, seen)
	}
	if appended, err := rival.Append(t.Context(), finish(rival.State)); appended || err != nil {
		t.Errorf("%v, %v: it decided by an old state", appended, err)
	}
	if got := conversationOf(t, p.log, run).LastSeq; got != 3 {
		t.Errorf("the log has %d entries, want 3", got)
	}
}

func TestAChangeIsMadeOnceByItsKey(t *testing.T) {
	p := newProcess(t, storetest.NewMemory(), never)
	run := begin(t, p.log)
	step := func(identity string) error {
		m := &countMachine{}
		m.History = durable.NewHistory(p.Driver, run, m)
		return m.Change(t.Context(), durable.Once{Key: "key", Identity: identity}, func(c *counter) ([]continuo.Entry, error) {
			return []continuo.Entry{eventEntry("count", continuo.RunEvent{Kind: continuo.RunNodeFinished, Visit: c.step + 1, Attempt: 1})}, nil
		})
	}
	for range 2 {
		if err := step("one"); err != nil {
			t.Fatal(err)
		}
	}
	if err := step("another"); !errors.Is(err, continuo.ErrKeyReused) {
		t.Errorf("%v, want ErrKeyReused", err)
	}
	if got := conversationOf(t, p.log, run).LastSeq; got != 2 {
		t.Errorf("the log has %d entries, want 2", got)
	}
}

func TestLeadsTo(t *testing.T) {
	attempt := durable.Step{Kind: durable.Begin, Name: "a", Visit: 2, Attempt: 2}
	for name, test := range map[string]struct {
		now  durable.Step
		want bool
	}{
		"it is to begin":               {durable.Step{Kind: durable.Begin, Name: "a", Visit: 2, Attempt: 2}, true},
		"the one before has begun":     {durable.Step{Kind: durable.Attend, Name: "a", Visit: 2, Attempt: 1}, true},
		"the one before has broken":    {durable.Step{Kind: durable.Wait, Name: "a", Visit: 2, Attempt: 1}, true},
		"it has begun":                 {durable.Step{Kind: durable.Attend, Name: "a", Visit: 2, Attempt: 2}, false},
		"another visit":                {durable.Step{Kind: durable.Begin, Name: "a", Visit: 3, Attempt: 2}, false},
		"another node":                 {durable.Step{Kind: durable.Begin, Name: "b", Visit: 2, Attempt: 2}, false},
		"the run has something to say": {durable.Step{Kind: durable.Record, Name: "a", Visit: 2, Attempt: 2}, false},
		"nothing is to be done":        {durable.Step{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.now.LeadsTo(attempt); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}
