package window

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// sizedUnits are units of many kinds of entries, with the counts that the log makes at append.
func sizedUnits(counter continuo.Counter) []*Unit {
	image := continuo.Part{Type: "image_url", Raw: json.RawMessage(`{"type":"image_url","image_url":{"url":"data:,"}}`)}
	var units []*Unit
	add := func(entries ...continuo.Entry) {
		u := &Unit{Group: len(entries[0].ToolCalls) > 0}
		for i := range entries {
			e := &entries[i]
			e.Seq = int64(len(units)*10 + i + 1)
			size := continuo.Measure(e.Content, e.ToolCalls, counter)
			e.Chars, e.Tokens, e.Tokenizer = size.Chars, size.Tokens, counter.Name()
			u.Entries = append(u.Entries, e)
		}
		units = append(units, u)
	}
	for _, length := range []int{0, 1, 40, 60, 70, 90, 110, 290, 340, 500, 2000} {
		for _, letter := range []string{"w ", "é", "水"} {
			text := strings.Repeat(letter, length)
			add(continuo.Entry{Role: continuo.User, Content: continuo.Text(text), Name: "Ada L."})
			add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(text), Error: &continuo.TurnError{Code: continuo.LLMError, Reason: continuo.ReasonTimeout}})
			for _, content := range []continuo.Content{
				continuo.Text(text), continuo.Parts(continuo.TextPart(text)), continuo.Parts(continuo.TextPart(text), image), continuo.Parts(image),
			} {
				call := continuo.FunctionCall("c", "search", fmt.Sprintf(`{"q":%q}`, text))
				result := continuo.Entry{Role: continuo.Tool, ToolCallID: "c", Content: content, OutputRef: "@state/logs/tool-results/é.json", Name: strings.Repeat("n", length%3)}
				add(continuo.Entry{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{call}}, result)
				if !content.IsText() {
					continue
				}
				result.Output = &continuo.Output{Chars: 100 * length, Bytes: int64(100 * length), Lines: 1, Head: len(text) / 2, Tail: len(text) / 3}
				result.Content = continuo.Text("TOOL_RESULT_PREVIEW\n" + text)
				add(continuo.Entry{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{call}}, result)
			}
		}
	}
	return units
}

// A size that is taken from the counts made at append is that of the messages, and the bounds of a line are around it.
func TestStoredSizesAreThoseOfTheMessages(t *testing.T) {
	counter := continuo.RoughCounter{}
	views := []View{{}, {ToolOutputChars: 400, PreviewChars: 20}, {ToolOutputChars: 50, PreviewChars: 20}, {OmitToolResults: true, PreviewChars: 20}}
	stored := 0
	for _, view := range views {
		s := &shaper{view: view, counter: counter}
		for _, u := range sizedUnits(counter) {
			for level := range Level(levels) {
				fresh := *u
				size, known := fresh.storedSize(s, level)
				if shaped := fresh.at(s, level).Size; known && size != shaped {
					t.Fatalf("%+v: entry %d at level %d: stored %+v, shaped %+v", view, u.First(), level, size, shaped)
				}
				if known {
					stored++
				}
			}
			line := u.at(s, Line).Size
			least, most, ok := s.lineBounds(u)
			if ok && (least.Messages != line.Messages || least.Chars > line.Chars || least.Tokens > line.Tokens || most.Chars < line.Chars || most.Tokens < line.Tokens) {
				t.Fatalf("%+v: entry %d: the line is %+v, the bounds are %+v and %+v", view, u.First(), line, least, most)
			}
		}
	}
	if stored == 0 {
		t.Error("no stored size was used")
	}
}

// The sum of lines names the same limit as the exact sum.
func TestALineSumComparesExactly(t *testing.T) {
	counter := continuo.RoughCounter{}
	s := &shaper{view: View{ToolOutputChars: 400, PreviewChars: 20}, counter: counter}
	for limit := 1; limit < 20_000; limit = limit*3/2 + 1 {
		for _, limits := range []Limits{{Messages: limit / 100}, {Chars: limit}, {Tokens: limit}, {Messages: limit / 100, Chars: limit, Tokens: limit / 4}} {
			sum, exact := lineSum{shaper: s}, continuo.Size{}
			for _, u := range sizedUnits(counter) {
				exact = exact.Add(u.at(s, Line).Size)
				fresh := *u
				fresh.shapes, fresh.sizes = [levels]*Shape{}, [levels]continuo.Size{}
				sum.add(&fresh)
				if got, want := sum.exceeds(limits), limits.Exceeded(exact); got != want {
					t.Fatalf("%+v: exceeds %q, want %q for %+v", limits, got, want, exact)
				}
			}
			if sum.exact() != exact {
				t.Fatalf("the sum is %+v, want %+v", sum.exact(), exact)
			}
		}
	}
}
