package interchange

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
)

const anthropicList = `[
 {"role":"user","content":"plain"},
 {"role":"assistant","content":"plain too"},
 {"role":"user","content":[{"type":"text","text":"list"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]},
 {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"f","input":{"x": [1, 2]}},{"type":"tool_use","id":"b","name":"g","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":3}},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},{"type":"text","text":"and?","cache_control":{"type":"ephemeral"}},{"type":"tool_result","tool_use_id":"a","content":"failed","is_error":true}],"timestamp":"2026-01-02T03:04:05Z"},
 {"role":"assistant","content":[{"type":"text","text":"Before"},{"type":"server_tool_use","id":"s","name":"web_search","input":{"q":1}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]},{"type":"text","text":"after,","citations":[]},{"type":"text","text":" joined"}]},
 {"role":"user","content":[{"type":"document","source":{"type":"text","data":"d"}}]},
 {"role":"system","content":[{"type":"text","text":"now an admin"}]},
 {"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},
 {"role":"assistant","content":[{"type":"tool_use","id":"c2","name":"f","input":{}}]},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"c"},{"type":"tool_result","tool_use_id":"c2","content":""}]},
 {"role":"assistant","content":[]},
 {"role":"user","content":[]}
]`

func TestAnthropicMessages(t *testing.T) {
	document, err := Messages(json.RawMessage(anthropicList), "")
	if err != nil {
		t.Fatal(err)
	}
	if document.Format != FormatAnthropic {
		t.Errorf("taken for %s", document.Format)
	}
	equal(t, "entries", briefs(document.Entries), []string{
		`user "plain"`,
		`assistant "plain too"`,
		`user [{"type":"text","text":"list"},{"image_url":{"url":"data:image/png;base64,AAAA"},"type":"image_url"},{"image_url":{"url":"https://x/y.png"},"type":"image_url"}]`,
		`assistant "I look." call a=f({"x": [1, 2]}) call b=g({})`,
		"tool for b \"one\\ntwo\"",
		`tool for a "failed"`,
		`user [{"type":"text","text":"and?"}]`,
		"assistant \"Before\\n\\nafter, joined\"",
		`user [{"type":"document","source":{"type":"text","data":"d"}}]`,
		`system [{"type":"text","text":"now an admin"}]`,
		`assistant null call c=f({})`,
		`tool for c "" [late_result]`,
		`assistant null call c2=f({})`,
		`tool for c2 ""`,
		`assistant "" [null_content]`,
		`user "" [null_content]`,
	})
	vendor := map[int]string{
		3:  `{"content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"f","input":{"x":[1,2]}},{"type":"tool_use","id":"b","name":"g","input":{}}]}`,
		4:  `{"block":{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}}`,
		6:  `{"content":[{"type":"text","text":"and?","cache_control":{"type":"ephemeral"}}]}`,
		7:  `{"content":[{"type":"text","text":"Before"},{"type":"server_tool_use","id":"s","name":"web_search","input":{"q":1}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]},{"type":"text","text":"after,","citations":[]},{"type":"text","text":" joined"}]}`,
		8:  `{"content":[{"type":"document","source":{"type":"text","data":"d"}}]}`,
		11: `{"block":{"type":"tool_result","tool_use_id":"c"}}`,
	}
	for i, e := range document.Entries {
		if got := string(e.Vendor["anthropic"]); got != vendor[i] {
			t.Errorf("entry %d has the vendor data %s instead of %s", i, got, vendor[i])
		}
	}
	if r := document.Entries[3].Reasoning; r == nil || *r != (continuo.Reasoning{Text: "hm", Signature: "sig"}) {
		t.Errorf("reasoning %v", r)
	}
	if got := string(document.Entries[5].Extra); got != `{"is_error":true}` {
		t.Errorf("the failed result has the unknown fields %s", got)
	}
	if at := document.Entries[6].CreatedAt; !at.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("the message's time became %v", at)
	}
	for i, want := range map[int]string{4: `{"index":4,"blocks":[0]}`, 6: `{"index":4,"blocks":[1]}`, 7: `{"index":5}`, 1: `{"index":1,"string":true}`} {
		if !strings.HasPrefix(string(document.Entries[i].Vendor["interchange"]), want[:len(want)-1]) {
			t.Errorf("entry %d has the record %s instead of %s", i, document.Entries[i].Vendor["interchange"], want)
		}
	}
	checkLaws(t, document, []byte(anthropicList))
}

func TestFailureOfAResultIsTheBlocks(t *testing.T) {
	list := `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","is_error":"message","content":[{"type":"tool_result","tool_use_id":"a","content":"x","is_error":true}]}]`
	document, err := Messages(json.RawMessage(list), "")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(document.Entries[1].Extra); got != `{"is_error":true}` {
		t.Errorf("unknown fields %s", got)
	}
	checkLaws(t, document, []byte(list))
}

func TestAnthropicRepairs(t *testing.T) {
	tests := []struct {
		name, list string
		entries    []string
	}{
		{
			"same id twice, blocks that must be kept", `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{},"caller":1},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[]},{"type":"tool_result","tool_use_id":"a","content":[]},{"type":"tool_result","tool_use_id":"z"}]}]`,
			[]string{`assistant null call a=f({}) call a_2=f({}) [duplicate_call_id]`, `tool for a ""`, `tool for a_2 "" [duplicate_call_id]`, `tool for z "" hidden [unknown_call_id]`},
		},
		{
			"no name, no input, no id", `[{"role":"assistant","content":[{"type":"tool_use"}]},{"role":"user","content":[{"type":"tool_result","content":"x"},{"type":"text","text":"y"}]}]`,
			[]string{`assistant null call call_import_0_0=unknown({}) [bad_function missing_call_id]`, `tool for call_import_0_0 "x" [tool_missing_id]`, `user [{"type":"text","text":"y"}]`},
		},
		{
			"role tool", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"q"}]},{"role":"tool","content":"x"}]`,
			[]string{`tool for q "" hidden [orphan_tool]`, `user "x" [unknown_role]`},
		},
		{
			"redacted thinking", `[{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"s"},{"type":"redacted_thinking","data":"zz"},{"type":"thinking","thinking":"b","signature":"t"}]}]`,
			[]string{`assistant`},
		},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			document, err := Messages(json.RawMessage(c.list), FormatAnthropic)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "entries", briefs(document.Entries), c.entries)
			checkLaws(t, document, []byte(c.list))
			for _, e := range document.Entries {
				if strings.Contains(strings.Join(e.Repairs, " "), "call_id") && !e.Hidden && e.Vendor["anthropic"] != nil {
					t.Errorf("%s would be sent with its old ids: %s", brief(e), e.Vendor["anthropic"])
				}
			}
		})
	}
}

func TestUnifiedPredecessor(t *testing.T) {
	source := `{"id":"c1","title":"Plan","activeType":"agent","updatedAt":"x","messages":[
	 {"id":"m1","role":"user","createdAt":"2025-01-02T03:04:05.678Z","content":"hi","mode":"chat"},
	 {"id":"m2","role":"assistant","createdAt":"2025-01-02T03:04:06Z","content":"ran it","partType":"tool","toolName":"fs.read","duration":12.6,"isCollapsed":true,"widget":{"kind":"table"},"runId":"r1","workflowId":"w1","agentId":"a1","mode":"run","custom":{"x":1}},
	 {"id":"m3","role":"system","createdAt":"no time","content":"for people","includeInContext":false,"isCollapsed":false},
	 {"id":"m4","role":"assistant","content":"x","mode":"other","duration":"long","includeInContext":true}
	]}`
	document := readOne(t, []byte(source), Options{})
	if document.Format != FormatUnified || document.Conversation.Title != "Plan" || document.Conversation.ActiveMode != continuo.ModeAgent {
		t.Errorf("read as %s with %+v", document.Format, document.Conversation)
	}
	want := continuo.Entry{
		Role: continuo.Assistant, Content: continuo.Text("ran it"), CreatedAt: time.Date(2025, 1, 2, 3, 4, 6, 0, time.UTC),
		PartType: "tool", ToolName: "fs.read", DurationMS: 13, IsCollapsed: true, Widget: json.RawMessage(`{"kind":"table"}`),
		RunID: "r1", WorkflowID: "w1", AgentID: "a1", Mode: continuo.ModeRun,
		Extra:  json.RawMessage(`{"id":"m2","createdAt":"2025-01-02T03:04:06Z","custom":{"x":1}}`),
		Vendor: map[string]json.RawMessage{"interchange": json.RawMessage(`{"index":1,"fields":{"duration":12.6}}`)},
	}
	if !reflect.DeepEqual(document.Entries[1], want) {
		t.Errorf("the entry became\n%+v instead of\n%+v", document.Entries[1], want)
	}
	if e := document.Entries[2]; !e.Hidden || e.Repairs != nil || !e.CreatedAt.Equal(want.CreatedAt) { // it says no time of its own
		t.Errorf("the event for people became %+v", e)
	}
	if e := document.Entries[3]; e.Hidden || e.Mode != "" || e.DurationMS != 0 {
		t.Errorf("fields that cannot be held became %+v", e)
	}
	checkLawsOf(t, document, []byte(source))
}

// checkLawsOf is checkLaws for sources of which a model is not shown everything in the same order.
func checkLawsOf(t *testing.T, document Document, source []byte) {
	t.Helper()
	log, conversation := imported(t, document)
	if back := exported(t, log, conversation, ""); !reflect.DeepEqual(decoded(t, back), decoded(t, source)) {
		t.Errorf("the source is not given back:\n got %s\nwant %s", back, source)
	}
	sameOwn(t, log, conversation)
}

func TestRepairedResultOfAHiddenCall(t *testing.T) {
	source := `[{"role":"assistant","content":null,"includeInContext":false,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},
	 {"role":"tool","tool_call_id":"a","content":null,"includeInContext":false},{"role":"user","content":"hi"}]`
	document := readOne(t, []byte(source), Options{})
	equal(t, "entries", briefs(document.Entries), []string{`assistant null call a=f({}) hidden`, `tool for a "" hidden`, `user "hi"`})
	checkLaws(t, document, []byte(source))
}

func TestHiddenBySourceInsideAGroup(t *testing.T) {
	source := `[{"role":"assistant","createdAt":"x","content":null,"includeInContext":false,"tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}},{"id":"a","function":{"name":"f","arguments":"{}"}}]},
	 {"role":"tool","tool_call_id":"a","content":null,"includeInContext":false},
	 {"role":"user","content":"hi","createdAt":"x","includeInContext":false}]`
	document := readOne(t, []byte(source), Options{})
	if len(document.Repairs) != 4 {
		t.Errorf("repairs %v", document.Repairs)
	}
	checkLaws(t, document, []byte(source))
}

func TestGroupsAreShownWhole(t *testing.T) {
	for _, hidden := range []string{"true,false", "false,true"} {
		call, result, _ := strings.Cut(hidden, ",")
		source := `[{"role":"assistant","content":null,"includeInContext":` + call + `,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},
	 {"role":"tool","tool_call_id":"a","content":"1","includeInContext":` + result + `}]`
		document := readOne(t, []byte(source), Options{})
		for _, e := range document.Entries {
			if e.Hidden != (call == "false") {
				t.Errorf("includeInContext %s: %s", hidden, brief(e))
			}
		}
		checkLaws(t, document, []byte(source))
	}
}

const pipelineMessages = `[
	{"role":"user","content":"Hello","timestamp":"2024-01-15T10:25:00"},
	{"role":"agent","agent_name":"qwen","role_name":"backend_dev","role_display_name":"Backend Dev","content":"Hi, I'm ready...","timestamp":"2024-01-15T10:26:00.5"},
	{"role":"agent","content":".....","agent_name":"","timestamp":"2024-01-15 10:27"}]`

func TestPipeline(t *testing.T) {
	whole := `{"metadata":{"chat_id":12345,"message_count":5,"version":"1.0"},"conversation":` + pipelineMessages + `}`
	for name, source := range map[string]string{"with metadata": whole, "bare list": pipelineMessages} {
		t.Run(name, func(t *testing.T) {
			document := readOne(t, []byte(source), Options{})
			if document.Format != FormatPipeline || len(document.Repairs) > 0 {
				t.Errorf("read as %s with the repairs %v", document.Format, document.Repairs)
			}
			equal(t, "entries", briefs(document.Entries), []string{`user "Hello"`, `assistant "Hi, I'm ready..."`, `assistant "....."`})
			e := document.Entries[1]
			if want := (continuo.Author{RoleName: "backend_dev", DisplayName: "Backend Dev", AgentName: "qwen"}); e.Author == nil || *e.Author != want {
				t.Errorf("the author became %v", e.Author)
			}
			if want := time.Date(2024, 1, 15, 10, 26, 0, 5e8, time.UTC); !e.CreatedAt.Equal(want) {
				t.Errorf("the time became %v", e.CreatedAt)
			}
			if want := time.Date(2024, 1, 15, 10, 27, 0, 0, time.UTC); !document.Entries[2].CreatedAt.Equal(want) {
				t.Errorf("the time became %v", document.Entries[2].CreatedAt)
			}
			checkLawsOf(t, document, []byte(source))
		})
	}
}

func TestUnknownFieldsKeepTheirOrder(t *testing.T) {
	document, err := Messages(json.RawMessage(`[{"zeta":1.0,"role":"user","content":"x","alpha":{"b":1,"a":2},"name":"Ann","ts":"12:01"}]`), "")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(document.Entries[0].Extra); got != `{"zeta":1.0,"alpha":{"b":1,"a":2},"ts":"12:01"}` {
		t.Errorf("unknown fields became %s", got)
	}
	if e := document.Entries[0]; !e.CreatedAt.IsZero() || e.Name != "Ann" {
		t.Errorf("time %v, name %q", e.CreatedAt, e.Name)
	}
}

func TestReasoningOfOpenAIServers(t *testing.T) {
	list := `[{"role":"assistant","content":"a","reasoning_content":"one"},{"role":"assistant","content":"b","reasoning":"two"},{"role":"assistant","content":null,"reasoning":"","reasoning_content":"three"}]`
	document, err := Messages(json.RawMessage(list), "")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"one", "two", "three"} {
		if r := document.Entries[i].Reasoning; r == nil || r.Text != want {
			t.Errorf("the reasoning of message %d became %v", i, r)
		}
	}
	checkLaws(t, document, []byte(list))
}

func TestFolderOfThePredecessor(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("outside.json", "secret")
	write("store/index.json", `[{"id":"b","title":"Second","createdAt":"2025-01-01"},{"id":"a","title":"First"},{"id":"gone"},{"id":"../outside"}]`)
	write("store/a/messages.json", `[{"id":"1","role":"user","content":"hi","createdAt":"2025-01-01T00:00:00Z"}]`)
	write("store/b/messages.json", `[]`)
	write("store/left/messages.json", `{"messages":[{"role":"user","content":"left"}]}`)
	write("store/notes/readme.txt", "x")
	var seen []string
	for document, err := range ReadFolder(filepath.Join(folder, "store"), Options{}) {
		line := strings.TrimPrefix(filepath.ToSlash(document.Source), filepath.ToSlash(folder)+"/store/") + " " + document.Conversation.Title
		if err != nil {
			line += " error"
		} else if document.Format != FormatUnified {
			t.Errorf("%s was read as %s", document.Source, document.Format)
		}
		seen = append(seen, line)
	}
	equal(t, "conversations", seen, []string{
		"b/messages.json Second", "a/messages.json First", "gone/messages.json  error", filepath.ToSlash(folder) + "/outside/messages.json  error", "left/messages.json ",
	})
	for _, index := range []string{`{"conversations":[{"id":"a","title":"First"}]}`, `{"a":{"title":"First"}}`} {
		write("store/index.json", index)
		for document, err := range ReadFolder(filepath.Join(folder, "store"), Options{}) {
			if err != nil || document.Conversation.Title != "First" {
				t.Errorf("with the index %s: %+v, %v", index, document.Conversation, err)
			}
			break
		}
	}
}

func TestFolderWithoutAnIndex(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"chat_2.json": pipelineMessages, "chat_1.json": `{"metadata":{},"conversation":[{"role":"user","content":"x"}]}`,
		"x.jsonl": `{"messages":[]}` + "\n" + `{"messages":[1]}`, "x.txt": "no",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var seen []string
	for document, err := range ReadFolder(folder, Options{}) {
		line := filepath.Base(document.Source) + " " + document.Format
		if err != nil {
			line = filepath.Base(document.Source) + " error"
		}
		seen = append(seen, line)
	}
	equal(t, "files", seen, []string{"chat_1.json, line 1 pipeline", "chat_2.json, line 1 pipeline", "x.jsonl, line 1 openai", "x.jsonl, line 2 error"})
	for _, err := range ReadFolder(t.TempDir(), Options{}) {
		if err == nil || !strings.Contains(err.Error(), "no index.json") {
			t.Errorf("an empty folder gives %v", err)
		}
	}
}

// TestWhatWasAppendedSince exports conversations that went on after their import.
func TestWhatWasAppendedSince(t *testing.T) {
	more := []continuo.Entry{
		{Role: continuo.User, Content: continuo.Parts(continuo.TextPart("look"), continuo.Part{Type: "image_url", Raw: json.RawMessage(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}`)})},
		{Role: continuo.Assistant, Content: continuo.Text("two calls"), ToolCalls: []continuo.ToolCall{continuo.FunctionCall("x", "f", `{"q":1}`), continuo.FunctionCall("y", "g", "broken")}},
		{Role: continuo.Tool, ToolCallID: "x", ToolName: "f", Content: continuo.Text("1")},
		{Role: continuo.Tool, ToolCallID: "y", ToolName: "g", Content: continuo.Text("2")},
		{Role: continuo.User, Content: continuo.Text("event"), Hidden: true},
		{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{continuo.FunctionCall("z", "h", "")}},
		{Role: continuo.Tool, ToolCallID: "z", ToolName: "h", Content: continuo.Text("3")},
		{Role: continuo.Assistant, Content: continuo.Text("end")},
	}
	tests := []struct{ name, list, want string }{
		{"openai", `[` + hi + `]`, `[{"role":"user","content":"hi"},{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]},
		 {"role":"assistant","content":"two calls","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"q\":1}"}},{"id":"y","type":"function","function":{"name":"g","arguments":"broken"}}]},
		 {"role":"tool","content":"1","tool_call_id":"x"},{"role":"tool","content":"2","tool_call_id":"y"},
		 {"role":"assistant","tool_calls":[{"id":"z","type":"function","function":{"name":"h","arguments":""}}]},{"role":"tool","content":"3","tool_call_id":"z"},{"role":"assistant","content":"end"}]`},
		{"anthropic", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"?","content":"lost"}]}]`, `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"?","content":"lost"}]},
		 {"role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}}]},
		 {"role":"assistant","content":[{"type":"text","text":"two calls"},{"type":"tool_use","id":"x","name":"f","input":{"q":1}},{"type":"tool_use","id":"y","name":"g","input":{"arguments":"broken"}}]},
		 {"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"1"},{"type":"tool_result","tool_use_id":"y","content":"2"}]},
		 {"role":"assistant","content":[{"type":"tool_use","id":"z","name":"h","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"z","content":"3"}]},
		 {"role":"assistant","content":[{"type":"text","text":"end"}]}]`},
		{"openai-legacy", `[{"role":"function","name":"q","content":"0"}]`, `[{"role":"function","name":"q","content":"0"},{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]},
		 {"role":"assistant","content":"two calls","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"q\":1}"}},{"id":"y","type":"function","function":{"name":"g","arguments":"broken"}}]},
		 {"role":"tool","content":"1","tool_call_id":"x"},{"role":"tool","content":"2","tool_call_id":"y"},
		 {"role":"assistant","function_call":{"name":"h","arguments":""}},{"role":"function","name":"h","content":"3"},{"role":"assistant","content":"end"}]`},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			document, err := Messages(json.RawMessage(c.list), "")
			if err != nil {
				t.Fatal(err)
			}
			if document.Format != c.name {
				t.Fatalf("taken for %s", document.Format)
			}
			log, conversation := imported(t, document)
			if _, err := log.Append(context.Background(), conversation.ID, more, continuo.AppendOptions{}); err != nil {
				t.Fatal(err)
			}
			conversation.LastSeq += int64(len(more))
			back := exported(t, log, conversation, FormatSource)
			if !reflect.DeepEqual(decoded(t, back), decoded(t, []byte(c.want))) {
				t.Errorf("exported\n%s instead of\n%s", back, c.want)
			}
		})
	}
}
