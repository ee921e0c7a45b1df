package transcript

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "github.com/continuo-log/continuo/internal/rapidseed" // the same values in every run
	"pgregory.net/rapid"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/modeltest"
	"github.com/continuo-log/continuo/render"
)

// upstream is a model that gives the same deltas to every request.
type upstream struct {
	deltas  []model.Delta
	failure *model.Error
	wire    string // default OpenAI's
	asked   func() // called before each delta
}

func (u *upstream) Info() model.Info {
	info := model.Info{Provider: "acme", Name: "m", Protocol: model.ProtocolOpenAIChat}
	if u.wire != "" {
		info.Protocol = u.wire
	}
	return info
}

func (u *upstream) Stream(ctx context.Context, _ []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for _, delta := range u.deltas {
			if err := model.ContextError(ctx); err != nil {
				yield(model.Delta{}, err)
				return
			}
			if u.asked != nil {
				u.asked()
			}
			if !yield(delta, nil) {
				return
			}
		}
		if u.failure != nil {
			yield(model.Delta{}, u.failure)
		}
	}
}

// answering is an upstream that says text in pieces and stops.
func answering(pieces ...string) *upstream {
	u := &upstream{}
	for _, piece := range pieces {
		u.deltas = append(u.deltas, model.Delta{Text: piece})
	}
	u.deltas = append(u.deltas, model.Delta{Finish: "stop"})
	return u
}

// streamedAnswer is what a stream yielded, and the entry it results in.
type streamedAnswer struct {
	deltas []model.Delta
	err    error
	entry  continuo.Entry
	finish string
}

func listen(t testing.TB, u *upstream) streamedAnswer {
	t.Helper()
	var got streamedAnswer
	answer := model.Answer{Provider: "acme"}
	for delta, err := range New(u).Stream(t.Context(), nil) {
		if err != nil {
			got.err = err
			break
		}
		got.deltas = append(got.deltas, delta)
		answer.Add(delta)
	}
	got.entry, got.finish = answer.Entry(got.err), answer.Finish()
	return got
}

// words is what an entry says, one line for each thing.
func words(entry continuo.Entry) string {
	var out []string
	if entry.Reasoning != nil {
		out = append(out, "think "+entry.Reasoning.Text)
	}
	if !entry.Content.IsEmpty() {
		out = append(out, "say "+entry.Content.String())
	}
	for _, call := range entry.ToolCalls {
		id := strings.Replace(call.ID, idPrefix(nil), "call_", 1)
		out = append(out, fmt.Sprintf("call %s %s %s", id, call.Name, call.Arguments))
	}
	if entry.Error != nil {
		for _, call := range entry.Error.PartialToolCalls {
			out = append(out, fmt.Sprintf("part %s %s", call.Name, call.Arguments))
		}
	}
	return strings.Join(out, "\n")
}

func TestAnswers(t *testing.T) {
	malformed := func(id, text string) string {
		return fmt.Sprintf("call %s malformed_call %s", id, render.MalformedArguments(text, render.CutNone))
	}
	for _, test := range []struct{ name, text, want, finish string }{
		{"a whole answer", "§think: hm\n\n§respond: Hello.", "think hm\nsay Hello.", "stop"},
		{"no events", "Hello.", "say Hello.", "stop"},
		{"nothing", "", "", "stop"},
		{"text, then a call", "Let me look.\n\n§call: {\"name\": \"f\", \"args\": {\"a\": 1}}", "say Let me look.\ncall call_0 f {\"a\": 1}", "tool_calls"},
		{"calls in a row", "§call: {\"name\": \"f\"}\n§call: {\"name\": \"g\", \"args\": {}}\n", "call call_0 f {}\ncall call_1 g {}", "tool_calls"},
		{"an invented result", "§call: {\"name\": \"f\"}\n\n$result: forged\n\n§respond: So", "call call_0 f {}", "tool_calls"},
		{"text behind a call", "§call: {\"name\": \"f\"} and now", "call call_0 f {}", "tool_calls"},
		{"an answer behind a call", "§call: {\"name\": \"f\"}\n\n§respond: done", "call call_0 f {}", "tool_calls"},
		{"an invented user", "§respond: Hello.\n\n§user: more\n\n§respond: more", "say Hello.", "stop"},
		{"several events", "§think: a\n\n§respond: b\n\n§think: c\n\n§respond: d", "think a\n\nc\nsay b\n\nd", "stop"},
		{"over several lines", "§call: {\n  \"name\": \"f\",\n  \"args\": {\"a\": \"}\\\"{\"}\n}", "call call_0 f {\"a\": \"}\\\"{\"}", "tool_calls"},
		{"JSON in a fence", "§call:\n```json\n{\"name\": \"f\"}\n```\n", "call call_0 f {}", "tool_calls"},
		{"all in a fence", "```\n§call: {\"name\": \"f\"}\n```", "call call_0 f {}", "tool_calls"},
		{"no JSON", "§call: f(1)\nand 2\n\nI wait.", malformed("call_0", "f(1)\nand 2"), "tool_calls"},
		{"no end", "§call: {\"name\": \"f\"", malformed("call_0", "{\"name\": \"f\""), "tool_calls"},
		{"no end, then more", "§call: {\"name\": \"f\n\n§call: {\"name\": \"g\"}", malformed("call_0", "{\"name\": \"f") + "\ncall call_1 g {}", "tool_calls"},
		{"no name", "§call: {\"args\": {}}", malformed("call_0", "{\"args\": {}}"), "tool_calls"},
		{"empty", "§call:\n\n§respond: x", malformed("call_0", ""), "tool_calls"},
		{"a fence and nothing", "§call:\n```json\n", malformed("call_0", "```json"), "tool_calls"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, pieces := range [][]string{{test.text}, strings.Split(test.text, "")} {
				got := listen(t, answering(pieces...))
				if got.err != nil || words(got.entry) != test.want || got.finish != test.finish {
					t.Errorf("got %v, %s:\n%s\nwant %s:\n%s", got.err, got.finish, words(got.entry), test.finish, test.want)
				}
			}
		})
	}
}

// texts draws what a model may want to say, structure among it.
func texts() *rapid.Generator[string] {
	parts := rapid.SampledFrom([]string{"a", " ", "\n", "\n\n", "§", "$", "\\", "§call:", "\n§respond: x", "$user:", "=== CURRENT ===", "```", "\n```\n", "{", "}", `"`, "é", "😀", "\u2028"})
	return rapid.Map(rapid.SliceOfN(parts, 0, 8), func(parts []string) string { return strings.Join(parts, "") })
}

// split draws a text in pieces, which may end within a character.
func split(t *rapid.T, text string) []string {
	var pieces []string
	for len(text) > 0 {
		n := rapid.IntRange(1, min(12, len(text))).Draw(t, "length")
		pieces = append(pieces, text[:n])
		text = text[n:]
	}
	return pieces
}

var event = regexp.MustCompile(`(?m)^\$(think|respond|call):`)

// streamed writes events as a model does.
func streamed(events []render.Event) string {
	text := strings.TrimPrefix(render.Transcript{Current: events}.String(), "=== HISTORY ===\n\n=== CURRENT ===\n\n")
	return event.ReplaceAllString(strings.TrimSuffix(text, "\n"), "§$1:")
}

// What a model means is what is heard, wherever its text is split, in the middle of characters too.
func TestLenientParsing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		thought, answered := texts().Draw(rt, "thought"), texts().Draw(rt, "said")
		want := continuo.Entry{Content: continuo.Text(answered), Reasoning: &continuo.Reasoning{Text: thought}}
		if thought == "" {
			want.Reasoning = nil
		}
		events := []render.Event{{Kind: render.EventThink, Text: thought}, {Kind: render.EventRespond, Text: answered}}
		for i := range rapid.IntRange(0, 3).Draw(rt, "calls") {
			name := fmt.Sprintf("f_%d", i)
			args, err := json.Marshal(rapid.MapOfN(texts(), texts(), 0, 3).Draw(rt, "arguments"))
			if err != nil {
				rt.Fatal(err)
			}
			want.ToolCalls = append(want.ToolCalls, continuo.FunctionCall(fmt.Sprintf("call_%d", i), name, string(args)))
			events = append(events, render.Event{Kind: render.EventCall, Text: fmt.Sprintf(`{"name": %q, "args": %s}`, name, args)})
		}
		text := streamed(events)
		got := listen(t, answering(split(rt, text)...))
		if got.err != nil || words(got.entry) != words(want) {
			rt.Fatalf("%v: heard\n%s\nmeant\n%s\nof\n%q", got.err, words(got.entry), words(want), text)
		}
	})
}

// joined writes deltas with those of one kind that follow each other as one.
func joined(deltas []model.Delta) string {
	var out strings.Builder
	last := ""
	for _, delta := range deltas {
		kind, text := "text", delta.Text
		switch {
		case delta.Reasoning != "":
			kind, text = "think", delta.Reasoning
		case delta.ToolCall != nil:
			kind, text = "call", fmt.Sprintf("\n%+v", *delta.ToolCall)
		case delta.Finish != "":
			kind, text = "finish", delta.Finish
		}
		if kind != last {
			out.WriteString("\n" + kind + ": ")
		}
		out.WriteString(text)
		last = kind
	}
	return out.String()
}

// Where any text is split makes no difference to what is told of it.
func TestAnswersAreSplitAnywhere(t *testing.T) {
	events := rapid.SampledFrom([]string{"§think: ", "\n\n§respond: ", "\n§call: {\"name\": \"f\"}", "\n§call:\n```json\n{", "\"args\": {\"a\": ", "}", "\n\n$result: ", "$call: ", "§user:"})
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(texts(), events), 0, 8).Draw(rt, "text"), "")
		whole := joined(listen(t, answering(text)).deltas)
		if got := joined(listen(t, answering(split(rt, text)...)).deltas); got != whole {
			rt.Fatalf("split:%s\nwhole:%s\nof %q", got, whole, text)
		}
	})
}

// Whatever an upstream says, the log takes the answer, and nothing but a missing end makes it fail.
func FuzzAnswer(f *testing.F) {
	f.Add("§think: a\n\n§call: {\"name\": \"f\", \"args\": {}}\n\n$result: x", uint8(1), false)
	f.Add("```\n§respond: \\$user: x\n```\n", uint8(3), true)
	f.Add("§call: f(x)\n\n§call:\n```json\n{\"name\": 1}", uint8(2), false)
	f.Fuzz(func(t *testing.T, text string, step uint8, breaks bool) {
		u := &upstream{}
		for begin, n := 0, int(step)%16+1; begin < len(text); begin += n {
			u.deltas = append(u.deltas, model.Delta{Text: text[begin:min(begin+n, len(text))]})
		}
		if u.deltas = append(u.deltas, model.Delta{Finish: "stop"}); breaks {
			u.deltas = u.deltas[:len(u.deltas)-1]
			u.failure = &model.Error{Reason: continuo.ReasonNetwork, Message: "cut"}
		}
		got := listen(t, u)
		if err := new(continuo.Group).Accept(&got.entry); err != nil {
			t.Fatalf("the log refuses %+v: %v", got.entry, err)
		}
		if got.err == nil && (got.finish == "" || got.entry.Error != nil) || !breaks && got.err != nil {
			t.Fatalf("%v, finish %q, entry %+v", got.err, got.finish, got.entry)
		}
	})
}

func TestModelLaws(t *testing.T) {
	modeltest.RunModel(t, New(answering("§think: a\n\n", "§respond: b", " c")), nil)
	modeltest.RunModel(t, New(answering("§think: a\n\n", "§call: {\"name\": \"f\"}", "\n\n$result: x")), nil)
}

func TestInfo(t *testing.T) {
	for _, wire := range []string{model.ProtocolOpenAIChat, model.ProtocolAnthropic} {
		info := New(&upstream{wire: wire}).Info()
		if got, ok := info.Transcript(); !ok || got != wire || info.Provider != "acme" || info.Protocol != wire+"+transcript" {
			t.Errorf("got %+v", info)
		}
	}
}

// The ids of calls are the same for the same answer, and others for every request.
func TestCallIDs(t *testing.T) {
	seen := map[string]int{}
	m := New(answering("§call: {\"name\": \"f\"}\n\n§call: {\"name\": \"g\"}"))
	for _, body := range []string{"a", "a", "b"} {
		for delta := range m.Stream(t.Context(), []byte(body)) {
			if delta.ToolCall != nil {
				seen[delta.ToolCall.ID]++
			}
		}
	}
	if counts := slices.Sorted(maps.Values(seen)); !slices.Equal(counts, []int{1, 1, 2, 2}) {
		t.Errorf("ids and how often they came: %v", seen)
	}
}

// A call that the upstream's failure cut off is a part of one; those before it are whole. What was held
// back is not told.
func TestFailureInACall(t *testing.T) {
	failure := &model.Error{Reason: continuo.ReasonNetwork, Message: "cut"}
	for text, want := range map[string]string{
		"§respond: a\n\n§ca": "say a",
		"§call: {\"name\": \"f\"}\n\n§call: {\"name\": \"g\", \"args\": {\"a\": \"b": "call call_0 f {}\npart g {\"a\": \"b",
		"§call: {\"args\": {\"a\": 1}, \"na":                                         "part  {\"a\": 1}, \"na",
		"§call: f(":                                                                  "part  f(",
		"§call:":                                                                     "part  ",
	} {
		u := answering(text)
		u.deltas, u.failure = u.deltas[:len(u.deltas)-1], failure
		if got := listen(t, u); got.err != error(failure) || words(got.entry) != want {
			t.Errorf("%q: got %v:\n%s\nwant\n%s", text, got.err, words(got.entry), want)
		}
	}
}

// Cut off anywhere by a failure, an answer tells a beginning of what the whole one tells.
func TestCutAnywhere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		answered := texts().Draw(rt, "said")
		text := streamed([]render.Event{{Kind: render.EventRespond, Text: answered}, {Kind: render.EventCall, Text: `{"name": "f", "args": {"a": "b"}}`}})
		for at := range len(text) {
			u := answering(text[:at])
			u.deltas, u.failure = u.deltas[:1], &model.Error{Reason: continuo.ReasonNetwork, Message: "cut"}
			got := listen(t, u)
			if !strings.HasPrefix(answered, strings.ToValidUTF8(got.entry.Content.String(), "")) || len(got.entry.ToolCalls) > 0 || got.entry.Error == nil {
				rt.Fatalf("cut at %d of %q: %s", at, text, words(got.entry))
			}
		}
	})
}

// An answer that reached its limit keeps that reason; a call that it cut off is explained.
func TestLengthLimit(t *testing.T) {
	u := answering("§call: {\"name\": \"f\", \"args\": {")
	u.deltas[1].Finish = "length"
	got := listen(t, u)
	if want := "call call_0 malformed_call " + render.MalformedArguments(`{"name": "f", "args": {`, render.CutLength); words(got.entry) != want || got.finish != "length" || got.err != nil {
		t.Errorf("got %v, %s, %s", got.err, got.finish, words(got.entry))
	}
}

// Usage, the model's name and an OpenAI server's data pass; blocks and signatures, which are of the text
// with the events, do not. The upstream's own reasoning and calls pass.
func TestWhatPasses(t *testing.T) {
	u := &upstream{deltas: []model.Delta{
		{Model: "m-1", Usage: &continuo.Usage{InputTokens: 3}},
		{Reasoning: "own "},
		{Reasoning: "thought"},
		{Signature: "sig"},
		{Text: "§think: more\n\n§respond: a"},
		{ToolCall: &model.ToolCallDelta{Index: 7, ID: "x", Type: "function", Name: "f", Arguments: "{"}},
		{ToolCall: &model.ToolCallDelta{Index: 7, Arguments: "}", Done: true}},
		{Text: "\n\n§call: {\"name\": \"g\"}"},
		{Vendor: json.RawMessage(`{"v":1}`)},
		{Finish: "tool_calls", Usage: &continuo.Usage{InputTokens: 3, OutputTokens: 9}},
	}}
	for _, wire := range []string{model.ProtocolOpenAIChat, model.ProtocolAnthropic} {
		u.wire = wire
		got := listen(t, u)
		if want := "think own thought\n\nmore\nsay a\ncall x f {}\ncall call_1 g {}"; words(got.entry) != want || got.entry.Reasoning.Signature != "" {
			t.Errorf("%s: got\n%s\nwant\n%s", wire, words(got.entry), want)
		}
		if vendor := got.entry.Vendor["acme"]; (vendor != nil) != (wire == model.ProtocolOpenAIChat) {
			t.Errorf("%s: vendor data %s", wire, vendor)
		}
		answer := model.Answer{}
		for _, delta := range got.deltas {
			answer.Add(delta)
		}
		if answer.Model() != "m-1" || answer.Usage().OutputTokens != 9 {
			t.Errorf("%s: model %s, usage %+v", wire, answer.Model(), answer.Usage())
		}
	}
}

// A text is told as soon as it can be no structure, a call as soon as it is whole.
func TestLatency(t *testing.T) {
	text := ""
	u := answering("§resp", "ond: He", "llo\n", "\n§", "call: {\"name\": ", "\"f\"}", "\n", "\n")
	steps := []string{"", "", "He", "Hello", "Hello", "Hello", "Hello<f>", "Hello<f>", "Hello<f>"}
	u.asked = func() {
		if text != steps[0] {
			t.Errorf("told %q, want %q", text, steps[0])
		}
		steps = steps[1:]
	}
	for delta, err := range New(u).Stream(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if text += delta.Text; delta.ToolCall != nil {
			text += "<" + delta.ToolCall.Name + ">"
		}
	}
	if len(steps) > 0 {
		t.Errorf("%d pieces were not asked for", len(steps))
	}
}

// Behind a call the upstream is not listened to any more.
func TestInventedResultsEndTheRequest(t *testing.T) {
	asked := 0
	u := answering("§call: {\"name\": \"f\"}\n\n", "$res", "ult: x", "never asked for")
	u.asked = func() { asked++ }
	if got := listen(t, u); got.finish != "tool_calls" || asked != 3 {
		t.Errorf("finish %s after %d pieces", got.finish, asked)
	}
}

// endless is an upstream that never ends.
func endless(piece string, asked *int) *upstream {
	u := answering()
	u.deltas = slices.Repeat([]model.Delta{{Text: piece}}, 64<<20/len(piece))
	u.asked = func() { *asked++ }
	return u
}

// An upstream that never ends is given up, whatever it sends, and what is kept of it is bounded.
func TestEndlessUpstreams(t *testing.T) {
	for _, test := range []struct{ name, begin, piece, want string }{ // what it begins with, what it repeats, what ends it
		{"marks", "", strings.Repeat("§", 4096), "upstream"},
		{"marks on lines", "", strings.Repeat("§\n", 4096), "upstream"},
		{"blanks", "", strings.Repeat(" \n", 4096), "upstream"},
		{"events", "", strings.Repeat("§think:\n", 4096), "upstream"},
		{"a call", `§call: {"name": "f", "args": {"a": "`, strings.Repeat("x", 4096), "tool_calls"},
		{"a call of braces", `§call: `, strings.Repeat("{", 4096), "tool_calls"},
		{"a call that is none", `§call: `, strings.Repeat("x\n", 4096), "tool_calls"},
		{"a call's blanks", `§call: `, strings.Repeat(" ", 4096), "upstream"},
		{"calls", "", strings.Repeat("§call: {}\n", 4096), "calls"},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked := 0
			u := endless(test.piece, &asked)
			u.deltas[0].Text = test.begin + test.piece
			got := listen(t, u)
			ended := got.finish
			if n := len(got.entry.ToolCalls); n == maxCalls {
				ended = "calls"
			}
			if got.err != nil {
				ended = string(model.AsError(got.err).Reason)
			}
			if ended != test.want || asked*len(test.piece) > maxText+2*4096*10 {
				t.Fatalf("ended by %s after %d bytes", ended, asked*len(test.piece))
			}
			if calls := got.entry.ToolCalls; test.want == "tool_calls" && (len(calls) != 1 || len(calls[0].Arguments) > 2*keptBytes || asked*len(test.piece) > 2*maxCall) {
				t.Errorf("%d calls after %d bytes", len(calls), asked*len(test.piece))
			}
		})
	}
}
