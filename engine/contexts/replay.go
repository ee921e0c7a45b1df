package contexts

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// Replayed is the rebuilt request of an earlier round.
type Replayed struct {
	Body   json.RawMessage `json:"body"`
	SHA256 string          `json:"sha256"`
	// Same says that the request equals the one that was sent, byte for byte.
	Same bool `json:"same"`
	// Redacted are the seqs of entries in the request that were redacted since: the request differs from the one sent.
	Redacted []int64 `json:"redacted,omitempty"`
	// Previous is the seq of the answer to the view's previous request, to which `plan.totals.shared_bytes` compares this one;
	// absent where none is found among the newest 256 entries before.
	Previous int64 `json:"previous,omitempty"`
	// Parts are the system texts, tools and messages of the body, in its order.
	Parts []RequestPart   `json:"parts,omitempty"`
	Round *continuo.Round `json:"round"`
	Plan  *window.Plan    `json:"plan"`
}

// Request rebuilds the request of an assistant entry.
func (cx *Contexts) Request(ctx context.Context, conversation continuo.Conversation, seq int64) (*Replayed, error) {
	if _, err := CheckSeq(conversation, seq); err != nil {
		return nil, err
	}
	for entry, err := range cx.log.Read(ctx, conversation, continuo.Range{From: seq, To: seq}) {
		if err != nil {
			return nil, err
		}
		if entry.Round == nil {
			return nil, fmt.Errorf("entry %d: %w: no request made it; choose an assistant entry that a turn appended", seq, continuo.ErrNotFound)
		}
		request, same, err := turn.Replay(ctx, cx.log, conversation, entry.Round, readView)
		if err != nil {
			return nil, err
		}
		replayed := &Replayed{Body: request.Body, SHA256: request.SHA256(), Same: same, Round: entry.Round, Plan: request.Plan}
		request.Plan.Totals.SharedBytes, replayed.Previous = cx.sharedBody(ctx, conversation, entry.Round, request.Body)
		replayed.Parts = partsOf(request.Body, request.Plan)
		if entry.Round.View == turn.ClientViewName {
			sizeForwarded(replayed.Parts, entry.Round)
		}
		if err := cx.measureUnread(ctx, conversation, request.Plan); err != nil {
			return nil, err
		}
		if !same {
			replayed.Redacted = append(cx.redactedSummary(ctx, conversation, &entry), redactedSince(request.Plan, &entry)...)
		}
		return replayed, nil
	}
	return nil, fmt.Errorf("entry %d: %w", seq, continuo.ErrNotFound)
}

// readView decodes a view that was stored with a request: a preset, or the view of a role or of a hand-off.
func readView(stored json.RawMessage) (turn.View, error) {
	var kept struct {
		window.View
		Role    *crewview.Role      `json:"role"`
		Handoff *task.MessageLimits `json:"handoff"`
	}
	err := json.Unmarshal(stored, &kept)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read view: %w", err)
	case kept.Role != nil:
		return crewview.View{View: kept.View, Role: *kept.Role}, nil
	case kept.Handoff != nil:
		return task.View{View: kept.View, Handoff: *kept.Handoff}, nil
	}
	return kept.View, nil
}

// sharedBody returns the length of the common prefix of a round's request body and that of the view's previous
// request, and the seq of that one's answer; -1 and 0 where none is found within maxRoundsBack entries.
func (cx *Contexts) sharedBody(ctx context.Context, conversation continuo.Conversation, round *continuo.Round, body []byte) (shared, previous int64) {
	before, previous := cx.roundBefore(ctx, conversation, round.ViewHash, round.At)
	if before == nil {
		return -1, 0
	}
	request, _, err := turn.Replay(ctx, cx.log, conversation, before, readView)
	if err != nil {
		return -1, previous
	}
	return commonPrefix(string(request.Body), string(body)), previous
}

// sharedBytes returns the length of the common prefix of a rendering, without system messages, and that of the view's
// previous request; -1 where none is found within maxRoundsBack entries.
func (cx *Contexts) sharedBytes(ctx context.Context, conversation continuo.Conversation, plan *window.Plan, now *Context, info model.Info) int64 {
	if now.Format == FormatTranscript {
		return -1
	}
	before, _ := cx.roundBefore(ctx, conversation, plan.ViewHash, plan.At)
	if before == nil {
		return -1
	}
	envelope, err := cx.log.Envelope(ctx, before.Envelope)
	if err != nil {
		return -1
	}
	view, err := readView(envelope.View)
	if err != nil {
		return -1
	}
	earlier, err := turn.Plan(ctx, cx.log, conversation, before.At, view, envelope, inFormat(info, now.Format))
	if err != nil {
		return -1
	}
	then := &Context{Format: now.Format, Plan: earlier}
	if then.render(ctx, cx.log, continuo.Envelope{}, info) != nil {
		return -1
	}
	return commonPrefix(joined(then.Messages), joined(now.Messages))
}

// maxRoundsBack bounds how many entries are read to find the previous request.
const maxRoundsBack = 256

// roundBefore finds the newest request of a view at or before a seq, and the seq of its answer; nil where none is found
// within maxRoundsBack entries.
func (cx *Contexts) roundBefore(ctx context.Context, conversation continuo.Conversation, viewHash string, at int64) (*continuo.Round, int64) {
	if at < 1 {
		return nil, 0
	}
	rows := 0
	for entry, err := range cx.log.Read(ctx, conversation, continuo.Range{To: at, Backward: true}) {
		if rows++; err != nil || rows > maxRoundsBack {
			return nil, 0
		}
		if entry.Round != nil && entry.Round.ViewHash == viewHash {
			return entry.Round, entry.Seq
		}
	}
	return nil, 0
}

// maxMeasured bounds how many entries are counted to measure one range of a plan.
const maxMeasured = 4096

// measureUnread fills in the sizes of a plan's ranges that the build did not read, for people who inspect a plan.
func (cx *Contexts) measureUnread(ctx context.Context, conversation continuo.Conversation, plan *window.Plan) error {
	for i := range plan.Items {
		item := &plan.Items[i]
		last := max(item.Seq, item.Through)
		if item.Before != nil || last-item.Seq >= maxMeasured {
			continue
		}
		size, err := cx.log.Sizes(ctx, conversation, item.Seq, last)
		if err != nil {
			return err
		}
		item.Before = &size
	}
	return nil
}

func joined(messages []json.RawMessage) string {
	var text strings.Builder
	for _, message := range messages {
		text.Write(message)
		text.WriteByte(',')
	}
	return text.String()
}

func commonPrefix(a, b string) int64 {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return int64(i)
		}
	}
	return int64(n)
}

// redactedSummary returns the seq of the summary that the request of an answer showed, if it was redacted since.
func (cx *Contexts) redactedSummary(ctx context.Context, conversation continuo.Conversation, answer *continuo.Entry) []int64 {
	seq := answer.Round.Window.Summary
	if seq < 1 || seq > conversation.LastSeq {
		return nil
	}
	for entry, err := range cx.log.Read(ctx, conversation, continuo.Range{From: seq, To: seq}) {
		if err == nil && entry.Summary != nil && entry.Redacted != nil && !entry.Redacted.At.Before(answer.CreatedAt) {
			return []int64{seq}
		}
	}
	return nil
}

// redactedSince lists the seqs of entries in a request that were redacted after its answer was appended, so that the
// request cannot be rebuilt as it was.
func redactedSince(plan *window.Plan, answer *continuo.Entry) []int64 {
	var seqs []int64
	for _, entry := range plan.Shown() {
		if entry.Redacted == nil || entry.Redacted.At.Before(answer.CreatedAt) {
			continue
		}
		if len(seqs) == 0 || seqs[len(seqs)-1] != entry.Seq {
			seqs = append(seqs, entry.Seq)
		}
	}
	return seqs
}
