package render

import (
	"encoding/json"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// Each protocol has its own way to say how much a model reasons.
func TestReasoningEffort(t *testing.T) {
	type writer = func(continuo.Envelope, []window.Message, Options) ([]byte, error)
	messages := []window.Message{{Seq: 1, Role: continuo.User, Content: continuo.Text("hello")}}
	for _, test := range []struct {
		name, model, effort string
		write               writer
		want                string // "": nothing is said
	}{
		{"chat", "gpt-5.6", "low", OpenAIChatRequest, `"reasoning_effort":"low"`},
		{"chat", "gpt-4.1", "", OpenAIChatRequest, ""},
		{"responses", "gpt-5.6", "high", ResponsesRequest, `"reasoning":{"effort":"high","summary":"auto"}`},
		{"responses", "gpt-4.1", "", ResponsesRequest, ""},
		{"gemini", "gemini-2.5-pro", "medium", GeminiRequest, `"thinkingConfig":{"includeThoughts":true,"thinkingBudget":8192}`},
		{"gemini", "gemini-2.5-flash", "none", GeminiRequest, `"thinkingConfig":{"thinkingBudget":0}`},
		{"gemini", "models/gemini-3-pro-preview", "xhigh", GeminiRequest, `"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"high"}`},
		{"gemini", "gemini-3.5-flash", "none", GeminiRequest, `"thinkingConfig":{"thinkingLevel":"minimal"}`},
		{"gemini", "gemini-2.0-flash", "", GeminiRequest, ""},
	} {
		t.Run(test.name+" "+test.model+" "+test.effort, func(t *testing.T) {
			body, err := test.write(continuo.Envelope{Model: test.model, ReasoningEffort: test.effort, NoEncryptedReasoning: true}, messages, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Contains(string(body), "reasoning") || strings.Contains(string(body), "thinking"); !strings.Contains(string(body), test.want) || said != (test.want != "") {
				t.Errorf("got %s, want %s", body, test.want)
			}
		})
	}
}

// Data of one provider that another one does not get are named.
func TestWithheldItemsAndParts(t *testing.T) {
	entry := &continuo.Entry{Vendor: map[string]json.RawMessage{
		"openai": json.RawMessage(`{"items":[{"type":"reasoning","id":"r"},{"type":"message"},{"type":"function_call"},{"type":"web_search_call"}]}`),
		"google": json.RawMessage(`{"parts":[{"text":"a","thought":true},{"text":"b"},{"functionCall":{}},{"executableCode":{}}]}`),
	}}
	withheld := Withheld([]window.Message{{Seq: 1, Role: continuo.Assistant, Entry: entry}}, Options{Provider: "anthropic"})
	if len(withheld) != 2 || strings.Join(withheld[0].Types, " ") != "thought executableCode" || strings.Join(withheld[1].Types, " ") != "reasoning web_search_call" {
		t.Errorf("got %+v", withheld)
	}
}
