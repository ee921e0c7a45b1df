package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/interchange"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/token"
)

// countingModel says how many messages a request has, and counts the requests.
type countingModel struct {
	mu       sync.Mutex
	requests int
	bodies   map[string]int
}

func (m *countingModel) Info() model.Info {
	return model.Info{Provider: "count", Name: "gpt-4o", Protocol: model.ProtocolOpenAIChat}
}

func (m *countingModel) Stream(_ context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		var request struct{ Messages []json.RawMessage }
		if err := json.Unmarshal(body, &request); err != nil {
			yield(model.Delta{}, &model.Error{Reason: continuo.ReasonUpstream, Message: err.Error()})
			return
		}
		m.mu.Lock()
		m.requests++
		m.bodies[string(body)]++
		m.mu.Unlock()
		_ = yield(model.Delta{Text: fmt.Sprintf("%d messages", len(request.Messages))}, nil) &&
			yield(model.Delta{Finish: "stop", Usage: &continuo.Usage{InputTokens: len(body) / 3, OutputTokens: 2}}, nil)
	}
}

// flatPrice is a price list: a token costs a thousandth of a dollar.
type flatPrice struct{}

func (flatPrice) Cost(_, _ string, usage continuo.Usage) continuo.Cost {
	return continuo.Cost{Nano: int64(usage.InputTokens+usage.OutputTokens) * 1_000_000, Currency: continuo.USD}
}

// replayHarness is an engine over conversations of the shared data.
type replayHarness struct {
	*testEngine
	model   *countingModel
	replays []engine.ReplayConversation
}

func newReplayHarness(t *testing.T, source string, most, entries int) *replayHarness {
	t.Helper()
	folder := os.Getenv("CONTINUO_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "data")
	}
	path := filepath.Join(folder, source+".jsonl.gz")
	file, err := os.Open(path)
	if err != nil {
		t.Skipf("SKIPPED: no %s; set CONTINUO_DATA to the folder that holds it", path)
	}
	defer file.Close()
	m := &countingModel{bodies: map[string]int{}}
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{Counter: token.O200k(), Prices: flatPrice{}})
	e, err := engine.New(log, engine.Options{Models: map[string]engine.Upstream{"count": {Model: m}}, Default: "count"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &replayHarness{testEngine: &testEngine{e, log}, model: m}
	for document, err := range interchange.Read(source, file, interchange.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(document.Entries) > entries {
			continue
		}
		conversation, err := log.Import(t.Context(), document.Conversation, document.Entries)
		if err != nil {
			t.Fatal(err)
		}
		if h.replays = append(h.replays, engine.ReplayConversation{Conversation: conversation}); len(h.replays) == most {
			break
		}
	}
	return h
}

// run replays, and returns the results by what they are of.
func (h *replayHarness) run(t *testing.T, request engine.Replay) map[string]engine.ReplayResult {
	t.Helper()
	request.Conversations = h.replays
	results := map[string]engine.ReplayResult{}
	err := h.Replays.Run(t.Context(), request, func(result engine.ReplayResult) error {
		results[replayPlace(result.Conversation, result.Variant, result.Seq)] = result
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func replayPlace(conversation, variant string, seq int64) string {
	return fmt.Sprint(conversation, " ", variant, " ", seq)
}

func replayVariants(tokens ...int) (variants []engine.ReplayVariant) {
	for _, most := range tokens {
		variants = append(variants, engine.ReplayVariant{Name: fmt.Sprint(most), Variant: engine.RequestVariant{View: "codex", MaxTokens: &most}})
	}
	return variants
}

// The requests of a replay are those of a conversation that is held in the variant: they only grow between two moves of the
// window. They are the same however many conversations are replayed at once, and nothing is written.
func TestReplayedRequestsGrowBetweenMoves(t *testing.T) {
	for _, source := range []string{"tau-airline", "coding-agents", "edge-cases"} {
		t.Run(source, func(t *testing.T) {
			h := newReplayHarness(t, source, 6, 150)
			request := engine.Replay{Variants: replayVariants(1500, 6000), DryRun: true, Concurrency: 1}
			results := h.run(t, request)
			moves, built := 0, 0
			for _, conversation := range h.replays {
				for _, variant := range request.Variants {
					var before *engine.ReplayResult
					for seq := int64(1); seq <= conversation.LastSeq; seq++ {
						result, ok := results[replayPlace(conversation.ID, variant.Name, seq)]
						if !ok || result.State != "built" {
							continue
						}
						built++
						now := result.Replayed.Request
						if now.Moved {
							moves++
						} else if before != nil {
							const tail = 200 // what follows the messages in a body
							if shared := *now.SharedBytes; shared < before.Replayed.Request.Bytes-tail {
								t.Errorf("%s, %s tokens: the request of entry %d has %d of the %d bytes of the one before, and the window did not move",
									conversation.ID, variant.Name, seq, shared, before.Replayed.Request.Bytes)
							}
						}
						before = &result
					}
				}
				if now, err := h.Log.Conversation(t.Context(), conversation.ID); err != nil || now.LastSeq != conversation.LastSeq {
					t.Errorf("the conversation has %d entries, before %d (%v)", now.LastSeq, conversation.LastSeq, err)
				}
			}
			if built == 0 || source == "coding-agents" && moves == 0 {
				t.Errorf("%d requests, %d moves: nothing was checked", built, moves)
			}
			request.Concurrency = 4
			if again := h.run(t, request); !reflect.DeepEqual(results, again) {
				t.Error("four at once gave other results than one after another")
			}
			if h.model.requests > 0 {
				t.Errorf("a dry run asked the model %d times", h.model.requests)
			}
		})
	}
}

// A replay that ends at any place continues there: no request is sent twice, and the results are those of one that did not end.
func TestAReplayContinues(t *testing.T) {
	whole := newReplayHarness(t, "tau-airline", 3, 60)
	request := engine.Replay{Variants: replayVariants(1500), Concurrency: 2}
	want := whole.run(t, request)
	for _, most := range []int{1, 7, 20} {
		h := &replayHarness{testEngine: whole.testEngine, model: whole.model, replays: whole.replays}
		before := whole.model.requests
		whole.model.mu.Lock()
		clear(whole.model.bodies)
		whole.model.mu.Unlock()
		kept := map[string]*engine.ReplayResult{}
		interrupted := request
		interrupted.Conversations = h.replays
		stop := errors.New("stopped")
		err := h.Replays.Run(t.Context(), interrupted, func(result engine.ReplayResult) error {
			kept[replayPlace(result.Conversation, result.Variant, result.Seq)] = &result
			if len(kept) >= most {
				return stop
			}
			return nil
		})
		if !errors.Is(err, stop) {
			t.Fatalf("the replay ended with %v", err)
		}
		sent := whole.model.requests - before
		continued := request
		continued.Known = func(conversation, variant string, seq int64) *engine.ReplayResult {
			return kept[replayPlace(conversation, variant, seq)]
		}
		got := h.run(t, continued)
		if sent < len(kept) {
			t.Errorf("%d requests were sent for %d results", sent, len(kept))
		}
		for place, result := range got {
			if result.Replayed.Text != want[place].Replayed.Text || result.State != want[place].State {
				t.Errorf("%s: %q (%s), want %q (%s)", place, result.Replayed.Text, result.State, want[place].Replayed.Text, want[place].State)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d results, want %d", len(got), len(want))
		}
		if again := whole.model.requests - before - sent; again > len(want)-len(kept) {
			t.Errorf("after %d results, %d of %d requests were sent", len(kept), again, len(want))
		}
	}
}

// Limits hold with several conversations at once: what requests are expected to cost is reserved before they are sent.
func TestAReplayKeepsItsLimits(t *testing.T) {
	h := newReplayHarness(t, "tau-airline", 6, 60)
	sums := func(request engine.Replay) (totals engine.ReplayTotals) {
		for _, result := range h.run(t, request) {
			totals.AddReplayed(&result)
		}
		return totals
	}
	request := engine.Replay{Variants: replayVariants(1500), Concurrency: 4}
	all := sums(request)
	request.MaxRequests = 5
	if some := sums(request); some.Answers != 5 || some.Unsent != all.Answers-5 {
		t.Errorf("with a limit of 5 requests: %d answers, %d not sent, of %d", some.Answers, some.Unsent, all.Answers)
	}
	request.MaxRequests, request.MaxCostNano = 0, all.ExpectedNano/3
	if some := sums(request); some.Answers == 0 || some.Unsent == 0 || some.ExpectedNano > request.MaxCostNano*2 {
		t.Errorf("with a third of the cost: %d answers, %d not sent, expected %d of %d", some.Answers, some.Unsent, some.ExpectedNano, request.MaxCostNano)
	}
	spent, err := h.Ledger.Spent(t.Context(), continuo.SpendingQuery{})
	if err != nil || len(spent) != 1 || spent[0].Requests != int64(h.model.requests) {
		t.Errorf("the ledger has %+v of %d requests (%v)", spent, h.model.requests, err)
	}
}
