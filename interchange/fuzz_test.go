package interchange

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// FuzzRead reads any bytes in any format: it must not panic, and every conversation it gives must pass the
// log's rules, be given back as it came, and read again with the same result.
func FuzzRead(f *testing.F) {
	formats := append([]string{""}, readable...)
	for _, c := range repairCases {
		f.Add([]byte("["+strings.Join(c.messages, ",")+"]"), byte(0))
	}
	f.Add([]byte(anthropicList), byte(3))
	f.Add([]byte(pipelineMessages), byte(5))
	f.Add([]byte(`{"messages":[{"role":"assistant","createdAt":"2025-01-01","duration":1,"includeInContext":false,"tool_calls":[{"id":"a"}]}]}`), byte(4))
	f.Add([]byte(one+"\n"+two+"\n"+pretty), byte(0))
	f.Add([]byte(`{"continuo":"conversation","version":1,"conversation":{"id":"c"}}`+"\n"+`{"role":"user","content":"x"}`+"\n"+`{"continuo":"end","entries":1}`), byte(0))
	f.Add([]byte("[[]"), byte(0))
	f.Fuzz(func(t *testing.T, source []byte, format byte) {
		o := Options{Format: formats[int(format)%len(formats)]}
		for document, err := range Read("f", bytes.NewReader(source), o) {
			if err != nil {
				continue
			}
			log := newLog()
			conversation, err := log.Import(context.Background(), document.Conversation, document.Entries)
			if err != nil {
				t.Fatalf("the log refuses what was read: %v", err)
			}
			if document.Format == FormatContinuo {
				sameOwn(t, log, conversation)
				continue
			}
			back := exported(t, log, conversation, FormatSource)
			again := readOne(t, back, Options{Format: document.Format})
			if !sameEntries(document.Entries, again.Entries) {
				t.Errorf("read again, the source gives\n%q instead of\n%q: %s", briefs(again.Entries), briefs(document.Entries), back)
			}
			strictAgain, err := Messages(exported(t, log, conversation, FormatOpenAI), FormatOpenAI)
			if err != nil || len(strictAgain.Repairs) > 0 {
				t.Errorf("what a model may be sent needs the repairs %v (%v)", strictAgain.Repairs, err)
			}
		}
	})
}

// sameEntries compares entries but for the repairs of text, of which the second reading has none left, and
// for the white space of arguments that came as JSON.
func sameEntries(a, b []continuo.Entry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		one, two := a[i], b[i]
		if one.Role != two.Role || one.ToolCallID != two.ToolCallID || one.Name != two.Name || one.Hidden != two.Hidden ||
			!one.CreatedAt.Equal(two.CreatedAt) || len(one.ToolCalls) != len(two.ToolCalls) || one.Mode != two.Mode ||
			!reflect.DeepEqual(one.Reasoning, two.Reasoning) || !reflect.DeepEqual(one.Author, two.Author) ||
			one.Content.String() != two.Content.String() {
			return false
		}
		for n := range one.ToolCalls {
			if one.ToolCalls[n].ID != two.ToolCalls[n].ID || one.ToolCalls[n].Name != two.ToolCalls[n].Name {
				return false
			}
		}
	}
	return true
}
