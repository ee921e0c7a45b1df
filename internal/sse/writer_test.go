package sse

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

// pieces records what reaches the connection, and when it is flushed.
type pieces struct {
	header  http.Header
	writes  []string
	flushes int
	err     error
}

func (p *pieces) Header() http.Header { return p.header }
func (p *pieces) WriteHeader(int)     {}
func (p *pieces) FlushError() error   { p.flushes++; return p.err }
func (p *pieces) Write(b []byte) (int, error) {
	p.writes = append(p.writes, string(b))
	return len(b), nil
}

func TestWriter(t *testing.T) {
	response := &pieces{header: http.Header{}}
	writer := NewWriter(response)
	for _, event := range []Event{
		{ID: "3", Type: "delta", Retry: 2 * time.Second, Data: []byte(`{"a":1}`)},
		{Data: []byte("one\r\ntwo\rthree\n")},
		{},
	} {
		if err := writer.Write(event); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Comment("still\nhere"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"id: 3\nevent: delta\nretry: 2000\ndata: {\"a\":1}\n\n",
		"data: one\ndata: two\ndata: three\ndata: \n\n",
		"data: \n\n",
		": still here\n\n",
	}
	if !reflect.DeepEqual(response.writes, want) {
		t.Errorf("wrote %q\nwant %q", response.writes, want)
	}
	if response.flushes != len(want) {
		t.Errorf("flushed %d times, want %d", response.flushes, len(want))
	}
	if kind := response.header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("content type %q", kind)
	}
}

func TestWriterRefuses(t *testing.T) {
	response := &pieces{header: http.Header{}}
	writer := NewWriter(response)
	for _, event := range []Event{{ID: "1\ndata: forged"}, {ID: "a\x00"}, {Type: "a\rb"}} {
		if err := writer.Write(event); err == nil {
			t.Errorf("%s was written", show(event))
		}
	}
	if len(response.writes) > 0 {
		t.Errorf("wrote %q", response.writes)
	}
	response.err = errors.New("connection closed")
	if err := writer.Write(Event{Data: []byte("a")}); !errors.Is(err, response.err) {
		t.Errorf("a failed flush gave %v", err)
	}
}

// What is written reads the same, whatever the data.
func FuzzWriter(f *testing.F) {
	f.Add("1", "delta", "a\nb", "comment")
	f.Add("", "", "\r\n\uFEFF: x\n\n", "\n")
	f.Fuzz(func(t *testing.T, id, kind, data, comment string) {
		recorder := httptest.NewRecorder()
		writer := NewWriter(recorder)
		if err := writer.Comment(comment); err != nil {
			t.Fatal(err)
		}
		if err := writer.Write(Event{ID: id, Type: kind, Data: []byte(data)}); err != nil {
			t.Skip()
		}
		plain := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(data)
		want := []Event{{ID: id, Type: kind, Data: append([]byte{}, plain...)}}
		got, err := readAll(bytes.NewReader(recorder.Body.Bytes()), 0)
		if err != nil || show(got...) != show(want...) {
			t.Fatalf("wrote %s\nread %s, %v", show(want...), show(got...), err)
		}
	})
}
