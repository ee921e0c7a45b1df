package gemini

import (
	"bufio"
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

const provider = "google"

// goesBack reads contents as entries, stores and reads those, and writes them as contents again, which must be the same.
func goesBack(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, contents []Content,
) []continuo.Entry {
	t.Helper()
	o := Options{Provider: provider}
	entries, _, err := Entries(contents, o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var stored []continuo.Entry
	if err := json.Unmarshal(rawjson.MustMarshal(entries), &stored); err != nil {
		t.Fatalf("%v", err)
	}
	want := append([]Content{}, contents...)
	for i := range want {
		if want[i].Role == "" {
			want[i].Role = "user"
		}
	}
	if got, want := string(rawjson.MustMarshal(Contents(stored, o))), string(rawjson.MustMarshal(want)); got != want {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		begin := max(at-200, 0)
		t.Fatalf("contents came back changed at byte %d:\n got %.500s\nwant %.500s\nentries %.3000s", at, got[begin:], want[begin:], rawjson.MustMarshal(entries))
	}
	return entries
}

func contentsOf(t *testing.T, text string) (contents []Content) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &contents); err != nil {
		t.Fatal(err)
	}
	return contents
}

func TestContentsBecomeEntries(t *testing.T) {
	for _, test := range []struct{ name, contents, want string }{
		{"text", `[{"role":"user","parts":[{"text":"hello"}]},{"role":"model","parts":[{"text":"hi"}]}]`, `[{"role":"user","content":"hello"},{"role":"assistant","content":"hi"}]`},
		{
			"pieces, a thought and a signature", `[{"role":"model","parts":[{"text":"hm","thought":true},{"text":"Hel"},{"text":"lo"},{"text":"","thoughtSignature":"c2ln"}]}]`,
			`[{"role":"assistant","content":"Hello","reasoning":{"text":"hm"}}]`,
		},
		{
			"parallel calls without ids",
			`[{"role":"model","parts":[{"text":"I look."},{"functionCall":{"name":"f","args":{"x":1}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"f","args":{"x":2}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"a"}}},{"functionResponse":{"name":"f","response":{"error":"b"}}}]}]`,
			`[{"role":"assistant","content":"I look.","tool_calls":[{"id":"call_0","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"x\":2}"}}]},{"role":"tool","content":"a","tool_call_id":"call_0"},{"role":"tool","content":"b","tool_call_id":"call_1","part_type":"tool_error"}]`,
		},
		{
			"calls with ids, answered in another order, and a text in the same content",
			`[{"role":"model","parts":[{"functionCall":{"id":"a","name":"f"}},{"functionCall":{"id":"b","name":"g","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"b","name":"g","response":{"rows":[1]}}},{"functionResponse":{"id":"a","name":"f","response":{"output":"r"}}},{"text":"and now?"}]}]`,
			`[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","content":"{\"rows\":[1]}","tool_call_id":"b"},{"role":"tool","content":"r","tool_call_id":"a"},{"role":"user","content":"and now?"}]`,
		},
		{
			"an image, a file and an unknown part", `[{"parts":[{"text":"see"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"inline_data":{"mime_type":"application/pdf","data":"AAAA"}},{"fileData":{"fileUri":"files/1"}}]}]`,
			`[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}},{"type":"gemini_part","part":{"fileData":{"fileUri":"files/1"}}}]}]`,
		},
		{
			"code that the provider ran", `[{"role":"model","parts":[{"text":"I compute."},{"executableCode":{"language":"PYTHON","code":"1+1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"2"}},{"text":"Two."}]}]`,
			`[{"role":"assistant","content":"I compute.\n\nTwo."}]`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			entries := goesBack(t, contentsOf(t, test.contents))
			for i := range entries {
				entries[i].Vendor = nil
			}
			if got := string(rawjson.MustMarshal(entries)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestEntriesNamesTheFirstEntryOfEachContent(t *testing.T) {
	_, at, err := Entries(contentsOf(t, `[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"f"}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}},{"functionResponse":{"name":"f","response":{}}},{"text":"b"}]},{"role":"model","parts":[]}]`), Options{})
	if want := []int{0, 1, 2, 5}; err != nil || !slices.Equal(at, want) {
		t.Errorf("got %v, %v, want %v", at, err, want)
	}
}

func TestEntriesRefuses(t *testing.T) {
	for _, text := range []string{`[{"role":"system","parts":[]}]`, `[{"role":"user","parts":["x"]}]`, `[{"role":"model","parts":[{"functionCall":"f"}]}]`} {
		if _, _, err := Entries(contentsOf(t, text), Options{Provider: provider}); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

// A call that is shown with other arguments keeps its signature; to another provider there is none, or the dummy.
func TestPartsOfAChangedEntry(t *testing.T) {
	entries, _, err := Entries(contentsOf(t, `[{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"id":"a","name":"f","args":{"x":1}},"thoughtSignature":"c2ln"}]}]`), Options{Provider: provider})
	if err != nil {
		t.Fatal(err)
	}
	entry := entries[0]
	entry.ToolCalls = append([]continuo.ToolCall{}, entry.ToolCalls...)
	entry.ToolCalls[0].Arguments = `{"x":"[cut]"}`
	for _, test := range []struct {
		o    Options
		want string
	}{
		{Options{Provider: provider}, `[{"functionCall":{"name":"f","args":{"x":"[cut]"}},"thoughtSignature":"c2ln"}]`},
		{Options{Provider: "other"}, `[{"functionCall":{"name":"f","args":{"x":"[cut]"}}}]`},
		{Options{Provider: "other", SignCalls: true}, `[{"functionCall":{"name":"f","args":{"x":"[cut]"}},"thoughtSignature":"skip_thought_signature_validator"}]`},
	} {
		if got := string(rawjson.MustMarshal(Parts(&entry, Answered{}, test.o))); got != test.want {
			t.Errorf("%+v: got %s, want %s", test.o, got, test.want)
		}
	}
}

// Any sequence of contents comes back as it was.
func TestAnyContentsGoBack(t *testing.T) {
	pool := []string{
		`{"text":"hello"}`, `{"text":""}`, `{"text":"hm","thought":true}`, `{"text":"x","thoughtSignature":"c2ln"}`, `{"functionCall":{"name":"f","args":{}}}`,
		`{"functionCall":{"id":"a","name":"g"},"thought_signature":"c2ln"}`, `{"functionResponse":{"name":"f","response":{"output":"r"}}}`,
		`{"function_response":{"id":"a","name":"g","response":{"x":1}}}`, `{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`, `{"executableCode":{"code":"1"}}`,
		`{"functionResponse":{"name":"f","response":{"output":"r"},"parts":[{"inlineData":{}}]}}`, `{"hologram":1}`,
	}
	rapid.Check(t, func(t *rapid.T) {
		goesBack(t, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Content {
			content := Content{Role: rapid.SampledFrom([]string{"user", "model"}).Draw(t, "role"), Parts: []json.RawMessage{}}
			for _, part := range rapid.SliceOfN(rapid.SampledFrom(pool), 0, 4).Draw(t, "parts") {
				content.Parts = append(content.Parts, json.RawMessage(part))
			}
			return content
		}), 1, 5).Draw(t, "contents"))
	})
}

// The contents of each recorded request of Gemini CLI come back as they were.
func TestRecordedContentsGoBack(t *testing.T) {
	folder := os.Getenv("CONTINUO_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	packed, err := os.Open(filepath.Join(folder, "agent-traffic", "gemini.jsonl.gz"))
	if err != nil {
		t.Skipf("SKIPPED: no recorded requests: %v; set CONTINUO_DATA to the folder that holds agent-traffic", err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	lines, requests, contents := bufio.NewReaderSize(unpacked, 1<<20), 0, 0
	for {
		line, err := lines.ReadBytes('\n')
		var recorded struct {
			Body string `json:"request_body"`
		}
		if len(line) > 1 && json.Unmarshal(line, &recorded) != nil {
			t.Fatalf("a line cannot be read: %.80s", line)
		}
		var request Request
		if recorded.Body != "" {
			if err := json.Unmarshal([]byte(recorded.Body), &request); err != nil {
				t.Fatal(err)
			}
			requests++
			contents += len(request.Contents)
			goesBack(t, request.Contents)
		}
		if errors.Is(err, io.EOF) {
			break
		}
	}
	if t.Logf("%d requests with %d contents", requests, contents); requests < 50 {
		t.Errorf("only %d requests were compared", requests)
	}
}
