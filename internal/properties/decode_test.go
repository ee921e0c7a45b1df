package properties

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// plainEntry is decoded by encoding/json field by field.
type plainEntry continuo.Entry

func TestStoredEntriesAreReadAsByEncodingJSON(t *testing.T) {
	for _, file := range dataFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			for document := range documents(t, file) {
				capture := &captureStore{}
				if _, err := continuo.NewLog(capture, continuo.LogOptions{}).Import(t.Context(), document.Conversation, document.Entries); err != nil {
					t.Fatalf("%s: %v", document.Source, err)
				}
				for i := range capture.entries {
					sameDecoded(t, document.Source, &capture.entries[i])
				}
			}
		})
	}
}

func sameDecoded(t *testing.T, name string, entry *continuo.Entry) {
	t.Helper()
	body, err := entry.MarshalJSON()
	if err != nil {
		t.Fatalf("%s: entry %d: %v", name, entry.Seq, err)
	}
	var read continuo.Entry
	if err := read.Decode(string(body)); err != nil {
		t.Fatalf("%s: entry %d: %v", name, entry.Seq, err)
	}
	var plain plainEntry
	if err := json.Unmarshal(body, &plain); err != nil {
		t.Fatalf("%s: entry %d: %v", name, entry.Seq, err)
	}
	plain.Hidden = bytes.Contains(body, []byte(`"include_in_context":false`)) && entry.Hidden
	if !reflect.DeepEqual(read, continuo.Entry(plain)) {
		t.Fatalf("%s: entry %d is read as %#v, but by encoding/json as %#v", name, entry.Seq, read, plain)
	}
	if again, err := read.MarshalJSON(); err != nil || !bytes.Equal(again, body) {
		t.Fatalf("%s: entry %d is written as %s, %v, but was stored as %s", name, entry.Seq, again, err, body)
	}
}
