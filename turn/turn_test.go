package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// script is a model that answers each request with the next of its answers and keeps the bodies it got.
type script struct {
	answers [][]any // of each: model.Delta, error, or func(context.Context)
	window  int     // 0 where it is not known

	mu     sync.Mutex
	bodies []string
}

func (s *script) Info() model.Info {
	return model.Info{Provider: "script", Name: "gpt-4o", Protocol: model.ProtocolOpenAIChat, ContextWindow: s.window}
}

func (s *script) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		s.mu.Lock()
		n := len(s.bodies)
		s.bodies = append(s.bodies, string(body))
		s.mu.Unlock()
		if n >= len(s.answers) {
			yield(model.Delta{}, &model.Error{Reason: continuo.ReasonUpstream, Message: "the script is at its end"})
			return
		}
		for _, step := range s.answers[n] {
			switch step := step.(type) {
			case model.Delta:
				if !yield(step, nil) {
					return
				}
			case error:
				yield(model.Delta{}, step)
				return
			case func(context.Context):
				step(ctx)
				if ctx.Err() != nil {
					yield(model.Delta{}, ctx.Err())
					return
				}
			}
		}
	}
}

// textAnswer is an answer in two pieces.
func textAnswer(text string) []any {
	return []any{
		model.Delta{Text: text[:len(text)/2]},
		model.Delta{Text: text[len(text)/2:]},
		model.Delta{Finish: "stop", Usage: &continuo.Usage{InputTokens: 10, OutputTokens: 5}},
	}
}

// asks is an answer that calls tools, each given as "name arguments".
func asks(calls ...string) []any {
	var steps []any
	for i, call := range calls {
		name, arguments, _ := strings.Cut(call, " ")
		steps = append(steps, model.Delta{ToolCall: &model.ToolCallDelta{Index: i, ID: fmt.Sprintf("call_%d", i), Type: "function", Name: name, Arguments: arguments, Done: true}})
	}
	return append(steps, model.Delta{Finish: "tool_calls"})
}

// echo is a tool that returns its arguments once everybody it waits for has come.
type echo struct {
	name  string
	begin func()
}

func (e echo) Spec() continuo.ToolSpec {
	return continuo.ToolSpec{Name: e.name, Description: "echoes", Parameters: json.RawMessage(`{"type":"object"}`)}
}

func (e echo) Run(_ context.Context, call tool.Call) tool.Result {
	if e.begin != nil {
		e.begin()
	}
	return tool.Result{Outcome: "Echoed", Content: call.Arguments}
}

// house is a log, a conversation, and what runs turns on it.
type house struct {
	t            *testing.T
	log          *continuo.Log
	conversation continuo.Conversation
	runner       *turn.Runner
	keeper       *turn.Keeper // made when it is first needed
	model        *script
}

func newHouse(t *testing.T, answers ...[]any) *house {
	t.Helper()
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{Counter: token.O200k(), Objects: storetest.NewObjects()})
	conversation, err := log.Create(context.Background(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	view, err := window.DefaultSettings().View(window.Continuity)
	if err != nil {
		t.Fatal(err)
	}
	scripted := &script{answers: answers}
	return &house{
		t: t, log: log, conversation: conversation, model: scripted,
		runner: &turn.Runner{Log: log, Model: scripted, View: view, System: []string{"be brief"}, Policy: tool.Policy{Otherwise: tool.Allow}},
	}
}

// limit replaces the limits of the runner's view.
func (h *house) limit(limits window.Limits) {
	view := h.runner.View.(window.View)
	view.Limits = limits
	h.runner.View = view
}

// over puts a house on another store.
func (h *house) over(store continuo.Store) {
	h.t.Helper()
	h.log = continuo.NewLog(store, continuo.LogOptions{Counter: token.O200k(), Objects: storetest.NewObjects()})
	conversation, err := h.log.Create(context.Background(), continuo.Conversation{})
	if err != nil {
		h.t.Fatal(err)
	}
	h.conversation, h.runner.Log = conversation, h.log
}

// cachePrice is a price list in which a token of input costs 1 000, and one of the cache what read says.
type cachePrice struct{ read int64 }

func (p *cachePrice) Cost(_, _ string, usage continuo.Usage) continuo.Cost {
	cached := int64(usage.CachedTokens)
	return continuo.Cost{Nano: 1000*(int64(usage.InputTokens)-cached) + p.read*cached, Currency: continuo.USD}
}

// pricedBy gives the house a log with prices.
func (h *house) pricedBy(prices continuo.PriceList) {
	h.t.Helper()
	h.log = continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{Counter: token.O200k(), Objects: storetest.NewObjects(), Prices: prices})
	conversation, err := h.log.Create(context.Background(), continuo.Conversation{})
	if err != nil {
		h.t.Fatal(err)
	}
	h.conversation, h.runner.Log = conversation, h.log
}

// follow begins a turn and yields its events while it runs.
func (h *house) follow(ctx context.Context, in turn.Input) iter.Seq2[turn.Event, error] {
	return func(yield func(turn.Event, error) bool) {
		h.t.Helper()
		journal := h.begin(ctx)
		ran := make(chan error, 1)
		go func() { ran <- h.runner.Run(journal, in) }()
		var received error
		defer func() {
			if err := <-ran; err != nil && received == nil {
				h.t.Errorf("the turn ended with an error that its readers did not receive: %v", err)
			}
		}()
		for event, err := range journal.Follow(context.Background(), 0) {
			received = err
			if !yield(event, err) {
				journal.Stop(nil)
				return
			}
		}
	}
}

// begin takes the lease of a new turn.
func (h *house) begin(ctx context.Context) *turn.Journal {
	h.t.Helper()
	if h.keeper == nil {
		h.keeper = turn.NewKeeper(turn.KeeperOptions{Log: h.log})
	}
	journal, err := h.keeper.Begin(ctx, continuo.Turn{ID: h.log.NewID("turn"), ConversationID: h.conversation.ID})
	if err != nil {
		h.t.Fatal(err)
	}
	return journal
}

// run runs a turn to its end and returns its last event.
func (h *house) run(ctx context.Context, in turn.Input) (last turn.Event, err error) {
	h.t.Helper()
	for event, failure := range h.follow(ctx, in) {
		last, err = event, failure
	}
	return last, err
}

func (h *house) send(text string) turn.Event {
	h.t.Helper()
	last, err := h.run(context.Background(), turn.Input{Message: continuo.Text(text)})
	if err != nil {
		h.t.Fatal(err)
	}
	return last
}

func (h *house) entries() []continuo.Entry {
	h.t.Helper()
	conversation, err := h.log.Conversation(context.Background(), h.conversation.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	var all []continuo.Entry
	for entry, err := range h.log.Read(context.Background(), conversation, continuo.Range{}) {
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, entry)
	}
	return all
}

func TestTheSecondTurnSeesTheFirst(t *testing.T) {
	h := newHouse(t, textAnswer("Hello Ada."), textAnswer("Your name is Ada."))
	h.send("I am Ada.")
	last := h.send("What is my name?")
	if last.Kind != turn.Finished || last.Entry.Content.String() != "Your name is Ada." || last.Usage.InputTokens != 10 {
		t.Errorf("last event: %+v", last)
	}
	second := h.model.bodies[1]
	for _, text := range []string{"be brief", "I am Ada.", "Hello Ada.", "What is my name?"} {
		if strings.Count(second, text) != 1 {
			t.Errorf("%q is %d times in the second request: %s", text, strings.Count(second, text), second)
		}
	}
	entry := h.entries()[3]
	if entry.Round == nil || entry.Round.RequestSHA256 == "" || entry.Round.Usage == nil || entry.TurnID != last.TurnID {
		t.Errorf("the answer lacks its round: %+v", entry)
	}
}

func TestToolsRunSideBySideAndAnswerInOrder(t *testing.T) {
	h := newHouse(t, asks(`slow_echo {"n":1}`, `quick_echo {"n":2}`, `missing {"n":3}`), textAnswer("Done."))
	quickRan := make(chan struct{})
	h.runner.Tools = tool.Set{
		echo{name: "slow.echo", begin: func() { <-quickRan }}, // ends only when the other has begun
		echo{name: "quick.echo", begin: func() { close(quickRan) }},
	}
	if last := h.send("go"); last.Kind != turn.Finished {
		t.Fatalf("last event: %+v", last)
	}
	log := h.entries()
	var results []string
	for _, entry := range log[2:5] {
		results = append(results, entry.ToolCallID+" "+entry.ToolName+" "+entry.Content.String())
	}
	want := []string{`call_0 slow.echo {"n":1}`, `call_1 quick.echo {"n":2}`, `call_2 missing error: there is no tool missing; offered were [slow_echo quick_echo]`}
	if !slices.Equal(results, want) {
		t.Errorf("results: %q", results)
	}
	if !strings.Contains(h.model.bodies[0], `"name":"slow_echo"`) || !strings.Contains(h.model.bodies[1], `"tool_call_id":"call_1"`) {
		t.Errorf("requests: %q", h.model.bodies)
	}
}

func TestABrokenAnswerIsKeptAndContinued(t *testing.T) {
	h := newHouse(t,
		[]any{model.Delta{Text: "Once upon a "}, &model.Error{Reason: continuo.ReasonNetwork, Message: "connection reset", Retryable: true}},
		textAnswer("time there was a log."))
	if last := h.send("Tell a story."); last.Kind != turn.Failed || last.Entry.Error.Reason != continuo.ReasonNetwork {
		t.Fatalf("last event: %+v", last)
	}
	h.send("continue")
	broken := h.entries()[1]
	if broken.Content.String() != "Once upon a " || broken.Error.Code != continuo.LLMError || !broken.Error.Retryable {
		t.Errorf("broken answer: %+v", broken)
	}
	if !strings.Contains(h.model.bodies[1], `Once upon a \n\nLLM_ERROR reason=network`) {
		t.Errorf("the second request does not show the partial answer: %s", h.model.bodies[1])
	}
}

func TestATruncatedCallIsKeptAsPartialAndCompleteOnesAreAnswered(t *testing.T) {
	h := newHouse(t, []any{
		model.Delta{ToolCall: &model.ToolCallDelta{Index: 0, ID: "a", Type: "function", Name: "echo", Arguments: `{"x":1}`, Done: true}},
		model.Delta{ToolCall: &model.ToolCallDelta{Index: 1, ID: "b", Type: "function", Name: "echo", Arguments: `{"y":`}},
		&model.Error{Reason: continuo.ReasonUpstream, Message: "overloaded"},
	}, textAnswer("ok"))
	h.runner.Tools = tool.Set{echo{name: "echo"}}
	h.send("go")
	log := h.entries()
	if partial := log[1].Error.PartialToolCalls; len(partial) != 1 || partial[0].Arguments != `{"y":` {
		t.Errorf("partial calls: %+v", partial)
	}
	if len(log) != 3 || log[2].ToolCallID != "a" || !strings.HasPrefix(log[2].Content.String(), "error: not run") {
		t.Errorf("log: %+v", log[2:])
	}
	if last := h.send("again"); last.Kind != turn.Finished {
		t.Errorf("the conversation cannot go on: %+v", last)
	}
}

func TestCancellingKeepsThePartialAnswer(t *testing.T) {
	for reason, cause := range map[continuo.FailureReason]error{
		continuo.ReasonCancelled:   nil,
		continuo.ReasonInterrupted: turn.ErrInterrupted,
	} {
		ctx, cancel := context.WithCancelCause(context.Background())
		h := newHouse(t, []any{model.Delta{Text: "Half"}, func(context.Context) { cancel(cause) }, model.Delta{Text: " and never"}})
		last, err := h.run(ctx, turn.Input{Message: continuo.Text("go")})
		if err != nil || last.Kind != turn.Failed || last.Entry.Error.Reason != reason || last.Entry.Content.String() != "Half" {
			t.Errorf("%s: %+v, %v", reason, last, err)
		}
		if log := h.entries(); len(log) != 2 {
			t.Errorf("%s: %d entries", reason, len(log))
		}
	}
}

func TestAMessageThatCannotFitIsRefusedBeforeItIsKept(t *testing.T) {
	h := newHouse(t)
	h.model.window = 16_000
	_, err := h.run(context.Background(), turn.Input{Message: continuo.Text(strings.Repeat("word ", 20_000))})
	var overflow *continuo.OverflowError
	if !errors.As(err, &overflow) || overflow.NewestUser.Tokens < 20_000 {
		t.Errorf("got %v", err)
	}
	if log := h.entries(); len(log) != 0 {
		t.Errorf("%d entries were kept", len(log))
	}
}

// When the size of the window is unknown, the provider decides, and its refusal names the setting.
func TestAProvidersRefusalOfTheSizeNamesTheSetting(t *testing.T) {
	h := newHouse(t, []any{&model.Error{Reason: continuo.ReasonContextOverflow, Status: 400, Message: "the upstream answered 400"}})
	last := h.send(strings.Repeat("word ", 20_000))
	if last.Kind != turn.Failed || last.Entry.Error.Reason != continuo.ReasonContextOverflow {
		t.Fatalf("last event: %+v", last)
	}
	for _, part := range []string{"the upstream answered 400", "estimated at 20", "models.NAME.context_window"} {
		if !strings.Contains(last.Entry.Error.Message, part) {
			t.Errorf("%q is not in %s", part, last.Entry.Error.Message)
		}
	}
}

// What grows over the model's window within a turn is reported as such, not as a failure of the provider.
func TestACycleThatOutgrowsTheWindowIsAnOverflow(t *testing.T) {
	h := newHouse(t, asks("echo "+strings.Repeat("word ", 1_500)), textAnswer("never"))
	h.model.window, h.runner.Tools = 2_000, tool.Set{echo{name: "echo"}}
	last := h.send("go")
	if last.Kind != turn.Failed || last.Entry.Error.Reason != continuo.ReasonContextOverflow {
		t.Fatalf("last event: %+v", last)
	}
	if text := last.Entry.Error.Message; !strings.Contains(text, "the newest tool calls with their results take") {
		t.Errorf("it says %s", text)
	}
}

func TestAnOpenCallOfADeadProgramIsClosed(t *testing.T) {
	h := newHouse(t, textAnswer("ok"))
	_, err := h.log.Append(context.Background(), h.conversation.ID, []continuo.Entry{
		{Role: continuo.User, Content: continuo.Text("go")},
		{Role: continuo.Assistant, Content: continuo.Null(), ToolCalls: []continuo.ToolCall{continuo.FunctionCall("a", "echo", "{}"), continuo.FunctionCall("b", "echo", "{}")}},
		{Role: continuo.Tool, ToolCallID: "b", Content: continuo.Text("done")},
	}, continuo.AppendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if last := h.send("still there?"); last.Kind != turn.Finished {
		t.Fatalf("last event: %+v", last)
	}
	if closed := h.entries()[3]; closed.ToolCallID != "a" || closed.ToolName != "echo" || !strings.Contains(closed.Content.String(), "interrupted") {
		t.Errorf("closing entry: %+v", closed)
	}
}

func TestTheLastRoundOffersNoTools(t *testing.T) {
	h := newHouse(t, asks("echo {}"), textAnswer("enough"))
	h.runner.Tools = tool.Set{echo{name: "echo"}}
	h.runner.Limits.Rounds = 2
	if last := h.send("go"); last.Kind != turn.Finished {
		t.Fatalf("last event: %+v", last)
	}
	if !strings.Contains(h.model.bodies[0], `"tools"`) || strings.Contains(h.model.bodies[1], `"tools"`) {
		t.Errorf("requests: %q", h.model.bodies)
	}
	h = newHouse(t, asks("echo {}"), asks("echo {}"))
	h.runner.Tools = tool.Set{echo{name: "echo"}}
	h.runner.Limits.Rounds = 2
	if last := h.send("go"); last.Kind != turn.Failed || last.Entry.Error.Reason != continuo.ReasonTurnLimit || !strings.Contains(last.Entry.Error.Message, "2 rounds") {
		t.Errorf("a model that does not stop: %+v", last)
	}
}

func TestAToolThatPanicsFailsItsCallOnly(t *testing.T) {
	h := newHouse(t, asks("echo {}"), textAnswer("I see."))
	h.runner.Tools = tool.Set{echo{name: "echo", begin: func() { panic("boom") }}}
	if last := h.send("go"); last.Kind != turn.Finished {
		t.Fatalf("last event: %+v", last)
	}
	if text := h.entries()[2].Content.String(); !strings.Contains(text, "boom") {
		t.Errorf("result: %s", text)
	}
}

// TestAnyRequestIsReproducible makes every request of a long conversation again, after the window has
// moved several times, and compares bytes.
func TestAnyRequestIsReproducible(t *testing.T) {
	var answers [][]any
	for i := range 60 {
		if i%4 == 3 {
			answers = append(answers, asks(fmt.Sprintf(`echo {"n":"%s"}`, strings.Repeat("x", i*100))))
		} else {
			answers = append(answers, textAnswer(strings.Repeat(fmt.Sprintf("answer %d. ", i), 20)))
		}
	}
	h := newHouse(t, answers...)
	prices := &cachePrice{read: 500}
	h.pricedBy(prices)
	h.runner.Tools = tool.Set{echo{name: "echo"}}
	h.limit(window.Limits{Messages: 16, Tokens: 1200})
	for len(h.model.bodies) < len(answers)-1 {
		h.send(fmt.Sprintf("question %d", len(h.model.bodies)))
	}
	conversation, err := h.log.Conversation(context.Background(), h.conversation.ID)
	if err != nil {
		t.Fatal(err)
	}
	prices.read = 10 // since then
	seen, moves, epochs := 0, 0, map[int64]bool{}
	for _, entry := range h.entries() {
		if entry.Round == nil {
			continue
		}
		if entry.Round.CachePrices == (continuo.CachePrices{Read: 500_000, Write: 1_000_000}) {
			moves++
		}
		request, same, err := turn.Replay(context.Background(), h.log, conversation, entry.Round, turn.ReadWindowView)
		if err != nil {
			t.Fatal(err)
		}
		if !same || string(request.Body) != h.model.bodies[seen] {
			t.Errorf("the request of entry %d is not what was sent", entry.Seq)
		}
		epochs[entry.Round.Window.Epoch] = true
		seen++
	}
	if seen != len(h.model.bodies) || len(epochs) < 3 || moves < 2 {
		t.Errorf("%d of %d requests, %d epochs, %d moves with their prices", seen, len(h.model.bodies), len(epochs), moves)
	}
}

func TestEveryEntryOfATurnHasItsTurnID(t *testing.T) {
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
