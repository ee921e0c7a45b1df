package interchange

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// brief writes an entry as one line: what of it the repairs decide.
func brief(e continuo.Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", e.Role)
	if e.ToolCallID != "" {
		fmt.Fprintf(&b, " for %s", e.ToolCallID)
	}
	if !e.Content.IsZero() {
		content, _ := e.Content.MarshalJSON()
		fmt.Fprintf(&b, " %s", content)
	}
	for _, call := range e.ToolCalls {
		fmt.Fprintf(&b, " call %s=%s(%s)", call.ID, call.Name, call.Arguments)
	}
	if e.Hidden {
		b.WriteString(" hidden")
	}
	if len(e.Repairs) > 0 {
		fmt.Fprintf(&b, " %v", e.Repairs)
	}
	return b.String()
}

func briefs(entries []continuo.Entry) []string {
	var lines []string
	for _, e := range entries {
		lines = append(lines, brief(e))
	}
	return lines
}

const none = `tool for %s "No result was recorded for this call." [unanswered]`

func noResult(id string) string { return fmt.Sprintf(none, id) }

// call writes a message with calls of f, one per id.
func call(ids ...string) string {
	var calls []string
	for _, id := range ids {
		calls = append(calls, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}`, id))
	}
	return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(calls, ",") + `]}`
}

func result(id, content string) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%q}`, id, content)
}

const (
	hi   = `{"role":"user","content":"hi"}`
	done = `{"role":"assistant","content":"done"}`
)

var repairCases = []struct {
	name     string
	messages []string
	entries  []string
	repairs  []string // index and rule
}{
	{
		"nothing to repair",
		[]string{hi, call("a", "b"), result("b", "2"), result("a", "1"), done},
		[]string{`user "hi"`, `assistant null call a=f({}) call b=f({})`, `tool for b "2"`, `tool for a "1"`, `assistant "done"`},
		nil,
	},
	{
		"orphan at the beginning",
		[]string{result("a", "1"), done},
		[]string{`tool for a "1" hidden [orphan_tool]`, `assistant "done"`},
		[]string{"0 orphan_tool"},
	},
	{
		"wrong group",
		[]string{call("a"), result("a", "1"), hi, call("b"), result("a", "1 again"), result("b", "2")},
		[]string{`assistant null call a=f({})`, `tool for a "1"`, `user "hi"`, `assistant null call b=f({})`, `tool for b "2"`, `tool for a "1 again" hidden [wrong_group]`},
		[]string{"4 wrong_group"},
	},
	{
		"unknown id",
		[]string{call("a"), result("fc_a", "1"), done},
		[]string{`assistant null call a=f({})`, noResult("a"), `tool for fc_a "1" hidden [unknown_call_id]`, `assistant "done"`},
		[]string{"0 unanswered", "1 unknown_call_id"},
	},
	{
		"second answer",
		[]string{call("a"), result("a", "late"), result("a", "later"), done},
		[]string{`assistant null call a=f({})`, `tool for a "late"`, `tool for a "later" hidden [duplicate_answer]`, `assistant "done"`},
		[]string{"2 duplicate_answer"},
	},
	{
		"interrupted",
		[]string{hi, call("a"), `{"role":"user","content":"stop"}`, done},
		[]string{`user "hi"`, `assistant null call a=f({})`, noResult("a"), `user "stop"`, `assistant "done"`},
		[]string{"1 unanswered"},
	},
	{
		"partly answered",
		[]string{call("a", "b", "c"), result("c", "3"), done},
		[]string{`assistant null call a=f({}) call b=f({}) call c=f({})`, `tool for c "3"`, noResult("a"), noResult("b"), `assistant "done"`},
		[]string{"0 unanswered"},
	},
	{
		"open at the end",
		[]string{hi, call("a", "b"), result("b", "2")},
		[]string{`user "hi"`, `assistant null call a=f({}) call b=f({})`, `tool for b "2"`, noResult("a")},
		[]string{"1 unanswered_at_end"},
	},
	{
		"message inside a group",
		[]string{call("a", "b"), result("a", "1"), hi, result("b", "2"), done},
		[]string{`assistant null call a=f({}) call b=f({})`, `tool for a "1"`, `tool for b "2" [late_result]`, `user "hi"`, `assistant "done"`},
		[]string{"3 late_result"},
	},
	{
		"too late",
		[]string{call("a"), done, hi, result("a", "1")},
		[]string{`assistant null call a=f({})`, noResult("a"), `assistant "done"`, `user "hi"`, `tool for a "1" hidden [orphan_tool]`},
		[]string{"0 unanswered", "3 orphan_tool"},
	},
	{
		"parallel calls in messages of their own",
		[]string{call("a"), call("b"), result("a", "1"), result("b", "2"), done},
		[]string{`assistant null call a=f({})`, `tool for a "1" [late_result]`, `assistant null call b=f({})`, `tool for b "2"`, `assistant "done"`},
		[]string{"2 late_result"},
	},
	{
		"same id in both groups",
		[]string{call("a"), call("a"), result("a", "2"), done},
		[]string{`assistant null call a=f({})`, noResult("a"), `assistant null call a=f({})`, `tool for a "2"`, `assistant "done"`},
		[]string{"0 unanswered"},
	},
	{
		"id used again later",
		[]string{call("a"), result("a", "1"), call("a"), result("a", "2")},
		[]string{`assistant null call a=f({})`, `tool for a "1"`, `assistant null call a=f({})`, `tool for a "2"`},
		nil,
	},
	{
		"same id twice",
		[]string{call("a", "a", "a_2"), result("a", "1"), result("a", "2"), result("a_2", "3")},
		[]string{`assistant null call a=f({}) call a_3=f({}) call a_2=f({}) [duplicate_call_id]`, `tool for a "1"`, `tool for a_3 "2" [duplicate_call_id]`, `tool for a_2 "3"`},
		[]string{"0 duplicate_call_id", "2 duplicate_call_id"},
	},
	{
		"missing ids",
		[]string{call("", "b", ""), `{"role":"tool","content":"1"}`, result("b", "2"), result("", "3")},
		[]string{`assistant null call call_import_0_0=f({}) call b=f({}) call call_import_0_2=f({}) [missing_call_id]`, `tool for call_import_0_0 "1" [tool_missing_id]`, `tool for b "2"`, `tool for call_import_0_2 "3" [tool_missing_id]`},
		[]string{"0 missing_call_id", "0 missing_call_id", "1 tool_missing_id", "3 tool_missing_id"},
	},
	{
		"a result without an id takes the call that no other names",
		[]string{call("a", "b"), `{"role":"tool","content":"2"}`, result("a", "1")},
		[]string{`assistant null call a=f({}) call b=f({})`, `tool for b "2" [tool_missing_id]`, `tool for a "1"`},
		[]string{"1 tool_missing_id"},
	},
	{
		"a result without an id and without a call",
		[]string{hi, `{"role":"tool","content":"2"}`, done},
		[]string{`user "hi"`, `tool "2" hidden [tool_missing_id]`, `assistant "done"`},
		[]string{"1 tool_missing_id"},
	},
	{
		"a late result without an id",
		[]string{call("a"), hi, `{"role":"tool","content":"1"}`, done},
		[]string{`assistant null call a=f({})`, noResult("a"), `user "hi"`, `tool "1" hidden [tool_missing_id]`, `assistant "done"`},
		[]string{"0 unanswered", "2 tool_missing_id"},
	},
	{
		"an empty answer before the result",
		[]string{call("a"), `{"role":"assistant","content":null}`, result("a", "1"), done},
		[]string{`assistant null call a=f({})`, `tool for a "1" [late_result]`, `assistant null hidden [empty_assistant]`, `assistant "done"`},
		[]string{"1 empty_assistant", "2 late_result"},
	},
	{
		"bad functions",
		[]string{`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{"x": 1}}},{"id":"b","function":{"name":"g"}},{"id":"c","type":"function","function":{"arguments":"1"}},{"id":"d","type":"grep","grep":{"q":1}},{"id":"e","type":"custom","custom":{"name":"h","input":"i"}}]}`, result("a", ""), result("b", ""), result("c", ""), result("d", ""), result("e", "")},
		[]string{`assistant call a=f({"x": 1}) call b=g({}) call c=unknown(1) call d=grep({"q":1}) call e=h(i) [bad_function]`, `tool for a ""`, `tool for b ""`, `tool for c ""`, `tool for d ""`, `tool for e ""`},
		[]string{"0 bad_function"},
	},
	{
		"empty list of calls",
		[]string{`{"role":"assistant","content":"x","tool_calls":[]}`, `{"role":"assistant","content":"y","tool_calls":null}`},
		[]string{`assistant "x" [empty_tool_calls]`, `assistant "y"`},
		[]string{"0 empty_tool_calls"},
	},
	{
		"empty assistant",
		[]string{hi, `{"role":"assistant","content":null,"finish_reason":"aborted"}`, `{"role":"assistant"}`, done},
		[]string{`user "hi"`, `assistant null hidden [empty_assistant]`, `assistant hidden [empty_assistant]`, `assistant "done"`},
		[]string{"1 empty_assistant", "2 empty_assistant"},
	},
	{
		"null content",
		[]string{`{"role":"user","content":null}`, `{"role":"system"}`, `{"role":"user","content":[]}`, call("a"), `{"role":"tool","tool_call_id":"a","content":null}`},
		[]string{`user "" [null_content]`, `system "" [null_content]`, `user "" [null_content]`, `assistant null call a=f({})`, `tool for a "" [null_content]`},
		[]string{"0 null_content", "1 null_content", "2 null_content", "4 null_content"},
	},
	{
		"roles",
		[]string{`{"role":"developer","content":"d"}`, `{"role":"model","content":"m"}`, `{"role":"human","content":"h"}`, `{"role":"USER","content":"u"}`, `{"role":"narrator","content":"n"}`},
		[]string{`system "d"`, `assistant "m" [unknown_role]`, `user "h" [unknown_role]`, `user "u" [unknown_role]`, `user "n" [unknown_role]`},
		[]string{"1 unknown_role", "2 unknown_role", "3 unknown_role", "4 unknown_role"},
	},
	{
		"function calls of the older form",
		[]string{hi, `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, `{"role":"function","name":"f","content":"1"}`, `{"role":"assistant","content":"so","function_call":{"name":"g","arguments":""}}`},
		[]string{`user "hi"`, `assistant null call call_import_1_0=f({}) [legacy_function_call]`, `tool for call_import_1_0 "1" [legacy_function_call]`, `assistant "so" call call_import_3_0=g() [legacy_function_call]`, noResult("call_import_3_0")},
		[]string{"1 legacy_function_call", "2 legacy_function_call", "3 legacy_function_call", "3 unanswered_at_end"},
	},
	{
		"function without a call",
		[]string{hi, `{"role":"function","name":"f","content":"1"}`},
		[]string{`user "hi"`, `tool "1" hidden [orphan_function]`},
		[]string{"1 orphan_function"},
	},
	{
		"half a surrogate pair",
		[]string{`{"role":"user","content":"a\ud83d b \ud83d\ude00 \\ud83d \udc00"}`},
		[]string{`user "a` + "\ufffd" + ` b 😀 \\ud83d ` + "\ufffd" + `" [lone_surrogate]`},
		[]string{"0 lone_surrogate"},
	},
	{
		"bytes that are not UTF-8",
		[]string{"{\"role\":\"user\",\"content\":\"a\xff\xfeb\"}"},
		[]string{`user "a` + "\ufffd\ufffd" + `b" [invalid_utf8]`},
		[]string{"0 invalid_utf8"},
	},
	{
		"refusal and speech",
		[]string{`{"role":"assistant","content":null,"refusal":"no"}`, `{"role":"assistant","audio":{"id":"x","transcript":"spoken"}}`, `{"role":"assistant","content":"said","refusal":"no","audio":{"transcript":"spoken"}}`},
		[]string{`assistant [{"refusal":"no","type":"refusal"}]`, `assistant "spoken"`, `assistant "said"`},
		nil,
	},
	{
		"content that is no list of parts",
		[]string{`{"role":"user","content":["a",{"text":"b"},{"type":"text","text":{"value":"c"}},{"x":1}]}`},
		[]string{`user [{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"text","text":"c"},{"type":"unknown","value":{"x":1}}] [bad_content]`},
		[]string{"0 bad_content"},
	},
	{
		"calls of a user",
		[]string{`{"role":"user","content":"x","tool_calls":[{"id":"a"}]}`},
		[]string{`user "x" [misplaced_tool_calls]`},
		[]string{"0 misplaced_tool_calls"},
	},
	{
		"an empty function_call is data",
		[]string{`{"role":"assistant","content":"x","function_call":{"name":"","arguments":""},"refusal":""}`},
		[]string{`assistant "x"`},
		nil,
	},
}

// TestRepairs says for each kind of broken sequence what becomes of it; whatever it is, the log takes it,
// the source is given back as it was, and what a model may be sent has nothing left to repair.
func TestRepairs(t *testing.T) {
	for _, c := range repairCases {
		t.Run(c.name, func(t *testing.T) {
			list := "[" + strings.Join(c.messages, ",") + "]"
			document, err := Messages(json.RawMessage(list), "")
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "entries", briefs(document.Entries), c.entries)
			var repairs []string
			for _, repair := range document.Repairs {
				repairs = append(repairs, fmt.Sprintf("%d %s", repair.Index, repair.Rule))
				if !strings.HasSuffix(repair.Action, ".") {
					t.Errorf("the action %q is no sentence", repair.Action)
				}
			}
			equal(t, "repairs", repairs, c.repairs)
			checkLaws(t, document, []byte(list))
		})
	}
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// checkLaws checks what must hold of every document that was read from a source.
func checkLaws(t failer, document Document, source []byte) {
	t.Helper()
	log, conversation := imported(t, document)
	back := exported(t, log, conversation, FormatSource)
	if !reflect.DeepEqual(decoded(t, back), decoded(t, source)) {
		t.Errorf("the source is not given back:\n got %s\nwant %s", back, source)
	}
	strictAgain, err := Messages(exported(t, log, conversation, FormatOpenAI), FormatOpenAI)
	if err != nil {
		t.Fatalf("what a model may be sent cannot be read: %v", err)
	}
	if len(strictAgain.Repairs) > 0 {
		t.Errorf("what a model may be sent has something left to repair: %v", strictAgain.Repairs)
	}
	sameOwn(t, log, conversation)
}
