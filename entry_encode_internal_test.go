package continuo

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// writtenAsStandard fails when MarshalJSON and encoding/json disagree about an entry.
func writtenAsStandard(t *testing.T, entry *Entry) {
	t.Helper()
	got, gotErr := entry.MarshalJSON()
	want, wantErr := entry.encodeAny()
	if string(got) != string(want) || (gotErr == nil) != (wantErr == nil) || gotErr != nil && gotErr.Error() != wantErr.Error() {
		t.Fatalf("%#v is written as\n%s, %v\nbut encoding/json writes\n%s, %v", *entry, got, gotErr, want, wantErr)
	}
}

// fields yields an empty value with each of the fields of v set in turn, and those below pointers.
func fields(v reflect.Value, yield func()) {
	for i := range v.NumField() {
		field := v.Field(i)
		if !field.CanSet() {
			continue
		}
		before := reflect.New(field.Type()).Elem()
		before.Set(field)
		filled(field)
		yield()
		if field.Kind() == reflect.Pointer && field.Elem().Kind() == reflect.Struct {
			field.Set(reflect.New(field.Type().Elem()))
			yield()
			fields(field.Elem(), yield)
		} else if field.Kind() == reflect.Struct && field.NumField() > 0 && field.Field(0).CanSet() {
			field.SetZero()
			fields(field, yield)
		}
		field.Set(before)
	}
}

func TestEntriesAreWrittenAsByEncodingJSON(t *testing.T) {
	var one Entry
	count := 0
	fields(reflect.ValueOf(&one).Elem(), func() { writtenAsStandard(t, &one); count++ })
	if count < 80 {
		t.Errorf("%d fields were tried; are pointers followed?", count)
	}
	for _, form := range storedForms(t) {
		var entry Entry
		if err := entry.Decode(form); err != nil {
			t.Fatal(err)
		}
		writtenAsStandard(t, &entry)
	}
	text := "\xff\xc3(\u2027\u2028\u2029\ufffd<&>\u00e8\U0001F600"
	for c := range 256 {
		text += string([]byte{byte(c)}) + "x"
	}
	deep := json.RawMessage(strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999))
	deeper := json.RawMessage("[" + string(deep) + "]")
	odd := []Entry{
		{},
		{Content: Null()},
		{Content: Text(text), Name: text, ID: text, Role: Role(text), Vendor: map[string]json.RawMessage{text: []byte(`1`)}},
		{Content: Parts()},
		{Content: Parts(Part{})},
		{Content: Parts(Part{Raw: []byte(`{ "a" : 1 }`)})},
		{Content: Parts(Part{Raw: []byte(`{`)})},
		{Content: Parts(Part{Raw: deep})},
		{Content: Parts(Part{Raw: deeper})},
		{Widget: deep},
		{Widget: deeper},
		{Extra: []byte(`{`)},
		{Widget: []byte(" 1 ")},
		{CreatedAt: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)},
		{CreatedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3600))},
		{CreatedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3601))},
		{ToolCalls: []ToolCall{}},
		{ToolCalls: []ToolCall{{}, {Type: "other", Name: text, Arguments: text, ID: text}}},
		{ToolCalls: []ToolCall{{Extra: []byte(`{"id":1,"a":[ ]}`)}, {Extra: []byte(`[`)}}},
		{ToolCalls: []ToolCall{{Extra: json.RawMessage(`{"a":` + string(deep) + `}`)}}},
		{Round: &Round{}},
		{Round: &Round{Window: Window{Pins: []int64{1, 2}}, Usage: &Usage{}}},
		{Round: &Round{Window: Window{GivenUp: GivenUp{ReadAgain: []int64{3}, Failed: []int64{4, 5}, Described: []int64{1}}}}},
		{Round: &Round{Window: Window{GivenUp: GivenUp{Failed: []int64{4}}}}},
		{Author: &Author{}},
		{Reasoning: &Reasoning{}},
	}
	for i := range odd {
		writtenAsStandard(t, &odd[i])
		odd[i].Hidden = true
		writtenAsStandard(t, &odd[i])
	}
}

func FuzzEntryIsWrittenAsByEncodingJSON(f *testing.F) {
	for _, form := range storedForms(f) {
		f.Add(form, "")
	}
	f.Fuzz(func(t *testing.T, text, more string) {
		var entry Entry
		if entry.Decode(text) == nil {
			entry.Name, entry.Content = more, Text(entry.Content.String()+more)
			writtenAsStandard(t, &entry)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	entry := Entry{ID: "ent_0199c5f0d1a27000b8f7c2a94f1e6d3a", ConversationID: "conv_0199c5f0d1a27000b8f7c2a94f1e6d3a", Seq: 100, CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC), Role: User, Content: Text(strings.Repeat("message ", 700/8)), Chars: 700, Tokens: 175, Tokenizer: "o200k_base"}
	for name, encode := range map[string]func(*Entry) ([]byte, error){"entry": (*Entry).encode, "encodingjson": (*Entry).encodeAny} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := encode(&entry); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
