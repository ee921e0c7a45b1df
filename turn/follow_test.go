package turn_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// TestEveryReaderSeesEveryEventOnce lets readers join, pause, leave and come back while a turn streams more
// than is kept in memory, beside readers of another process.
func TestEveryReaderSeesEveryEventOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer []any
		for i := range 3000 {
			answer = append(answer, model.Delta{Text: fmt.Sprintf("word%d ", i)})
			if i%50 == 0 {
				answer = append(answer, func(context.Context) { time.Sleep(10 * time.Millisecond) })
			}
		}
		h := newHouse(t, append(answer, model.Delta{Finish: "stop"}))
		journal := h.begin(context.Background())
		id := journal.Turn().ID
		elsewhere := turn.NewKeeper(turn.KeeperOptions{Log: h.log})
		seen := make([]string, 40)
		var readers sync.WaitGroup
		for n := range seen {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			keeper := h.keeper
			if n%4 == 0 {
				keeper = elsewhere
			}
			readers.Go(func() {
				time.Sleep(time.Duration(random.IntN(700)) * time.Millisecond)
				seen[n] = read(t, keeper, h.conversation.ID, id, random)
			})
		}
		if err := h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}); err != nil {
			t.Fatal(err)
		}
		readers.Wait()
		want := read(t, elsewhere, h.conversation.ID, id, nil)
		if strings.Count(want, "text word") != 3000 {
			t.Errorf("%d words are kept", strings.Count(want, "text word"))
		}
		for n, got := range seen {
			if got != want {
				t.Errorf("reader %d saw %d bytes, another %d", n, len(got), len(want))
			}
		}
	})
}

// read follows a turn to its end and writes down what it sees; with random it leaves and comes back.
func read(t *testing.T, keeper *turn.Keeper, conversationID, id string, random *rand.Rand) string {
	var text strings.Builder
	after, ended := int64(0), false
	for !ended {
		left := -1
		if random != nil {
			left = random.IntN(800)
		}
		for event, err := range keeper.Follow(context.Background(), conversationID, id, after) {
			if err != nil {
				t.Error(err)
				return text.String()
			}
			seq := int64(0)
			if event.Entry != nil {
				seq = event.Entry.Seq
			}
			fmt.Fprintf(&text, "%d %s %s %d\n", event.ID, event.Kind, event.Text, seq)
			after, ended = event.ID, event.IsEnd()
			if left--; left == 0 {
				break
			}
			if random != nil && random.IntN(200) == 0 {
				time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
			}
		}
	}
	return text.String()
}

func TestATurnWithoutEventsIsReadFromTheLog(t *testing.T) {
	h := newHouse(t, textAnswer("the answer"))
	h.send("go")
	ended, err := h.log.Turns().Turns(t.Context(), continuo.TurnQuery{ConversationID: h.conversation.ID, Limit: 1})
	if err != nil || len(ended) != 1 {
		t.Fatal(ended, err)
	}
	if pruned, err := h.log.Turns().PruneTurnEvents(t.Context(), time.Now().Add(time.Hour), 10); pruned != 1 || err != nil {
		t.Fatal(pruned, err)
	}
	var kinds []turn.Kind
	for event, err := range h.keeper.Follow(t.Context(), h.conversation.ID, ended[0].ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, event.Kind)
		if event.IsEnd() && event.Entry.Content.String() != "the answer" {
			t.Errorf("end: %+v", event.Entry)
		}
	}
	if fmt.Sprint(kinds) != "[started finished]" {
		t.Errorf("events %v", kinds)
	}
}

// brittle is a store whose updates of turns fail while the test says so.
type brittle struct {
	continuo.Store
	mu     sync.Mutex
	err    error
	before func() // each write; nil: nothing
}

func (f *brittle) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// notice calls something before each write.
func (f *brittle) notice(before func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = before
}

func (f *brittle) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before != nil {
		f.before()
	}
	return f.err
}

func (f *brittle) UpdateTurn(ctx context.Context, update continuo.TurnUpdate) ([]continuo.TurnSignal, error) {
	if err := f.failure(); err != nil {
		return nil, err
	}
	return f.Store.UpdateTurn(ctx, update)
}

func (f *brittle) Append(ctx context.Context, batch continuo.Batch) error {
	if err := f.failure(); err != nil {
		return err
	}
	return f.Store.Append(ctx, batch)
}

func TestAStoreThatFailsForAWhileLosesNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &brittle{Store: storetest.NewMemory()}
		h := newHouse(t, []any{
			model.Delta{Text: "one "},
			func(context.Context) { store.fail(continuo.ErrFull); time.Sleep(2 * time.Second) },
			model.Delta{Text: "two "},
			func(context.Context) { time.Sleep(2 * time.Second); store.fail(nil); time.Sleep(2 * time.Second) },
			model.Delta{Text: "three"},
			model.Delta{Finish: "stop"},
		})
		h.over(store)
		if last := h.send("go"); last.Kind != turn.Finished || last.Entry.Content.String() != "one two three" {
			t.Errorf("last event: %+v", last)
		}
		turns, err := h.log.Turns().Turns(t.Context(), continuo.TurnQuery{ConversationID: h.conversation.ID, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if text := read(t, turn.NewKeeper(turn.KeeperOptions{Log: h.log}), h.conversation.ID, turns[0].ID, nil); strings.Count(text, " text ") != 3 {
			t.Errorf("kept:\n%s", text)
		}
	})
}

// TestReadersAreNotShownWhatAStoreThatIsAwayDoesNotHave counts what a model has said when the store is first
// written to: with no patience for a store that is behind, next to nothing.
func TestReadersAreNotShownWhatAStoreThatIsAwayDoesNotHave(t *testing.T) {
	const texts = 1000
	var answered, unkept atomic.Int64
	store := &brittle{Store: storetest.NewMemory()}
	steps := []any{func(context.Context) { store.notice(func() { unkept.CompareAndSwap(0, answered.Load()) }) }}
	for range texts {
		steps = append(steps, model.Delta{Text: "word "}, func(context.Context) { answered.Add(1) })
	}
	h := newHouse(t, append(steps, model.Delta{Finish: "stop"}))
	h.over(store)
	h.keeper = turn.NewKeeper(turn.KeeperOptions{Log: h.log, Show: turn.ShowImmediate, MaxBehind: time.Nanosecond})
	if last := h.send("go"); last.Kind != turn.Finished || strings.Count(last.Entry.Content.String(), "word") != texts {
		t.Errorf("last event: %+v", last)
	}
	if unkept.Load() > 10 {
		t.Errorf("%d words were shown before the first of them was kept", unkept.Load())
	}
}

// TestReadersSeeOnlyWhatIsDurable: whatever the store does, an event that a reader sees is in the store by then, and one
// that comes while nothing is written is shown without a wait.
func TestReadersSeeOnlyWhatIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &brittle{Store: storetest.NewMemory()}
		var answered time.Time
		steps := []any{model.Delta{Text: "one "}, func(context.Context) { time.Sleep(time.Second); answered = time.Now() }, model.Delta{Text: "two "}, func(context.Context) { time.Sleep(time.Second) }}
		for range 20 {
			steps = append(steps, func(context.Context) { store.fail(continuo.ErrFull); time.Sleep(10 * time.Millisecond) }, model.Delta{Text: "more "},
				func(context.Context) { time.Sleep(2 * time.Second); store.fail(nil); time.Sleep(2 * time.Second) }, model.Delta{Text: "and more "})
		}
		h := newHouse(t, append(steps, model.Delta{Finish: "stop"}))
		h.over(store)
		seen, last := 0, turn.Event{}
		for e, err := range h.follow(t.Context(), turn.Input{Message: continuo.Text("go")}) {
			if err != nil {
				t.Fatal(err)
			}
			kept, err := store.Store.TurnEvents(t.Context(), h.conversation.ID, e.TurnID, e.ID-1, 1)
			if err != nil || len(kept) == 0 || kept[0].ID != e.ID {
				t.Errorf("the event %d (%s) was shown and is not in the store: %v, %v", e.ID, e.Kind, kept, err)
			}
			if e.Text == "two " && time.Since(answered) > time.Millisecond {
				t.Errorf("an event that came alone was shown after %v", time.Since(answered))
			}
			seen, last = seen+1, e
		}
		if last.Kind != turn.Finished || seen < 45 {
			t.Errorf("saw %d events, the last one %+v", seen, last)
		}
	})
}

func TestATurnThatCannotRenewItsLeaseStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &brittle{Store: storetest.NewMemory()}
		h := newHouse(t, []any{model.Delta{Text: "one "}, func(ctx context.Context) { store.fail(continuo.ErrFull); <-ctx.Done() }})
		h.over(store)
		begin := time.Now()
		_, err := h.run(context.Background(), turn.Input{Message: continuo.Text("go")})
		if !errors.Is(err, continuo.ErrLeaseLost) && !errors.Is(err, continuo.ErrFull) {
			t.Errorf("ended with %v", err)
		}
		if took := time.Since(begin); took < 5*time.Minute || took > 6*time.Minute {
			t.Errorf("it took %s with a lease of 15 s, which it waits for twenty times", took)
		}
	})
}

func TestAskingAPerson(t *testing.T) {
	for name, c := range map[string]struct {
		signal continuo.TurnSignal // "" for nobody
		result string
		took   time.Duration
	}{
		"allowed":  {continuo.TurnSignal{Kind: continuo.SignalAllow, ToolCallID: "call_0"}, "{}", time.Second},
		"denied":   {continuo.TurnSignal{Kind: continuo.SignalDeny, ToolCallID: "call_0", Reason: "use the other one"}, "error: not run: it was not allowed: use the other one", time.Second},
		"nobody":   {continuo.TurnSignal{}, "error: not run: it was not allowed: no decision within 5m0s", 5 * time.Minute},
		"the turn": {continuo.TurnSignal{Kind: continuo.SignalCancel}, "error: not run: it was not allowed: the turn ended before anybody decided", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, asks("echo {}"), textAnswer("fine"))
				h.runner.Tools, h.runner.Policy = tool.Set{echo{name: "echo"}}, tool.Policy{}
				elsewhere := turn.NewKeeper(turn.KeeperOptions{Log: h.log})
				begin := time.Now()
				for event, err := range h.follow(context.Background(), turn.Input{Message: continuo.Text("go")}) {
					if err != nil {
						t.Fatal(err)
					}
					if event.Kind != turn.Asked || c.signal.Kind == "" {
						continue
					}
					c.signal.Asked = event.ID
					if err := elsewhere.Signal(context.Background(), h.conversation.ID, event.TurnID, c.signal); err != nil {
						t.Fatal(err)
					}
				}
				if got := h.entries()[2].Content.String(); got != c.result {
					t.Errorf("result %q, want %q", got, c.result)
				}
				if took := time.Since(begin); took < c.took-time.Second || took > c.took+time.Second {
					t.Errorf("it took %s, want about %s", took, c.took)
				}
			})
		})
	}
}

// TestWaitingForAPersonIsNotTheTurnsTime lets two calls wait at once for longer than the turn may take.
func TestWaitingForAPersonIsNotTheTurnsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, asks("echo {}", "echo {}"), textAnswer("fine"))
		h.runner.Tools, h.runner.Policy = tool.Set{echo{name: "echo"}}, tool.Policy{}
		h.runner.Limits = turn.Limits{Turn: 10 * time.Minute, Ask: 50 * time.Minute}
		begin, asked := time.Now(), 0
		var last turn.Event
		for event, err := range h.follow(context.Background(), turn.Input{Message: continuo.Text("go")}) {
			if err != nil {
				t.Fatal(err)
			}
			last = event
			if event.Kind != turn.Asked {
				continue
			}
			if want := begin.Add(50 * time.Minute); event.Until.Sub(want).Abs() > time.Second+time.Duration(asked)*20*time.Minute {
				t.Errorf("the question ends at %v, want %v", event.Until, want)
			}
			asked++
			time.Sleep(20 * time.Minute)
			running := continuo.Turn{ID: event.TurnID, ConversationID: h.conversation.ID, State: continuo.TurnRunning}
			if _, err := h.keeper.Decide(context.Background(), running, event.Call.ID, turn.Decision{Allowed: true}); err != nil {
				t.Fatal(err)
			}
		}
		if last.Kind != turn.Finished || asked != 2 {
			t.Errorf("it ended with %s after %d questions: %q", last.Kind, asked, shapes(h.entries()))
		}
	})
}

// TestAfterAQuestionTheTurnsTimeLimitContinues has the model take longer than is left of the turn's time behind a question.
func TestAfterAQuestionTheTurnsTimeLimitContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, asks("slow {}"), textAnswer("fine"))
		h.runner.Tools, h.runner.Policy = tool.Set{echo{name: "slow", begin: func() { time.Sleep(12 * time.Minute) }}}, tool.Policy{}
		h.runner.Limits = turn.Limits{Turn: 10 * time.Minute, Ask: turn.AskWithoutLimit, Tool: time.Hour}
		begin := time.Now()
		for event, err := range h.follow(context.Background(), turn.Input{Message: continuo.Text("go")}) {
			if err != nil {
				t.Fatal(err)
			}
			if event.Kind != turn.Asked {
				continue
			}
			if !event.Until.IsZero() {
				t.Errorf("the question ends at %v", event.Until)
			}
			time.Sleep(24 * time.Hour)
			running := continuo.Turn{ID: event.TurnID, ConversationID: h.conversation.ID, State: continuo.TurnRunning}
			if _, err := h.keeper.Decide(context.Background(), running, event.Call.ID, turn.Decision{Allowed: true}); err != nil {
				t.Fatal(err)
			}
		}
		entries := h.entries()
		if last := entries[len(entries)-1]; last.Error == nil || last.Error.Reason != continuo.ReasonTimeout || last.Error.Message != "the turn took longer than 10m0s; raise turn.timeout" {
			t.Errorf("the turn ended with %+v", last)
		}
		if took := time.Since(begin) - 24*time.Hour; took < 10*time.Minute || took > 11*time.Minute {
			t.Errorf("it took %s without the wait", took)
		}
		time.Sleep(time.Hour) // the tool ends
	})
}

func TestLeavingEarlyDoesNotPanic(t *testing.T) {
	h := onDisk(t, newHouse(t, textAnswer("fine")))
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("panic: %v", p)
		}
	}()
	for event, err := range h.follow(context.Background(), turn.Input{Message: continuo.Text("go")}) {
		t.Log(event.Kind, err)
		break
	}
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
		var received error
		for _, err := range journal.Follow(ctx, 0) {
			received = err
		}
		if !errors.Is(received, continuo.ErrNotFound) {
			t.Errorf("the reader received %v", received)
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
		store := &steppedStore{Store: storetest.NewMemory(), taken: func(continuo.Turn) { takes.Add(1) }, readEvents: func() { time.Sleep(10 * time.Millisecond) }}
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
