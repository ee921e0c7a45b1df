package e2e

import (
	"slices"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// heardRound is what a client heard of one round.
type heardRound struct {
	text, reasoning string
	arguments       []string // of the calls, by index
	parts           []heardPart
	called          []string          // ids of calls that were taken up
	results         map[string]string // by call
}

// heardPart is one piece of an answer as it came.
type heardPart struct {
	at   time.Time
	of   string // text, reasoning or call
	call int
	end  int // how long the whole was with it, in bytes
	size int
}

// roundsOf takes events apart.
func roundsOf(events []heard) []heardRound {
	var rounds []heardRound
	for _, e := range events {
		if e.kind == "context" {
			rounds = append(rounds, heardRound{results: map[string]string{}})
		}
		if len(rounds) > 0 {
			rounds[len(rounds)-1].take(e)
		}
	}
	return rounds
}

func (r *heardRound) take(e heard) {
	var data struct {
		Text       string `json:"text"`
		Index      int    `json:"index"`
		ID         string `json:"id"`
		ToolCallID string `json:"tool_call_id"`
		Arguments  string `json:"arguments"`
		Content    string `json:"content"`
	}
	if e.isEnd() || e.read(&data) != nil {
		return
	}
	switch e.kind {
	case "delta":
		r.text += data.Text
		r.parts = append(r.parts, heardPart{at: e.at, of: "text", end: len(r.text), size: len(data.Text)})
	case "reasoning":
		r.reasoning += data.Text
		r.parts = append(r.parts, heardPart{at: e.at, of: "reasoning", end: len(r.reasoning), size: len(data.Text)})
	case "tool_call_delta":
		for len(r.arguments) <= data.Index {
			r.arguments = append(r.arguments, "")
		}
		r.arguments[data.Index] += data.Arguments
		r.parts = append(r.parts, heardPart{at: e.at, of: "call", call: data.Index, end: len(r.arguments[data.Index]), size: len(data.Arguments)})
	case "tool_call":
		r.called = append(r.called, data.ID)
	case "tool_result":
		r.results[data.ToolCallID] = data.Content
	}
}

// lost returns the pieces that were heard of which an answer does not have all.
func (r *heardRound) lost(answer *continuo.Entry) (lost []heardPart) {
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
		stands := kept[part.of]
		if part.of == "call" && part.call < len(calls) {
			stands = calls[part.call]
		}
		if part.end > stands {
			lost = append(lost, part)
		}
	}
	return lost
}

// What a kill may take of an answer that a client had heard: its last 2 KiB, or what came in 100 ms, and the piece with
// which it was that much. A turn whose commits are slow waits for them then, so that a busy machine changes nothing; the
// slack is for a client that is late to read.
const (
	maxLost    = 2 << 10
	maxLostFor = 100 * time.Millisecond
	readSlack  = 400 * time.Millisecond
)

// losses counts what became of turns that were killed.
type losses struct {
	mu                            sync.Mutex
	starts                        []time.Duration
	lost                          []int           // bytes, of each turn that was cut off while its answer was heard
	ages                          []time.Duration // of the oldest of them, at the kill
	kept                          []int
	voids, finished, cut, between int
	complete, partial, unanswered int // calls
}

func (l *losses) void() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.voids++
}

func (l *losses) unanswer() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unanswered++
}

// count measures what a turn lost.
func (l *losses) count(c *talk, a *attempt, answer *continuo.Entry, heard heardRound) {
	lost, age := 0, time.Duration(0)
	if parts := heard.lost(answer); len(parts) > 0 {
		for _, part := range parts {
			lost += part.size
		}
		first, last := parts[0], parts[len(parts)-1]
		age = max(0, a.killed.Sub(first.at))
		if span := last.at.Sub(first.at); lost-last.size > maxLost && span > maxLostFor+readSlack {
			c.errorf("turn %s lost %d bytes that were heard in %v, the last of them %v before the kill", a.id, lost, span, a.killed.Sub(last.at))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case answer.Error == nil:
		l.finished++
		if lost > 0 {
			c.errorf("turn %s is finished, and lost %d bytes", a.id, lost)
		}
		return
	case answer.Round == nil:
		l.between++
	default:
		l.cut++
	}
	l.complete += len(answer.ToolCalls)
	l.partial += len(answer.Error.PartialToolCalls)
	l.kept = append(l.kept, len(answer.Content.String()))
	if len(heard.parts) > 0 {
		l.lost, l.ages = append(l.lost, lost), append(l.ages, age)
	}
}

func (l *losses) report(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lost) == 0 || len(l.starts) == 0 {
		t.Errorf("no turn was cut off while its answer was heard, or no program started: %d, %d", len(l.lost), len(l.starts))
		return
	}
	t.Logf("turns: %d cut off in an answer, %d between two, %d finished, %d not begun; calls in cut answers: %d complete, %d partial; of whole answers without a result: %d",
		l.cut, l.between, l.finished, l.voids, l.complete, l.partial, l.unanswered)
	if age := share(l.ages, 0.5); age > maxLostFor { // of slow streams too, which have no 2 KiB
		t.Errorf("half of the kills take what had come %v before", age)
	}
	t.Logf("of %d answers that were heard, lost bytes: median %d, p99 %d, max %d; age of the oldest: median %v, p99 %v, max %v",
		len(l.lost), share(l.lost, 0.5), share(l.lost, 0.99), slices.Max(l.lost), share(l.ages, 0.5), share(l.ages, 0.99), slices.Max(l.ages))
	t.Logf("bytes of text kept: median %d, max %d; %d starts until ready: median %v, max %v",
		share(l.kept, 0.5), slices.Max(l.kept), len(l.starts), share(l.starts, 0.5), slices.Max(l.starts))
}

// share returns the value below which a share of all values is.
func share[T int | time.Duration](values []T, of float64) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(of*float64(len(sorted))))]
}
