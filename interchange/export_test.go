package interchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

func sequence(entries ...continuo.Entry) iter.Seq2[continuo.Entry, error] {
	return func(yield func(continuo.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

var mixed = []continuo.Entry{
	{Role: continuo.System, Content: continuo.Text("s"), Extra: json.RawMessage(`{"ts":"1"}`)},
	{Role: continuo.User, Content: continuo.Parts(continuo.TextPart("t"), continuo.Part{Type: "document", Raw: json.RawMessage(`{"type":"document"}`)}), Name: "Ann", Vendor: map[string]json.RawMessage{"anthropic": json.RawMessage(`{}`)}},
	{Role: continuo.User, Content: continuo.Text("for people"), Hidden: true},
	{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{{ID: "a", Type: "function", Name: "f", Arguments: "<>", Extra: json.RawMessage(`{"index":0}`)}}, Reasoning: &continuo.Reasoning{Text: "hm"}},
	{Role: continuo.Tool, ToolCallID: "a", Name: "f", ToolName: "f", Content: continuo.Text("r")},
	{Role: continuo.Assistant, Error: &continuo.TurnError{Code: continuo.LLMError}},
}

func TestExportOpenAI(t *testing.T) {
	want := []string{
		`{"role":"system","content":"s"}`,
		`{"role":"user","content":[{"type":"text","text":"t"},{"type":"text","text":"[document]"}],"name":"Ann"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"<>"}}]}`,
		`{"role":"tool","content":"r","name":"f","tool_call_id":"a"}`,
		`{"role":"assistant","content":""}`,
	}
	for format, wanted := range map[string]string{
		FormatOpenAI:      "[\n" + strings.Join(want, ",\n") + "\n]\n",
		FormatOpenAIJSONL: `{"id":"conv_1","messages":[` + strings.Join(want, ",") + "]}\n",
	} {
		var out bytes.Buffer
		if err := export(&out, format, continuo.Conversation{ID: "conv_1"}, sequence(mixed...), nil); err != nil {
			t.Fatal(err)
		}
		if out.String() != wanted {
			t.Errorf("%s:\n got %s\nwant %s", format, out.String(), wanted)
		}
	}
	var out bytes.Buffer
	if err := export(&out, FormatOpenAIJSONL, continuo.Conversation{}, sequence(), nil); err != nil || out.String() != `{"messages":[]}`+"\n" {
		t.Errorf("nothing is written as %s (%v)", out.String(), err)
	}
}

func TestExportSourceOfOurOwn(t *testing.T) {
	var out bytes.Buffer
	if err := export(&out, FormatSource, continuo.Conversation{}, sequence(mixed...), nil); err != nil {
		t.Fatal(err)
	}
	want := `[{"role":"system","content":"s","ts":"1"},{"role":"user","content":[{"type":"text","text":"t"},{"type":"document"}],"name":"Ann"},` +
		`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"<>"},"index":0}],"reasoning_content":"hm"},` +
		`{"role":"tool","content":"r","name":"f","tool_call_id":"a"},{"role":"assistant"}]` + "\n"
	if out.String() != want {
		t.Errorf("got %s\nwant %s", out.String(), want)
	}
}

func TestExportOfDoubleRecordsLosesNothing(t *testing.T) {
	same := map[string]json.RawMessage{"interchange": json.RawMessage(`{"index":0}`)}
	var out bytes.Buffer
	err := export(&out, FormatSource, continuo.Conversation{Metadata: json.RawMessage(`{"source":{"format":"openai"}}`)}, sequence(
		continuo.Entry{Role: continuo.User, Content: continuo.Text("a"), Vendor: same}, continuo.Entry{Role: continuo.User, Content: continuo.Text("b"), Vendor: same}), nil)
	if err != nil || out.String() != `[{"role":"user","content":"a"},{"role":"user","content":"b"}]`+"\n" {
		t.Errorf("got %s (%v)", out.String(), err)
	}
}

func TestExportFailures(t *testing.T) {
	broken := errors.New("store")
	failing := func(yield func(continuo.Entry, error) bool) { yield(continuo.Entry{}, broken) }
	for _, format := range []string{FormatContinuo, FormatOpenAI, FormatOpenAIJSONL, FormatSource, ""} {
		if err := export(&bytes.Buffer{}, format, continuo.Conversation{ID: "c"}, failing, nil); !errors.Is(err, broken) {
			t.Errorf("%s: a failing store gives %v", format, err)
		}
		if err := export(failingWriter{}, format, continuo.Conversation{ID: "c"}, sequence(mixed...), nil); !errors.Is(err, errDisk) {
			t.Errorf("%s: a failing writer gives %v", format, err)
		}
	}
	if err := export(&bytes.Buffer{}, "yaml", continuo.Conversation{}, sequence(), nil); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("an unknown format gives %v", err)
	}
}

var errDisk = errors.New("disk")

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errDisk }
