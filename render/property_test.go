package render

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/window"
)

func genOptions() *rapid.Generator[Options] {
	return rapid.Map(rapid.SampledFrom(vendors), func(provider string) Options { return Options{Provider: provider} })
}

// Whatever a valid log holds, what is rendered satisfies each protocol.
func TestRenderedRequestsAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := messagesOf(t, genLog().Draw(t, "log"))
		o := genOptions().Draw(t, "options")
		openai, err := OpenAIChat(messages, o)
		if err != nil {
			t.Fatal(err)
		}
		anthropic, _, err := Anthropic(messages, o)
		if err != nil {
			t.Fatal(err)
		}
		if found := refused(CheckOpenAIChat(openai)); len(openai) > 0 && len(found) > 0 {
			t.Fatalf("OpenAI: %v in\n%s", found, rawjson.MustMarshal(openai))
		}
		if found := refused(CheckAnthropic(anthropic)); len(anthropic) > 0 && len(found) > 0 {
			t.Fatalf("Anthropic: %v in\n%s", found, rawjson.MustMarshal(anthropic))
		}
		items, err := Responses(messages, o)
		if err != nil {
			t.Fatal(err)
		}
		if found := refused(CheckResponses(items)); len(items) > 0 && len(found) > 0 {
			t.Fatalf("Responses: %v in\n%s", found, rawjson.MustMarshal(items))
		}
		contents, _, err := Gemini(messages, o)
		if err != nil {
			t.Fatal(err)
		}
		if found := refused(CheckGemini(contents, "")); len(contents) > 0 && len(found) > 0 {
			t.Fatalf("Gemini: %v in\n%s", found, rawjson.MustMarshal(contents))
		}
	})
}

// More messages only add bytes at the end.
func TestBytesOnlyGrow(t *testing.T) {
	for _, protocol := range []struct {
		name  string
		write func(continuo.Envelope, []window.Message, Options) ([]byte, error)
		end   string // of the last message, where more can be added to it
	}{
		{"OpenAI chat", OpenAIChatRequest, "]}"},
		{"Responses", ResponsesRequest, "]}"},
		{"Gemini", GeminiRequest, "]}]}"}, // messages of the model that follow each other are one content
	} {
		t.Run(protocol.name, func(t *testing.T) { bytesOnlyGrow(t, protocol.write, protocol.end) })
	}
}

func bytesOnlyGrow(t *testing.T, write func(continuo.Envelope, []window.Message, Options) ([]byte, error), end string) {
	rapid.Check(t, func(t *rapid.T) {
		messages := messagesOf(t, genLog().Draw(t, "log"))
		o := genOptions().Draw(t, "options")
		env := continuo.Envelope{Model: "m", System: []string{"base"}, Stream: true, Tools: []continuo.ToolSpec{{Name: "fs.read", Parameters: json.RawMessage(`{"type": "object"}`)}}}
		var before []byte
		for _, k := range boundaries(messages) {
			if k == 0 {
				continue
			}
			body, err := write(env, messages[:k], o)
			if err != nil {
				continue // nothing to send yet
			}
			if prefix := bytes.TrimSuffix(before, []byte(end)); !bytes.HasPrefix(body, prefix) {
				t.Fatalf("%d messages:\n%s\ndo not extend\n%s", k, body, before)
			}
			before = body
		}
	})
}

// More messages leave all but the last merged message as it was.
func TestAnthropicBytesOnlyGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := messagesOf(t, genLog().Draw(t, "log"))
		o := genOptions().Draw(t, "options")
		var before []json.RawMessage
		for _, k := range boundaries(messages) {
			rendered, _, err := Anthropic(messages[:k], o)
			if err != nil {
				t.Fatal(err)
			}
			if len(rendered) < len(before) {
				t.Fatalf("%d messages became %d", len(before), len(rendered))
			}
			for i := range max(0, len(before)-1) {
				if !bytes.Equal(before[i], rendered[i]) {
					t.Fatalf("message %d changed from\n%s\nto\n%s", i, before[i], rendered[i])
				}
			}
			before = rendered
		}
	})
}

// A body differs from the one before only from the last message on, and at the cache mark on it, unless a
// round was so long that a second mark was needed.
func TestCacheMarksAreFewAndLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := messagesOf(t, genLog().Draw(t, "log"))
		o := genOptions().Draw(t, "options")
		env := continuo.Envelope{Model: "m", System: []string{"base", " "}, Tools: []continuo.ToolSpec{{Name: "a"}, {Name: "b"}}}
		body, err := AnthropicRequest(env, messages, o)
		if err != nil {
			return // nothing to send
		}
		var request struct {
			MaxTokens int               `json:"max_tokens"`
			Messages  []json.RawMessage `json:"messages"`
		}
		if err := json.Unmarshal(body, &request); err != nil {
			t.Fatal(err)
		}
		if found := refused(CheckAnthropic(request.Messages)); len(found) > 0 {
			t.Fatalf("%v in\n%s", found, body)
		}
		mark := []byte(`"cache_control":`)
		if n := bytes.Count(body, mark); n < 2 || n > 4 {
			t.Fatalf("%d cache marks in\n%s", n, body)
		}
		plain, _, err := Anthropic(messages, o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range max(0, len(plain)-3) {
			if !bytes.Equal(plain[i], request.Messages[i]) {
				t.Fatalf("message %d carries a mark: %s", i, request.Messages[i])
			}
		}
	})
}

// A log that was written to a store and read again gives the same bytes.
func TestStoredEntriesRenderTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := genLog().Draw(t, "log")
		var again []continuo.Entry
		if err := json.Unmarshal(rawjson.MustMarshal(entries), &again); err != nil {
			t.Fatal(err)
		}
		o := genOptions().Draw(t, "options")
		env := continuo.Envelope{Model: "m", Tools: []continuo.ToolSpec{{Name: "a", Parameters: json.RawMessage("{ \"type\":\n\"object\" }")}}}
		var stored continuo.Envelope
		if err := json.Unmarshal(rawjson.MustMarshal(env), &stored); err != nil {
			t.Fatal(err)
		}
		for _, write := range []func(continuo.Envelope, []window.Message, Options) ([]byte, error){OpenAIChatRequest, AnthropicRequest, ResponsesRequest, GeminiRequest} {
			first, err1 := write(env, wholeMessages(entries), o)
			second, err2 := write(stored, wholeMessages(again), o)
			if (err1 == nil) != (err2 == nil) || !bytes.Equal(first, second) {
				t.Fatalf("from memory %s (%v)\nfrom the store %s (%v)", first, err1, second, err2)
			}
		}
	})
}
