package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/window"
)

// storedEvent is the stored form of an event. Entries are in the log, so only their seq is stored.
type storedEvent struct {
	Kind      Kind               `json:"kind"`
	Text      string             `json:"text,omitempty"`
	Signature string             `json:"signature,omitempty"`
	Wire      string             `json:"wire,omitempty"`
	Item      json.RawMessage    `json:"item,omitempty"`
	Delta     *storedDelta       `json:"delta,omitempty"`
	Call      *continuo.ToolCall `json:"call,omitempty"`
	Until     time.Time          `json:"until,omitzero"`
	Decision  *Decision          `json:"decision,omitempty"`
	Plan      *window.Plan       `json:"plan,omitempty"`
	Round     *continuo.Round    `json:"round,omitempty"`
	Seq       int64              `json:"seq,omitempty"`
	Attempt   *Attempt           `json:"attempt,omitempty"`
	Usage     *continuo.Usage    `json:"usage,omitempty"`
}

// storedDelta is the stored form of a delta of a call.
type storedDelta struct {
	Index     int             `json:"index"`
	ID        string          `json:"id,omitempty"`
	Type      string          `json:"type,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments string          `json:"arguments,omitempty"`
	Extra     json.RawMessage `json:"extra,omitempty"`
	Done      bool            `json:"done,omitempty"`
}

// encode returns an event's stored form.
func encode(e *Event) continuo.TurnEvent {
	stored := storedEvent{
		Kind: e.Kind, Text: e.Text, Signature: e.Signature, Wire: e.Wire, Item: e.Item, Delta: (*storedDelta)(e.Delta), Call: e.Call, Until: e.Until, Decision: e.Decision,
		Plan: e.Plan, Round: e.Round, Attempt: e.Attempt,
	}
	if e.Entry != nil {
		stored.Seq = e.Entry.Seq
	}
	if e.IsEnd() {
		stored.Usage = &e.Usage
	}
	return continuo.TurnEvent{ID: e.ID, Data: rawjson.MustMarshal(stored)}
}

// decode reads a stored event. Its entry has only a seq until withEntry reads the rest.
func decode(turnID string, stored continuo.TurnEvent) (Event, error) {
	var k storedEvent
	if err := json.Unmarshal(stored.Data, &k); err != nil {
		return Event{}, fmt.Errorf("event %d of turn %s: %w", stored.ID, turnID, err)
	}
	e := Event{
		ID: stored.ID, Kind: k.Kind, TurnID: turnID, Text: k.Text, Signature: k.Signature, Wire: k.Wire, Item: k.Item, Delta: (*model.ToolCallDelta)(k.Delta),
		Call: k.Call, Until: k.Until, Decision: k.Decision, Plan: k.Plan, Round: k.Round, Attempt: k.Attempt,
	}
	if k.Seq > 0 {
		e.Entry = &continuo.Entry{Seq: k.Seq}
	}
	if k.Usage != nil {
		e.Usage = *k.Usage
	}
	return e, nil
}

// withEntry reads the entry of a stored event from the log.
func withEntry(ctx context.Context, log *continuo.Log, conversation continuo.Conversation, e Event) (Event, error) {
	if e.Entry == nil {
		return e, nil
	}
	for entry, err := range log.Read(ctx, conversation, continuo.Range{From: e.Entry.Seq, To: e.Entry.Seq, Keeps: true}) {
		if err != nil {
			return e, err
		}
		e.Entry = &entry
	}
	return e, nil
}

// summary returns a plan without the fields that can be rebuilt from the log.
func summary(plan *window.Plan) *window.Plan {
	short := *plan
	short.Items, short.Messages = nil, nil
	return &short
}
