package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/window"
)

func user(text string) window.Message {
	return window.Message{Role: continuo.User, Content: continuo.Text(text)}
}

func assistant(text string, calls ...continuo.ToolCall) window.Message {
	return window.Message{Role: continuo.Assistant, Content: continuo.Text(text), ToolCalls: calls}
}

func result(id, text string) window.Message {
	return window.Message{Role: continuo.Tool, ToolCallID: id, Content: continuo.Text(text)}
}

func call(id string) continuo.ToolCall { return continuo.FunctionCall(id, "f", "{}") }

// openAI renders messages and returns them as text, one to a line.
func openAI(t *testing.T, o Options, messages ...window.Message) string {
	t.Helper()
	rendered, err := OpenAIChat(messages, o)
	if err != nil {
		t.Fatal(err)
	}
	return lines(rendered)
}

func anthropicText(t *testing.T, o Options, messages ...window.Message) string {
	t.Helper()
	rendered, _, err := Anthropic(messages, o)
	if err != nil {
		t.Fatal(err)
	}
	return lines(rendered)
}

func lines(messages []json.RawMessage) string {
	var text strings.Builder
	for _, raw := range messages {
		text.Write(raw)
		text.WriteByte('\n')
	}
	return text.String()
}

func expect(t *testing.T, got string, want ...string) {
	t.Helper()
	if all := strings.Join(want, "\n") + "\n"; got != all {
		t.Errorf("got\n%swant\n%s", got, all)
	}
}

// A cut group is refused, and the message named.
func TestBrokenGroupsAreRefused(t *testing.T) {
	for problem, messages := range map[string][]window.Message{
		`message 1 (tool, seq 0): it answers "x", which is no open call`:        {user("a"), result("x", "r")},
		`message 2 (tool, seq 0): it answers "y", which is no open call`:        {user("a"), assistant("", call("x")), result("y", "r")},
		`message 3 (tool, seq 0): it answers "x", which is no open call`:        {user("a"), assistant("", call("x")), result("x", "r"), result("x", "r")},
		`message 3 (user, seq 0): the calls ["y"] before it have no result`:     {user("a"), assistant("", call("x"), call("y")), result("x", "r"), user("b")},
		`message 1 (assistant, seq 0): the calls ["x"] have no result`:          {user("a"), assistant("", call("x"))},
		`message 0 (assistant, seq 0): two of its calls have the id "x"`:        {assistant("", call("x"), call("x"))},
		`message 0 (function, seq 0): its role is not one of system, user, ass`: {{Role: "function"}},
	} {
		_, err := OpenAIChat(messages, Options{})
		_, _, err2 := Anthropic(messages, Options{})
		for _, err := range []error{err, err2} {
			if !errors.Is(err, continuo.ErrInvalid) || !strings.Contains(err.Error(), problem) {
				t.Errorf("got %v, want an error that says %s", err, problem)
			}
		}
	}
}

func TestNothingToSendIsRefused(t *testing.T) {
	silent := window.Message{Role: continuo.Assistant, Content: continuo.Null()}
	for _, write := range []func(continuo.Envelope, []window.Message, Options) ([]byte, error){OpenAIChatRequest, AnthropicRequest} {
		if body, err := write(continuo.Envelope{System: []string{"s"}}, []window.Message{silent}, Options{}); !errors.Is(err, continuo.ErrInvalid) {
			t.Errorf("got %s, %v; want an error", body, err)
		}
	}
}

func TestToolsOfOneNameAreRefused(t *testing.T) {
	env := continuo.Envelope{Tools: []continuo.ToolSpec{{Name: "fs.read"}, {Name: "fs_read"}}}
	for _, write := range []func(continuo.Envelope, []window.Message, Options) ([]byte, error){OpenAIChatRequest, AnthropicRequest} {
		if _, err := write(env, []window.Message{user("a")}, Options{}); err == nil || !strings.Contains(err.Error(), `"fs.read" and "fs_read" are both named fs_read`) {
			t.Errorf("got %v, want an error that names both", err)
		}
	}
}

func TestToolName(t *testing.T) {
	long := strings.Repeat("n", 65)
	for name, want := range map[string]string{
		"get_weather-2": "get_weather-2", "fs.read": "fs_read", "погода": "______", "": "tool",
		long[:64]: long[:64], long: long[:55] + "_" + ToolName(long)[56:],
	} {
		if got := ToolName(name); got != want || len(got) > 64 {
			t.Errorf("ToolName(%q) = %q, want %q", name, got, want)
		}
	}
	if ToolName(long+"a") == ToolName(long+"b") {
		t.Error("two long names became one")
	}
}

// The name of the limit is the one that the provider takes; without a limit there is none.
func TestOpenAILimitOfTheAnswer(t *testing.T) {
	for _, c := range []struct {
		provider string
		limit    int
		want     string
	}{
		{"openai", 10, `"max_completion_tokens":10`},
		{"ollama", 10, `"max_tokens":10`},
		{"ollama", 0, ""},
	} {
		body, err := OpenAIChatRequest(continuo.Envelope{Model: "m", MaxOutputTokens: c.limit}, []window.Message{user("a")}, Options{Provider: c.provider})
		if err != nil {
			t.Fatal(err)
		}
		if c.want == "" && strings.Contains(string(body), "max_") || !strings.Contains(string(body), c.want) {
			t.Errorf("%s with %d: %s", c.provider, c.limit, body)
		}
	}
}

func TestOpenAICallIDsStayUnlessTooLong(t *testing.T) {
	long := strings.Repeat("i", 41)
	m := assistant("", call("a b"), call(long))
	got := openAI(t, Options{Provider: "p"}, m, result(long, "r"), result("a b", "r"))
	if strings.Contains(got, long) || strings.Count(got, `"`+long[:31]+"_") != 2 || strings.Count(got, `"a b"`) != 2 {
		t.Errorf("ids in\n%s", got)
	}
	m.Entry = &continuo.Entry{Vendor: map[string]json.RawMessage{"p": json.RawMessage(`{}`)}}
	if got := openAI(t, Options{Provider: "p"}, m, result(long, "r"), result("a b", "r")); strings.Count(got, `"`+long+`"`) != 2 {
		t.Errorf("the provider's own id was changed in\n%s", got)
	}
}

// A provider gets back what is its own, and nothing of another's.
func TestOpenAIVendorDataGoesToItsProviderOnly(t *testing.T) {
	own := call("a")
	own.Extra = json.RawMessage(`{"extra_content":{"s":1}}`)
	m := assistant("x", own)
	m.Entry = &continuo.Entry{
		Vendor: map[string]json.RawMessage{"p": json.RawMessage(`{"reasoning_content":"<hm>","content":"not this"}`)},
		Extra:  json.RawMessage(`{"finish_reason":"stop"}`), Reasoning: &continuo.Reasoning{Text: "hm", Signature: "s"},
	}
	expect(t, openAI(t, Options{Provider: "p"}, m, result("a", "r")),
		`{"role":"assistant","content":"x","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"s":1}}],"reasoning_content":"<hm>"}`,
		`{"role":"tool","content":"r","tool_call_id":"a"}`)
	expect(t, openAI(t, Options{Provider: "q"}, m, result("a", "r")),
		`{"role":"assistant","content":"x","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"tool","content":"r","tool_call_id":"a"}`)
}

// parts reads list content.
func parts(t *testing.T, list string) continuo.Content {
	t.Helper()
	var content continuo.Content
	if err := json.Unmarshal([]byte(list), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

func TestOpenAIParts(t *testing.T) {
	content := parts(t, `[{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
		{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}},{"type":"document","source":{}},{"type":"video_url","video_url":{"url":"v"}}]`)
	expect(t, openAI(t, Options{}, window.Message{Role: continuo.User, Content: content}),
		`{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}},`+
			`{"type":"text","text":"[document: left out, because it cannot be sent here]"},{"type":"video_url","video_url":{"url":"v"}}]}`)
	expect(t, openAI(t, Options{}, window.Message{Role: continuo.Assistant, Content: parts(t, `[{"type":"refusal","refusal":"no"}]`)}),
		`{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`)
	expect(t, openAI(t, Options{}, window.Message{Role: continuo.Assistant, Content: parts(t, `[{"type":"thinking"},{"type":"text","text":"b"},{"type":"refusal","refusal":"no"}]`)}),
		`{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"text","text":"no"}]}`)
}

func TestAnthropicBeginsWithTheUserAndEndsWithoutWhiteSpace(t *testing.T) {
	expect(t, anthropicText(t, Options{}, assistant("a "), assistant("b \n")),
		`{"role":"user","content":[{"type":"text","text":"(The conversation goes on from here.)"}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"a "},{"type":"text","text":"b"}]}`)
	expect(t, anthropicText(t, Options{}, user(" "), assistant("\n"), user("b")),
		`{"role":"user","content":[{"type":"text","text":"(empty message)"},{"type":"text","text":"b"}]}`)
}

func TestAnthropicLeadingSystem(t *testing.T) {
	system := func(text string) window.Message {
		return window.Message{Role: continuo.System, Content: continuo.Text(text)}
	}
	_, leading, err := Anthropic([]window.Message{system("a"), system(" "), system("b"), user("x"), system("c")}, Options{})
	if err != nil || fmt.Sprint(leading) != "[a b]" {
		t.Errorf("leading system %v, %v; want a and b", leading, err)
	}
}

// ownMessage is an answer that Anthropic made.
func ownMessage() (*continuo.Entry, window.Message) {
	entry := &continuo.Entry{
		Role: continuo.Assistant, Content: continuo.Text("so"), ToolCalls: []continuo.ToolCall{continuo.FunctionCall("toolu_1", "f", `{"n":1.50}`)},
		Reasoning: &continuo.Reasoning{Text: "hm", Signature: "s"},
		Vendor: map[string]json.RawMessage{"anthropic": json.RawMessage(`{"content":[{"type":"thinking","thinking":"hm","signature":"s"},
			{"type":"tool_use","id":"toolu_1","name":"f","input":{"n":1.50},"caller":{}},{"type":"text","text":"so","citations":[]}]}`)},
	}
	return entry, window.Message{Role: continuo.Assistant, Content: entry.Content, ToolCalls: entry.ToolCalls, Entry: entry}
}

func TestAnthropicOwnBlocks(t *testing.T) {
	const first, last = `{"role":"user","content":[{"type":"text","text":"q"}]}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"r"}]}`
	entry, m := ownMessage()
	expect(t, anthropicText(t, Options{Provider: "anthropic"}, user("q"), m, result("toolu_1", "r")), first,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"so","citations":[]},{"type":"tool_use","id":"toolu_1","name":"f","input":{"n":1.50},"caller":{}}]}`, last)
	expect(t, anthropicText(t, Options{Provider: "bedrock"}, user("q"), m, result("toolu_1", "r")), first,
		`{"role":"assistant","content":[{"type":"text","text":"so"},{"type":"tool_use","id":"toolu_1","name":"f","input":{"n":1.50}}]}`, last)
	// Arguments that the plan cut down are sent cut down; thinking still goes back.
	m.ToolCalls = []continuo.ToolCall{continuo.FunctionCall("toolu_1", "f", `{"arguments_preview":"…"}`)}
	expect(t, anthropicText(t, Options{Provider: "anthropic"}, user("q"), m, result("toolu_1", "r")), first,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"so","citations":[]},{"type":"tool_use","id":"toolu_1","name":"f","input":{"arguments_preview":"…"},"caller":{}}]}`, last)
	// So does the text that the plan shows.
	m.Content = continuo.Text("so, and an error")
	expect(t, anthropicText(t, Options{Provider: "anthropic"}, user("q"), m, result("toolu_1", "r")), first,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"so, and an error"},{"type":"tool_use","id":"toolu_1","name":"f","input":{"arguments_preview":"…"}}]}`, last)
	// Without blocks of its own, reasoning with a signature goes back to the provider that signed it.
	entry.Vendor["anthropic"] = json.RawMessage(`{}`)
	expect(t, anthropicText(t, Options{Provider: "anthropic"}, user("q"), m, result("toolu_1", "r")), first,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"so, and an error"},{"type":"tool_use","id":"toolu_1","name":"f","input":{"arguments_preview":"…"}}]}`, last)
}

// Thinking without an answer or a call is left out: a message must not end with it.
func TestAnthropicThinkingAloneIsLeftOut(t *testing.T) {
	m := window.Message{Role: continuo.Assistant, Content: continuo.Null(), Entry: &continuo.Entry{
		Reasoning: &continuo.Reasoning{Text: "hm", Signature: "s"}, Vendor: map[string]json.RawMessage{"p": json.RawMessage(`{}`)},
	}}
	expect(t, anthropicText(t, Options{Provider: "p"}, user("a"), m, user("b")),
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`)
	m.Entry.Vendor["p"] = json.RawMessage(`{"content":[{"type":"thinking","thinking":"hm","signature":"s"}]}`)
	expect(t, anthropicText(t, Options{Provider: "p"}, user("a"), m, user("b")),
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`)
}

func TestAnthropicParts(t *testing.T) {
	content := parts(t, `[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"image","source":{"type":"url","url":"u"},"cache_control":{"type":"ephemeral"}},
		{"type":"image_url","image_url":{"url":"data:image/tiff;base64,AA"}},{"type":"file","file":{"file_data":"data:application/pdf;base64,AA"}},{"type":"hologram"}]`)
	expect(t, anthropicText(t, Options{}, window.Message{Role: continuo.User, Content: content}),
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","url":"u"}},{"type":"text","text":"[image_url: left out, because it cannot be sent here]"},`+
			`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA"}},{"type":"text","text":"[hologram: left out, because it cannot be sent here]"}]}`)
}

// The provider's own form of a message stands for it only while the plan shows all of its parts.
func TestAnthropicOwnFormOfPartsThatWereCut(t *testing.T) {
	stored, shown := parts(t, `[{"type":"text","text":"long"},{"type":"a"}]`), parts(t, `[{"type":"text","text":"cut"},{"type":"a"}]`)
	m := window.Message{Role: continuo.User, Content: shown, Entry: &continuo.Entry{
		Content: stored, Vendor: map[string]json.RawMessage{"p": json.RawMessage(`{"content":[{"type":"text","text":"own"}]}`)},
	}}
	if got := anthropicText(t, Options{Provider: "p"}, m); !strings.Contains(got, `"cut"`) || strings.Contains(got, "own") {
		t.Errorf("want what the plan shows, got\n%s", got)
	}
	m.Content = stored
	if got := anthropicText(t, Options{Provider: "p"}, m); !strings.Contains(got, `"own"`) {
		t.Errorf("want the provider's own form, got\n%s", got)
	}
}

func TestOpenAIContentIsNeverNullButTheAssistants(t *testing.T) {
	expect(t, openAI(t, Options{}, window.Message{Role: continuo.User, Content: continuo.Null()}), `{"role":"user","content":""}`)
}

func TestAnthropicFailedResults(t *testing.T) {
	for what, entry := range map[string]continuo.Entry{
		"extra":     {Extra: json.RawMessage(`{"is_error":true}`)},
		"vendor":    {Vendor: map[string]json.RawMessage{"p": json.RawMessage(`{"is_error":true}`)}},
		"block":     {Vendor: map[string]json.RawMessage{"p": json.RawMessage(`{"block":{"type":"tool_result","is_error":true}}`)}},
		"part type": {PartType: "tool_error"},
	} {
		m := result("a", "r")
		m.Entry = &entry
		if got := anthropicText(t, Options{Provider: "p"}, user("q"), assistant("", call("a")), m); !strings.Contains(got, `"is_error":true`) {
			t.Errorf("%s: no is_error in\n%s", what, got)
		}
	}
}

// A round that adds more blocks than the API looks back gets a second mark where the last request ended.
func TestAnthropicMarksLongRounds(t *testing.T) {
	for calls, want := range map[int]int{3: 1, 15: 2} {
		round := assistant("x")
		messages := []window.Message{user("first"), round}
		for i := range calls {
			id := fmt.Sprint("c", i)
			messages[1].ToolCalls = append(messages[1].ToolCalls, call(id))
			messages = append(messages, result(id, "r"))
		}
		body, err := AnthropicRequest(continuo.Envelope{Model: "m"}, messages, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(body), "cache_control"); n != want {
			t.Errorf("%d calls: %d marks, want %d in\n%s", calls, n, want, body)
		}
	}
}

// Successive bodies are equal up to the cache mark of the first.
func TestAnthropicBodiesShareAllButTheMark(t *testing.T) {
	messages := []window.Message{user("one"), assistant("two"), user("three"), assistant("four"), user("five")}
	env := continuo.Envelope{Model: "m", System: []string{"s"}, Tools: []continuo.ToolSpec{{Name: "f"}}}
	before, _ := AnthropicRequest(env, messages[:3], Options{})
	after, _ := AnthropicRequest(env, messages, Options{})
	shared := strings.TrimSuffix(string(before), `,"cache_control":{"type":"ephemeral"}}]}]}`)
	if shared == string(before) || !strings.HasPrefix(string(after), shared+"}]}") {
		t.Errorf("after\n%s\nthe next body is\n%s", before, after)
	}
}

func TestLoneSurrogatesAreReplacedInWhatIsSentAsItCame(t *testing.T) {
	m := assistant("x", continuo.FunctionCall("a", "f", `{"s":"\ud83d \ud83d\ude00 \\ud83d"}`))
	got := anthropicText(t, Options{}, user("q"), m, result("a", "r"))
	if want := string(rawjson.MustMarshal(json.RawMessage(`{"s":"\ufffd \ud83d\ude00 \\ud83d"}`))); !strings.Contains(got, want) {
		t.Errorf("no %s in\n%s", want, got)
	}
}
