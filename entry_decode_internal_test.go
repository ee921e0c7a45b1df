package continuo

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// filled sets every field of a value that encoding/json writes.
func filled(v reflect.Value) {
	switch value := v.Addr().Interface().(type) {
	case *time.Time:
		*value = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
		return
	case *Content:
		*value = Text("said <b>\"so\"</b>\n\tè 世界 \U0001F600 \u2028 \x7f")
		return
	case *ToolCall:
		*value = FunctionCall("call_1", "fs.read", `{"path":"a\\b"}`)
		return
	case *json.RawMessage:
		*value = json.RawMessage(`{"b":[1,-2.5e3,true,null,"\ud83d\ude00"],"a":{}}`)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text of " + v.Type().Name())
	case reflect.Int, reflect.Int64:
		v.SetInt(-12)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		filled(v.Index(0))
		filled(v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		element := reflect.New(v.Type().Elem()).Elem()
		filled(element)
		v.SetMapIndex(reflect.ValueOf("anthropic"), element)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				filled(v.Field(i))
			}
		}
	}
}

// storedForms are entries in the form in which they are stored, none of which needs encoding/json as a whole.
func storedForms(t testing.TB) []string {
	var all Entry
	filled(reflect.ValueOf(&all).Elem())
	hidden := all
	hidden.Hidden, hidden.Content = true, Null()
	parts := Entry{Role: User, Content: Parts(TextPart("look \"here\""), Part{Type: "image_url", Raw: json.RawMessage(`{"type":"image_url","image_url":{"url":"data:"}}`)},
		Part{Type: "text", Text: "x", Raw: json.RawMessage(`{"text":"x", "type":"text"}`)})}
	calls := Entry{Role: Assistant, ToolCalls: []ToolCall{
		{ID: "1", Type: "custom", Name: "patch", Arguments: "*** Begin"},
		{ID: "2", Type: "function", Name: "f", Arguments: "{", Extra: json.RawMessage(`{"index":0}`)},
	}}
	var forms []string
	for _, entry := range []Entry{{Role: User, Content: Text("")}, {Role: "other"}, all, hidden, parts, calls, {Role: Tool, Content: Text(strings.Repeat("long \\ ", 1000)), ToolCallID: "call_1"}} {
		data, err := entry.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		forms = append(forms, string(data))
	}
	return forms
}

func TestStoredFormsAreReadWithoutReflection(t *testing.T) {
	for _, form := range storedForms(t) {
		scanner, ok := rawjson.NewScanner(form)
		d := entryDecoder{Scanner: scanner, entry: &Entry{}}
		if !ok || !d.decode() {
			t.Errorf("encoding/json must read, from byte %d: %.300s", len(form)-len(d.Rest()), form)
		}
	}
}

// sameAsStandard fails when Decode and encoding/json disagree about a text.
func sameAsStandard(t *testing.T, text string) {
	t.Helper()
	kept := Entry{ID: "kept"}
	got, want := kept, kept
	gotErr, wantErr := got.Decode(text), want.decodeAny([]byte(text))
	if (gotErr == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want) {
		t.Fatalf("%q is read as\n%#v, %v\nbut encoding/json reads\n%#v, %v", text, got, gotErr, want, wantErr)
	}
}

func TestEntriesAreReadAsByEncodingJSON(t *testing.T) {
	for _, text := range []string{
		``, `null`, `{}`, ` {}`, `{} `, `[]`, `{"role":"user"`, `{"role":"user",}`, `{"role":"user"}x`, `{"role":null}`, `{"ROLE":"user"}`, `{"unknown":1,"role":"user"}`,
		`{"round":{"at":1},"round":{"cursor":2}}`, `{"round":{"usage":{"input_tokens":1},"usage":{"output_tokens":2}}}`, `{"round":{"window":{"epoch":1},"window":{"start":2}}}`,
		`{"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}],"tool_calls":[]}`, `{"tool_calls":[null]}`, `{"tool_calls":null}`,
		`{"vendor":{"a":1},"vendor":{"b":2}}`, `{"vendor":null}`, `{"reasoning":{"text":"a"},"reasoning":{"signature":"b"}}`, `{"repairs":["a"],"repairs":["b"]}`,
		`{"content":[]}`, `{"content":[{"type":"text"}]}`, `{"content":[{"type":"text","text":"a","text":"b"}]}`, `{"content":[{"type":"text","text":"a"},null]}`, `{"content":1}`,
		`{"seq":01}`, `{"seq":-0}`, `{"seq":1.0}`, `{"seq":1e2}`, `{"seq":9223372036854775807}`, `{"seq":9223372036854775808}`, `{"seq":"1"}`,
		`{"created_at":"2026-03-01T12:00:00Z"}`, `{"created_at":"2026-03-01T12:00:00+02:00"}`, `{"created_at":"2026-3-1"}`, `{"created_at":"2026-03-01T12:00:0\u0030Z"}`, `{"created_at":null}`,
		`{"content":"\ud800"}`, `{"content":"\ud83d\ude00"}`, `{"content":"\ud83dx"}`, `{"content":"\ud83d\u0041"}`, `{"content":"\u00"}`, `{"content":"\`, `{"content":"\x"}`, "{\"content\":\"\xff\"}", "{\"content\":\"\x01\"}", `{"content":"a\\"}`,
		`{"con\u0074ent":"a"}`, `{"include_in_context":false}`, `{"include_in_context":true}`, `{"include_in_context":null}`, `{"include_in_contex\u0074":false}`, `{"include_in_context":false,"include_in_context":true}`,
		`{"widget": {} }`, `{"widget":123 }`, `{"widget":tru}`, `{"widget":{"a":}}`, `{"widget":[}]}`, `{"widget":null}`, `{"extra":"a\`, `{"author":{},"author":null}`,
		`{"widget":` + strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999) + `}`, `{"widget":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`,
		`{"round":{"window":{"pins":[]}}}`, `{"round":{"window":{"pins":[1,2],"pins":[3]}}}`, `{"round":{"window":{"pins":[1,]}}}`,
	} {
		sameAsStandard(t, text)
	}
	instead := []string{"", `"`, `\`, "}", "]", ",", ":", " ", "0", "n", "\x00", "\xff"}
	for n, form := range storedForms(t) {
		sameAsStandard(t, form)
		for i := range min(len(form), 3000) {
			sameAsStandard(t, form[:i])
			sameAsStandard(t, form[:i]+instead[(i+n)%len(instead)]+form[i+1:])
		}
	}
}

func FuzzEntryIsReadAsByEncodingJSON(f *testing.F) {
	for _, form := range storedForms(f) {
		f.Add(form)
	}
	f.Fuzz(func(t *testing.T, text string) { sameAsStandard(t, text) })
}

func BenchmarkDecode(b *testing.B) {
	round := &Round{View: "codex", ViewHash: "0123456789abcdef", At: 99, Window: Window{Epoch: 3, Start: 20, Limit: "messages"}, Provider: "openai", Model: "gpt-4o", RequestBytes: 61_234, Usage: &Usage{InputTokens: 15_011, OutputTokens: 212}}
	base := Entry{ID: "ent_0199c5f0d1a27000b8f7c2a94f1e6d3a", ConversationID: "conv_0199c5f0d1a27000b8f7c2a94f1e6d3a", Seq: 100, CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC), Chars: 700, Tokens: 175, Tokenizer: "o200k_base"}
	for name, with := range map[string]func(*Entry){
		"text": func(e *Entry) { e.Role, e.Content = User, Text(strings.Repeat("message ", 700/8)) },
		"result": func(e *Entry) {
			e.Role, e.ToolCallID, e.Content = Tool, "call_1", Text(strings.Repeat("a\t\"line\"\n", 700/8))
		},
		"calling": func(e *Entry) {
			e.Role, e.Content, e.Round, e.ToolCalls = Assistant, Null(), round, []ToolCall{FunctionCall("call_1", "fs.read", `{"path":"a"}`)}
		},
	} {
		entry := base
		with(&entry)
		body := string(rawjson.MustMarshal(entry))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			var read Entry
			for b.Loop() {
				if err := read.Decode(body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/encodingjson", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			var read Entry
			for b.Loop() {
				if err := read.decodeAny([]byte(body)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
