package replays

import (
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/linediff"
	"github.com/continuo-log/continuo/window"
)

// Result is one answer that was asked for again, in one variant; in a dry run, its request.
type Result struct {
	// Conversation names the conversation: its id, or its place in a file. Seq is that of the recorded answer.
	Conversation string `json:"conversation"`
	Seq          int64  `json:"seq"`
	// Variant is the name of the variant.
	Variant string `json:"variant"`
	// Message is what the user said last before the answer; nil for nothing.
	Message *Message `json:"message,omitempty"`
	// State says what became of the request. Problem is why it was not built, skipped or not sent.
	State    State  `json:"state"`
	Problem  string `json:"problem,omitempty"`
	Recorded Answer `json:"recorded"`
	Replayed Answer `json:"replayed"`
	// SameText and SameCalls say that both answers have the same text, and call the same tools with the same arguments. Similarity
	// is the share of both texts that is in both, from 0 to 1, compared word by word. They are only of answers.
	SameText   bool    `json:"same_text"`
	SameCalls  bool    `json:"same_calls"`
	Similarity float64 `json:"similarity"`
}

// Message is a user's message.
type Message struct {
	Seq  int64  `json:"seq"`
	Text string `json:"text"`
}

// State is what became of a request.
type State string

// The states. StateBuilt: in a dry run. StateAnswered and StateFailed: the model was asked, now or in an earlier replay.
// StateSkipped: the answer cannot be asked for again. StateUnbuilt: no request fits. StateUnsent: a limit was reached before.
const (
	StateBuilt    State = "built"
	StateAnswered State = "answered"
	StateFailed   State = "failed"
	StateSkipped  State = "skipped"
	StateUnbuilt  State = "unbuilt"
	StateUnsent   State = "unsent"
)

// Answer is an answer and its request, recorded or replayed.
type Answer struct {
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"` // as the provider names it
	View     string `json:"view,omitempty"`
	// Request describes the request; nil for an answer that was imported.
	Request *RequestSize `json:"request,omitempty"`

	Text      string              `json:"text,omitempty"`
	ToolCalls []continuo.ToolCall `json:"tool_calls,omitempty"`
	Error     *continuo.TurnError `json:"error,omitempty"`
	// Expected is what the request is expected to use, before it is sent: the estimated input, and as much output as was
	// recorded. ExpectedCached is the same where the provider's cache has all that the request shares with the one before. Usage
	// is what the provider counted.
	Expected       *continuo.Usage `json:"expected,omitempty"`
	ExpectedCached *continuo.Usage `json:"expected_cached,omitempty"`
	Usage          *continuo.Usage `json:"usage,omitempty"`
	FinishReason   string          `json:"finish_reason,omitempty"`
	LatencyMS      int64           `json:"latency_ms,omitempty"`
	FirstDeltaMS   int64           `json:"first_delta_ms,omitempty"`
	// Round is what the window of the next request continues from.
	Round *continuo.Round `json:"round,omitempty"`
}

// RequestSize describes a request.
type RequestSize struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	// SharedBytes is the length of the beginning that the request has in common with the one before in its conversation; nil
	// for the first one.
	SharedBytes *int64 `json:"shared_bytes,omitempty"`
	// EstimatedTokens are those of the messages and the prompt together.
	EstimatedTokens int               `json:"estimated_tokens"`
	Totals          window.PlanTotals `json:"totals"`
	// Moved says that the window moved for this request.
	Moved bool `json:"moved"`
}

// answerOf is what an entry says.
func answerOf(entry *continuo.Entry) Answer {
	answer := Answer{Text: entry.Content.String(), ToolCalls: entry.ToolCalls, Error: entry.Error}
	if round := entry.Round; round != nil {
		answer.Provider, answer.Model, answer.View = round.Provider, round.Model, round.View
		answer.Usage, answer.FinishReason = round.Usage, round.FinishReason
		answer.LatencyMS, answer.FirstDeltaMS = round.LatencyMS, round.FirstDeltaMS
	}
	return answer
}

// compare fills in how alike both answers are.
func (r *Result) compare() {
	r.SameText = r.Recorded.Text == r.Replayed.Text
	r.SameCalls = slices.EqualFunc(r.Recorded.ToolCalls, r.Replayed.ToolCalls, func(a, b continuo.ToolCall) bool {
		return a.Name == b.Name && a.Arguments == b.Arguments
	})
	r.Similarity = similarity(r.Recorded.Text, r.Replayed.Text)
}

// similarity is the share of two texts that is in both, from 0 to 1, word by word; 1 for two empty ones.
func similarity(a, b string) float64 {
	all, work := len(a)+len(b), linediff.MaxWork
	if all == 0 {
		return 1
	}
	equal := 0
	for _, part := range linediff.Words(a, b, &work) {
		if part.Op == linediff.Equal {
			equal += 2 * len(part.Text)
		}
	}
	return float64(equal) / float64(all)
}

// Totals are sums over results.
type Totals struct {
	Answers int `json:"answers"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	Unbuilt int `json:"unbuilt"`
	Unsent  int `json:"unsent"`
	// InputTokens and OutputTokens are what providers counted; of a request without a count, and in a dry run, what was expected.
	InputTokens  int64 `json:"input_tokens"`
	CachedTokens int64 `json:"cached_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	// CostNano is what the requests with a known price cost, in billionths of a US dollar; Unpriced counts the others.
	CostNano int64 `json:"cost_nano"`
	Unpriced int   `json:"unpriced"`
	// ExpectedNano is what was expected of all requests of the variant; ExpectedCachedNano the same with caches.
	ExpectedNano       int64 `json:"expected_nano"`
	ExpectedCachedNano int64 `json:"expected_cached_nano"`
	// Requests counts those that were built; Bytes are theirs, and SharedBytes what each had in common with the one before.
	Requests    int   `json:"requests"`
	Bytes       int64 `json:"bytes"`
	SharedBytes int64 `json:"shared_bytes"`
	Moves       int   `json:"moves"`
	// Dropped sums up the entries that requests left out, Shortened those that they shortened, Summarized those that only a summary shows.
	Dropped    int64 `json:"dropped"`
	Shortened  int64 `json:"shortened"`
	Summarized int64 `json:"summarized"`
	// LatencyMS and FirstDeltaMS are sums over Timed answers.
	LatencyMS    int64 `json:"latency_ms"`
	FirstDeltaMS int64 `json:"first_delta_ms"`
	Timed        int   `json:"timed"`
	// SameText and SameCalls count equal answers; Similarity is a sum over Answers.
	SameText   int     `json:"same_text"`
	SameCalls  int     `json:"same_calls"`
	Similarity float64 `json:"similarity"`
}

// AddReplayed adds what a result says of the variant.
func (t *Totals) AddReplayed(r *Result) {
	switch r.State {
	case StateSkipped:
		t.Skipped++
		return
	case StateUnbuilt:
		t.Unbuilt++
		return
	case StateUnsent:
		t.Unsent++
		return
	case StateFailed:
		t.Failed++
	case StateAnswered:
		t.Answers++
		t.Similarity += r.Similarity
		if r.SameText {
			t.SameText++
		}
		if r.SameCalls {
			t.SameCalls++
		}
	}
	t.add(&r.Replayed)
}

// AddRecorded adds what a result says of the recorded answer, if that was asked for again.
func (t *Totals) AddRecorded(r *Result) {
	if r.State == StateSkipped || r.State == StateUnbuilt || r.State == StateUnsent {
		return
	}
	t.Answers++
	t.add(&r.Recorded)
}

func (t *Totals) add(a *Answer) {
	if request := a.Request; request != nil {
		t.Requests++
		t.Bytes += request.Bytes
		if request.SharedBytes != nil {
			t.SharedBytes += *request.SharedBytes
		}
		if request.Moved {
			t.Moves++
		}
		t.Dropped += request.Totals.Dropped
		t.Shortened += request.Totals.Previewed + request.Totals.Truncated
		t.Summarized += request.Totals.Summarized
	}
	used := a.Usage
	if used == nil && a.Error == nil {
		used = a.Expected
	}
	if used != nil {
		t.InputTokens += int64(used.InputTokens)
		t.CachedTokens += int64(used.CachedTokens)
		t.OutputTokens += int64(used.OutputTokens)
		t.CostNano += used.Cost.Nano
		if used.Cost.Currency == "" {
			t.Unpriced++
		}
	}
	if a.Expected != nil {
		t.ExpectedNano += a.Expected.Cost.Nano
	}
	if a.ExpectedCached != nil {
		t.ExpectedCachedNano += a.ExpectedCached.Cost.Nano
	}
	if a.LatencyMS > 0 {
		t.Timed++
		t.LatencyMS += a.LatencyMS
		t.FirstDeltaMS += a.FirstDeltaMS
	}
}
