package responses

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	_ "github.com/continuo-log/continuo/internal/rapidseed" // the same values in every run
	"pgregory.net/rapid"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

const provider = "openai"

// goesBack reads items as entries, stores and reads those, and writes them as items again, which must be the same.
func goesBack(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, items []json.RawMessage,
) []continuo.Entry {
	t.Helper()
	o := Options{Provider: provider}
	entries, _, err := Entries(items, o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var stored []continuo.Entry
	if err := json.Unmarshal(rawjson.MustMarshal(entries), &stored); err != nil {
		t.Fatalf("%v", err)
	}
	var back []json.RawMessage
	calls := map[string]continuo.ToolCall{}
	for i := range stored {
		for _, call := range stored[i].ToolCalls {
			calls[call.ID] = call
		}
		back = append(back, Items(&stored[i], calls[stored[i].ToolCallID], o)...)
	}
	if got, want := string(rawjson.MustMarshal(back)), string(rawjson.MustMarshal(items)); got != want {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		begin := max(at-200, 0)
		t.Fatalf("items came back changed at byte %d:\n got %.400s\nwant %.400s", at, got[begin:], want[begin:])
	}
	return entries
}

func raw(texts ...string) (items []json.RawMessage) {
	for _, text := range texts {
		items = append(items, json.RawMessage(text))
	}
	return items
}

const (
	userItem = `{"type":"message","role":"user","content":"hello"}`
	callA    = `{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\": 1}"}`
	callB    = `{"type":"function_call","call_id":"b","name":"g","arguments":"{}"}`
	outputA  = `{"type":"function_call_output","call_id":"a","output":"r"}`
	outputB  = `{"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"r"},{"type":"input_image","image_url":"data:image/png;base64,AA"}]}`
	thought  = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAA"}`
	said     = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"yes","annotations":[]}]}`
)

func TestItemsBecomeEntries(t *testing.T) {
	for _, test := range []struct {
		name  string
		items []json.RawMessage
		want  string // the entries, without vendor data
		kept  []bool // which have vendor data
	}{
		{"text", raw(userItem, `{"type":"message","role":"assistant","content":"hi"}`), `[{"role":"user","content":"hello"},{"role":"assistant","content":"hi"}]`, []bool{false, false}},
		{"easy message", raw(`{"role":"user","content":"hello"}`), `[{"role":"user","content":"hello"}]`, []bool{true}},
		{"developer", raw(`{"type":"message","role":"developer","content":[{"type":"input_text","text":"be brief"}]}`), `[{"role":"system","content":[{"type":"text","text":"be brief"}]}]`, []bool{true}},
		{"image and file", raw(`{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"https://example.com/a.png","detail":"high"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AA"},{"type":"input_image","file_id":"file_1"}]}`), `[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://example.com/a.png","detail":"high"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AA"}},{"type":"input_image","file_id":"file_1"}]}]`, []bool{false}},
		{
			"one round with parallel calls", raw(userItem, thought, said, callA, callB, outputB, outputA),
			`[{"role":"user","content":"hello"},{"role":"assistant","content":"yes","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}],"reasoning":{"text":"hm"}},{"role":"tool","content":[{"type":"text","text":"r"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}],"tool_call_id":"b"},{"role":"tool","content":"r","tool_call_id":"a"}]`,
			[]bool{false, true, false, false},
		},
		{
			"text after a call", raw(callA, `{"type":"message","role":"assistant","content":"wait"}`, outputA),
			`[{"role":"assistant","content":"wait","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}}]},{"role":"tool","content":"r","tool_call_id":"a"}]`,
			[]bool{true, false},
		},
		{
			"custom tool", raw(`{"type":"custom_tool_call","call_id":"c","name":"patch","input":"*** Begin"}`, `{"type":"custom_tool_call_output","call_id":"c","output":"done"}`),
			`[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"custom","custom":{"name":"patch","input":"*** Begin"}}]},{"role":"tool","content":"done","tool_call_id":"c"}]`,
			[]bool{false, false},
		},
		{
			"a shell of the client", raw(`{"type":"local_shell_call","id":"l","call_id":"s","status":"completed","action":{"type":"exec","command":["ls"]}}`, `{"type":"local_shell_call_output","call_id":"s","output":"{\"output\":\"a\"}"}`),
			`[{"role":"assistant","content":null,"tool_calls":[{"id":"s","type":"function","function":{"name":"local_shell","arguments":"{\"type\":\"exec\",\"command\":[\"ls\"]}"}}]},{"role":"tool","content":"{\"output\":\"a\"}","tool_call_id":"s"}]`,
			[]bool{true, true},
		},
		{"compaction and unknown items", raw(`{"type":"compaction","id":"c","encrypted_content":"gB"}`, `{"type":"acme:plan","steps":[1]}`, userItem), `[{"role":"assistant","content":""},{"role":"user","content":"hello"}]`, []bool{true, false}},
		{"an approval", raw(`{"type":"mcp_approval_response","approval_request_id":"m","approve":true}`), `[{"role":"user","content":[{"type":"mcp_approval_response","approval_request_id":"m","approve":true}]}]`, []bool{true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			entries := goesBack(t, test.items)
			var kept []bool
			for i := range entries {
				kept = append(kept, entries[i].Vendor != nil)
				entries[i].Vendor = nil
			}
			if got := string(rawjson.MustMarshal(entries)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if !slices.Equal(kept, test.kept) {
				t.Errorf("vendor data: %v, want %v", kept, test.kept)
			}
		})
	}
}

func TestEntriesNamesTheEntryOfEachItem(t *testing.T) {
	_, at, err := Entries(raw(userItem, thought, said, callA, outputA, userItem, said), Options{})
	if want := []int{0, 1, 1, 1, 2, 3, 4}; err != nil || !slices.Equal(at, want) {
		t.Errorf("got %v, %v, want %v", at, err, want)
	}
}

func TestEntriesRefuses(t *testing.T) {
	for _, text := range []string{`[]`, `{}`, `{"type":"item_reference","id":"msg_1"}`, `{"type":"message","role":"critic","content":"x"}`} {
		if _, _, err := Entries(raw(text), Options{Provider: provider}); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

// What the entry does not show any more is not sent back, but for reasoning, without its id.
func TestItemsOfAChangedEntry(t *testing.T) {
	o := Options{Provider: provider}
	entries, _, err := Entries(raw(thought, said, callA), o)
	if err != nil {
		t.Fatal(err)
	}
	entry := entries[0]
	entry.ToolCalls = slices.Clone(entry.ToolCalls)
	entry.ToolCalls[0].Arguments = `{"x":"[cut]"}`
	want := `[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAA"},{"type":"message","role":"assistant","content":"yes"},{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":\"[cut]\"}"}]`
	if got := string(rawjson.MustMarshal(Items(&entry, continuo.ToolCall{}, o))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	want = `[{"type":"message","role":"assistant","content":"yes"},{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":\"[cut]\"}"}]`
	if got := string(rawjson.MustMarshal(Items(&entry, continuo.ToolCall{}, Options{Provider: "other"}))); got != want {
		t.Errorf("to another provider: got  %s\nwant %s", got, want)
	}
}

// Reasoning is refused without an item of the model behind it.
func TestNoReasoningOfAnEntryThatShowsNothing(t *testing.T) {
	o := Options{Provider: provider}
	entries, _, err := Entries(raw(`{"type":"compaction","id":"c","encrypted_content":"gB"}`, thought, said), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []continuo.Content{continuo.Text(""), continuo.Null(), continuo.Parts(continuo.TextPart(""))} {
		entry := entries[0]
		entry.Content = content
		want := `[{"type":"compaction","id":"c","encrypted_content":"gB"}]`
		if got := string(rawjson.MustMarshal(Items(&entry, continuo.ToolCall{}, o))); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// What a request that is not stored must not have is left out.
func TestItemsThatMayBeSent(t *testing.T) {
	for _, test := range []struct{ name, items, want string }{
		{"reasoning without encrypted content", `[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"message","id":"msg_1","role":"assistant","content":"yes"}]`, `[{"type":"message","role":"assistant","content":"yes"}]`},
		{"reasoning at the end", `[` + said + `,` + thought + `]`, `[` + said + `]`},
		{"a call that was cut off", `[{"type":"function_call","id":"fc","status":"incomplete","call_id":"a","name":"f","arguments":"{"}]`, `[{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":"{"}]`},
		{"open reasoning", `[{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},` + said + `]`, `[{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},` + said + `]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var items []json.RawMessage
			if err := json.Unmarshal([]byte(test.items), &items); err != nil {
				t.Fatal(err)
			}
			o := Options{Provider: provider, Unstored: true}
			entries, _, err := Entries(items, o)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(rawjson.MustMarshal(Items(&entries[0], continuo.ToolCall{}, o))); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// Any sequence of valid items comes back as it was.
func TestAnyItemsGoBack(t *testing.T) {
	pool := []string{
		userItem, thought, said, callA, callB, outputA, outputB, `{"role":"user","content":""}`, `{"role":"assistant","content":""}`, `{"type":"message","role":"assistant","content":"plain"}`,
		`{"type":"message","role":"system","content":"x"}`, `{"type":"message","role":"user","content":[]}`, `{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`,
		`{"type":"web_search_call","id":"w","status":"completed"}`, `{"type":"mcp_list_tools","id":"m","tools":[]}`, `{"type":"compaction_trigger"}`,
		`{"type":"function_call_output","call_id":"a","output":""}`, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}`,
		`{"type":"function_call","call_id":"n","name":"append","namespace":"mcp__ours","arguments":"{}"}`,
	}
	rapid.Check(t, func(t *rapid.T) {
		goesBack(t, raw(rapid.SliceOfN(rapid.SampledFrom(pool), 0, 12).Draw(t, "items")...))
	})
}

// The input of each recorded request of Codex comes back as it was.
func TestRecordedInputsGoBack(t *testing.T) {
	folder := os.Getenv("CONTINUO_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	packed, err := os.Open(filepath.Join(folder, "agent-traffic", "codex.jsonl.gz"))
	if err != nil {
		t.Skipf("SKIPPED: no recorded requests: %v; set CONTINUO_DATA to the folder that holds agent-traffic", err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	lines, requests, items := bufio.NewReaderSize(unpacked, 1<<20), 0, 0
	for {
		line, err := lines.ReadBytes('\n')
		var recorded struct {
			Body string `json:"request_body"`
		}
		if len(bytes.TrimSpace(line)) > 0 && json.Unmarshal(line, &recorded) != nil {
			t.Fatalf("a line cannot be read: %.80s", line)
		}
		var request Request
		if recorded.Body != "" {
			if err := json.Unmarshal([]byte(recorded.Body), &request); err != nil {
				t.Fatal(err)
			}
			requests++
			items += len(request.Input)
			goesBack(t, request.Input)
		}
		if errors.Is(err, io.EOF) {
			break
		}
	}
	if t.Logf("%d requests with %d items", requests, items); requests < 80 {
		t.Errorf("only %d requests were compared", requests)
	}
}
