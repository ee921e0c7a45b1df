package thinktag_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/model/modeltest"
	"github.com/continuo-log/continuo/model/thinktag"
)

// pieces cuts a text at random places into the steps of an answer.
func pieces(random *rand.Rand, text string) (steps []modeltest.Step) {
	for len(text) > 0 {
		n := 1 + random.IntN(min(len(text), 1+random.IntN(12)))
		steps, text = append(steps, modeltest.Text(text[:n])), text[n:]
	}
	return steps
}

// play adds an answer up.
func play(t *testing.T, steps []modeltest.Step) (entry continuo.Entry, events []string) {
	t.Helper()
	var answer model.Answer
	var failed error
	for delta, err := range thinktag.New(&modeltest.Script{Answers: [][]modeltest.Step{steps}}).Stream(t.Context(), nil) {
		if err != nil {
			failed = err
			break
		}
		answer.Add(delta)
		if delta.Text != "" {
			events = append(events, "text")
		}
		if delta.Reasoning != "" {
			events = append(events, "reasoning")
		}
	}
	return answer.Entry(failed), events
}

func TestInlineThinkingIsReasoning(t *testing.T) {
	for text, want := range map[string][2]string{
		"<think>Let me see.</think>\n\nIt is 4.":          {"Let me see.", "It is 4."},
		"\n <think>\nLet me see.\n</think>It is 4.":       {"\nLet me see.\n", "It is 4."},
		"<thinking>a < b, </think> no</thinking>It is 4.": {"a < b, </think> no", "It is 4."},
		"<think>one</think> <think>two</think>\nIt is 4.": {"onetwo", "It is 4."},
		"<THINK>a</Think>It is 4.":                        {"a", "It is 4."},
		"<think></think>\n\nIt is 4.":                     {"", "It is 4."},
		"<think>only this</think>":                        {"only this", ""},
		"It is 4.":                                        {"", "It is 4."},
		"  It is 4.":                                      {"", "  It is 4."},
		"<thinker>It is 4.":                               {"", "<thinker>It is 4."},
		"<thi":                                            {"", "<thi"},
		"The tag <think> begins it, </think> ends it.":    {"", "The tag <think> begins it, </think> ends it."},
		"<think>a</think>Write <think>b</think> for it.":  {"a", "Write <think>b</think> for it."},
		"`<think>` is a tag.":                             {"", "`<think>` is a tag."},
		"<think>The tag is not closed. It is 4.":          {"The tag is not closed. It is 4.", "The tag is not closed. It is 4."},
		"<think>żółć 考える " + strings.Repeat("<", 50) + "</think>It is 4": {"żółć 考える " + strings.Repeat("<", 50), "It is 4"},
	} {
		for seed := range uint64(40) {
			steps := append(pieces(rand.New(rand.NewPCG(seed, 1)), text), modeltest.Finish())
			entry, _ := play(t, steps)
			reasoning := ""
			if entry.Reasoning != nil {
				reasoning = entry.Reasoning.Text
			}
			if reasoning != want[0] || entry.Content.String() != want[1] || entry.Error != nil {
				t.Fatalf("%q cut by seed %d: reasoning %q, content %q, %v", text, seed, reasoning, entry.Content.String(), entry.Error)
			}
		}
	}
}

func TestThinkingThatWasCutOffStaysThinking(t *testing.T) {
	length := modeltest.Step{Delta: model.Delta{Finish: "length"}}
	call := modeltest.Step{Delta: model.Delta{ToolCall: &model.ToolCallDelta{ID: "a", Type: "function", Name: "f", Arguments: "{}", Done: true}}}
	for name, end := range map[string][]modeltest.Step{
		"by the limit of tokens":    {length},
		"by a failure":              {modeltest.Fails(continuo.ReasonNetwork)},
		"by a call":                 {call, {Delta: model.Delta{Finish: "tool_calls"}}},
		"by a call that just stops": {call, modeltest.Finish()},
	} {
		entry, _ := play(t, append([]modeltest.Step{modeltest.Text("<think>Let me s"), modeltest.Text("ee.</thi")}, end...))
		if entry.Reasoning == nil || entry.Reasoning.Text != "Let me see.</thi" || !entry.Content.IsEmpty() {
			t.Errorf("%s: %+v, %q", name, entry.Reasoning, entry.Content.String())
		}
	}
}

// Nothing is held back longer than it could be a tag.
func TestTheAnswerStreams(t *testing.T) {
	_, events := play(t, []modeltest.Step{modeltest.Text("<think>"), modeltest.Text("a"), modeltest.Text("b"), modeltest.Text("</think>"), modeltest.Text("c"), modeltest.Text("d"), modeltest.Finish()})
	if got := strings.Join(events, " "); got != "reasoning reasoning text text" {
		t.Errorf("events: %s", got)
	}
}

func TestItIsAModel(t *testing.T) {
	body := []byte(`{"messages":[{"role":"user","content":"hello there"}]}`)
	modeltest.RunModel(t, thinktag.New(demo.New(demo.Options{})), body)
}
