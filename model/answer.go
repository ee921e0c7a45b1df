package model

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/secret"
)

// Answer adds up the deltas of one answer. The zero value is ready; it is not safe for concurrent use.
type Answer struct {
	// Provider is the name under which vendor data is kept, Info.Provider. With an empty name it is dropped.
	Provider string

	text      strings.Builder
	reasoning strings.Builder
	signature string
	signed    int // number of signatures
	calls     map[int]*callInProgress
	newest    int  // index of the call of the last delta
	returned  bool // a delta for a later call preceded one for an earlier call
	finish    string
	usage     *continuo.Usage
	model     string
	vendor    json.RawMessage
}

type callInProgress struct {
	continuo.ToolCall
	arguments strings.Builder
	done      bool
}

// Add adds the next delta.
func (a *Answer) Add(delta Delta) {
	a.text.WriteString(delta.Text)
	a.reasoning.WriteString(delta.Reasoning)
	if delta.Signature != "" {
		a.signature = delta.Signature
		a.signed++
	}
	if delta.ToolCall != nil {
		a.addCall(delta.ToolCall)
	}
	if delta.Finish != "" {
		a.finish = delta.Finish
	}
	if delta.Usage != nil {
		a.usage = delta.Usage
	}
	if delta.Model != "" {
		a.model = delta.Model
	}
	if delta.Vendor != nil {
		a.vendor = delta.Vendor
	}
}

func (a *Answer) addCall(delta *ToolCallDelta) {
	if a.calls == nil {
		a.calls = map[int]*callInProgress{}
	}
	call := a.calls[delta.Index]
	switch {
	case call == nil:
		call = &callInProgress{}
		a.calls[delta.Index] = call
		a.newest = delta.Index
	case delta.Arguments != "" && delta.Index != a.newest:
		a.returned = true
		a.newest = delta.Index
	}
	setIfEmpty(&call.ID, delta.ID)
	setIfEmpty(&call.Type, delta.Type)
	setIfEmpty(&call.Name, delta.Name)
	call.arguments.WriteString(delta.Arguments)
	if delta.Extra != nil {
		call.Extra = delta.Extra
	}
	call.done = call.done || delta.Done
}

func setIfEmpty(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// Finish returns why the answer ended, empty while it has not.
func (a *Answer) Finish() string { return a.finish }

// Usage returns the provider's token counts, nil when it sent none.
func (a *Answer) Usage() *continuo.Usage { return a.usage }

// Text returns the text received so far.
func (a *Answer) Text() string { return a.text.String() }

// Model returns the provider's name of the model that answers, empty when it sent none.
func (a *Answer) Model() string { return a.model }

// Empty reports whether nothing visible has been received: no text, no reasoning, no call.
func (a *Answer) Empty() bool {
	return a.text.Len() == 0 && a.reasoning.Len() == 0 && len(a.calls) == 0
}

// Entry returns the assistant entry of what was received so far. With a failure it has an Error, and calls
// whose arguments may have been cut off are in its PartialToolCalls. The entry always satisfies the rules of
// the log: missing and repeated call ids are replaced as [CallIDs] says, and calls without a name count as
// partial, which makes the answer a failed one.
func (a *Answer) Entry(failure error) continuo.Entry {
	entry := continuo.Entry{Role: continuo.Assistant, Content: a.content(failure != nil)}
	if a.reasoning.Len() > 0 || a.signature != "" {
		entry.Reasoning = &continuo.Reasoning{Text: valid(a.reasoning.String())}
		if a.signed == 1 {
			entry.Reasoning.Signature = valid(a.signature)
		}
	}
	complete, partial := a.splitCalls(failure != nil)
	entry.ToolCalls = complete
	if failure == nil && len(partial) > 0 {
		failure = &Error{Reason: continuo.ReasonUpstream, Retryable: true, Message: "the model called a tool without naming it"}
	}
	if failure != nil {
		entry.Error = turnError(AsError(failure), partial)
	}
	if a.vendor != nil && a.Provider != "" {
		entry.Vendor = map[string]json.RawMessage{a.Provider: validRaw(a.vendor)}
	}
	return entry
}

// content is null if calls or an error are all there is.
func (a *Answer) content(failed bool) continuo.Content {
	if a.text.Len() == 0 && (failed || len(a.calls) > 0) {
		return continuo.Null()
	}
	return continuo.Text(valid(a.text.String()))
}

// splitCalls returns the calls in the order of their index. In a broken stream, a call is complete if it is
// done or if the next one has begun, unless the deltas of several calls were interleaved.
func (a *Answer) splitCalls(failed bool) (complete []continuo.ToolCall, partial []continuo.PartialToolCall) {
	ids := CallIDs{}
	for _, index := range slices.Sorted(maps.Keys(a.calls)) {
		inProgress := a.calls[index]
		call := inProgress.ToolCall
		call.Name, call.Arguments, call.Extra = valid(call.Name), valid(inProgress.arguments.String()), validRaw(call.Extra)
		cut := failed && !inProgress.done && (index == a.newest || a.returned)
		if cut || call.Name == "" {
			partial = append(partial, continuo.PartialToolCall{ID: valid(call.ID), Name: call.Name, Arguments: call.Arguments})
			continue
		}
		call.ID = ids.Take(valid(call.ID), index)
		if call.Type != "custom" {
			call.Type = "function"
		}
		complete = append(complete, call)
	}
	return complete, partial
}

// TurnError is the error as the log has it.
func (e *Error) TurnError() *continuo.TurnError { return turnError(e, nil) }

func turnError(failure *Error, partial []continuo.PartialToolCall) *continuo.TurnError {
	return &continuo.TurnError{
		Code: continuo.LLMError, Reason: failure.Reason, Message: secret.Text(valid(failure.Message)), Retryable: failure.Retryable,
		ProviderStatus: failure.Status, RetryAfter: int(math.Ceil(failure.RetryAfter.Seconds())), PartialToolCalls: partial,
	}
}

func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// validRaw replaces invalid UTF-8 in valid JSON, where only strings can contain it. Some stores refuse such
// bytes.
func validRaw(raw json.RawMessage) json.RawMessage {
	if utf8.Valid(raw) {
		return raw
	}
	return bytes.ToValidUTF8(raw, []byte("\uFFFD"))
}
