package demo_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/internal/rawjson"
)

func system(text string) object { return object{"role": "system", "content": text} }

// stepOf is the system messages of a step with some brief, and the list of its outputs, which may be empty.
func stepOf(visit, brief, outputs string) []object {
	if outputs != "" {
		outputs = "\n\nOUTPUTS\nEnd your answer with one JSON object in a fenced block (```json), with these fields:\n" + outputs
	}
	return []object{
		system("You carry out one step of a workflow."),
		system("MODE\n- active: run\n- note: history may include other modes; follow current instructions."),
		system("RUN_DIRECTIVE\n- workflow: report (Write a report)\n- run: run_1\n- step: draft (Draft it)\n- visit: " + visit + "\n- note: carry out this step only."),
		system("NODE_BRIEF\n" + brief + "\n\nSUCCESS_CRITERIA\n- call get_time is no part of the brief" + outputs),
		system("STEP_CONTEXT\ninputs:\n- readers: 3\n- topic: \"tea: green\"\noutputs of earlier steps:\n- plan: {\"n\":1,\"title\":\"On tea\"}\n- facts: {\"list\":[\"warm\",\"pot\"]}"),
	}
}

const begins = "Step draft (Draft it), visit 1, of run_1: "

// outputsOf reads the object that an answer ends with.
func outputsOf(t *testing.T, text string) map[string]any {
	t.Helper()
	_, block, _ := strings.Cut(text, "\n\n```json\n")
	block, closed := strings.CutSuffix(block, "\n```")
	var outputs map[string]any
	if err := json.Unmarshal([]byte(block), &outputs); err != nil || !closed {
		t.Fatalf("the answer does not end with a fenced object: %v\n%s", err, text)
	}
	return outputs
}

func TestStep(t *testing.T) {
	answer, entry := answer(t, body(append(stepOf("1", "Write.\nOUTPUTS\nas a list.", ""), user("Carry out the step."))...))
	want := begins + honest + " I was shown 1 message and 5 system messages. Inputs: readers, topic. Outputs of earlier steps: plan, facts." +
		" The newest that I was shown: “warm”"
	if got := entry.Content.String(); got != want || answer.Finish() != "stop" {
		t.Errorf("finish %s, got\n%s\nwant\n%s", answer.Finish(), got, want)
	}
}

func TestStepOutputs(t *testing.T) {
	const asked = "- text (string): the (whole) text, one of \"these\"\n- verdict (string, one of \"redo\", \"a, \\\"b\\\")\", \"go\"): whether\n" +
		"- score (number, optional): how good\n- visits (integer): how often\n- done (boolean)\n- list (array): of it\n- more (object, optional): and so on"
	const text = `text, made up by the demo model of facts: “warm”`
	tests := []struct{ visit, want string }{
		{"1", `{"done":false,"list":["list, made up by the demo model of facts: “warm”","list, made up by the demo model of plan: “On tea”"],` +
			`"more":{"count":1,"text":"more, made up by the demo model of facts: “warm”"},"score":1,"text":"` + text + `","verdict":"redo","visits":1}`},
		{"3", `{"done":true,"list":["list, made up by the demo model of facts: “warm”","list, made up by the demo model of plan: “On tea”"],` +
			`"more":{"count":3,"text":"more, made up by the demo model of facts: “warm”"},"score":3,"text":"` + text + `","verdict":"go","visits":3}`},
	}
	for _, test := range tests {
		_, entry := answer(t, body(append(stepOf(test.visit, "Write.", asked), user("Carry out the step."))...))
		if got := string(rawjson.MustMarshal(outputsOf(t, entry.Content.String()))); got != test.want {
			t.Errorf("visit %s: got\n%s\nwant\n%s", test.visit, got, test.want)
		}
	}
}

// A brief may have lines like the titles of the parts that stand behind it, and with nothing else to quote it is quoted.
func TestStepBriefIsWhole(t *testing.T) {
	const brief = "List these:\nOUTPUTS\n- one (string)\n\nthen call get_time {}"
	messages := append(stepOf("1", brief, "- list (array)")[:4], user("Carry out the step."))
	_, entry := answer(t, body(messages...))
	if len(entry.ToolCalls) != 1 {
		t.Errorf("the end of the brief was not read: %s", entry.Content)
	}
	messages = append(stepOf("1", "Write.", "- list (array)")[:4], user("Carry out the step."))
	_, entry = answer(t, body(messages...))
	if got := string(rawjson.MustMarshal(outputsOf(t, entry.Content.String()))); got != `{"list":["list, made up by the demo model of the brief: “Write.”"]}` {
		t.Errorf("got %s", got)
	}
}

// What was made up is not made up of once more: the quotation stays, and nothing in it closes the block.
func TestStepQuotesDoNotNest(t *testing.T) {
	messages := []object{
		system("NODE_BRIEF\nGo on.\n\nOUTPUTS\nEnd:\n- text (string)"),
		system("STEP_CONTEXT\ninputs: none\noutputs of earlier steps:\n- a: {\"text\":\"text, made up by the demo model of topic: “```tea”\"}"),
		user("Go."),
	}
	_, entry := answer(t, body(messages...))
	if got := outputsOf(t, entry.Content.String())["text"]; got != "text, made up by the demo model of a: “'''tea”" {
		t.Errorf("got %q", got)
	}
}

// toolRound is an answer of the model with a call, and its result.
func toolRound(text, result string) []object {
	return []object{
		{"role": "assistant", "content": text, "tool_calls": []object{{"id": "c1", "type": "function", "function": object{"name": "get_time", "arguments": "{}"}}}},
		{"role": "tool", "tool_call_id": "c1", "content": result},
	}
}

func TestStepCalls(t *testing.T) {
	const asks = begins + "As its brief asks, I call get_time."
	step := append(stepOf("1", "Please use get_time {}, then write.", "- text (string): it"), user("Carry out the step."))
	other := append(append(step[:5:5], toolRound("Step plan (Plan it), visit 1, of run_1: As its brief asks, I call get_time.", "noon")...), user("Carry out the step."))
	done := append(step[:6:6], toolRound(asks, "one o'clock")...)
	again := append(append(done[:8:8], user("Go on.")), toolRound("", "two o'clock")...)
	again[len(again)-2]["tool_calls"].([]object)[0]["id"], again[len(again)-1]["tool_call_id"] = "c2", "c2"
	tests := []struct {
		name     string
		messages []object
		want     string // what the text output quotes; "" where calls must be made
	}{
		{"at first it calls", step, ""},
		{"the calls of another step are not its own", other, ""},
		{"after the result it answers", done, "one o'clock"},
		{"a turn that goes on does not call again", append(done[:8:8], assistant(begins+honest+"\n\nLLM_ERROR reason=interrupted retryable=true"), user("Go on.")), "one o'clock"},
		{"calls that the program made again are its own", append(again, assistant("LLM_ERROR reason=network retryable=true"), user("Go on.")), "two o'clock"},
		{"a call that broke off is made", append(step[:6:6], assistant(begins+"As its\n\nLLM_ERROR reason=interrupted retryable=true"), user("Go on.")), ""},
	}
	for _, test := range tests {
		answer, entry := answer(t, body(test.messages...))
		text := entry.Content.String()
		if test.want == "" {
			if len(entry.ToolCalls) != 1 || entry.ToolCalls[0].Name != "get_time" || text != asks || answer.Finish() != "tool_calls" {
				t.Errorf("%s: %d calls, finish %s, %s", test.name, len(entry.ToolCalls), answer.Finish(), text)
			}
			continue
		}
		if got := outputsOf(t, text)["text"]; got != "text, made up by the demo model of get_time: “"+test.want+"”" || len(entry.ToolCalls) > 0 {
			t.Errorf("%s: %d calls, got %v", test.name, len(entry.ToolCalls), got)
		}
	}
	if _, entry := answer(t, body(append(stepOf("2", "Please use get_time {}.", ""), done[5:]...)...)); len(entry.ToolCalls) > 0 {
		t.Error("the results that a request ends with were not taken")
	}
	next := append(append(stepOf("2", "Please use get_time {}.", ""), done[5:]...), user("Carry out the step."))
	if _, entry := answer(t, body(next...)); len(entry.ToolCalls) != 1 {
		t.Error("a later visit did not make its calls")
	}
}

// An answer that was refused is answered as a visit later, and without calling again.
func TestStepRefused(t *testing.T) {
	messages := append(stepOf("1", "Use get_time {}.", "- done (boolean): whether\n- n (integer)"), user("Carry out the step."))
	messages = append(messages, toolRound(begins+"As its brief asks, I call get_time.", "noon")...)
	_, first := answer(t, body(messages...))
	if outputs := outputsOf(t, first.Content.String()); outputs["done"] != false || outputs["n"] != 1.0 {
		t.Errorf("the first answer has %v", outputs)
	}
	messages = append(messages, assistant(first.Content.String()), user("The check outputs.done does not hold."))
	_, second := answer(t, body(messages...))
	if outputs := outputsOf(t, second.Content.String()); outputs["done"] != true || outputs["n"] != 2.0 || len(second.ToolCalls) > 0 {
		t.Errorf("the second answer has %v and %d calls", outputs, len(second.ToolCalls))
	}
	if text := second.Content.String(); !strings.Contains(text, "I was told of my answer before: “The check outputs.done does not hold.”") {
		t.Errorf("it does not tell what it was told:\n%s", text)
	}
}

// An interrupted answer is continued from any point: together the pieces are the answer that did not break off.
func TestStepContinues(t *testing.T) {
	messages := append(stepOf("1", "Write.", "- draft (string): it"), user("Carry out the step."))
	_, entry := answer(t, body(messages...))
	whole := entry.Content.String()
	for _, at := range []int{len(begins) + 1, len(begins) + 10, len(whole) - 20} {
		pieces := []string{whole[:at]}
		broken := append(messages[:6:6], assistant(pieces[0]+"\n\nLLM_ERROR reason=interrupted retryable=true"), user("Go on."))
		_, next := answer(t, body(broken...))
		second := next.Content.String()
		pieces = append(pieces, second[:len(second)/2])
		broken = append(broken, assistant(pieces[1]+"\n\nLLM_ERROR reason=network retryable=true"), user("Go on."))
		_, next = answer(t, body(broken...))
		pieces = append(pieces, next.Content.String())
		if got := strings.Join(pieces, ""); got != whole {
			t.Errorf("broken off after %d bytes and again, the pieces are\n%q\nwant\n%q", at, pieces, whole)
		}
		refused := append(broken, assistant(pieces[2]), user("Your answer is not enough."))
		if _, corrected := answer(t, body(refused...)); !strings.Contains(corrected.Content.String(), "as I would 1 visit later") {
			t.Errorf("an answer in pieces that was refused is not corrected:\n%s", corrected.Content)
		}
	}
}

// What a step said in an earlier visit is not what it makes its outputs of.
func TestStepDoesNotQuoteItself(t *testing.T) {
	messages := append(stepOf("2", "Write.", "- more (string)"), user("Carry out the step."))
	messages[4] = system("STEP_CONTEXT\ninputs: none\noutputs of earlier steps:\n- plan: {\"title\":\"On tea\"}\n- draft: {\"more\":\"less\"}")
	_, entry := answer(t, body(messages...))
	if got := outputsOf(t, entry.Content.String())["more"]; got != "more, made up by the demo model of plan: “On tea”" {
		t.Errorf("got %q", got)
	}
}

// An input that an earlier step gave is nearer than what others gave later; a number is never taken for such a one.
func TestStepQuotesWhatItWasGiven(t *testing.T) {
	messages := append(stepOf("1", "Write.", "- more (string)"), user("Carry out the step."))
	messages[4] = system("STEP_CONTEXT\ninputs:\n- readers: 3\n- asked: [\"why\",\"how\"]\noutputs of earlier steps:\n- plan: {\"n\":3,\"questions\":[\"why\",\"how\"]}\n- recall: {\"found\":[\"tea\"]}")
	_, entry := answer(t, body(messages...))
	if got := outputsOf(t, entry.Content.String())["more"]; got != "more, made up by the demo model of asked: “why”" {
		t.Errorf("got %q", got)
	}
}

// What looks like a step but is not written as one is passed over, and answered all the same.
func TestStepOfSomeOtherForm(t *testing.T) {
	for _, texts := range [][]string{
		{"NODE_BRIEF"},
		{"NODE_BRIEF\n\nOUTPUTS\n- x (string, one of \"a\n- (string)\n- y"},
		{"STEP_CONTEXT\ninputs: none\n- a: b\noutputs of earlier steps: none", "RUN_DIRECTIVE\n- visit: -1\n- step", "NODE_BRIEF\nWrite."},
		{"RUN_DIRECTIVE\n- visit: many", "NODE_BRIEF\nWrite."},
	} {
		var messages []object
		for _, text := range texts {
			messages = append(messages, system(text))
		}
		if _, entry := answer(t, body(messages...)); !strings.HasPrefix(entry.Content.String(), "Step , visit 1, of : ") || !strings.Contains(entry.Content.String(), "Inputs: none.") {
			t.Errorf("%q: got %q", texts, entry.Content)
		}
	}
	if _, entry := answer(t, body(system("MODE\n- active: run"), user("NODE_BRIEF"))); !strings.HasPrefix(entry.Content.String(), honest) {
		t.Errorf("without a brief: %q", entry.Content)
	}
}
