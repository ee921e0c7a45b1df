package rawjson_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/internal/rawjson"
)

func TestObjectsKeepTheirOrderAndTheirValues(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                     `{}`,
		` { "b" : 1.0e5 , "a" : [ 1, "<&>" ] } `: `{"b":1.0e5,"a":[1,"<&>"]}`,
		`{"a":1,"b":2,"a":3}`:                    `{"a":3,"b":2}`,
		`{"":null}`:                              `{"":null}`,
	} {
		object, err := rawjson.ParseObject([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := string(rawjson.MustMarshal(object)); got != want {
			t.Errorf("%s became %s", text, got)
		}
	}
	for _, text := range []string{``, `[]`, `"x"`, `{`, `{"a"}`, `{} {}`, `null`} {
		if _, err := rawjson.ParseObject([]byte(text)); err == nil {
			t.Errorf("%q was read as an object", text)
		}
	}
}

// A hundred thousand keys came in one request body once; reading them must not compare each with all.
func TestManyKeysAreRead(t *testing.T) {
	var text strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&text, `,"k%d":%d`, i, i)
	}
	object, err := rawjson.ParseObject([]byte("{" + text.String()[1:] + "}"))
	if err != nil || len(object) != 200_000 || string(object.Get("k199999")) != "199999" {
		t.Errorf("%d members, %v", len(object), err)
	}
}

func FuzzParseObject(f *testing.F) {
	f.Add(`{"a":{"b":[1,2]},"c":"\u2028<"}`)
	f.Fuzz(func(t *testing.T, text string) {
		object, err := rawjson.ParseObject([]byte(text))
		if err != nil {
			return
		}
		var want, got map[string]any
		if json.Unmarshal([]byte(text), &want) != nil {
			return
		}
		if err := json.Unmarshal(rawjson.MustMarshal(object), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q became %s", text, rawjson.MustMarshal(object))
		}
	})
}

// Lists and strings are split as encoding/json reads them.
func FuzzSplit(f *testing.F) {
	for _, text := range []string{`[1, "a\"]", {"b":[2,"}"]}, [ ], true ]`, `[]`, `"plain"`, `"\u00e9\\"`, "\"\xff\"", `{"a\u0062": "\""}`, `[1e5,-2]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want []json.RawMessage
		wantErr := json.Unmarshal([]byte(text), &want)
		got, err := rawjson.ParseList([]byte(text))
		if isNull := wantErr == nil && want == nil; !isNull && (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, encoding/json says %v", text, err, wantErr)
		}
		if err == nil && fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Fatalf("%q: got %q, want %q", text, got, want)
		}
		var wantText string
		trimmed := strings.TrimSpace(text)
		isText := strings.HasPrefix(trimmed, `"`) && json.Unmarshal([]byte(trimmed), &wantText) == nil
		if gotText, ok := rawjson.String(json.RawMessage(text)); ok != isText || gotText != wantText {
			t.Fatalf("%q: got %q, %v, want %q, %v", text, gotText, ok, wantText, isText)
		}
	})
}

// What is appended equals what Marshal writes.
func FuzzAppend(f *testing.F) {
	for _, text := range []string{
		``, `{"a": [1, "x\"]} ", {}], "b" : null}`, "\x00\b\f\n\r\t\x1f\x7f\"\\<&>", "é水\u2028\u2029\u202a\ufffd", "\xff\xe2\x80", ` "\ud83d" `, `[1,`,
		`{"\\":"\\\""}`, "\"\xff\u2028\"",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := string(rawjson.MustMarshal(text))
		if got := string(rawjson.AppendString([]byte("before"), text)); got != "before"+want {
			t.Errorf("%q is written %s, want %s", text, got, want)
		}
		compact, err := rawjson.Marshal(json.RawMessage(text))
		got, appendErr := rawjson.AppendCompact([]byte("before"), json.RawMessage(text))
		if (err == nil) != (appendErr == nil) {
			t.Fatalf("%q: %v, Marshal says %v", text, appendErr, err)
		}
		if err == nil && string(got) != "before"+string(compact) {
			t.Errorf("%q is compacted to %s, want %s", text, got, compact)
		}
	})
}

func TestElementSpans(t *testing.T) {
	body := []byte(` { "messages" : "x", "a":[1], "messages" : [ {"role":"user","content":"]}"} , [2, [3]],"s" ] , "z":0}`)
	var got []string
	for _, span := range rawjson.ElementSpans(body, "messages") {
		got = append(got, string(body[span.Start:span.End]))
	}
	if want := []string{`{"role":"user","content":"]}"}`, `[2, [3]]`, `"s"`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := rawjson.ElementSpans(body, "z"); got != nil {
		t.Errorf("a number has elements: %v", got)
	}
}

// Objects of any size keep the first position and the last value of a key, whatever is escaped in their strings.
func TestObjectsWithRepeatedKeys(t *testing.T) {
	for _, members := range []int{1, fewFieldsOfTest - 1, fewFieldsOfTest, fewFieldsOfTest + 1, 3 * fewFieldsOfTest} {
		var text strings.Builder
		text.WriteString(`{"messages": [{"a": "}\\\""}], `)
		for round := range 2 {
			for i := range members {
				fmt.Fprintf(&text, `"k%d" : "\\%d\"]\\", `, i, round)
			}
		}
		text.WriteString(`"role": "x"}`)
		object, err := rawjson.ParseObjectExcept([]byte(text.String()), "messages")
		if err != nil || len(object) != members+1 || object.Get("messages") != nil {
			t.Fatalf("%d members: %v, %v", members, object, err)
		}
		for i, field := range object[:members] {
			if field.Key != fmt.Sprintf("k%d", i) || string(field.Value) != `"\\1\"]\\"` {
				t.Errorf("member %d of %d is %s: %s", i, members, field.Key, field.Value)
			}
		}
		whole, err := rawjson.ParseObject([]byte(text.String()))
		if err != nil || string(whole.Get("messages")) != `[{"a": "}\\\""}]` || len(whole) != members+2 {
			t.Errorf("%d members: %v, %v", members, whole, err)
		}
	}
}

// fewFieldsOfTest is about how many members are compared one by one.
const fewFieldsOfTest = 16
