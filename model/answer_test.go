package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
)

func call(index int, id, name, arguments string) model.Delta {
	return model.Delta{ToolCall: &model.ToolCallDelta{Index: index, ID: id, Name: name, Arguments: arguments}}
}

func done(index int) model.Delta {
	return model.Delta{ToolCall: &model.ToolCallDelta{Index: index, Done: true}}
}

func add(deltas ...model.Delta) *model.Answer {
	answer := &model.Answer{Provider: "acme"}
	for _, delta := range deltas {
		answer.Add(delta)
	}
	return answer
}

// The entries of whole answers and broken ones, all of which the log accepts.
func TestEntry(t *testing.T) {
	broken := &model.Error{Reason: continuo.ReasonNetwork, Retryable: true, Message: "cut"}
	const brokenJSON = `"error":{"code":"LLM_ERROR","reason":"network","message":"cut","retryable":true`
	tests := []struct {
		name    string
		answer  *model.Answer
		failure error
		want    string
	}{
		{"nothing", add(), nil, `{"role":"assistant","content":""}`},
		{"nothing, broken", add(), broken, `{"role":"assistant","content":null,` + brokenJSON + `}}`},
		{"text", add(model.Delta{Text: "a<"}, model.Delta{Text: "b"}), nil, `{"role":"assistant","content":"a<b"}`},
		{"text, broken", add(model.Delta{Text: "a"}), broken, `{"role":"assistant","content":"a",` + brokenJSON + `}}`},
		{"invalid text", add(model.Delta{Text: "a\xff"}), nil, `{"role":"assistant","content":"a` + "\uFFFD" + `"}`},
		{"reasoning alone", add(model.Delta{Reasoning: "r"}), nil, `{"role":"assistant","content":"","reasoning":{"text":"r"}}`},
		{
			"reasoning, signed, vendor",
			add(model.Delta{Reasoning: "r"}, model.Delta{Signature: "s"}, model.Delta{Text: "a"}, model.Delta{Vendor: json.RawMessage(`{"x":1}`)}), nil,
			`{"role":"assistant","content":"a","reasoning":{"text":"r","signature":"s"},"vendor":{"acme":{"x":1}}}`,
		},
		{
			"a signature of a part is none",
			add(model.Delta{Reasoning: "r"}, model.Delta{Signature: "s"}, model.Delta{Reasoning: "q"}, model.Delta{Signature: "z"}), nil,
			`{"role":"assistant","content":"","reasoning":{"text":"rq"}}`,
		},
		{
			"calls by their index",
			add(call(1, "b", "g", `{"x":`), call(0, "a", "f", ""), call(1, "", "", "1}"), done(0), done(1)), nil,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}},{"id":"b","type":"function","function":{"name":"g","arguments":"{\"x\":1}"}}]}`,
		},
		{
			"ids that miss or repeat",
			add(call(0, "", "f", ""), call(1, "a", "f", ""), call(2, "a", "f", ""), call(3, "call_0", "f", "")), nil,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"call_0","type":"function","function":{"name":"f","arguments":""}},{"id":"a","type":"function","function":{"name":"f","arguments":""}},{"id":"a_2","type":"function","function":{"name":"f","arguments":""}},{"id":"call_0_2","type":"function","function":{"name":"f","arguments":""}}]}`,
		},
		{
			"the last call of a broken stream is partial",
			add(call(0, "a", "f", "{}"), call(1, "b", "g", `{"x"`)), broken,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}],` + brokenJSON + `,"partial_tool_calls":[{"id":"b","name":"g","arguments":"{\"x\""}]}}`,
		},
		{
			"unless it is done",
			add(call(0, "a", "f", "{}"), done(0)), broken,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}],` + brokenJSON + `}}`,
		},
		{
			"a call that is done when it begins ends the one before",
			add(call(0, "a", "f", "{}"), model.Delta{ToolCall: &model.ToolCallDelta{Index: 1, ID: "b", Name: "g", Done: true}}), broken,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":""}}],` + brokenJSON + `}}`,
		},
		{
			"mixed calls of a broken stream are all partial",
			add(call(0, "a", "f", "{"), call(1, "b", "g", `{`), call(0, "", "", "}")), broken,
			`{"role":"assistant","content":null,` + brokenJSON + `,"partial_tool_calls":[{"id":"a","name":"f","arguments":"{}"},{"id":"b","name":"g","arguments":"{"}]}}`,
		},
		{
			"a call without a name",
			add(call(0, "a", "", "{}")), nil,
			`{"role":"assistant","content":null,"error":{"code":"LLM_ERROR","reason":"upstream","message":"the model called a tool without naming it","retryable":true,"partial_tool_calls":[{"id":"a","arguments":"{}"}]}}`,
		},
		{
			"custom type and extra",
			add(model.Delta{ToolCall: &model.ToolCallDelta{ID: "a", Type: "custom", Name: "f", Extra: json.RawMessage(`{"y":1}`)}},
				model.Delta{ToolCall: &model.ToolCallDelta{Arguments: "x", Extra: json.RawMessage(`{"y":2}`)}}), nil,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":"x"},"y":2}]}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			entry := test.answer.Entry(test.failure)
			if got := string(rawjson.MustMarshal(entry)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if err := new(continuo.Group).Accept(&entry); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAnswerOfBytesThatAreNoText has an upstream send bytes that are no UTF-8 in what is kept as it came.
func TestAnswerOfBytesThatAreNoText(t *testing.T) {
	answer := model.Answer{Provider: "v"}
	answer.Add(model.Delta{Vendor: json.RawMessage("{\"a\":\"\xff\"}"), ToolCall: &model.ToolCallDelta{Name: "f", Extra: json.RawMessage("{\"b\":\"\xff\"}")}})
	entry := answer.Entry(nil)
	if body := rawjson.MustMarshal(entry); !utf8.Valid(body) || !json.Valid(body) {
		t.Errorf("not every store takes %q", body)
	}
}

func TestAnswerWithoutProvider(t *testing.T) {
	var answer model.Answer
	answer.Add(model.Delta{Vendor: json.RawMessage(`{}`)})
	if entry := answer.Entry(nil); entry.Vendor != nil {
		t.Errorf("vendor data without a vendor: %v", entry.Vendor)
	}
}

func TestAnswerState(t *testing.T) {
	answer := add(model.Delta{Model: "m-1"}, model.Delta{Usage: &continuo.Usage{InputTokens: 1}})
	if !answer.Empty() || answer.Finish() != "" || answer.Model() != "m-1" {
		t.Errorf("before any content: %+v", answer)
	}
	answer.Add(model.Delta{Usage: &continuo.Usage{InputTokens: 2}})
	answer.Add(model.Delta{Finish: "stop"})
	if !answer.Empty() || answer.Finish() != "stop" || answer.Usage().InputTokens != 2 {
		t.Errorf("after the end: %+v", answer)
	}
	for _, delta := range []model.Delta{{Text: "a"}, {Reasoning: "a"}, call(0, "a", "f", "")} {
		if add(delta).Empty() {
			t.Errorf("%+v counts as nothing", delta)
		}
	}
}

func TestAsError(t *testing.T) {
	known := &model.Error{Reason: continuo.ReasonRateLimit, Status: 429}
	tests := []struct {
		err    error
		reason continuo.FailureReason
		status int
	}{
		{fmt.Errorf("turn: %w", known), continuo.ReasonRateLimit, 429},
		{fmt.Errorf("turn: %w", context.Canceled), continuo.ReasonCancelled, 0},
		{fmt.Errorf("turn: %w", context.DeadlineExceeded), continuo.ReasonTimeout, 0},
		{errors.New("odd"), continuo.ReasonUpstream, 0},
	}
	for _, test := range tests {
		if got := model.AsError(test.err); got.Reason != test.reason || got.Status != test.status {
			t.Errorf("%v: got %+v", test.err, got)
		}
	}
	if got := model.AsError(nil); got != nil {
		t.Errorf("nil gave %v", got)
	}
}

func TestContextError(t *testing.T) {
	if err := model.ContextError(t.Context()); err != nil {
		t.Errorf("a context that lives: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	past, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	given, cancelGiven := context.WithCancelCause(t.Context())
	cancelGiven(fmt.Errorf("round: %w", context.DeadlineExceeded))
	for _, test := range []struct {
		ctx    context.Context
		reason continuo.FailureReason
		cause  error
	}{
		{cancelled, continuo.ReasonCancelled, context.Canceled},
		{past, continuo.ReasonTimeout, context.DeadlineExceeded},
		{given, continuo.ReasonTimeout, context.DeadlineExceeded},
	} {
		if err := model.ContextError(test.ctx); err.Reason != test.reason || !errors.Is(err, test.cause) {
			t.Errorf("got %+v, want %s and %v", err, test.reason, test.cause)
		}
	}
}
