package turn

import (
	"encoding/json"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/token"
)

// Every prompt has its own size, which is the sum of its texts, whether it was measured before or not.
func TestThePromptIsMeasuredAsItsTexts(t *testing.T) {
	tool := continuo.ToolSpec{Name: "fs.read", Description: "Reads a file.", Parameters: json.RawMessage(`{"type": "object"}`)}
	other := tool
	other.Parameters = json.RawMessage(`{"type": "object", "required": ["path"]}`)
	toolText, otherText := string(rawjson.MustMarshal(tool)), string(rawjson.MustMarshal(other))
	cases := []struct {
		envelope continuo.Envelope
		messages int
		texts    []string
	}{
		{continuo.Envelope{}, 0, nil},
		{continuo.Envelope{System: []string{"ab cd"}}, 1, []string{"ab cd"}},
		{continuo.Envelope{System: []string{"ab", " cd"}}, 2, []string{"ab", " cd"}},
		{continuo.Envelope{System: []string{"ab"}, Tools: []continuo.ToolSpec{tool}}, 1, []string{"ab", toolText}},
		{continuo.Envelope{System: []string{"ab"}, Tools: []continuo.ToolSpec{tool, other}}, 1, []string{"ab", toolText, otherText}},
		{continuo.Envelope{System: []string{"ab"}, Tools: []continuo.ToolSpec{tool}, Instruction: "Call fs.read."}, 2, []string{"ab", "Call fs.read."}},
		{continuo.Envelope{System: []string{"ab", "Call fs.read."}}, 2, []string{"ab", "Call fs.read."}},
	}
	for _, encoding := range []*token.Encoding{token.O200k(), token.CL100k(), token.O200k()} {
		for i, c := range cases {
			want := continuo.Size{Messages: c.messages}
			for _, text := range c.texts {
				want.Chars += len(text)
				want.Tokens += encoding.Count(text)
			}
			if got := promptSize(&c.envelope, encoding); got != want {
				t.Errorf("case %d: %+v, want %+v", i, got, want)
			}
		}
	}
}

func BenchmarkPromptSize(b *testing.B) {
	envelope := continuo.Envelope{System: []string{strings.Repeat("You help with the task at hand. ", 200)}}
	for range 20 {
		envelope.Tools = append(envelope.Tools, continuo.ToolSpec{
			Name: "fs.search", Description: strings.Repeat("Searches the files of the project. ", 10),
			Parameters: json.RawMessage(`{"type": "object", "properties": {"pattern": {"type": "string"}, "path": {"type": "string"}}}`),
		})
	}
	for b.Loop() {
		promptSize(&envelope, token.O200k())
	}
}
