package contexts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
)

// CacheUse says how far the providers' caches of prefixes served a conversation's newest requests.
type CacheUse struct {
	Requests     int `json:"requests"`
	Hits         int `json:"hits"`
	Misses       int `json:"misses"` // outcome miss or partial
	InputTokens  int `json:"input_tokens"`
	CachedTokens int `json:"cached_tokens"`
	// Data are the requests, the oldest first.
	Data []CachedRequest `json:"data"`
}

// CacheOutcome says what a request got out of the cache.
type CacheOutcome string

// The outcomes. A request is compared with the one before it in the conversation.
const (
	CacheHit        CacheOutcome = "hit"        // at least what the request before had in the cache
	CachePartial    CacheOutcome = "partial"    // less than that
	CacheMiss       CacheOutcome = "miss"       // nothing
	CacheFirst      CacheOutcome = "first"      // nothing, and there is no request before, or only one that is too short for a cache
	CacheUnreported CacheOutcome = "unreported" // the provider did not count
)

// The reasons for a miss that are no part of the request.
const (
	CacheReasonIdle     = "idle"     // the request before is older than the shortest life of a cache
	CacheReasonProvider = "provider" // nothing of the request before changed: the provider dropped it
)

// CachedRequest is one request.
type CachedRequest struct {
	// Seq is that of the answer.
	Seq              int64        `json:"seq"`
	TurnID           string       `json:"turn_id"`
	Provider         string       `json:"provider"`
	Model            string       `json:"model"`
	InputTokens      int          `json:"input_tokens"`
	CachedTokens     int          `json:"cached_tokens"`
	CacheWriteTokens int          `json:"cache_write_tokens"`
	Outcome          CacheOutcome `json:"outcome" enum:"hit,partial,miss,first,unreported"`
	// Reason says why a request missed: model, tools, system or messages, whichever changed first in the provider's order;
	// idle or provider where nothing did. Absent for other outcomes.
	Reason string `json:"reason,omitempty" enum:"model,tools,system,messages,idle,provider"`
	// Changed is the first part of the request before that this one has not at its place, such as `tools[2]` or
	// `messages[14]`, not counting cache marks; absent where it only adds to it.
	Changed string `json:"changed,omitempty"`
	// IdleSeconds is the time since the answer before.
	IdleSeconds int64 `json:"idle_seconds,omitempty"`
}

// The shortest prefix that providers cache, in tokens, and the shortest life of an entry of theirs.
const (
	leastCached = 1024
	cacheLife   = 5 * time.Minute
)

// CacheUse compares the newest requests of a conversation, at most limit, each with the one before.
func (cx *Contexts) CacheUse(ctx context.Context, conversation continuo.Conversation, limit int) (*CacheUse, error) {
	var answers []continuo.Entry
	for entry, err := range cx.log.Read(ctx, conversation, continuo.Range{Backward: true}) {
		if err != nil {
			return nil, err
		}
		if entry.Round != nil {
			answers = append(answers, entry)
		}
		if len(answers) > limit { // one more, which the oldest is compared with
			break
		}
	}
	slices.Reverse(answers)
	use := &CacheUse{Data: []CachedRequest{}}
	var before requestParts
	for i := range answers {
		now, err := cx.requestParts(ctx, conversation, &answers[i])
		if err != nil {
			return nil, err
		}
		if i > 0 || len(answers) <= limit {
			use.add(compareCache(before, now))
		}
		before = now
	}
	return use, nil
}

func (u *CacheUse) add(request CachedRequest) {
	u.Requests++
	u.InputTokens += request.InputTokens
	u.CachedTokens += request.CachedTokens
	switch request.Outcome {
	case CacheHit:
		u.Hits++
	case CacheMiss, CachePartial:
		u.Misses++
	}
	u.Data = append(u.Data, request)
}

// requestParts is a request in the order in which providers look for a prefix.
type requestParts struct {
	answer *continuo.Entry // nil for no request
	parts  map[string][]string
}

// cacheOrder are the kinds of parts in the providers' order, with the names of the members.
var cacheOrder = []struct{ kind, member string }{{"tool", "tools"}, {"system", "system"}, {"message", "messages"}}

func (cx *Contexts) requestParts(ctx context.Context, conversation continuo.Conversation, answer *continuo.Entry) (requestParts, error) {
	request, _, err := turn.Replay(ctx, cx.log, conversation, answer.Round, readView)
	if err != nil {
		return requestParts{}, fmt.Errorf("entry %d: %w", answer.Seq, err)
	}
	made := requestParts{answer: answer, parts: map[string][]string{}}
	for _, part := range partsOf(request.Body, request.Plan) {
		text := request.Body[part.Offset : part.Offset+part.Bytes]
		made.parts[part.Kind] = append(made.parts[part.Kind], withoutMarks(text))
	}
	return made, nil
}

// withoutMarks is a part without marks of what is to be cached, which are no part of a prefix.
func withoutMarks(raw []byte) string {
	if !bytes.Contains(raw, []byte(`"cache_control"`)) && !bytes.Contains(raw, []byte(`"prompt_cache_breakpoint"`)) {
		return string(raw)
	}
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return string(raw)
	}
	text, err := json.Marshal(unmarked(value))
	if err != nil {
		return string(raw)
	}
	return string(text)
}

// unmarked removes the marks; a content of one plain text is that text, as clients write it without a mark.
func unmarked(value any) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = unmarked(value[i])
		}
		if len(value) == 1 {
			if block, ok := value[0].(map[string]any); ok && len(block) == 2 && block["type"] == "text" {
				return block["text"]
			}
		}
	case map[string]any:
		delete(value, "cache_control")
		delete(value, "prompt_cache_breakpoint")
		for name := range value {
			value[name] = unmarked(value[name])
		}
	}
	return value
}

// firstChange is the first part of a request that the next one has not at its place, and its kind; "" for none.
func firstChange(before, now requestParts) (kind, part string) {
	if was, is := before.answer.Round, now.answer.Round; was.Provider != is.Provider || was.Model != is.Model {
		return "model", "model"
	}
	for _, order := range cacheOrder {
		had, has := before.parts[order.kind], now.parts[order.kind]
		for i := range had {
			if i >= len(has) || !sameParts(had[i], has[i]) {
				return order.member, fmt.Sprintf("%s[%d]", order.member, i)
			}
		}
		if order.kind != "message" && len(has) > len(had) { // messages come after it
			return order.member, fmt.Sprintf("%s[%d]", order.member, len(had))
		}
	}
	return "", ""
}

// sameParts compares parts of which one may have had marks.
func sameParts(a, b string) bool {
	if a == b {
		return true
	}
	var one, other any
	if json.Unmarshal([]byte(a), &one) != nil || json.Unmarshal([]byte(b), &other) != nil {
		return false
	}
	first, err := json.Marshal(unmarked(one))
	second, failed := json.Marshal(unmarked(other))
	return err == nil && failed == nil && bytes.Equal(first, second)
}

// compareCache says what a request got out of the cache, and why it did not get more.
func compareCache(before, now requestParts) CachedRequest {
	answer := now.answer
	request := CachedRequest{Seq: answer.Seq, TurnID: answer.TurnID, Provider: answer.Round.Provider, Model: answer.Round.Model, Outcome: CacheUnreported}
	kind, idle := "", time.Duration(0)
	if before.answer != nil {
		kind, request.Changed = firstChange(before, now)
		idle = answer.CreatedAt.Sub(before.answer.CreatedAt)
		request.IdleSeconds = int64(idle.Seconds())
	}
	usage := answer.Round.Usage
	if usage == nil || usage.InputTokens == 0 {
		return request
	}
	request.InputTokens, request.CachedTokens, request.CacheWriteTokens = usage.InputTokens, usage.CachedTokens, usage.CacheWriteTokens
	var had continuo.Usage
	if before.answer != nil && before.answer.Round.Usage != nil {
		had = *before.answer.Round.Usage
	}
	switch {
	case usage.CachedTokens > 0 && usage.CachedTokens >= had.CachedTokens+had.CacheWriteTokens:
		request.Outcome = CacheHit
		return request
	case usage.CachedTokens > 0:
		request.Outcome = CachePartial
	case had.InputTokens < leastCached:
		request.Outcome = CacheFirst
		return request
	default:
		request.Outcome = CacheMiss
	}
	switch {
	case kind != "":
		request.Reason = kind
	case idle >= cacheLife:
		request.Reason = CacheReasonIdle
	default:
		request.Reason = CacheReasonProvider
	}
	return request
}
