package render_test

import (
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/window"
)

// An effort of the settings lets Anthropic's models think, with room for the answer behind it.
func TestAnEffortOfTheSettingsLetsClaudeThink(t *testing.T) {
	message := window.Message{Seq: 1, Role: continuo.User, Content: continuo.Text("hi"), Entry: &continuo.Entry{Seq: 1, Role: continuo.User, Content: continuo.Text("hi")}}
	for effort, want := range map[string]string{
		"low": `"thinking":{"type":"enabled","budget_tokens":1024}`, "high": `"thinking":{"type":"enabled","budget_tokens":24576}`, "none": "", "": "",
	} {
		body, err := render.AnthropicRequest(continuo.Envelope{Model: "claude-sonnet-4-5", ReasoningEffort: effort}, []window.Message{message}, render.Options{Provider: "anthropic"})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(body), want) || (want == "") == strings.Contains(string(body), `"thinking"`) || effort == "high" && !strings.Contains(string(body), `"max_tokens":28672`) {
			t.Errorf("%q: got %s", effort, body)
		}
	}
}
