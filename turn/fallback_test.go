package turn_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// spare is a scripted model of another vendor and protocol.
type spare struct {
	script
	contextWindow int
}

func (s *spare) Info() model.Info {
	return model.Info{Provider: "spare", Name: "claude", Protocol: model.ProtocolAnthropic, ContextWindow: s.contextWindow}
}

func (s *spare) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return s.script.Stream(ctx, body)
}

// withSpare gives a house a fallback with its answers.
func withSpare(h *house, answers ...[]any) *spare {
	s := &spare{script: script{answers: answers}}
	h.runner.Fallback = &turn.Upstream{Model: s, MaxOutputTokens: 500}
	return s
}

func failing(reason continuo.FailureReason) []any {
	return []any{&model.Error{Reason: reason, Message: "it went wrong", Retryable: true}}
}

// events runs a turn and returns its events by kind, in order.
func (h *house) events(text string) (kinds []turn.Kind, all []turn.Event) {
	h.t.Helper()
	for event, err := range h.follow(context.Background(), turn.Input{Message: continuo.Text(text)}) {
		if err != nil {
			h.t.Fatal(err)
		}
		kinds, all = append(kinds, event.Kind), append(all, event)
	}
	return kinds, all
}

func TestTheFallbackAnswersInItsOwnProtocol(t *testing.T) {
	h := newHouse(t, failing(continuo.ReasonUpstream))
	s := withSpare(h, textAnswer("I am the spare."))
	kinds, all := h.events("Who are you?")
	want := []turn.Kind{turn.Started, turn.Planned, turn.FellBack, turn.Planned, turn.TextDelta, turn.TextDelta, turn.Answered, turn.Finished}
	if !slices.Equal(kinds, want) {
		t.Fatalf("events %v, want %v", kinds, want)
	}
	if failed := all[2].Attempt; failed.Round.Provider != "script" || failed.Round.Model != "gpt-4o" || failed.Error.Message != "it went wrong" {
		t.Errorf("the failed attempt: %+v", failed)
	}
	log := h.entries()
	if len(log) != 2 {
		t.Fatalf("%d entries, want the question and one answer", len(log))
	}
	round := log[1].Round
	if round.Provider != "spare" || round.Model != "claude" || round.Protocol != model.ProtocolAnthropic || log[1].Error != nil {
		t.Errorf("the answer names the request %+v", round)
	}
	if body := s.bodies[0]; !strings.Contains(body, `"system":`) || !strings.Contains(body, `"max_tokens":500`) || !strings.Contains(body, "Who are you?") {
		t.Errorf("the fallback was sent %s", body)
	}
	conversation, err := h.log.Conversation(context.Background(), h.conversation.ID)
	if err != nil {
		t.Fatal(err)
	}
	request, same, err := turn.Replay(context.Background(), h.log, conversation, round, turn.ReadWindowView)
	if err != nil || !same || string(request.Body) != s.bodies[0] {
		t.Errorf("the fallback's request cannot be shown again: %v", err)
	}
}

func TestTheFallbackIsTriedAgainInEachRound(t *testing.T) {
	h := newHouse(t, failing(continuo.ReasonTimeout), textAnswer("Back again."))
	h.runner.Tools = tool.Set{echo{name: "echo"}}
	s := withSpare(h, asks("echo {}"))
	if last := h.send("go"); last.Kind != turn.Finished || last.Entry.Round.Provider != "script" {
		t.Fatalf("last event: %+v", last)
	}
	if len(h.model.bodies) != 2 || len(s.bodies) != 1 {
		t.Errorf("%d requests to the model, %d to the fallback", len(h.model.bodies), len(s.bodies))
	}
}

func TestWhenThereIsNoFallingBack(t *testing.T) {
	broken := failing(continuo.ReasonNetwork)[0]
	for name, answer := range map[string][]any{
		"after text":       {model.Delta{Text: "half"}, broken},
		"after reasoning":  {model.Delta{Reasoning: "hm"}, broken},
		"after a call":     {model.Delta{ToolCall: &model.ToolCallDelta{ID: "a", Name: "echo"}}, broken},
		"a filter's no":    failing(continuo.ReasonContentFilter),
		"a cancelled turn": failing(continuo.ReasonCancelled),
	} {
		h := newHouse(t, answer)
		s := withSpare(h, textAnswer("never"))
		if last := h.send("go"); last.Kind != turn.Failed || len(s.bodies) != 0 {
			t.Errorf("%s: %+v, %d requests to the fallback", name, last, len(s.bodies))
		}
	}
}

func TestAFallbackThatFailsReportsBothErrors(t *testing.T) {
	h := newHouse(t, failing(continuo.ReasonRateLimit))
	withSpare(h, []any{model.Delta{Text: "Well, "}, &model.Error{Reason: continuo.ReasonNetwork, Message: "cut"}})
	last := h.send("go")
	if last.Kind != turn.Failed || last.Entry.Content.String() != "Well, " || last.Entry.Error.Reason != continuo.ReasonNetwork {
		t.Fatalf("last event: %+v", last)
	}
	if want := "cut; claude was asked because gpt-4o had failed: it went wrong"; last.Entry.Error.Message != want {
		t.Errorf("error %q, want %q", last.Entry.Error.Message, want)
	}
}

func TestAFallbackThatIsTooSmallLeavesTheFirstFailure(t *testing.T) {
	h := newHouse(t, failing(continuo.ReasonUpstream))
	s := withSpare(h)
	s.contextWindow = 510
	last := h.send(strings.Repeat("word ", 100))
	if last.Kind != turn.Failed || last.Entry.Round.Provider != "script" || len(s.bodies) != 0 {
		t.Fatalf("last event: %+v", last)
	}
	if text := last.Entry.Error.Message; !strings.HasPrefix(text, "it went wrong; the fallback claude could not be asked: ") || !strings.Contains(text, "context_overflow") {
		t.Errorf("error %q", text)
	}
	if log := h.entries(); len(log) != 2 {
		t.Errorf("%d entries", len(log))
	}
}
