package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// trap is a store in which a test steps between two writes.
type trap struct {
	continuo.Store
	append     func(continuo.Batch) error // before an append; an error takes its place
	update     func(continuo.TurnUpdate) error
	taken      func(continuo.Turn) // after a lease was taken
	readEvents func()              // before events are read
}

func (s *trap) Append(ctx context.Context, batch continuo.Batch) error {
	if s.append != nil {
		if err := s.append(batch); err != nil {
			return err
		}
	}
	return s.Store.Append(ctx, batch)
}

func (s *trap) UpdateTurn(ctx context.Context, update continuo.TurnUpdate) ([]continuo.TurnSignal, error) {
	if s.update != nil {
		if err := s.update(update); err != nil {
			return nil, err
		}
	}
	return s.Store.UpdateTurn(ctx, update)
}

func (s *trap) TakeTurn(ctx context.Context, seen continuo.Turn, owner string, lease time.Duration) (continuo.Turn, error) {
	taken, err := s.Store.TakeTurn(ctx, seen, owner, lease)
	if err == nil && s.taken != nil {
		s.taken(taken)
	}
	return taken, err
}

func (s *trap) TurnEvents(ctx context.Context, conversationID, turnID string, after int64, limit int) ([]continuo.TurnEvent, error) {
	if s.readEvents != nil {
		s.readEvents()
	}
	return s.Store.TurnEvents(ctx, conversationID, turnID, after, limit)
}

// TestADecisionCountsForOneCallOnly lets a person allow a call, and the model use the call's id again.
func TestADecisionCountsForOneCallOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, asks(`echo {"harmless":1}`), asks(`echo {"harmful":1}`), says("fine"))
		h.runner.Tools, h.runner.Policy = tool.Set{echo{name: "echo"}}, tool.Policy{}
		allowed := false
		for event, err := range h.follow(context.Background(), turn.Input{Message: continuo.Text("go")}) {
			if err != nil {
				t.Fatal(err)
			}
			if event.Kind != turn.Asked || allowed {
				continue
			}
			allowed = true
			running := continuo.Turn{ID: event.TurnID, ConversationID: h.conversation.ID, State: continuo.TurnRunning}
			if _, err := h.keeper.Decide(context.Background(), running, "call_0", turn.Decision{Allowed: true}); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{
			"user go", "assistant null calls call_0", `tool call_0 {"harmless":1}`, "assistant null calls call_0",
			"tool call_0 error: not run: it was not allowed: nobody decided within 5m0s", "assistant fine",
		}
		if got := shapes(h.entries()); !slices.Equal(got, want) {
			t.Errorf("log\n%q\nwant\n%q", got, want)
		}
	})
}

// TestALateDecisionIsNotTheNextCalls has a decision wait in the store until the call that it is about has
// expired and the model has used its id again.
func TestALateDecisionIsNotTheNextCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &trap{Store: storetest.NewMemory()}
		h := newHouse(t, asks(`echo {"harmless":1}`), asks(`echo {"harmful":1}`), says("fine"))
		h.over(store)
		h.runner.Tools, h.runner.Policy = tool.Set{echo{name: "echo"}}, tool.Policy{}
		elsewhere := turn.NewKeeper(turn.KeeperOptions{Log: h.log})
		var deaf atomic.Bool
		store.update = func(update continuo.TurnUpdate) error {
			if deaf.Load() && update.Lease == 0 {
				return errors.New("not now")
			}
			return nil
		}
		asked := 0
		for event, err := range h.follow(context.Background(), turn.Input{Message: continuo.Text("go")}) {
			if err != nil {
				t.Fatal(err)
			}
			if event.Kind != turn.Asked {
				continue
			}
			if asked++; asked == 1 {
				time.Sleep(5*time.Minute - time.Millisecond)
				running := continuo.Turn{ID: event.TurnID, ConversationID: h.conversation.ID, State: continuo.TurnRunning}
				deaf.Store(true)
				if _, err := elsewhere.Decide(context.Background(), running, "call_0", turn.Decision{Allowed: true}); err != nil {
					t.Fatal(err)
				}
			} else {
				deaf.Store(false)
			}
		}
		if got := h.entries()[4].Content.String(); !strings.HasPrefix(got, "error: not run") {
			t.Errorf("the second call, on which nobody decided, gave %s", got)
		}
	})
}

// TestAReaderFarBehindATurnThatWasLostComesToAnEnd deletes the conversation while a reader has still to read
// events that are not in memory any more.
func TestAReaderFarBehindATurnThatWasLostComesToAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer []any
		for i := range 3000 {
			answer = append(answer, model.Delta{Text: fmt.Sprintf("word%d ", i)})
			if i%50 == 0 {
				answer = append(answer, func(context.Context) { time.Sleep(10 * time.Millisecond) })
			}
		}
		h := newHouse(t, append(answer, hang))
		journal := h.begin(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}) }()
		time.Sleep(900 * time.Millisecond)
		if err := h.log.Delete(context.Background(), h.conversation.ID); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var told error
		for _, err := range journal.Follow(ctx, 0) {
			told = err
		}
		if !errors.Is(told, continuo.ErrNotFound) {
			t.Errorf("the reader was told %v", told)
		}
		if err := <-ran; !errors.Is(err, continuo.ErrLeaseLost) {
			t.Errorf("the turn ended with %v", err)
		}
	})
}

// TestReadersOfABrokenTurnDoNotTakeItFromEachOther has many readers of one process find the same turn.
func TestReadersOfABrokenTurnDoNotTakeItFromEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var takes atomic.Int64
		store := &trap{Store: storetest.NewMemory(), taken: func(continuo.Turn) { takes.Add(1) }, readEvents: func() { time.Sleep(10 * time.Millisecond) }}
		h := newHouse(t, []any{model.Delta{Text: "Half"}, hang})
		h.over(store)
		journal := h.begin(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}) }()
		time.Sleep(time.Second)
		other := turn.NewKeeper(turn.KeeperOptions{Log: h.log, Gone: func(string) bool { return true }})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var readers sync.WaitGroup
		for n := range 5 {
			readers.Go(func() {
				time.Sleep(time.Duration(n) * 7 * time.Millisecond)
				var last turn.Event
				for event, err := range other.Follow(ctx, h.conversation.ID, journal.Turn().ID, 0) {
					if err != nil {
						t.Error(err)
					}
					last = event
				}
				if last.Kind != turn.Failed {
					t.Errorf("the last event is %s", last.Kind)
				}
			})
		}
		readers.Wait()
		<-ran
		if n := takes.Load(); n != 1 {
			t.Errorf("the turn was taken %d times", n)
		}
	})
}

// TestATurnThatLostItsLeaseAnswersNoCallsOfTheNext lets a process stall between its lease and its first entry.
func TestATurnThatLostItsLeaseAnswersNoCallsOfTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, says("never asked"))
		stalled := h.begin(context.Background())
		other := turn.NewKeeper(turn.KeeperOptions{Log: h.log, Gone: func(string) bool { return true }})
		if recovered, err := other.RecoverAll(context.Background()); recovered != 1 || err != nil {
			t.Fatalf("recovered %d, %v", recovered, err)
		}
		next := &house{t: t, log: h.log, conversation: h.conversation, runner: h.runner, keeper: other}
		runner := *h.runner
		runner.Model = &script{answers: [][]any{asks("echo {}"), says("done")}}
		release := make(chan struct{})
		runner.Tools = tool.Set{echo{name: "echo", begin: func() { <-release }}}
		journal := next.begin(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- runner.Run(journal, turn.Input{Message: continuo.Text("the next")}) }()
		synctest.Wait() // its call is running
		if err := h.runner.Run(stalled, turn.Input{Message: continuo.Text("go")}); !errors.Is(err, continuo.ErrLeaseLost) {
			t.Errorf("the turn without a lease ended with %v", err)
		}
		close(release)
		if err := <-ran; err != nil {
			t.Errorf("the next turn: %v", err)
		}
		want := []string{"user the next", "assistant null calls call_0", "tool call_0 {}", "assistant done"}
		if got := shapes(h.entries()); !slices.Equal(got, want) {
			t.Errorf("log\n%q\nwant\n%q", got, want)
		}
	})
}

func TestEveryEntryOfATurnSaysSo(t *testing.T) {
	h := newHouse(t, []any{callDelta(0, "echo", "{}", true), &model.Error{Reason: continuo.ReasonUpstream, Message: "overloaded"}})
	last, err := h.run(context.Background(), turn.Input{Message: continuo.Text("go"), Mode: continuo.ModeAgent, AgentID: "a1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range h.entries() {
		if e.TurnID != last.TurnID || e.Mode != continuo.ModeAgent || e.AgentID != "a1" {
			t.Errorf("entry %d (%s) is of turn %q, mode %q, agent %q", e.Seq, e.Role, e.TurnID, e.Mode, e.AgentID)
		}
	}
}

// TestAnAnswerThatCannotBeKeptAtOnceIsNotLost has the store refuse one append, and the log one answer.
func TestAnAnswerThatCannotBeKeptAtOnceIsNotLost(t *testing.T) {
	tooMany := []any{model.Delta{Text: "the answer"}}
	for i := range 4097 {
		tooMany = append(tooMany, model.Delta{ToolCall: &model.ToolCallDelta{Index: i, ID: fmt.Sprint("c", i), Name: "echo", Arguments: "{}", Done: true}})
	}
	for name, c := range map[string]struct {
		answer []any
		fails  int // appends of answers
		want   continuo.FailureReason
	}{
		"the store once":  {says("the answer"), 1, ""},
		"the store twice": {says("the answer"), 2, continuo.ReasonInterrupted},
		"a rule":          {tooMany, 0, continuo.ReasonUpstream},
	} {
		t.Run(name, func(t *testing.T) {
			store := &trap{Store: storetest.NewMemory()}
			h := newHouse(t, c.answer)
			h.over(store)
			store.append = func(batch continuo.Batch) error {
				if batch.Entries[0].Role == continuo.Assistant && c.fails > 0 {
					c.fails--
					return continuo.ErrFull
				}
				return nil
			}
			journal := h.begin(context.Background())
			if err := h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}); err != nil && !errors.Is(err, continuo.ErrFull) {
				t.Fatal(err)
			}
			if _, err := h.keeper.RecoverAll(context.Background()); err != nil {
				t.Fatal(err)
			}
			got := h.entries()[1]
			if got.Content.String() != "the answer" || got.Round == nil || (got.Error == nil) != (c.want == "") || got.Error != nil && got.Error.Reason != c.want {
				t.Errorf("entry 2: %.300q, error %v", got.Content.String(), got.Error)
			}
		})
	}
}

// TestATurnThatCannotBeClosedWholeIsClosedAllTheSame: otherwise its conversation would be busy for ever.
func TestATurnThatCannotBeClosedWholeIsClosedAllTheSame(t *testing.T) {
	deep := json.RawMessage(`{"x":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`)
	var tooMany []any
	for i := range 4099 {
		tooMany = append(tooMany, model.Delta{ToolCall: &model.ToolCallDelta{Index: i, ID: fmt.Sprint("c", i), Name: "echo", Arguments: "{}", Done: true}})
	}
	for name, answer := range map[string][]any{
		"too many calls": tooMany,
		"a deep extra":   {model.Delta{ToolCall: &model.ToolCallDelta{ID: "a", Name: "echo", Arguments: "{}", Extra: deep, Done: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, append(append([]any{model.Delta{Text: "Half"}}, answer...), hang))
				last, _ := h.killed(turn.Input{Message: continuo.Text("go")})
				if last.Kind != turn.Failed || last.Entry.Content.String() != "Half" || last.Entry.Error.Reason != continuo.ReasonInterrupted {
					t.Errorf("last event: %+v", last)
				}
			})
		})
	}
}

// TestABrokenExtraDoesNotHangTheTurn gives what no JSON can hold.
func TestABrokenExtraDoesNotHangTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []any{model.Delta{Text: "Hm"}, model.Delta{ToolCall: &model.ToolCallDelta{ID: "a", Name: "echo", Arguments: "{}", Extra: json.RawMessage(`{`), Done: true}}, model.Delta{Finish: "tool_calls"}})
		last, err := h.run(context.Background(), turn.Input{Message: continuo.Text("go")})
		if err != nil || last.Kind != turn.Failed || last.Entry.Content.String() != "Hm" {
			t.Errorf("%+v, %v", last, err)
		}
	})
}

// TestAToolThatDoesNotListenIsLeftBehind: neither its turn nor its conversation may wait for ever.
func TestAToolThatDoesNotListenIsLeftBehind(t *testing.T) {
	for name, stop := range map[string]func(*turn.Journal){"timeout": func(*turn.Journal) {}, "cancel": func(j *turn.Journal) { j.Stop(nil) }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				h := newHouse(t, asks("stuck {}", "echo {}"), says("fine"))
				h.runner.Tools = tool.Set{echo{name: "stuck", begin: func() { <-release }}, echo{name: "echo"}}
				journal := h.begin(context.Background())
				ran := make(chan error, 1)
				go func() { ran <- h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}) }()
				time.Sleep(time.Second)
				stop(journal)
				select {
				case err := <-ran:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(5 * time.Minute):
					t.Fatal("the turn never ends")
				}
				if got := shapes(h.entries())[2:4]; !strings.HasPrefix(got[0], "tool call_0 error: ") || got[1] != "tool call_1 {}" {
					t.Errorf("results: %q", got)
				}
			})
		})
	}
}

type countLost struct {
	turn.Meter
	lost atomic.Int64
}

func (c *countLost) LeaseLost()                                       { c.lost.Add(1) }
func (c *countLost) Stage(context.Context, turn.Stage, time.Duration) {}
func (c *countLost) EventsFlushed(int)                                {}
func (c *countLost) ToolCalled(string, string, time.Duration)         {}

// TestATurnThatEndedHasNotLostItsLease has events become due while the turn's end is being written.
func TestATurnThatEndedHasNotLostItsLease(t *testing.T) {
	for range 20 {
		h := newHouse(t, says("fine"))
		h.over(&trap{Store: storetest.NewMemory(), append: func(continuo.Batch) error {
			for range 1000 { // until the goroutine that flushes waits behind this write
				runtime.Gosched()
			}
			return nil
		}})
		meter := &countLost{}
		h.keeper = turn.NewKeeper(turn.KeeperOptions{Log: h.log, Meter: meter, FlushAge: time.Nanosecond})
		if last := h.say("go"); last.Kind != turn.Finished {
			t.Errorf("last event: %+v", last)
		}
		if n := meter.lost.Load(); n != 0 {
			t.Fatalf("%d leases were lost", n)
		}
	}
}

func TestAConversationThatIsDeletedMeanwhileIsNoFailureOfRecovery(t *testing.T) {
	store := &trap{Store: storetest.NewMemory()}
	h := newHouse(t)
	h.over(store)
	h.begin(context.Background())
	other := turn.NewKeeper(turn.KeeperOptions{Log: h.log, Gone: func(string) bool { return true }})
	store.taken = func(taken continuo.Turn) {
		if err := store.Delete(context.Background(), taken.ConversationID); err != nil {
			t.Error(err)
		}
	}
	if recovered, err := other.RecoverAll(context.Background()); recovered != 0 || err != nil {
		t.Errorf("recovered %d, %v", recovered, err)
	}
}

// TestTheOutputsOfOneAnswerAreBoundedTogether has a model ask for many large outputs at once.
func TestTheOutputsOfOneAnswerAreBoundedTogether(t *testing.T) {
	h := newHouse(t, asks(slices.Repeat([]string{"large {}"}, 20)...), says("fine"))
	h.runner.Tools = tool.Set{mebibyte{echo{name: "large"}}}
	h.runner.Limits.OutputBytes = 1 << 20
	if last := h.say("go"); last.Kind != turn.Finished {
		t.Fatalf("%+v", last)
	}
	kept := 0
	for _, e := range h.entries() {
		if e.PartType == "tool_result" {
			kept++
		} else if e.Role == continuo.Tool && !strings.Contains(e.Content.String(), "4194304 bytes together") {
			t.Errorf("%.200s", e.Content.String())
		}
	}
	if kept != 4 {
		t.Errorf("%d outputs are kept, want 4", kept)
	}
}

// mebibyte is a tool with an output of just that size.
type mebibyte struct{ echo }

func (mebibyte) Run(context.Context, tool.Call) tool.Result {
	return tool.Result{Content: strings.Repeat("x", 1<<20)}
}

// TestACancelledTurnBeginsNoCall cancels a turn while more calls wait than run side by side.
func TestACancelledTurnBeginsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		var begun atomic.Int64
		h := newHouse(t, asks(slices.Repeat([]string{"stuck {}"}, 40)...), says("never"))
		h.runner.Tools = tool.Set{echo{name: "stuck", begin: func() { begun.Add(1); <-release }}}
		journal := h.begin(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}) }()
		synctest.Wait()
		before := begun.Load()
		journal.Stop(nil)
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if n := begun.Load(); n != before || n == 0 {
			t.Errorf("%d calls ran, %d of them after the turn was cancelled", n, n-before)
		}
	})
}

// TestAnIDThatNeverWasStillLeadsToTheEnd follows a running turn from an id that it never gave.
func TestAnIDThatNeverWasStillLeadsToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []any{model.Delta{Text: "Half"}, hang})
		journal := h.begin(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}) }()
		synctest.Wait()
		var readers sync.WaitGroup
		for name, keeper := range map[string]*turn.Keeper{"here": h.keeper, "elsewhere": turn.NewKeeper(turn.KeeperOptions{Log: h.log})} {
			readers.Go(func() {
				var last turn.Event
				for event, err := range keeper.Follow(context.Background(), h.conversation.ID, journal.Turn().ID, 1<<40) {
					if err != nil {
						t.Error(err)
					}
					last = event
				}
				if !last.IsEnd() {
					t.Errorf("%s the reader's last event is %q", name, last.Kind)
				}
			})
		}
		time.Sleep(time.Second)
		journal.Stop(nil)
		readers.Wait()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
}

// TestABeginningThatMayBeWrittenIsNotUndone has a store write the user's entry and say that it cannot be reached.
func TestABeginningThatMayBeWrittenIsNotUndone(t *testing.T) {
	store := &trap{Store: storetest.NewMemory()}
	h := newHouse(t)
	h.over(store)
	store.append = func(batch continuo.Batch) error {
		store.append = nil
		if err := store.Store.Append(context.Background(), batch); err != nil {
			return err
		}
		return continuo.ErrUnavailable
	}
	journal := h.begin(context.Background())
	if err := h.runner.Run(journal, turn.Input{Message: continuo.Text("hello")}); !errors.Is(err, continuo.ErrUnavailable) {
		t.Errorf("the turn ended with %v", err)
	}
	if recovered, err := h.keeper.RecoverAll(context.Background()); err != nil || recovered != 1 {
		t.Errorf("recovered %d turns, %v", recovered, err)
	}
	ended, err := store.Turn(context.Background(), h.conversation.ID, journal.Turn().ID)
	if err != nil || ended.State != continuo.TurnFailed || ended.Reason != continuo.ReasonInterrupted {
		t.Errorf("the turn of an entry that is there: %+v, %v", ended, err)
	}
	if all := h.entries(); len(all) != 2 || all[0].Content.String() != "hello" || all[1].Error == nil {
		t.Errorf("log %q", shapes(all))
	}
}
