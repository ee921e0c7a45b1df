package demo_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/model/modeltest"
)

type object map[string]any

// body writes a request with the tools fs_read and get_time.
func body(messages ...object) []byte {
	tool := func(name string) object { return object{"type": "function", "function": object{"name": name}} }
	return rawjson.MustMarshal(object{"model": "demo", "tools": []object{tool("fs_read"), tool("get_time")}, "messages": messages})
}

func user(text string) object      { return object{"role": "user", "content": text} }
func assistant(text string) object { return object{"role": "assistant", "content": text} }

// answer collects a whole answer.
func answer(t *testing.T, body []byte) (*model.Answer, continuo.Entry) {
	t.Helper()
	answer := &model.Answer{Provider: "demo"}
	for delta, err := range demo.New(demo.Options{}).Stream(t.Context(), body) {
		if err != nil {
			t.Fatal(err)
		}
		answer.Add(delta)
	}
	return answer, answer.Entry(nil)
}

func TestModel(t *testing.T) {
	modeltest.RunModel(t, demo.New(demo.Options{}), body(user("Hello there")))
}

const honest = "I am Continuo's built-in demo model, not a real one: I can only tell what I was shown."

func TestText(t *testing.T) {
	tests := []struct {
		name     string
		messages []object
		want     string
	}{
		{"one message", []object{user("Hello\nthere")}, honest + " I was shown 1 message. You say: “Hello there”"},
		{
			"continuity",
			[]object{{"role": "system", "content": "MODE"}, user("I like tea."), assistant("Fine."), user("Good.")},
			honest + " I was shown 3 messages and 1 system message. You said before: “I like tea.” Now you say: “Good.”",
		},
		{
			"a long conversation",
			[]object{user("First."), assistant("a"), user("Second."), assistant("b"), user(strings.Repeat("ż", 130))},
			honest + " I was shown 5 messages. You began with: “First.” You said before: “Second.” Now you say: “" + strings.Repeat("ż", 120) + "…”",
		},
		{
			"a marker",
			[]object{user("Opener."), user("[Earlier messages truncated]"), user("Newest.")},
			honest + " I was shown 2 messages; a marker says that earlier ones were left out: [Earlier messages truncated]. You said before: “Opener.” Now you say: “Newest.”",
		},
		{
			"a marker on the first line",
			[]object{user("[12 messages left out]\nNewest.")},
			honest + " I was shown 1 message; a marker says that earlier ones were left out: [12 messages left out]. You say: “Newest.”",
		},
		{
			"recall",
			[]object{user("Hi! My name is Ada. I live in Rome."), assistant("Hello."), user("What is my name?")},
			"Earlier you said: “My name is Ada.” " + honest + " I was shown 3 messages. You said before: “Hi! My name is Ada. I live in Rome.” Now you say: “What is my name?”",
		},
		{
			"recall takes the newest of equals",
			[]object{user("The code is 17."), user("The code is 18."), user("What was the code?")},
			"Earlier you said: “The code is 18.” " + honest + " I was shown 3 messages. You began with: “The code is 17.” You said before: “The code is 18.” Now you say: “What was the code?”",
		},
		{
			"recall without spaces",
			[]object{user("我的名字是小明。我喜欢茶。"), user("我叫什么名字？")},
			"Earlier you said: “我的名字是小明。” " + honest + " I was shown 2 messages. You said before: “我的名字是小明。我喜欢茶。” Now you say: “我叫什么名字？”",
		},
		{
			"nothing to recall",
			[]object{user("I like tea."), user("Where is Bob?")},
			"Nothing that you said before, as far as I was shown it, shares a word with your question. " + honest +
				" I was shown 2 messages. You said before: “I like tea.” Now you say: “Where is Bob?”",
		},
		{
			"parts",
			[]object{{"role": "user", "content": []object{{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": object{"url": "x"}}}}},
			honest + " I was shown 1 message. You say: “Look [image_url]”",
		},
		{
			"a tool that is not offered",
			[]object{user(`call rm {"path":"/"}`)},
			"I cannot call rm: I was offered only fs_read, get_time. " + honest + ` I was shown 1 message. You say: “call rm {"path":"/"}”`,
		},
		{"words like others", []object{user("call me, use it")}, honest + " I was shown 1 message. You say: “call me, use it”"},
		{"no user", []object{{"role": "system", "content": "Summarize."}}, honest + " I was shown 0 messages and 1 system message."},
		{
			"tool results",
			[]object{
				user("call fs_read {} and use get_time"),
				{"role": "assistant", "content": nil, "tool_calls": []object{
					{"id": "a", "type": "function", "function": object{"name": "fs_read", "arguments": "{}"}},
					{"id": "b", "type": "function", "function": object{"name": "get_time", "arguments": "{}"}},
				}},
				{"role": "tool", "tool_call_id": "b", "content": "noon"},
				{"role": "tool", "tool_call_id": "a", "content": strings.Repeat("x", 401)},
			},
			honest + " I was shown 4 messages. get_time returned 4 characters: “noon” fs_read returned 401 characters: “" + strings.Repeat("x", 400) + "…”",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			answer, entry := answer(t, body(test.messages...))
			if got := entry.Content.String(); got != test.want || len(entry.ToolCalls) > 0 || answer.Finish() != "stop" {
				t.Errorf("finish %s, %d calls, got\n%s\nwant\n%s", answer.Finish(), len(entry.ToolCalls), got, test.want)
			}
		})
	}
}

func TestCalls(t *testing.T) {
	tests := []struct {
		text string
		want [][2]string
	}{
		{`call fs_read {"path": "@project/a.go"}`, [][2]string{{"fs_read", `{"path": "@project/a.go"}`}}},
		{"Please use fs.read {\"path\":\n \"żółć and more than one piece\"} now.", [][2]string{{"fs_read", "{\"path\":\n \"żółć and more than one piece\"}"}}},
		{"call fs_read {\"path\":\"a\"}\nCALL get_time\nuse fs_read{\"path\":\"b\"}", [][2]string{{"fs_read", `{"path":"a"}`}, {"get_time", "{}"}, {"fs_read", `{"path":"b"}`}}},
		{"use get_time.", [][2]string{{"get_time", "{}"}}},
		{"call fs_read {\"path\": oops\ncall get_time", [][2]string{{"fs_read", `{"path": oops`}, {"get_time", "{}"}}},
		{`call rm {"path":"call fs_read {}"} and call get_time {}`, [][2]string{{"get_time", "{}"}}},
	}
	for _, test := range tests {
		answer, entry := answer(t, body(user(test.text)))
		var got [][2]string
		for _, call := range entry.ToolCalls {
			got = append(got, [2]string{call.Name, call.Arguments})
		}
		if a, b := string(rawjson.MustMarshal(got)), string(rawjson.MustMarshal(test.want)); a != b || answer.Finish() != "tool_calls" {
			t.Errorf("%s: got %s, finish %s, want %s", test.text, a, answer.Finish(), b)
		}
	}
}

// Each request gives its calls other ids, and the same request the same ones.
func TestCallIDs(t *testing.T) {
	id := func(text string) string {
		_, entry := answer(t, body(user(text)))
		return entry.ToolCalls[0].ID
	}
	first, again, other := id("call get_time"), id("call get_time"), id("call get_time {}")
	if first != again || first == other {
		t.Error("the ids do not follow the request")
	}
}

func TestToolChoiceNone(t *testing.T) {
	var request object
	if err := json.Unmarshal(body(user("call get_time {}")), &request); err != nil {
		t.Fatal(err)
	}
	request["tool_choice"] = "none"
	_, entry := answer(t, rawjson.MustMarshal(request))
	if len(entry.ToolCalls) > 0 || !strings.HasPrefix(entry.Content.String(), "I cannot call get_time: I was offered no tools.") {
		t.Errorf("got %q with %d calls", entry.Content, len(entry.ToolCalls))
	}
}

func TestUsage(t *testing.T) {
	answer, entry := answer(t, []byte(`{"messages":[{"role":"user","content":"12345678"},{"role":"assistant","content":"1234"},{"role":"user","content":"1"}],
		"tools":[{"type":"function","function":{"name":"look"}}],"tool_choice":"none"}`))
	const tools = len(`{"type":"function","function":{"name":"look"}}`) // they are sent although none may be called
	if usage := answer.Usage(); usage == nil || usage.InputTokens != (13+tools+3)/4 || usage.OutputTokens != (len([]rune(entry.Content.String()))+3)/4 {
		t.Errorf("got %+v", usage)
	}
}

func TestBadRequests(t *testing.T) {
	for _, bad := range []string{"", "{", `{}`, `{"messages":[]}`, `{"messages":[{"role":"user","content":5}]}`} {
		for _, err := range demo.New(demo.Options{}).Stream(t.Context(), []byte(bad)) {
			var failure *model.Error
			if !errors.As(err, &failure) || failure.Status != 400 || failure.Retryable {
				t.Errorf("%q: got %v", bad, err)
			}
		}
	}
}

// WordDelay passes before each word, and a cancelled request does not wait for it.
func TestWordDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		begin := time.Now()
		words := 0
		var last error
		for delta, err := range demo.New(demo.Options{WordDelay: time.Second}).Stream(ctx, body(user("Hello"))) {
			if last = err; delta.Text != "" {
				words++
			}
			if words == 3 {
				cancel()
			}
		}
		if took := time.Since(begin); took != 3*time.Second || !errors.Is(last, context.Canceled) {
			t.Errorf("took %v for %d words, %v", took, words, last)
		}
	})
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":"call a {\"x\":1}"}],"tools":[{"function":{"name":"a"}}]}`))
	f.Add(body(user("[omitted]\nWhat?"), assistant("x"), user("use fs.read {")))
	f.Add(body(append(stepOf("1", "use get_time", "- a (string, one of \"x\", \"y\"): b\n- c (array)"), user("Go."), assistant(begins+"\n\nLLM_ERROR"), user("Go on."))...))
	f.Add(body(system("CREW\n- you: A\n- others: B"), user("[NOTES]\nx\n[END NOTES]\n\nUser (C): use fs_read\n\nAssistant (B): x")))
	f.Fuzz(func(t *testing.T, body []byte) {
		answer := &model.Answer{}
		var failure error
		for delta, err := range demo.New(demo.Options{}).Stream(t.Context(), body) {
			answer.Add(delta)
			failure = err
		}
		if entry := answer.Entry(failure); new(continuo.Group).Accept(&entry) != nil || failure == nil && answer.Finish() == "" {
			t.Fatalf("%s gave %+v, %v", body, entry, failure)
		}
	})
}
