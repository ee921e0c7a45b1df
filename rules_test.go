package continuo_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
)

func user(text string) continuo.Entry {
	return continuo.Entry{Role: continuo.User, Content: continuo.Text(text)}
}

func assistant(text string) continuo.Entry {
	return continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(text)}
}

func calls(ids ...string) continuo.Entry {
	e := continuo.Entry{Role: continuo.Assistant, Content: continuo.Null()}
	for _, id := range ids {
		e.ToolCalls = append(e.ToolCalls, continuo.FunctionCall(id, "search", "{}"))
	}
	return e
}

func result(id, text string) continuo.Entry {
	return continuo.Entry{Role: continuo.Tool, ToolCallID: id, Content: continuo.Text(text)}
}

func TestTheLogAcceptsWhatCanBeShown(t *testing.T) {
	for name, log := range map[string][]continuo.Entry{
		"a chat":                {user("a"), assistant("b"), user("c")},
		"two users in a row":    {user("a"), user("b")},
		"parallel calls":        {user("a"), calls("1", "2"), result("2", "x"), result("1", "y"), assistant("z")},
		"an id used again":      {user("a"), calls("1"), result("1", "x"), calls("1"), result("1", "y")},
		"an assistant first":    {assistant("welcome"), user("a")},
		"a failed answer":       {user("a"), {Role: continuo.Assistant, Content: continuo.Null(), Error: &continuo.TurnError{Code: continuo.LLMError}}},
		"an empty answer":       {user("a"), assistant("")},
		"calls with text":       {user("a"), {Role: continuo.Assistant, Content: continuo.Text("let me see"), ToolCalls: calls("1").ToolCalls}, result("1", "")},
		"a hidden group":        {user("a"), {Role: continuo.Assistant, ToolCalls: calls("1").ToolCalls, Hidden: true}, {Role: continuo.Tool, ToolCallID: "1", Content: continuo.Text("x"), Hidden: true}, assistant("b")},
		"a repaired orphan":     {user("a"), {Role: continuo.Tool, ToolCallID: "9", Content: continuo.Text("x"), Hidden: true, Repairs: []string{"orphan_tool"}}, assistant("b")},
		"repaired inside group": {user("a"), calls("1"), {Role: continuo.Tool, ToolCallID: "9", Content: continuo.Text("x"), Hidden: true, Repairs: []string{"orphan_tool"}}, result("1", "x")},
	} {
		var group continuo.Group
		for i, entry := range log {
			if err := group.Accept(&entry); err != nil {
				t.Errorf("%s: entry %d: %v", name, i, err)
			}
		}
	}
}

func TestTheLogRefusesWhatCouldNotBeShown(t *testing.T) {
	for name, test := range map[string]struct {
		log  []continuo.Entry
		rule continuo.Rule
	}{
		"a result without a call":         {[]continuo.Entry{user("a"), result("1", "x")}, continuo.RuleOrphanTool},
		"a result for another call":       {[]continuo.Entry{user("a"), calls("1"), result("2", "x")}, continuo.RuleUnknownCallID},
		"a second result":                 {[]continuo.Entry{user("a"), calls("1", "2"), result("1", "x"), result("1", "y")}, continuo.RuleDuplicateAnswer},
		"a second result at the end":      {[]continuo.Entry{user("a"), calls("1"), result("1", "x"), result("1", "y")}, continuo.RuleDuplicateAnswer},
		"a result for an older call":      {[]continuo.Entry{calls("1"), result("1", "x"), assistant("b"), result("1", "y")}, continuo.RuleOrphanTool},
		"a user in an open group":         {[]continuo.Entry{user("a"), calls("1"), user("b")}, continuo.RuleUnanswered},
		"an event in an open group":       {[]continuo.Entry{user("a"), calls("1"), {Role: continuo.Assistant, Content: continuo.Text("x"), Hidden: true}}, continuo.RuleUnanswered},
		"calls in an open group":          {[]continuo.Entry{user("a"), calls("1"), calls("2")}, continuo.RuleUnanswered},
		"a hidden result":                 {[]continuo.Entry{calls("1"), {Role: continuo.Tool, ToolCallID: "1", Content: continuo.Text("x"), Hidden: true}}, continuo.RuleHiddenResult},
		"a shown result of a hidden call": {[]continuo.Entry{{Role: continuo.Assistant, ToolCalls: calls("1").ToolCalls, Hidden: true}, result("1", "x")}, continuo.RuleHiddenResult},
		"an unknown role":                 {[]continuo.Entry{{Role: "model", Content: continuo.Text("x")}}, continuo.RuleUnknownRole},
		"an unknown mode":                 {[]continuo.Entry{{Role: continuo.User, Content: continuo.Text("x"), Mode: "fast"}}, continuo.RuleModeUnknown},
		"a user without content":          {[]continuo.Entry{{Role: continuo.User}}, continuo.RuleNullContent},
		"a tool with null":                {[]continuo.Entry{calls("1"), {Role: continuo.Tool, ToolCallID: "1", Content: continuo.Null()}}, continuo.RuleNullContent},
		"an empty list of parts":          {[]continuo.Entry{{Role: continuo.User, Content: continuo.Parts()}}, continuo.RuleNullContent},
		"an assistant with nothing":       {[]continuo.Entry{{Role: continuo.Assistant, Content: continuo.Null()}}, continuo.RuleEmptyAssistant},
		"calls of a user":                 {[]continuo.Entry{{Role: continuo.User, Content: continuo.Text("x"), ToolCalls: calls("1").ToolCalls}}, continuo.RuleMisplacedCalls},
		"a call without an id":            {[]continuo.Entry{calls("")}, continuo.RuleMissingCallID},
		"one id twice":                    {[]continuo.Entry{calls("1", "1")}, continuo.RuleDuplicateCallID},
		"a call without a name":           {[]continuo.Entry{{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{{ID: "1", Type: "function"}}}}, continuo.RuleBadFunction},
		"a result without an id":          {[]continuo.Entry{calls("1"), {Role: continuo.Tool, Content: continuo.Text("x")}}, continuo.RuleToolMissingID},
		"a year beyond RFC 3339":          {[]continuo.Entry{{Role: continuo.User, Content: continuo.Text("x"), CreatedAt: time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))}}, continuo.RuleInvalidJSON},
		"a part that is no part":          {[]continuo.Entry{{Role: continuo.User, Content: continuo.Parts(continuo.Part{Type: "text", Text: "x"})}}, continuo.RuleInvalidJSON},
		"broken text":                     {[]continuo.Entry{user("a\xffb")}, continuo.RuleInvalidUTF8},
		"broken arguments":                {[]continuo.Entry{{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{continuo.FunctionCall("1", "f", "\xff")}}}, continuo.RuleInvalidUTF8},
	} {
		var group continuo.Group
		last := len(test.log) - 1
		for i := range last {
			if err := group.Accept(&test.log[i]); err != nil {
				t.Fatalf("%s: entry %d: %v", name, i, err)
			}
		}
		before := group
		err := group.Accept(&test.log[last])
		if err == nil || err.Rule != test.rule {
			t.Errorf("%s: got %v, want the rule %s", name, err, test.rule)
		}
		if !slices.Equal(before.Open, group.Open) {
			t.Errorf("%s: a refused entry changed the state", name)
		}
	}
}

func TestEntriesKeepWhatTheProtocolHas(t *testing.T) {
	for _, text := range []string{
		`{"role":"user","content":"a <b> & c \u2028 \u0000 😀"}`,
		`{"role":"user","content":[{"text":"x","type":"text","cache_control":{"ttl":"5m","type":"ephemeral"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\" : 1.0e5, \"a\":2"},"extra_content":{"google":{"thought_signature":"x"}}}]}`,
		`{"role":"assistant","tool_calls":[{"id":"call_1","type":"custom","custom":{"name":"f","input":"raw text"}}]}`,
		`{"role":"tool","content":"","tool_call_id":"call_1"}`,
		`{"role":"assistant","content":"x","include_in_context":false}`,
		`{"role":"assistant","content":"half","error":{"code":"LLM_ERROR","reason":"timeout","message":"m","retryable":true,"partial_tool_calls":[{"name":"f","arguments":"{\"a"}]}}`,
	} {
		var entry continuo.Entry
		if err := json.Unmarshal([]byte(text), &entry); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		data, err := entry.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := normal(t, data), normal(t, []byte(text)); got != want {
			t.Errorf("came in as  %s\nwent out as %s", want, got)
		}
		if strings.Contains(text, "1.0e5") && entry.ToolCalls[0].Arguments != `{"a" : 1.0e5, "a":2` {
			t.Errorf("arguments: %q", entry.ToolCalls[0].Arguments)
		}
	}
}

func normal(t *testing.T, data []byte) string {
	t.Helper()
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	out, _ := json.Marshal(value)
	return string(out)
}

func TestContentDistinguishesAbsentNullAndEmpty(t *testing.T) {
	for text, want := range map[string]string{
		`{"role":"user"}`:                "absent",
		`{"role":"user","content":null}`: "null",
		`{"role":"user","content":""}`:   "empty",
		`{"role":"user","content":[]}`:   "parts",
	} {
		var entry continuo.Entry
		if err := json.Unmarshal([]byte(text), &entry); err != nil {
			t.Fatal(err)
		}
		c := entry.Content
		got := map[bool]string{true: "absent"}[c.IsZero()]
		switch {
		case c.IsZero():
		case c.IsNull():
			got = "null"
		case c.IsText() && c.String() == "":
			got = "empty"
		case c.IsParts():
			got = "parts"
		}
		if got != want {
			t.Errorf("%s is read as %s", text, got)
		}
	}
}
