package request_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/gateway/request"
	"github.com/continuo-log/continuo/internal/rawjson"
)

func TestReadChat(t *testing.T) {
	body := `{"model":"m","stream":true,"max_tokens":7,"temperature":0.5,"tool_choice":"auto","x":1,
	"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}},{"type":"custom","custom":{"name":"c"}}],
	"messages":[{"role":"developer","content":"be brief"},{"role":"system","content":[{"type":"text","text":"and kind"}]},
	{"role":"user","content":"hi"},
	{"role":"assistant","content":null,"reasoning_content":"hm","refusal":null,"reasoning_details":[1],"tool_calls":[
	  {"id":"a","type":"function","function":{"name":"f","arguments":"{ }"}},{"id":"b","type":"custom","custom":{"name":"c","input":"x"}}]},
	{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"2"}]},
	{"role":"system","content":"later"}]}`
	r, err := request.ReadChat([]byte(body), request.Options{Provider: "p"})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Problems) > 0 {
		t.Errorf("problems: %v", r.Problems)
	}
	if !slices.Equal(r.System, []string{"be brief", "and kind"}) || r.Model != "m" || !r.Stream || r.MaxOutputTokens != 7 || *r.Temperature != .5 {
		t.Errorf("got %+v", r)
	}
	if len(r.Tools) != 1 || r.Tools[0].Name != "f" || len(r.OtherTools) != 1 || string(r.ToolChoice) != `"auto"` || string(r.Fields.Get("x")) != "1" {
		t.Errorf("tools %+v, others %s, choice %s", r.Tools, r.OtherTools, r.ToolChoice)
	}
	want := []string{
		`{"role":"user","content":"hi"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{ }"}},` +
			`{"id":"b","type":"custom","custom":{"name":"c","input":"x"}}],"reasoning":{"text":"hm"},"vendor":{"p":{"reasoning_details":[1]}}}`,
		`{"role":"tool","content":"1","tool_call_id":"a"}`, `{"role":"tool","content":[{"type":"text","text":"2"}],"tool_call_id":"b"}`,
		`{"role":"system","content":"later"}`,
	}
	checkEntries(t, r, want)
	if m := r.Messages[2]; body[m.Start:m.End] != `{"role":"user","content":"hi"}` || m.First != 0 || m.Count != 1 {
		t.Errorf("the message of the user is %+v", m)
	}
	if m := r.Messages[0]; m.Count != 0 || !strings.HasPrefix(body[m.Start:], `{"role":"developer"`) {
		t.Errorf("the message of the developer is %+v", m)
	}
}

func TestReadAnthropic(t *testing.T) {
	body := `{"model":"m","max_tokens":7,"system":[{"type":"text","text":"one"},{"type":"text","text":"two","cache_control":{"type":"ephemeral"}}],
	"tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}},{"type":"web_search_20250305","name":"web_search"}],
	"output_config":{"format":{"type":"json_schema"}},
	"messages":[{"role":"user","content":"hi"},{"role":"system","content":[]},
	{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s=="},{"type":"redacted_thinking","data":"x"},
	  {"type":"tool_use","id":"t1","name":"f","input":{"a": 1}}]},
	{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"r","cache_control":{"type":"ephemeral"}}],"is_error":true},
	  {"type":"text","text":"go on","cache_control":{"type":"ephemeral"}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"}}]}]}`
	r, err := request.ReadAnthropic([]byte(body), request.Options{Provider: "anthropic"})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Problems) > 0 {
		t.Errorf("problems: %v", r.Problems)
	}
	if !slices.Equal(r.System, []string{"one", "two"}) || len(r.Tools) != 1 || len(r.OtherTools) != 1 || string(r.ResponseFormat) != `{"type":"json_schema"}` {
		t.Errorf("got %+v", r)
	}
	checkEntries(t, r, []string{
		`{"role":"user","content":"hi"}`, `{"role":"system","content":""}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}],` +
			`"reasoning":{"text":"hm","signature":"s=="},"vendor":{"anthropic":{"content":[{"type":"thinking","thinking":"hm","signature":"s=="},` +
			`{"type":"redacted_thinking","data":"x"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}]}}}`,
		`{"role":"tool","content":"r","tool_call_id":"t1","vendor":{"anthropic":{"block":{"type":"tool_result","tool_use_id":"t1",` +
			`"content":[{"type":"text","text":"r"}],"is_error":true}}},"extra":{"is_error":true}}`,
		`{"role":"user","content":[{"type":"text","text":"go on"},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"}}]` +
			`,"vendor":{"anthropic":{"content":[{"type":"text","text":"go on"},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"}}]}}}`,
	})
	if m := r.Messages[3]; m.First != 3 || m.Count != 2 {
		t.Errorf("the last message is %+v", m)
	}
}

func checkEntries(t *testing.T, r *request.Request, want []string) {
	t.Helper()
	for i := range max(len(want), len(r.Entries)) {
		switch {
		case i >= len(r.Entries):
			t.Errorf("no entry %s", want[i])
		case i >= len(want) || string(rawjson.MustMarshal(&r.Entries[i])) != want[i]:
			t.Errorf("entry %d: got %s", i, rawjson.MustMarshal(&r.Entries[i]))
		}
	}
}

func TestProblems(t *testing.T) {
	for _, test := range []struct {
		name, messages string
		want           []string
	}{
		{"a result without a call", `{"role":"user","content":"x"},{"role":"tool","tool_call_id":"a","content":"1"}`, []string{"1 1 orphan_tool"}},
		{"a call without a result", `{"role":"system","content":"s"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"x"},{"role":"assistant","content":"y"}`, []string{"2 2 unanswered"}},
		{"nothing", `{"role":"assistant","content":null},{"role":"user","content":"x"}`, []string{"0 0 empty_assistant"}},
		{"an unknown role", `{"role":"moderator","content":"x"}`, []string{"0 0 unknown_role"}},
		{"open calls at the end", `{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := request.ReadChat([]byte(`{"model":"m","messages":[`+test.messages+`]}`), request.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range r.Problems {
				if !errors.Is(p, continuo.ErrInvalid) {
					t.Errorf("%v is not ErrInvalid", p)
				}
				got = append(got, strings.Join([]string{string(rune('0' + p.Message)), string(rune('0' + p.Entry)), string(p.Rule)}, " "))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestBadBodies(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{`[]`, "the body must be a JSON object"},
		{`{"messages":[}`, "the body is not valid JSON: invalid character '}' looking for beginning of value"},
		{`{"model":"m"}`, "messages: must be a list of messages, not nothing"},
		{`{"messages":[1]}`, "messages[0]: must be an object, not a number"},
		{`{"messages":[{"role":1}]}`, "messages[0]: field role must be a string, not a number"},
		{`{"messages":[],"model":3}`, "model: must be a string, not a number"},
		{`{"messages":[],"tools":[{"type":"function"}]}`, "tools[0].function: must be an object with a name"},
		{`{"messages":[],"tools":{}}`, "tools: must be a list of tools, not an object"},
	} {
		_, err := request.ReadChat([]byte(test.body), request.Options{})
		var typed *request.Error
		if err == nil || err.Error() != test.want || !errors.Is(err, continuo.ErrInvalid) || !errors.As(err, &typed) {
			t.Errorf("%s: got %v, want %s", test.body, err, test.want)
		}
	}
}
