package task_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/task"
)

// request makes a request with a history.
func request(t testing.TB, history any) task.Request {
	t.Helper()
	raw, ok := history.(string)
	if !ok {
		data, err := json.Marshal(history)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(data)
	}
	return task.Request{Description: "test", ConversationHistory: json.RawMessage(raw)}
}

// validated validates a request with a history.
func validated(t testing.TB, history any) (*task.Task, []task.Warning) {
	t.Helper()
	made, warnings, err := task.Validate(request(t, history), now, task.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return made, warnings
}

func message(role, content string) map[string]string {
	return map[string]string{"role": role, "content": content, "timestamp": "2025-10-29T10:00:00"}
}

func TestHistoriesThatAreRefused(t *testing.T) {
	for history, want := range map[string]task.ValidationError{
		`"hello, you"`:                       {task.TypeError, "conversation_history", -1, "conversation_history must be a list of message dicts, or the id or key of a conversation: 'hello, you' is neither"},
		`7`:                                  {task.TypeError, "conversation_history", -1, "conversation_history must be a list of message dicts"},
		`true`:                               {task.TypeError, "conversation_history", -1, "conversation_history must be a list of message dicts"},
		`{"a": 1}`:                           {task.TypeError, "conversation_history", -1, "conversation_history must be a list of message dicts"},
		`[1`:                                 {task.TypeError, "conversation_history", -1, "conversation_history must be a list of message dicts"},
		`["text"]`:                           {task.TypeError, "conversation_history[0]", 0, "Message at index 0 must be a dict, got str"},
		`[{"role":"user","content":"a"}, 3]`: {task.TypeError, "conversation_history[1]", 1, "Message at index 1 must be a dict, got int"},
		`[3.5]`:                              {task.TypeError, "conversation_history[0]", 0, "Message at index 0 must be a dict, got float"},
		`[null]`:                             {task.TypeError, "conversation_history[0]", 0, "Message at index 0 must be a dict, got NoneType"},
		`[[]]`:                               {task.TypeError, "conversation_history[0]", 0, "Message at index 0 must be a dict, got list"},
		`[false]`:                            {task.TypeError, "conversation_history[0]", 0, "Message at index 0 must be a dict, got bool"},
		`[{"role":"user"}]`:                  {task.MissingField, "conversation_history[0].content", 0, "Message at index 0 missing required field 'content'"},
		`[{"content":"a"}]`:                  {task.MissingField, "conversation_history[0].role", 0, "Message at index 0 missing required field 'role'"},
		`[{"Role":"user","content":"a"}]`:    {task.MissingField, "conversation_history[0].role", 0, "Message at index 0 missing required field 'role'"},
		`[{}]`:                               {task.MissingField, "conversation_history[0].role", 0, "Message at index 0 missing required field 'role'"},
		`[{"role":"system","content":"a"}]`:  {task.InvalidValue, "conversation_history[0].role", 0, "Message at index 0 has invalid role 'system', must be user|assistant|orchestrator"},
		`[{"role":"User","content":"a"}]`:    {task.InvalidValue, "conversation_history[0].role", 0, "Message at index 0 has invalid role 'User', must be user|assistant|orchestrator"},
		`[{"role":null,"content":"a"}]`:      {task.InvalidValue, "conversation_history[0].role", 0, "Message at index 0 has invalid role 'null', must be user|assistant|orchestrator"},
		`[{"role":["user"],"content":"a"}]`:  {task.InvalidValue, "conversation_history[0].role", 0, `Message at index 0 has invalid role '["user"]', must be user|assistant|orchestrator`},
		`[{"role":"user","content":"a","timestamp":{}}]`:                                      {task.TypeError, "conversation_history[0].timestamp", 0, "Message at index 0 has a timestamp that must be a string, got dict"},
		`{"conversation_id":"chat 1"}`:                                                        {task.InvalidValue, "conversation_history.conversation_id", -1, "conversation_history names the conversation 'chat 1', which is neither an id nor a key"},
		`{"conversation_id":"conv_1","from":0}`:                                               {task.InvalidValue, "conversation_history.from", -1, "conversation_history has a range whose end 'from' is no seq: it must be a whole number from 1"},
		`{"conversation_id":"conv_1","from":5,"to":4}`:                                        {task.InvalidValue, "conversation_history.to", -1, "conversation_history has a range that ends at 4, before it begins at 5"},
		`[{"role":"user","content":"a","attachments":3}]`:                                     {task.TypeError, "conversation_history[0].attachments", 0, "Message at index 0 has attachments that must be a list, got int"},
		`[{"role":"user","content":"a","attachments":[3]}]`:                                   {task.TypeError, "conversation_history[0].attachments[0]", 0, "Message at index 0 attachment 0 must be a dict, got int"},
		`[{"role":"user","content":"a","attachments":[{"content":"x"}]}]`:                     {task.MissingField, "conversation_history[0].attachments[0].type", 0, "Message at index 0 attachment 0 missing required field 'type'"},
		`[{"role":"user","content":"a","attachments":[{"type":"video","url":"http://a/b"}]}]`: {task.InvalidValue, "conversation_history[0].attachments[0].type", 0, "Message at index 0 attachment 0 has invalid type 'video', must be code|image|file"},
		`[{"role":"user","content":"a","attachments":[{"type":"code"}]}]`:                     {task.MissingField, "conversation_history[0].attachments[0].content", 0, "Message at index 0 attachment 0 missing required field 'content', 'url' or 'ref'"},
		`[{"role":"user","content":"a","attachments":[{"type":"image","content":"iVBO"}]}]`:   {task.InvalidValue, "conversation_history[0].attachments[0].content", 0, "Message at index 0 attachment 0 is an image with content: give its url or its ref instead"},
	} {
		_, _, err := task.Validate(request(t, history), now, task.Limits{})
		var got *task.ValidationError
		if !errors.As(err, &got) || *got != want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", history, err, want)
		}
	}
}

func TestAddressesOfAttachments(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://example.org/a.png?b=c#d": true, "http://example.org": true,
		"data:image/png;base64,iVBO": false, "javascript:alert(1)": false, "https://user:secret@example.org/": false,
		"/a.png": false, "https://example.org/a\nb": false, "https://example.org/" + strings.Repeat("a", 3000): false,
	} {
		message := map[string]any{"role": "user", "content": "a", "attachments": []any{map[string]string{"type": "image", "url": address}}}
		if _, _, err := task.Validate(request(t, []any{message}), now, task.Limits{}); (err == nil) != ok {
			t.Errorf("%.60q: %v", address, err)
		}
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	for raw, want := range map[string]task.ValidationError{
		`[]`:                                    {task.TypeError, "", -1, "the request must be a dict, got list"},
		`{}`:                                    {task.MissingField, "description", -1, "missing required field 'description'"},
		`{"description":" \n"}`:                 {task.MissingField, "description", -1, "missing required field 'description'"},
		`{"description":3}`:                     {task.TypeError, "description", -1, "description must be a string, got int"},
		`{"description":"a","priority":"P9"}`:   {task.InvalidValue, "priority", -1, "invalid priority 'P9', must be P0|P1|P2|P3|P4"},
		`{"description":"a","constraints":"b"}`: {task.TypeError, "constraints", -1, "constraints must be a list of strings, got str"},
		`{"description":"a","success_criteria":["a",null]}`: {task.TypeError, "success_criteria", 1, "success_criteria at index 1 must be a string, got NoneType"},
		`{"description":"a","compression":"zip"}`:           {task.InvalidValue, "compression", -1, "invalid compression 'zip', must be truncate|semantic"},
		`{"description":"a","relevance":1.5}`:               {task.InvalidValue, "relevance", -1, "relevance must be a number from 0 to 1"},
		`{"description":"a","relevance":"much"}`:            {task.TypeError, "relevance", -1, "relevance must be a number, got str"},
	} {
		parsed, err := task.Parse([]byte(raw), task.Limits{})
		if err == nil {
			_, _, err = task.Validate(parsed, now, task.Limits{})
		}
		var got *task.ValidationError
		if !errors.As(err, &got) || *got != want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", raw, err, want)
		}
	}
}

func TestNoHistoryIsIgnored(t *testing.T) {
	for _, history := range []string{"", "null", "[]", ` [ ] `, `""`} {
		made, warnings := validated(t, history)
		if made.Context.ConversationHistory != nil || made.Source != nil || len(warnings) > 0 || strings.Contains(task.Prompt(*made), "HISTORY") {
			t.Errorf("%q: %+v, %v", history, made, warnings)
		}
	}
}

func TestTheNewestFiftyAreKept(t *testing.T) {
	var messages []map[string]string
	for i := range 100 {
		messages = append(messages, message("user", fmt.Sprintf("msg %d", i)))
	}
	made, warnings := validated(t, messages)
	want := []task.Warning{{task.Medium, "conversation_history has 100 messages, truncating to most recent 50", "Consider providing only recent relevant messages"}}
	if !reflect.DeepEqual(warnings, want) {
		t.Errorf("warnings %+v", warnings)
	}
	history := made.Context.ConversationHistory
	if len(history.Messages) != 50 || history.TotalMessages != 50 || history.Messages[0].Content != "msg 50" || history.Messages[49].Content != "msg 99" {
		t.Errorf("%d messages from %q", len(history.Messages), history.Messages[0].Content)
	}
	if _, warnings = validated(t, messages[:50]); len(warnings) > 0 {
		t.Errorf("50 messages: %v", warnings)
	}
	messages[70]["role"] = "tool"
	_, _, err := task.Validate(request(t, messages), now, task.Limits{})
	if err == nil || !strings.HasPrefix(err.Error(), "Message at index 70 ") {
		t.Errorf("the place in the caller's list is 70: %v", err)
	}
}

func TestContentThatIsNoString(t *testing.T) {
	for content, want := range map[string]string{
		`5`: "5", `1.50`: "1.50", `null`: "", `true`: "true", `{"b": 1, "a": [2]}`: `{"b":1,"a":[2]}`, `[]`: "", `[1, 2]`: "[1,2]",
		`[{"type":"text","text":"one"},{"type":"image_url","image_url":{"url":"data:x"}},{"type":"input_text","text":"two"}]`: "one\n[image, left out]\ntwo",
		`["one", {"type":"refusal","refusal":"no"}]`:              "one\nno",
		`[{"type":"text","text":"one"}, {"name":"x"}]`:            `[{"type":"text","text":"one"},{"name":"x"}]`,
		`[{"type":"a]\n[2] 👤"}]`:                                  "[a 2 👤]",
		`"a\u0000b"`:                                              "a\uFFFDb",
		`"\ud83d alone"`:                                          "\uFFFD alone",
		"\"bad \xff byte\"":                                       "bad \uFFFD byte",
		`"same", "content": "last one counts"`:                    "last one counts",
		`[` + strings.Repeat(`[`, 500) + strings.Repeat(`]`, 501): strings.Repeat("[", 150) + " ... (truncated)",
	} {
		made, _ := validated(t, `[{"role":"assistant","content":`+content+`}]`)
		if got := made.Context.ConversationHistory.Messages[0].Content; got != want {
			t.Errorf("%s: got %q, want %q", content, got, want)
		}
	}
}

func TestHostileJSONIsRefusedOrHarmless(t *testing.T) {
	deep := strings.Repeat(`[`, 1<<20)
	for name, history := range map[string]string{
		"deep":      deep + strings.Repeat(`]`, 1<<20),
		"open":      deep,
		"deep text": `[{"role":"user","content":` + deep + strings.Repeat(`]`, 1<<20) + `}]`,
		"large":     `[{"role":"user","content":"` + strings.Repeat("a", 5<<20) + `"}]`,
	} {
		var refused *task.ValidationError
		if _, _, err := task.Validate(request(t, history), now, task.Limits{}); !errors.As(err, &refused) || len(err.Error()) > 300 {
			t.Errorf("%s: %.300v", name, err)
		}
	}
	many := `[` + strings.Repeat(`{"role":"user","content":""},`, 100_000) + `{"role":"user","content":"end"}]`
	if made, _ := validated(t, many); len(made.Context.ConversationHistory.Messages) != 50 {
		t.Error("of many messages not 50 are kept")
	}
	long := request(t, `[{"role":"`+strings.Repeat("x", 1<<20)+`","content":""}]`)
	if _, _, err := task.Validate(long, now, task.Limits{}); err == nil || len(err.Error()) > 500 {
		t.Errorf("a long role: %.500v", err)
	}
}

func TestWhatIsTooLargeIsRefused(t *testing.T) {
	long := strings.Repeat("ä", 32_001)
	for want, request := range map[string]task.Request{
		"description has 32001 characters, at most 32000 are allowed":            {Description: long},
		"constraints has 201 items, at most 200 are allowed":                     {Description: "a", Constraints: make([]string, 201)},
		"constraints at index 1 has 32001 characters, at most 32000 are allowed": {Description: "a", Constraints: []string{"b", long}},
	} {
		if _, _, err := task.Validate(request, now, task.Limits{}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := task.Parse(bytes.Repeat([]byte(" "), 5<<20), task.Limits{}); err == nil {
		t.Error("5 MiB were parsed")
	}
}

func TestALargePromptIsWarnedOf(t *testing.T) {
	var messages []map[string]string
	for range 20 {
		messages = append(messages, message("user", strings.Repeat("word ", 1500)))
	}
	_, warnings := validated(t, messages)
	if len(warnings) != 1 || !strings.Contains(warnings[0].Message, "more than 20000") {
		t.Errorf("%+v", warnings)
	}
}

func TestAConversationOfTheLog(t *testing.T) {
	for history, want := range map[string]task.Source{
		`"conv_1"`:                     {ConversationID: "conv_1"},
		`{"conversation_id":"conv_1"}`: {ConversationID: "conv_1"},
		`{"conversation_id":"conv_1","from":3,"to":null}`: {ConversationID: "conv_1", From: 3},
		`{"conversation_id":"conv_1","from":3,"to":9}`:    {ConversationID: "conv_1", From: 3, To: 9},
	} {
		draft, _, err := task.Check(request(t, history), now, task.Limits{})
		if err != nil || draft.Task.Source == nil || *draft.Task.Source != want {
			t.Errorf("%s: %+v, %v", history, draft.Task.Source, err)
		}
		for i := range 60 {
			draft.Messages = append(draft.Messages, task.Message{Role: task.User, Content: fmt.Sprint(i)})
		}
		made, warnings, err := draft.Shape(t.Context(), nil)
		if err != nil || len(warnings) != 1 || made.Context.ConversationHistory.Messages[0].Content != "10" {
			t.Errorf("%s: %v, %v", history, warnings, err)
		}
	}
}

// What is stored is read back as it was.
func TestStoredTasks(t *testing.T) {
	made, _ := validated(t, `[{"role":"user","content":"Fix this","attachments":[{"type":"code","language":"go","content":"x := 1"}]},{"role":"assistant","content":"<b> & done"}]`)
	data, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	var back task.Task
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, *made) {
		t.Errorf("read back %+v, want %+v, %v", back, made, err)
	}
	var fields struct {
		Context struct {
			History map[string]json.RawMessage `json:"conversation_history"`
		} `json:"task_context"`
	}
	if err := json.Unmarshal(data, &fields); err != nil || len(fields.Context.History) != 4 {
		t.Errorf("the history is stored with %v", fields.Context.History)
	}
}
