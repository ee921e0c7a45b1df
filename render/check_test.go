package render

import (
	"encoding/json"
	"slices"
	"testing"
)

// The calls and answers that the cases below are made of.
const (
	askA   = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	askAB  = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"custom","custom":{"name":"g","input":"x"}}]}`
	sayA   = `{"role":"tool","tool_call_id":"a","content":"r"}`
	sayB   = `{"role":"tool","tool_call_id":"b","content":"r"}`
	hello  = `{"role":"user","content":"hello"}`
	answer = `{"role":"assistant","content":"yes"}`
	system = `{"role":"system","content":"be brief"}`
)

type checkCase struct {
	name     string
	messages []string
	want     []string // "index code", lint ones with a "?" at the end
}

func runChecks(t *testing.T, check func([]json.RawMessage) []Violation, cases []checkCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var messages []json.RawMessage
			for _, text := range c.messages {
				messages = append(messages, json.RawMessage(text))
			}
			var got []string
			for _, v := range check(messages) {
				text := string(rune('0'+v.Index)) + " " + v.Code
				if v.Lint {
					text += "?"
				}
				got = append(got, text)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestCheckOpenAIChatNamesTheRule(t *testing.T) {
	runChecks(t, CheckOpenAIChat, []checkCase{
		{"valid", []string{system, hello, askAB, sayB, sayA, answer, hello}, nil},
		{"no message", nil, []string{"0 C11 empty_list"}},
		{"no object", []string{`[]`, hello}, []string{"0 C1 not_an_object"}},
		{"unknown role", []string{hello, `{"role":"model","content":"x"}`}, []string{"1 C1 unknown_role"}},
		{"half a surrogate pair", []string{`{"role":"user","content":"\ud83d"}`}, []string{"0 C1 lone_surrogate"}},
		{"null content", []string{`{"role":"user","content":null}`}, []string{"0 C1 null_content"}},
		{"number as content", []string{`{"role":"user","content":1}`}, []string{"0 C1 bad_content"}},
		{"empty list of parts", []string{`{"role":"user","content":[]}`}, []string{"0 C2 empty_content"}},
		{"text part without text", []string{`{"role":"user","content":[{"type":"text"}]}`}, []string{"0 C2 bad_part"}},
		{"image of the assistant", []string{hello, `{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"x"}}]}`, hello}, []string{"1 C2 bad_part"}},
		{"refusal beside text", []string{hello, `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"b"}]}`, hello}, []string{"1 C2 bad_part"}},
		{"image of a tool", []string{hello, askA, `{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"x"}}]}`}, []string{"2 C10 tool_part"}},
		{"silent assistant", []string{hello, `{"role":"assistant"}`, hello}, []string{"1 C2 empty_assistant"}},
		{"refusal instead of content", []string{hello, `{"role":"assistant","refusal":"no"}`, hello}, nil},
		{"blank assistant", []string{hello, `{"role":"assistant","content":""}`, hello}, []string{"1 C2 blank_assistant?"}},
		{"empty tool_calls", []string{hello, `{"role":"assistant","content":"a","tool_calls":[]}`, hello}, []string{"1 C3 empty_tool_calls"}},
		{"call without an id", []string{hello, `{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]}`, hello}, []string{"1 C3 missing_call_id"}},
		{"two calls with one id", []string{hello, `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`, sayA, hello}, []string{"1 C3 duplicate_call_id"}},
		{"arguments as an object", []string{hello, `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{}}}]}`, sayA}, []string{"1 C3 bad_function"}},
		{"function name with a dot", []string{hello, `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"fs.read","arguments":"{}"}}]}`, sayA}, []string{"1 C8 bad_function_name"}},
		{"arguments cut off", []string{hello, `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"a"}}]}`, sayA}, []string{"1 C8 bad_arguments_json?"}},
		{"speaker's name with a blank", []string{`{"role":"user","content":"x","name":"Ann Lee"}`}, []string{"0 C8 bad_name?"}},
		{"answer without a call", []string{hello, sayA}, []string{"1 C4 orphan_tool"}},
		{"late answer", []string{hello, askA, hello, sayA}, []string{"1 C6 unanswered", "3 C4 orphan_tool"}},
		{"answer without an id", []string{hello, askA, `{"role":"tool","content":"r"}`}, []string{"2 C1 tool_missing_id", "1 C6 unanswered_at_end"}},
		{"answer to nothing", []string{hello, askA, sayA, sayB}, []string{"3 C5 unknown_call_id"}},
		{"second answer", []string{hello, askA, sayA, sayA}, []string{"3 C5 duplicate_answer"}},
		{"answer to an earlier group", []string{hello, askAB, sayA, sayB, askA, sayA, sayB}, []string{"4 C9 reused_call_id?", "6 C5 wrong_group"}},
		{"half answered", []string{hello, askAB, sayA, answer, hello}, []string{"1 C6 unanswered"}},
		{"half answered at the end", []string{hello, askAB, sayA}, []string{"1 C6 unanswered_at_end"}},
		{"assistant last", []string{hello, answer}, []string{"1 C11 last_message?"}},
		{"old function call", []string{hello, `{"role":"assistant","function_call":{"name":"f","arguments":""}}`, `{"role":"function","name":"f","content":"r"}`, hello}, nil},
		{"old function without a call", []string{hello, `{"role":"function","name":"f","content":"r"}`}, []string{"1 C4 orphan_function"}},
		{"old call without a function", []string{hello, `{"role":"assistant","function_call":{"name":"f","arguments":""}}`, hello}, []string{"1 C6 unanswered_function?"}},
	})
}

func TestCheckOpenAIChatStrictNamesTheRule(t *testing.T) {
	runChecks(t, CheckOpenAIChatStrict, []checkCase{
		{"valid", []string{system, hello, askA, sayA, answer, hello}, nil},
		{"late system", []string{hello, answer, system, hello}, []string{"2 C12 late_system"}},
		{"two systems", []string{system, system, hello}, []string{"1 C12 late_system"}},
		{"two users", []string{hello, hello}, []string{"1 C12 not_alternating"}},
		{"two assistants", []string{hello, answer, answer, hello}, []string{"2 C12 not_alternating"}},
		{"assistant first", []string{system, answer, hello}, []string{"1 C12 not_alternating"}},
		{"user after a tool", []string{hello, askA, sayA, hello}, []string{"3 C12 user_after_tool"}},
		{"and the other rules", []string{hello, sayA}, []string{"1 C4 orphan_tool"}},
	})
}

func TestCheckAnthropicNamesTheRule(t *testing.T) {
	user := func(blocks string) string { return `{"role":"user","content":[` + blocks + `]}` }
	assistant := func(blocks string) string { return `{"role":"assistant","content":[` + blocks + `]}` }
	const (
		text    = `{"type":"text","text":"t"}`
		useA    = `{"type":"tool_use","id":"a","name":"f","input":{}}`
		useB    = `{"type":"tool_use","id":"b","name":"f","input":{}}`
		resultA = `{"type":"tool_result","tool_use_id":"a","content":"r"}`
		resultB = `{"type":"tool_result","tool_use_id":"b"}`
		thought = `{"type":"thinking","thinking":"h","signature":"s"}`
		marked  = `{"type":"text","text":"t","cache_control":{"type":"ephemeral"}}`
		server  = `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`
		found   = `{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`
	)
	runChecks(t, CheckAnthropic, []checkCase{
		{"valid", []string{hello, assistant(thought + "," + text + "," + useA + "," + useB), user(resultB + "," + resultA + "," + text), assistant(text), hello}, nil},
		{"no message", nil, []string{"0 A10 empty_list"}},
		{"assistant first", []string{answer, hello}, []string{"0 A1 first_not_user?"}},
		{"no object", []string{`"x"`, hello}, []string{"0 A2 not_an_object"}},
		{"unknown role", []string{hello, sayA}, []string{"1 A2 unknown_role"}},
		{"half a surrogate pair", []string{`{"role":"user","content":"a\udc00"}`}, []string{"0 A10 lone_surrogate"}},
		{"one role twice", []string{hello, hello}, []string{"1 A2 consecutive_roles?"}},
		{"system in the middle", []string{hello, assistant(useA), system, user(resultA)}, []string{"2 A2 mid_system?"}},
		{"block without a type", []string{user(`{}`)}, []string{"0 A2 bad_block"}},
		{"calls in two messages", []string{hello, assistant(useA), assistant(useB), user(resultA + "," + resultB)}, []string{"2 A2 consecutive_roles?"}},
		{"no result", []string{hello, assistant(useA + "," + useB), user(resultA)}, []string{"1 A3 unanswered"}},
		{"no result at the end", []string{hello, assistant(useA)}, []string{"1 A3 unanswered_at_end"}},
		{"result after text", []string{hello, assistant(useA), user(text + "," + resultA)}, []string{"2 A4 result_not_first"}},
		{"orphan result", []string{user(resultA)}, []string{"0 A5 orphan_result"}},
		{"late result", []string{hello, assistant(useA), hello, assistant(text), user(resultA)}, []string{"1 A3 unanswered", "4 A5 orphan_result"}},
		{"second result", []string{hello, assistant(useA), user(resultA + "," + resultA)}, []string{"2 A5 duplicate_result"}},
		{"result of the assistant", []string{hello, assistant(resultA), hello}, []string{"1 A5 misplaced_result"}},
		{"call of the user", []string{user(useA)}, []string{"0 A5 misplaced_tool_use"}},
		{"id with a dot", []string{hello, assistant(`{"type":"tool_use","id":"a.b","name":"f","input":{}}`), user(`{"type":"tool_result","tool_use_id":"a.b"}`)}, []string{"1 A6 bad_use_id"}},
		{"name with a dot", []string{hello, assistant(`{"type":"tool_use","id":"a","name":"f.g","input":{}}`), user(resultA)}, []string{"1 A6 bad_name"}},
		{"id twice in a message", []string{hello, assistant(useA + "," + useA), user(resultA)}, []string{"1 A6 duplicate_use_id"}},
		{"id twice in the list", []string{hello, assistant(useA), user(resultA), assistant(useA), user(resultA)}, []string{"3 A6 reused_use_id?"}},
		{"text after a call", []string{hello, assistant(useA + "," + text), user(resultA)}, []string{"1 A7 text_after_tool_use"}},
		{"text after a call and thinking", []string{hello, assistant(thought + "," + useA + "," + thought + "," + text), user(resultA)}, nil},
		{"input as a string", []string{hello, assistant(`{"type":"tool_use","id":"a","name":"f","input":"{}"}`), user(resultA)}, []string{"1 A8 input_not_object"}},
		{"thinking of the user", []string{user(thought)}, []string{"0 A9 misplaced_thinking"}},
		{"thinking after text", []string{hello, assistant(text + "," + thought + "," + useA), user(resultA)}, []string{"1 A9 thinking_not_first?"}},
		{"thinking last", []string{hello, assistant(text + "," + thought), hello}, []string{"1 A9 thinking_last?"}},
		{"empty text", []string{user(`{"type":"text","text":" \n"}`)}, []string{"0 A10 empty_text"}},
		{"empty text in a result", []string{hello, assistant(useA), user(`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":""}]}`)}, []string{"2 A10 empty_text"}},
		{"empty message", []string{`{"role":"user","content":""}`}, []string{"0 A10 empty_content"}},
		{"message without blocks", []string{user("")}, []string{"0 A10 empty_content"}},
		{"white space at the end", []string{hello, assistant(`{"type":"text","text":"so \n"}`)}, []string{"1 A10 trailing_space"}},
		{"white space before more", []string{hello, assistant(`{"type":"text","text":"so \n"}`), hello}, nil},
		{"five cache marks", []string{user(marked + "," + marked + "," + marked + "," + marked + "," + marked)}, []string{"0 A11 too_many_cache_marks"}},
		{"cache mark on thinking", []string{hello, assistant(`{"type":"thinking","thinking":"h","signature":"s","cache_control":{"type":"ephemeral"}},` + text)}, []string{"1 A11 cache_mark_on_thinking"}},
		{"server tool", []string{hello, assistant(server + "," + found + "," + text), hello}, nil},
		{"server tool without a result", []string{hello, assistant(server), hello}, []string{"1 A12 server_use_without_result?"}},
		{"server result alone", []string{hello, assistant(found), hello}, []string{"1 A12 orphan_server_result"}},
		{"compaction in the middle", []string{hello, assistant(text + `,{"type":"compaction","content":"c"}`), hello}, []string{"1 A13 compaction_not_first?"}},
	})
}
