package responses

import (
	"encoding/json"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
	wire "github.com/continuo-log/continuo/internal/wire/responses"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/internal/upstream"
)

// answer turns the events of a response into deltas.
type answer struct {
	*upstream.Sink
	model   string
	items   []*item // in the order of the output
	calls   int     // number of calls so far
	ids     model.CallIDs
	text    bool // there has been text
	thought bool // there has been reasoning
}

func newAnswer(sink *upstream.Sink) *answer {
	return &answer{Sink: sink, ids: model.CallIDs{}}
}

// Read is part of [upstream.Answer].
func (a *answer) Read(response *upstream.Response) error { return read(response, a) }

// YieldRest is part of [upstream.Answer].
func (a *answer) YieldRest() { a.yieldVendor() }

// add takes an event that does not end the stream.
func (a *answer) add(event *wire.Event) error {
	switch event.Type {
	case wire.EventCreated, wire.EventQueued, wire.EventInProgress:
		var begun wire.Response
		if err := json.Unmarshal(event.Response, &begun); err != nil {
			return fmt.Errorf("%s: %w", event.Type, err)
		}
		a.addModel(begun.Model)
		return nil
	case wire.EventItemAdded:
		_, err := a.open(event)
		return err
	case wire.EventItemDone:
		return a.end(event)
	}
	return a.extend(event)
}

func (a *answer) addModel(name string) {
	if a.model == "" && name != "" {
		a.model = name
		a.Yield(model.Delta{Model: name})
	}
}

// open begins an item.
func (a *answer) open(event *wire.Event) (*item, error) {
	parsed, err := wire.ParseItem(event.Item)
	if err != nil {
		return nil, err
	}
	index := len(a.items)
	if event.OutputIndex != nil {
		index = *event.OutputIndex
	}
	if a.at(index) != nil {
		return nil, fmt.Errorf("the item %d begins again", index)
	}
	opened := &item{Item: parsed, index: index, call: -1}
	a.items = append(a.items, opened)
	if made, ok := parsed.Call(); ok && opened.streams() {
		return opened, a.beginCall(opened, made)
	}
	return opened, nil
}

// end ends an item, which may not have begun.
func (a *answer) end(event *wire.Event) error {
	if event.OutputIndex == nil && event.ItemID == "" {
		final, err := wire.ParseItem(event.Item)
		if err != nil {
			return err
		}
		event.ItemID = final.ID
	}
	item := a.find(event)
	if item == nil {
		var err error
		if item, err = a.open(event); err != nil {
			return err
		}
	}
	return a.close(item, event.Item)
}

// beginCall yields the beginning of a call, without its arguments.
func (a *answer) beginCall(i *item, made continuo.ToolCall) error {
	if made.Name == "" {
		return fmt.Errorf("a %s without a name", i.Type)
	}
	i.call = a.calls
	a.calls++
	a.Yield(model.Delta{ToolCall: &model.ToolCallDelta{
		Index: i.call, ID: a.ids.Take(made.ID, i.call), Type: made.Type, Name: made.Name,
	}})
	return nil
}

func (a *answer) at(index int) *item {
	for _, item := range a.items {
		if item.index == index {
			return item
		}
	}
	return nil
}

// find returns the item of an event: by its index, or else by its id, or else the newest.
func (a *answer) find(event *wire.Event) *item {
	if event.OutputIndex != nil {
		return a.at(*event.OutputIndex)
	}
	for _, item := range a.items {
		if event.ItemID != "" && item.ID == event.ItemID {
			return item
		}
	}
	if len(a.items) == 0 || event.Type == wire.EventItemDone {
		return nil
	}
	return a.items[len(a.items)-1]
}

// extend adds a delta to an item and yields it.
func (a *answer) extend(event *wire.Event) error {
	target, text := a.find(event), ""
	switch event.Type {
	case wire.EventTextDelta, wire.EventRefusalDelta, wire.EventSummaryDelta, wire.EventReasoningDelta,
		wire.EventArgumentsDelta, wire.EventInputDelta:
	default:
		return nil // what it says comes with the end of the item too
	}
	if target == nil {
		return fmt.Errorf("%s of an item that has not begun", event.Type)
	}
	if err := json.Unmarshal(event.Delta, &text); err != nil || text == "" {
		return err
	}
	if target.done {
		return fmt.Errorf("%s after the end of its item", event.Type)
	}
	switch event.Type {
	case wire.EventTextDelta, wire.EventRefusalDelta:
		a.yieldText(target, indexOf(event.ContentIndex), text)
	case wire.EventSummaryDelta:
		target.summary = true
		a.yieldReasoning(target, indexOf(event.SummaryIndex), text)
	case wire.EventReasoningDelta:
		if !target.summary { // the summary is the readable form of the same
			a.yieldReasoning(target, indexOf(event.ContentIndex), text)
		}
	default:
		if target.call < 0 {
			return fmt.Errorf("%s of an item that is no call", event.Type)
		}
		target.arguments += len(text)
		a.Yield(model.Delta{ToolCall: &model.ToolCallDelta{Index: target.call, Arguments: text}})
	}
	return nil
}

func indexOf(index *int) int {
	if index == nil {
		return 0
	}
	return *index
}

// yieldText yields text of a part of a message; parts are separated by blank lines.
func (a *answer) yieldText(i *item, part int, text string) {
	if text == "" {
		return
	}
	first := i.yielded(part) == 0
	i.texts[part] = append(i.texts[part], text...)
	if first && a.text {
		text = "\n\n" + text
	}
	a.text = true
	a.Yield(model.Delta{Text: text})
}

func (a *answer) yieldReasoning(i *item, part int, text string) {
	if text == "" {
		return
	}
	first := i.yielded(part) == 0
	i.texts[part] = append(i.texts[part], text...)
	if first && a.thought {
		text = "\n\n" + text
	}
	a.thought = true
	a.Yield(model.Delta{Reasoning: text})
}

// close ends an item and yields what was not yielded before.
func (a *answer) close(i *item, raw json.RawMessage) error {
	if i.done {
		return nil
	}
	final, err := wire.ParseItem(raw)
	if err != nil {
		return err
	}
	if final.Type != i.Type {
		return fmt.Errorf("an item that began as %s ends as %s", i.Type, final.Type)
	}
	i.Item, i.done = final, true
	switch {
	case i.Type == wire.TypeMessage:
		for part, text := range final.Parts() {
			a.yieldText(i, part, i.rest(part, text))
		}
	case i.Type == wire.TypeReasoning:
		for part, text := range final.ReasoningParts() {
			a.yieldReasoning(i, part, i.rest(part, text))
		}
		if len(i.texts) == 0 {
			a.Yield(model.Delta{Item: final.Raw})
		}
	default:
		if made, ok := final.Call(); ok {
			return a.closeCall(i, made)
		}
		a.yieldRan(final)
		a.Yield(model.Delta{Item: final.Raw})
	}
	return nil
}

// yieldRan yields the call whose result an item is: only then it is known that the provider ran it.
func (a *answer) yieldRan(result wire.Item) {
	if !result.IsOutput() {
		return
	}
	for _, item := range a.items {
		if item.done && item.CallID == result.CallID && !item.IsOutput() && !item.streams() {
			a.Yield(model.Delta{Item: item.Raw})
		}
	}
}

// closeCall ends a call. One whose arguments did not arrive in pieces is yielded whole; a tool of the provider's own
// that the client runs is a call only if the provider does not give its output too, which the end of the answer shows.
func (a *answer) closeCall(i *item, made continuo.ToolCall) error {
	if !i.streams() {
		return nil
	}
	if i.call < 0 {
		if err := a.beginCall(i, made); err != nil {
			return err
		}
	}
	delta := &model.ToolCallDelta{Index: i.call, Done: true}
	if i.arguments < len(made.Arguments) {
		delta.Arguments = made.Arguments[i.arguments:]
	}
	a.Yield(model.Delta{ToolCall: delta})
	return nil
}

// finish takes the whole response at the end, and yields what is known only then.
func (a *answer) finish(response *upstream.Response, raw json.RawMessage) error {
	var whole wire.Response
	if err := json.Unmarshal(raw, &whole); err != nil {
		return response.Malformed(raw, err)
	}
	a.addModel(whole.Model)
	for index, item := range whole.Output {
		if err := a.complete(index, item); err != nil {
			return response.Malformed(item, err)
		}
	}
	a.yieldUsage(whole.Usage)
	reason := ""
	switch whole.Status {
	case wire.StatusCompleted, "":
		reason = "stop"
	case wire.StatusIncomplete:
		reason = incomplete(whole.IncompleteDetails)
	case wire.StatusFailed:
		if failure, ok := response.Failed(raw); ok {
			return failure
		}
		return response.Failure("the response failed without a reason")
	default:
		return response.Failure(fmt.Sprintf("the response ended with the status %q", whole.Status))
	}
	if err := a.closeOthers(); err != nil {
		return response.Malformed(raw, err)
	}
	if reason == "stop" && a.calls > 0 {
		reason = "tool_calls"
	}
	a.Yield(model.Delta{Finish: reason})
	a.yieldVendor()
	return nil
}

// incomplete maps the reason of an incomplete response to OpenAI's name of the finish reason.
func incomplete(details *wire.IncompleteDetails) string {
	switch {
	case details == nil || details.Reason == "" || details.Reason == "max_output_tokens" || details.Reason == "max_tokens":
		return "length"
	}
	return details.Reason
}

// complete adds an item of the whole response that has not ended.
func (a *answer) complete(index int, raw json.RawMessage) error {
	event := &wire.Event{Type: wire.EventItemDone, OutputIndex: &index, Item: raw}
	if found := a.at(index); found != nil && found.done {
		return nil
	}
	return a.add(event)
}

// closeOthers ends the calls of items that only the client can run, and those of items without an end.
func (a *answer) closeOthers() error {
	a.sort()
	for _, i := range a.items {
		made, ok := i.Call()
		switch {
		case !ok:
		case i.streams() && !i.done:
			a.Yield(model.Delta{ToolCall: &model.ToolCallDelta{Index: i.call, Done: true}})
		case !i.streams() && !a.hasOutput(made.ID):
			if err := a.beginCall(i, made); err != nil {
				return err
			}
			a.Yield(model.Delta{ToolCall: &model.ToolCallDelta{Index: i.call, Arguments: made.Arguments, Done: true}})
		}
	}
	return nil
}

func (a *answer) hasOutput(callID string) bool {
	return slices.ContainsFunc(a.items, func(i *item) bool { return i.CallID == callID && i.IsOutput() })
}

func (a *answer) sort() {
	slices.SortStableFunc(a.items, func(x, y *item) int { return x.index - y.index })
}

func (a *answer) yieldUsage(usage *wire.Usage) {
	if usage == nil || usage.InputTokens+usage.OutputTokens == 0 {
		return
	}
	a.Yield(model.Delta{Usage: &continuo.Usage{
		InputTokens: usage.InputTokens, OutputTokens: usage.OutputTokens,
		CachedTokens: usage.InputTokensDetails.CachedTokens, CacheWriteTokens: usage.InputTokensDetails.CacheWriteTokens,
		ReasoningTokens: usage.OutputTokensDetails.ReasoningTokens,
	}})
}

// yieldVendor yields the items as vendor data, unless they add nothing to the deltas: one text followed by calls. Of a
// message that has not ended it has the text so far.
func (a *answer) yieldVendor() {
	a.sort()
	var items []json.RawMessage
	plain := true
	for n, i := range a.items {
		raw := i.soFar()
		if raw == nil {
			continue
		}
		items = append(items, raw)
		plain = plain && i.IsPlain() && (i.Type != wire.TypeMessage || n == 0)
	}
	if !plain && len(items) > 0 {
		a.Yield(model.Delta{Vendor: wire.Vendor(items)})
	}
}
