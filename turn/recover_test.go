package turn_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// hang is a step that lasts until the turn is stopped.
func hang(ctx context.Context) { <-ctx.Done() }

func callDelta(index int, name, arguments string, done bool) model.Delta {
	id := string(rune('a' + index))
	return model.Delta{ToolCall: &model.ToolCallDelta{Index: index, ID: id, Type: "function", Name: name, Arguments: arguments, Done: done}}
}

// killed runs a turn until nothing moves any more, and lets another process close it. It returns the closed
// turn's last event and the error with which the first process then ended.
func (h *house) killed(in turn.Input, awake ...func()) (last turn.Event, lost error) {
	h.t.Helper()
	journal := h.begin(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- h.runner.Run(journal, in) }()
	time.Sleep(time.Second) // of the bubble's clock: what was streamed is in the store by then
	synctest.Wait()
	other := turn.NewKeeper(turn.KeeperOptions{Log: h.log, Gone: func(string) bool { return true }})
	recovered, err := other.RecoverAll(context.Background())
	if err != nil || recovered != 1 {
		h.t.Fatalf("recovered %d turns, %v", recovered, err)
	}
	var ids []int64
	for event, err := range other.Follow(context.Background(), h.conversation.ID, journal.Turn().ID, 0) {
		if err != nil {
			h.t.Fatal(err)
		}
		last, ids = event, append(ids, event.ID)
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		h.t.Errorf("ids do not rise: %v", ids)
	}
	for _, then := range awake {
		then()
	}
	return last, <-ran
}

func TestAKilledTurnIsClosedWithAllThatHadCome(t *testing.T) {
	for name, c := range map[string]struct {
		answers [][]any
		tools   tool.Set
		// want lists what follows the user's entry: role, text and partial calls.
		want []string
	}{
		"before anything came": {
			answers: [][]any{{hang}},
			want:    []string{"assistant null"},
		},
		"in the text": {
			answers: [][]any{{model.Delta{Reasoning: "hm"}, model.Delta{Text: "Half of "}, model.Delta{Text: "it"}, hang}},
			want:    []string{"assistant Half of it (hm)"},
		},
		"in the arguments of a call": {
			answers: [][]any{{model.Delta{Text: "I look."}, callDelta(0, "echo", `{"a":1}`, true), callDelta(1, "echo", `{"b":`, false), hang}},
			want:    []string{`assistant I look. calls a partial {"b":`, "tool a error: interrupted"},
		},
		"in a later round": {
			answers: [][]any{asks("echo {}"), {model.Delta{Text: "And"}, hang}},
			tools:   tool.Set{echo{name: "echo"}},
			want:    []string{"assistant null calls call_0", "tool call_0 {}", "assistant And"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, c.answers...)
				h.runner.Tools = c.tools
				last, lost := h.killed(turn.Input{Message: continuo.Text("go")})
				if last.Kind != turn.Failed || last.Entry.Error.Reason != continuo.ReasonInterrupted || !last.Entry.Error.Retryable {
					t.Errorf("last event: %+v", last)
				}
				if !errors.Is(lost, continuo.ErrLeaseLost) {
					t.Errorf("the first process ended with %v", lost)
				}
				if got := shapes(h.entries()[1:]); !slices.Equal(got, c.want) {
					t.Errorf("log\n%q\nwant\n%q", got, c.want)
				}
				if entries := h.entries(); last.Entry.Seq != lastAnswer(entries).Seq || c.tools == nil && lastAnswer(entries).Round == nil && name != "before anything came" {
					t.Errorf("the last event is of entry %d; the answer's round is %v", last.Entry.Seq, lastAnswer(entries).Round)
				}
			})
		})
	}
}

// toolNames lists the ids and tools of which the results of calls say that they are.
func toolNames(entries []continuo.Entry) []string {
	var names []string
	for _, entry := range entries {
		if entry.Role == continuo.Tool {
			names = append(names, entry.ToolCallID+" "+entry.ToolName)
		}
	}
	return names
}

func lastAnswer(entries []continuo.Entry) continuo.Entry {
	for _, entry := range slices.Backward(entries) {
		if entry.Role == continuo.Assistant {
			return entry
		}
	}
	return continuo.Entry{}
}

// shapes writes entries in short.
func shapes(entries []continuo.Entry) []string {
	var all []string
	for _, e := range entries {
		text := string(e.Role)
		if e.ToolCallID != "" {
			text += " " + e.ToolCallID
		}
		content, _, _ := strings.Cut(e.Content.String(), ": the program")
		if e.Content.IsNull() {
			content = "null"
		}
		text += " " + content
		if e.Reasoning != nil {
			text += " (" + e.Reasoning.Text + ")"
		}
		for _, call := range e.ToolCalls {
			text += " calls " + call.ID
		}
		if e.Error != nil {
			for _, call := range e.Error.PartialToolCalls {
				text += " partial " + call.Arguments
			}
		}
		all = append(all, text)
	}
	return all
}

func TestACallThatWasRunningIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := newHouse(t, asks("stuck {}", "echo {}"), textAnswer("never asked"))
		h.runner.Tools = tool.Set{echo{name: "stuck", begin: func() { <-release }}, echo{name: "echo"}}
		journal := h.begin(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}) }()
		time.Sleep(time.Second)
		other := turn.NewKeeper(turn.KeeperOptions{Log: h.log, Gone: func(string) bool { return true }})
		if _, err := other.RecoverAll(context.Background()); err != nil {
			t.Fatal(err)
		}
		close(release) // the paused process wakes up and continues
		if err := <-ran; !errors.Is(err, continuo.ErrLeaseLost) {
			t.Errorf("the process that lost its lease ended with %v", err)
		}
		want := []string{"user go", "assistant null calls call_0 calls call_1", "tool call_0 error: interrupted", "tool call_1 error: interrupted", "assistant null"}
		if got := shapes(h.entries()); !slices.Equal(got, want) {
			t.Errorf("log\n%q\nwant\n%q", got, want)
		}
		if got := toolNames(h.entries()); !slices.Equal(got, []string{"call_0 stuck", "call_1 echo"}) {
			t.Errorf("the results say that they are of %q", got)
		}
		if len(h.model.bodies) != 1 {
			t.Errorf("%d requests", len(h.model.bodies))
		}
	})
}

func TestResultsAreKeptAsTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := newHouse(t, asks("echo {}", "stuck {}", "echo {}"))
		h.runner.Tools = tool.Set{echo{name: "stuck", begin: func() { <-release }}, echo{name: "echo"}}
		last, lost := h.killed(turn.Input{Message: continuo.Text("go")}, func() { close(release) })
		if last.Kind != turn.Failed || !errors.Is(lost, continuo.ErrLeaseLost) {
			t.Errorf("%+v, %v", last, lost)
		}
		want := []string{"tool call_0 {}", "tool call_1 error: interrupted", "tool call_2 error: interrupted", "assistant null"}
		if got := shapes(h.entries()[2:]); !slices.Equal(got, want) {
			t.Errorf("log\n%q\nwant\n%q", got, want)
		}
	})
}

func TestAnUndecidedCallHasNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, asks("asked {}", "asked {}"))
		h.runner.Tools, h.runner.Policy = tool.Set{echo{name: "asked"}}, tool.Policy{}
		h.killed(turn.Input{Message: continuo.Text("go")})
		for _, result := range h.entries()[2:4] {
			if got := result.Content.String(); got != "error: not run: the program ended before anybody decided whether it may" {
				t.Errorf("result: %s", got)
			}
			if result.PartType != continuo.PartUndecided {
				t.Errorf("its part type is %q", result.PartType)
			}
		}
	})
}

// lostAfterSignal is a store that cannot be reached once it has reported a signal.
type lostAfterSignal struct{ *brittle }

func (s *lostAfterSignal) UpdateTurn(ctx context.Context, update continuo.TurnUpdate) ([]continuo.TurnSignal, error) {
	signals, err := s.brittle.UpdateTurn(ctx, update)
	if len(signals) > 0 {
		s.fail(continuo.ErrUnavailable)
	}
	return signals, err
}

// TestAnAllowedCallRunsWhenItsDecisionIsStored: the store cannot be reached when a call was allowed. The process that closes the
// turn meanwhile says that the call has not run, so it must not.
func TestAnAllowedCallRunsWhenItsDecisionIsStored(t *testing.T) {
	for name, test := range map[string]struct {
		closed bool // by another process, during the outage
		want   []string
	}{
		"the store comes back": {false, []string{"tool call_0 {}", "assistant fine"}},
		"the turn is closed":   {true, []string{"tool call_0 error: not run", "assistant null"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := storetest.NewMemory()
				store := &lostAfterSignal{&brittle{Store: memory}}
				h := newHouse(t, asks("asked {}"), textAnswer("fine"))
				h.over(store)
				ran := 0
				h.runner.Tools, h.runner.Policy = tool.Set{echo{name: "asked", begin: func() { ran++ }}}, tool.Policy{}
				other := turn.NewKeeper(turn.KeeperOptions{Log: continuo.NewLog(memory, continuo.LogOptions{}), Gone: func(string) bool { return test.closed }})
				journal := h.begin(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}) }()
				time.Sleep(time.Second)
				running := journal.Turn()
				if _, err := other.Decide(t.Context(), running, "call_0", turn.Decision{Allowed: true}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if ran > 0 {
					t.Error("the call ran before its decision was stored")
				}
				if test.closed {
					if _, err := other.RecoverAll(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				store.fail(nil)
				if err := <-ended; errors.Is(err, continuo.ErrLeaseLost) != test.closed {
					t.Errorf("it ended with %v", err)
				}
				if ran > 0 == test.closed {
					t.Errorf("the call ran %d times", ran)
				}
				if got := shapes(h.entries()[2:]); !slices.Equal(got, test.want) {
					t.Errorf("log\n%q\nwant\n%q", got, test.want)
				}
			})
		})
	}
}

func TestCallsThatWaitForAPersonHoldUpNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		for range 40 {
			calls = append(calls, "asked {}")
		}
		h := newHouse(t, asks(append(calls, "echo {}")...), textAnswer("fine"))
		ran := make(chan struct{})
		h.runner.Tools = tool.Set{echo{name: "asked"}, echo{name: "echo", begin: func() { close(ran) }}}
		h.runner.Policy = tool.Policy{Ask: []string{"asked"}, Otherwise: tool.Allow}
		begin := time.Now()
		go func() {
			<-ran
			if waited := time.Since(begin); waited > time.Second {
				t.Errorf("the call that needs no approval waited %s", waited)
			}
		}()
		if last := h.send("go"); last.Kind != turn.Finished {
			t.Errorf("%+v", last)
		}
	})
}

func TestATurnThatNeverBeganIsVoid(t *testing.T) {
	h := newHouse(t, textAnswer("hello"))
	journal := h.begin(context.Background())
	other := turn.NewKeeper(turn.KeeperOptions{Log: h.log, Gone: func(string) bool { return true }})
	if recovered, err := other.RecoverAll(context.Background()); recovered != 1 || err != nil {
		t.Fatalf("recovered %d, %v", recovered, err)
	}
	if err := h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}); !errors.Is(err, continuo.ErrLeaseLost) {
		t.Errorf("the turn ran all the same: %v", err)
	}
	found, err := h.log.Turns().Turn(context.Background(), h.conversation.ID, journal.Turn().ID)
	if err != nil || found.State != continuo.TurnVoid || len(h.entries()) != 0 {
		t.Errorf("%+v, %v, %d entries", found, err, len(h.entries()))
	}
}

func TestALeaseThatIsNotRenewedExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []any{model.Delta{Text: "Ha"}, hang})
		h.keeper = turn.NewKeeper(turn.KeeperOptions{Log: h.log})
		journal := h.begin(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}) }()
		time.Sleep(time.Minute) // much longer than the lease: the turn lives, and renews it
		other := turn.NewKeeper(turn.KeeperOptions{Log: h.log})
		if recovered, err := other.RecoverAll(context.Background()); recovered != 0 || err != nil {
			t.Errorf("recovered %d, %v", recovered, err)
		}
		journal.Stop(nil)
		if err := <-ran; err != nil {
			t.Error(err)
		}
		begun, err := storetest.BeginTurn(context.Background(), h.log.Turns().(continuo.Store), continuo.Turn{ID: "turn_dead", ConversationID: h.conversation.ID, Owner: "dead"}, 15*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Begin(context.Background(), continuo.Turn{ID: "turn_next", ConversationID: h.conversation.ID}); !errors.Is(err, continuo.ErrBusy) {
			t.Errorf("began beside a live lease: %v", err)
		}
		time.Sleep(16 * time.Second)
		next, err := other.Begin(context.Background(), continuo.Turn{ID: "turn_next", ConversationID: h.conversation.ID})
		if err != nil || next.Turn().Fence <= begun.Fence {
			t.Fatalf("%+v, %v", next, err)
		}
		if err := other.Abandon(next); err != nil {
			t.Error(err)
		}
	})
}

func TestAResumedTurnContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []any{model.Delta{Text: "Half of"}, hang}, textAnswer(" the rest"))
		h.killed(turn.Input{Message: continuo.Text("tell me all")})
		last, err := h.run(context.Background(), turn.Input{Resume: true})
		if err != nil || last.Kind != turn.Finished {
			t.Fatalf("%+v, %v", last, err)
		}
		body := h.model.bodies[1]
		partial, note := strings.Index(body, "Half of"), strings.Index(body, "broke off before it was done")
		if partial < 0 || note < partial || !strings.Contains(body[strings.LastIndex(body, `"role"`):], `"user"`) {
			t.Errorf("the request does not end with a user message behind the partial answer: %s", body)
		}
		if e := h.entries()[2]; e.Role != continuo.System || e.PartType != continuo.PartResume {
			t.Errorf("entry 3: %+v", e)
		}
	})
}

// The model had said nothing, so there is nothing to go on from: it is asked again what it was asked.
func TestAResumedTurnRepeatsARequestWithoutAnAnswer(t *testing.T) {
	down := []any{&model.Error{Reason: continuo.ReasonUpstream, Message: "down", Retryable: true}}
	for name, c := range map[string]struct {
		answers [][]any
		shapes  string
	}{
		"one failure":              {[][]any{down, textAnswer("Paris.")}, "user assistant assistant"},
		"several failures":         {[][]any{down, down, textAnswer("Paris.")}, "user assistant assistant assistant"},
		"behind an answer in part": {[][]any{{model.Delta{Text: "Par"}, down[0]}, down, textAnswer("is.")}, "user assistant system assistant assistant"},
	} {
		h := newHouse(t, c.answers...)
		in := turn.Input{Message: continuo.Text("What is the capital of France?")}
		for range c.answers {
			if _, err := h.run(context.Background(), in); err != nil {
				t.Fatal(err)
			}
			in = turn.Input{Resume: true}
		}
		var roles []string
		for _, e := range h.entries() {
			roles = append(roles, string(e.Role))
		}
		if got := strings.Join(roles, " "); got != c.shapes {
			t.Errorf("%s: the log has %s", name, got)
		}
		n := len(h.model.bodies)
		if h.model.bodies[n-1] != h.model.bodies[n-2] {
			t.Errorf("%s: the request\n%s\nis not the one before it\n%s", name, h.model.bodies[n-1], h.model.bodies[n-2])
		}
		if strings.Contains(h.model.bodies[n-1], "Par") != strings.Contains(h.model.bodies[n-1], "broke off before") {
			t.Errorf("%s: %s", name, h.model.bodies[n-1])
		}
	}
}

func TestAResumedTurnBehindResultsNeedsNoNote(t *testing.T) {
	h := newHouse(t, textAnswer("done"))
	_, err := h.log.Append(t.Context(), h.conversation.ID, []continuo.Entry{
		{Role: continuo.User, Content: continuo.Text("go")},
		{Role: continuo.Assistant, Content: continuo.Null(), ToolCalls: []continuo.ToolCall{continuo.FunctionCall("a", "echo", "{}")}},
		{Role: continuo.Tool, ToolCallID: "a", Content: continuo.Text("here")},
	}, continuo.AppendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	last, err := h.run(context.Background(), turn.Input{Resume: true})
	if err != nil || last.Kind != turn.Finished || len(h.entries()) != 4 {
		t.Errorf("%+v, %v; %q", last, err, shapes(h.entries()))
	}
}
