package e2e

import (
	"slices"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// receivedRound is what a client received of one round.
type receivedRound struct {
	text, reasoning string
	arguments       []string // of the calls, by index
	parts           []receivedPart
	called          []string          // ids of calls that were executed
	allowed         map[string]bool   // calls that a person let run
	results         map[string]string // by call
}

// receivedPart is one piece of an answer as it came.
type receivedPart struct {
	of   string // text, reasoning or call
	call int
	end  int // how long the whole was with it, in bytes
	size int
}

// roundsOf takes events apart.
func roundsOf(events []receivedEvent) []receivedRound {
	var rounds []receivedRound
	for _, e := range events {
		if e.kind == "context" {
			rounds = append(rounds, receivedRound{allowed: map[string]bool{}, results: map[string]string{}})
		}
		if len(rounds) > 0 {
			rounds[len(rounds)-1].take(e)
		}
	}
	return rounds
}

func (r *receivedRound) take(e receivedEvent) {
	var data struct {
		Text       string `json:"text"`
		Index      int    `json:"index"`
		ID         string `json:"id"`
		ToolCallID string `json:"tool_call_id"`
		Arguments  string `json:"arguments"`
		Content    string `json:"content"`
		Allowed    bool   `json:"allowed"`
	}
	if e.isEnd() || e.read(&data) != nil {
		return
	}
	switch e.kind {
	case "delta":
		r.text += data.Text
		r.parts = append(r.parts, receivedPart{of: "text", end: len(r.text), size: len(data.Text)})
	case "reasoning":
		r.reasoning += data.Text
		r.parts = append(r.parts, receivedPart{of: "reasoning", end: len(r.reasoning), size: len(data.Text)})
	case "tool_call_delta":
		for len(r.arguments) <= data.Index {
			r.arguments = append(r.arguments, "")
		}
		r.arguments[data.Index] += data.Arguments
		r.parts = append(r.parts, receivedPart{of: "call", call: data.Index, end: len(r.arguments[data.Index]), size: len(data.Arguments)})
	case "tool_call":
		r.called = append(r.called, data.ID)
	case "decision":
		r.allowed[data.ToolCallID] = data.Allowed
	case "tool_result":
		r.results[data.ToolCallID] = data.Content
	}
}

// missing returns the pieces that were received of which an answer does not have all.
func (r *receivedRound) missing(answer *continuo.Entry) (missing []receivedPart) {
	kept := map[string]int{"text": len(answer.Content.String())}
	if answer.Reasoning != nil {
		kept["reasoning"] = len(answer.Reasoning.Text)
	}
	var calls []int
	for _, call := range answer.ToolCalls {
		calls = append(calls, len(call.Arguments))
	}
	if answer.Error != nil {
		for _, call := range answer.Error.PartialToolCalls {
			calls = append(calls, len(call.Arguments))
		}
	}
	for _, part := range r.parts {
		stored := kept[part.of]
		if part.of == "call" && part.call < len(calls) {
			stored = calls[part.call]
		}
		if part.end > stored {
			missing = append(missing, part)
		}
	}
	return missing
}

// losses counts what became of turns that were killed.
type losses struct {
	mu                            sync.Mutex
	starts                        []time.Duration
	received                      int // turns that were cut off while a client received their answer
	kept                          []int
	voids, finished, cut, between int
	complete, partial             int // calls
	unanswered, undecided         int // calls of whole answers that have no result
}

func (l *losses) addVoid() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.voids++
}

func (l *losses) addUnanswered(undecided bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unanswered++
	if undecided {
		l.undecided++
	}
}

// count checks that a turn lost nothing that its client had received.
func (l *losses) count(c *chatClient, a *attempt, answer *continuo.Entry, received receivedRound) {
	if missing := received.missing(answer); len(missing) > 0 {
		c.errorf("turn %s lost %d pieces that were heard, the first of %d bytes", a.id, len(missing), missing[0].size)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case answer.Error == nil:
		l.finished++
		return
	case answer.Round == nil:
		l.between++
	default:
		l.cut++
	}
	l.complete += len(answer.ToolCalls)
	l.partial += len(answer.Error.PartialToolCalls)
	l.kept = append(l.kept, len(answer.Content.String()))
	if len(received.parts) > 0 {
		l.received++
	}
}

// cutAny reports whether a turn was cut off while a client received its answer.
func (l *losses) cutAny() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.received > 0
}

func (l *losses) report(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.received == 0 || len(l.starts) == 0 {
		t.Errorf("no turn was cut off while its answer was received, or no program started: %d, %d", l.received, len(l.starts))
		return
	}
	t.Logf("turns: %d cut off in an answer, %d between two, %d finished, %d not begun; calls in cut answers: %d complete, %d partial; of whole answers without a result: %d, of which nobody had decided on %d",
		l.cut, l.between, l.finished, l.voids, l.complete, l.partial, l.unanswered, l.undecided)
	t.Logf("bytes of text kept: median %d, max %d; %d starts until ready: median %v, max %v",
		share(l.kept, 0.5), slices.Max(l.kept), len(l.starts), share(l.starts, 0.5), slices.Max(l.starts))
}

// share returns the value below which a share of all values is.
func share[T int | time.Duration](values []T, of float64) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(of*float64(len(sorted))))]
}
