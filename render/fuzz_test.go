package render

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func FuzzReadTranscript(f *testing.F) {
	f.Add("=== HISTORY ===\n")
	f.Add("=== HISTORY ===\n(showing last 1 of 2 messages)\n\n$user: a\n\n$respond:\n\n=== CURRENT ===\n\n$think: \\$user: b\n")
	f.Add("=== HISTORY ===\n\n$result: \n\n\n\r\\=== CURRENT ===\n\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		if read, err := ReadTranscript(text); err == nil && read.String() != text {
			t.Errorf("read %q, which is written as %q", text, read.String())
		}
		written := Transcript{History: []Event{{EventResult, text}}, Current: []Event{{EventUser, text}, {EventThink, text}}}
		if read, err := ReadTranscript(written.String()); err != nil || !equalTranscripts(read, written) {
			t.Errorf("%q is not read back: %v", text, err)
		}
	})
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"r"}]}]`))
	f.Add([]byte(`[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]`))
	f.Add([]byte(`[{"role":"tool"},{},1,null,{"role":"assistant","content":[null],"tool_calls":[null]},"\ud800"]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var messages []json.RawMessage
		if json.Unmarshal(data, &messages) != nil {
			return
		}
		for _, check := range []func([]json.RawMessage) []Violation{CheckOpenAIChat, CheckOpenAIChatStrict, CheckAnthropic} {
			for _, v := range check(messages) {
				if v.Index < 0 || v.Index > max(0, len(messages)-1) || !strings.Contains(v.Code, " ") || v.Message == "" {
					t.Errorf("violation %+v of %d messages", v, len(messages))
				}
			}
		}
	})
}

func FuzzRepairSurrogates(f *testing.F) {
	f.Add([]byte(`"\ud83d\ude00 \ud83d \\ud83d \ude00\ud83d"`))
	f.Add([]byte(`{"\uD800":"\u00e9\\\udc00"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		repaired := bytes.Clone(data)
		repairSurrogates(repaired)
		if !json.Valid(repaired) || loneSurrogate(repaired, 0) >= 0 {
			t.Errorf("%q became %q", data, repaired)
		}
		var before, after any
		if json.Unmarshal(data, &before) == nil && json.Unmarshal(repaired, &after) == nil && !reflect.DeepEqual(before, after) {
			t.Errorf("%q means %v, but %q means %v", data, before, repaired, after)
		}
	})
}
