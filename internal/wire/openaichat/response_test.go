package openaichat

import (
	"encoding/json"
	"testing"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// What is read and written again stays what it was, members that are not known included.
func TestRoundTrip(t *testing.T) {
	for _, test := range []struct {
		value any
		text  string
	}{
		{new(Response), `{"id":"chatcmpl-1","object":"chat.completion","created":1795000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\": \"<\"}"},"extra_content":{"google":{"thought_signature":"AV=="}}}],"annotations":[]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":1}},"system_fingerprint":"fp"}`},
		{new(Chunk), `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":"hm","reasoning_details":[{"index":0}]},"finish_reason":null}]}`},
		{new(Chunk), `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a"}},{"index":1,"id":"b","type":"custom","custom":{"name":"g","input":""}}]},"finish_reason":null}]}`},
		{new(Chunk), `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"completion_tokens_details":{"reasoning_tokens":1}}}`},
		{new(Chunk), `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`},
	} {
		if err := json.Unmarshal([]byte(test.text), test.value); err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if got := string(rawjson.MustMarshal(test.value)); got != test.text {
			t.Errorf("got  %s\nwant %s", got, test.text)
		}
	}
}

// What compatible servers write otherwise is read all the same.
func TestReading(t *testing.T) {
	for _, test := range [][2]string{
		{`{"reasoning":"a","content":["x"]}`, `{"content":["x"],"reasoning_content":"a"}`},
		{`{"reasoning":"a","reasoning_content":"b"}`, `{"reasoning_content":"b"}`},
		{`{"reasoning_content":"b","reasoning":"a"}`, `{"reasoning_content":"b"}`},
		{`{"reasoning":null,"reasoning_content":""}`, `{}`},
		{`{"reasoning":{"steps":1}}`, `{"reasoning":{"steps":1}}`},
		{`{"role":null,"tool_calls":null}`, `{}`},
		{`{"tool_calls":[{"id":null,"type":null,"function":{"name":null,"arguments":{"a":1}}}]}`, `{"tool_calls":[{"function":{"arguments":"{\"a\":1}"}}]}`},
		{`{"tool_calls":[{"function":{"name":"f","arguments":null}}]}`, `{"tool_calls":[{"function":{"name":"f","arguments":""}}]}`},
		{`null`, `{}`},
	} {
		var message Message
		if err := json.Unmarshal([]byte(test[0]), &message); err != nil {
			t.Errorf("%s: %v", test[0], err)
		}
		if got := string(rawjson.MustMarshal(message)); got != test[1] {
			t.Errorf("%s: got %s, want %s", test[0], got, test[1])
		}
	}
	for text, want := range map[string]Seconds{"1795000000": 1795000000, "1795000000.75": 1795000000, `"x"`: 0, "null": 0} {
		var seconds Seconds
		if err := json.Unmarshal([]byte(text), &seconds); err != nil || seconds != want {
			t.Errorf("%s: got %d, %v", text, seconds, err)
		}
	}
}

// Any message that can be read can be written, and then reads the same.
func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"role":"assistant","content":null,"reasoning":"x","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":1},"x":[]}],"y":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second Message
		if json.Unmarshal(data, &first) != nil {
			t.Skip()
		}
		first.FunctionCall = nil // is read only
		written, err := rawjson.Marshal(first)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if err := json.Unmarshal(written, &second); err != nil {
			t.Fatalf("%s was written as %s: %v", data, written, err)
		}
		if again := rawjson.MustMarshal(second); string(again) != string(written) {
			t.Fatalf("%s was written as %s, then as %s", data, written, again)
		}
	})
}
