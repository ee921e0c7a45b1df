package rawjson

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestAMemberIsFoundInItsObject(t *testing.T) {
	for _, test := range []struct{ object, name, want string }{
		{`{"model":"a"}`, "model", `"a"`},
		{` { "messages" : [ {"model":"inner"}, "}\"" ] , "model" : "a\"b" , "n":1}`, "model", `"a\"b"`},
		{`{"a":{"b":[1,2]},"n":-1.5e3}`, "n", "-1.5e3"},
		{`{"a":"\\","n":null}`, "n", "null"},
		{`{"a":"\\\"n\":1","n":[]}`, "n", "[]"},
		{`{"n":{"n":2}}`, "n", `{"n":2}`},
		{`{}`, "n", ""},
		{`[{"n":1}]`, "n", ""},
		{`{"m":1}`, "n", ""},
	} {
		from, to, ok := Find([]byte(test.object), test.name)
		if got := test.object[from:to]; got != test.want || ok != (test.want != "") {
			t.Errorf("%s of %s: got %s, want %s", test.name, test.object, got, test.want)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte(`{"a":"\\\"","n":[1,{"n":2}]}`))
	f.Add([]byte(`{"n" : -1 , "a":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return // the data must be valid
		}
		from, to, ok := Find(data, "n")
		if _, err := ParseObject(data); err != nil {
			if ok {
				t.Fatalf("found %s in %s", data[from:to], data)
			}
			return
		}
		var first json.RawMessage
		decoder := json.NewDecoder(bytes.NewReader(data))
		_, _ = decoder.Token()
		for decoder.More() {
			key, _ := decoder.Token()
			var value json.RawMessage
			_ = decoder.Decode(&value)
			if key == "n" && first == nil && bytes.Contains(data, []byte(`"n"`)) {
				first = value
			}
		}
		if ok && !bytes.Equal(bytes.TrimSpace(data[from:to]), bytes.TrimSpace(first)) {
			t.Fatalf("found %q in %q, want %q", data[from:to], data, first)
		}
	})
}
