package fragment

import (
	"encoding/json"
	"testing"

	"github.com/continuo-log/continuo/internal/rawjson"
)

func join(t *testing.T, pieces ...string) string {
	t.Helper()
	var object Object
	for _, piece := range pieces {
		members, err := rawjson.ParseObject([]byte(piece))
		if err != nil {
			t.Fatalf("%s: %v", piece, err)
		}
		object.Add(members)
	}
	return string(object.Raw())
}

func TestAdd(t *testing.T) {
	tests := []struct {
		name   string
		pieces []string
		want   string
	}{
		{"nothing", []string{`{}`, `{"a":null,"b":"","c":[],"d":{}}`}, ""},
		{"one piece stays as it is", []string{`{"b":1.50,"a":[{"text":"x"},{"text":"x "},"s"]}`}, `{"b":1.50,"a":[{"text":"x"},{"text":"x "},"s"]}`},
		{"running text", []string{`{"text":"a"}`, `{"text":""}`, `{"text":"<b>"}`}, `{"text":"a<b>"}`},
		{"other strings are replaced", []string{`{"format":"x","signature":"s1"}`, `{"signature":"s2"}`, `{"signature":null}`}, `{"format":"x","signature":"s2"}`},
		{"a null gives way", []string{`{"a":{"signature":null}}`, `{"a":{"signature":"s"}}`}, `{"a":{"signature":"s"}}`},
		{"objects", []string{`{"e":{"google":{"thought":true}}}`, `{"e":{"google":{"thought_signature":"AVSo"}}}`}, `{"e":{"google":{"thought":true,"thought_signature":"AVSo"}}}`},
		{
			"reasoning_details by index and type",
			[]string{
				`{"reasoning_details":[{"type":"reasoning.text","text":"First ","index":0,"format":"anthropic-claude-v1"}]}`,
				`{"reasoning_details":[{"type":"reasoning.text","text":"I think.","index":0}]}`,
				`{"reasoning_details":[{"type":"reasoning.text","signature":"sig==","index":0}]}`,
				`{"reasoning_details":[{"type":"reasoning.encrypted","data":"abc","index":0},{"type":"reasoning.text","text":"Then","index":1}]}`,
			},
			`{"reasoning_details":[{"type":"reasoning.text","text":"First I think.","index":0,"format":"anthropic-claude-v1","signature":"sig=="},{"type":"reasoning.encrypted","data":"abc","index":0},{"type":"reasoning.text","text":"Then","index":1}]}`,
		},
		{
			"running text without an index",
			[]string{`{"d":[{"type":"t","text":"the "}]}`, `{"d":[{"type":"t","text":"the "}]}`, `{"d":[{"type":"u","text":"x"}]}`},
			`{"d":[{"type":"t","text":"the the "},{"type":"u","text":"x"}]}`,
		},
		{
			"a list that is sent again",
			[]string{`{"c":["a","b"]}`, `{"c":["a","b","c"]}`, `{"n":[{"type":"url_citation","u":{"url":"x"}}]}`, `{"n":[{"type":"url_citation","u":{"url":"x"}}]}`},
			`{"c":["a","b","c"],"n":[{"type":"url_citation","u":{"url":"x"}}]}`,
		},
		{"kinds that differ", []string{`{"a":{"x":1}}`, `{"a":[1]}`, `{"a":"s"}`}, `{"a":"s"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := join(t, test.pieces...); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// Any two objects join to JSON.
func FuzzAdd(f *testing.F) {
	f.Add(`{"a":[{"index":0,"text":"x"}]}`, `{"a":[{"index":0,"text":"y"}],"b":null}`)
	f.Add(`{"a":{"b":{"text":""}}}`, `{"a":{"b":{"text":1}}}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		a, errA := rawjson.ParseObject([]byte(first))
		b, errB := rawjson.ParseObject([]byte(second))
		if errA != nil || errB != nil {
			t.Skip()
		}
		var object Object
		for _, members := range []rawjson.Object{a, b} {
			object.Add(members)
			if got := object.Raw(); got != nil && !json.Valid(got) {
				t.Fatalf("%s and %s gave %s", first, second, got)
			}
		}
	})
}
