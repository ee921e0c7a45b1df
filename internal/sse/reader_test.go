package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// readAll reads every event, its data copied, and the error that ended the stream, nil for io.EOF.
func readAll(source io.Reader, maxBytes int) ([]Event, error) {
	reader := NewReader(source, maxBytes)
	var events []Event
	for {
		event, err := reader.Next()
		if err == io.EOF {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		event.Data = bytes.Clone(event.Data)
		events = append(events, event)
	}
}

// show writes events for people.
func show(events ...Event) string {
	var text strings.Builder
	for _, e := range events {
		fmt.Fprintf(&text, "{id %q type %q retry %v cut %v data %q}", e.ID, e.Type, e.Retry, e.Cut, e.Data)
	}
	return text.String()
}

func data(text string) []byte { return append([]byte{}, text...) }

func TestReader(t *testing.T) {
	tests := []struct {
		name, stream string
		want         []Event
	}{
		{"empty", "", nil},
		{"one", "data: a\n\n", []Event{{Data: data("a")}}},
		{"several lines of data", "data: YHOO\ndata: +2\ndata: 10\n\n", []Event{{Data: data("YHOO\n+2\n10")}}},
		{
			"comments and ids", ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
			[]Event{{ID: "1", Data: data("first event")}, {Data: data("second event")}, {Data: data(" third event")}},
		},
		{"an id stays in force", "id: 7\ndata: a\n\ndata: b\n\n", []Event{{ID: "7", Data: data("a")}, {ID: "7", Data: data("b")}}},
		{"an id alone is no event", "id: 7\n\ndata: b\n\n", []Event{{ID: "7", Data: data("b")}}},
		{"an id with NUL is ignored", "id: 7\x00\ndata: b\n\n", []Event{{Data: data("b")}}},
		{"empty data", "data\n\ndata\ndata\n\ndata:\n\n", []Event{{Data: data("")}, {Data: data("\n")}, {Data: data("")}}},
		{"type", "event: ping\ndata: {}\n\ndata: x\n\n", []Event{{Type: "ping", Data: data("{}")}, {Data: data("x")}}},
		{"a type alone is no event", "event: ping\n\ndata: x\n\n", []Event{{Data: data("x")}}},
		{"retry", "retry: 1500\n\nretry: soon\ndata: x\n\n", []Event{{Retry: 1500 * time.Millisecond, Data: data("x")}}},
		{"unknown fields", "foo: bar\nData: no\ndata : no\ndata: x\n\n", []Event{{Data: data("x")}}},
		{"CRLF", "event: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", []Event{{Type: "a", Data: data("b")}, {Data: data("c")}}},
		{"CR", "data: b\rdata: c\r\rdata: d\r\r", []Event{{Data: data("b\nc")}, {Data: data("d")}}},
		{"mixed line ends", "data: a\r\n\ndata: b\r\r\ndata: c\n\n", []Event{{Data: data("a")}, {Data: data("b")}, {Data: data("c")}}},
		{"BOM", "\uFEFFdata: a\n\n\uFEFFdata: b\n\n", []Event{{Data: data("a")}}},
		{"BOM without a line end", "\uFEFFdata: a", []Event{{Data: data("a"), Cut: true}}},
		{"no last blank line", "data: a\n\ndata: [DONE]\n", []Event{{Data: data("a")}, {Data: data("[DONE]"), Cut: true}}},
		{"cut inside a line", "data: a\n\ndata: {\"x", []Event{{Data: data("a")}, {Data: data(`{"x`), Cut: true}}},
		{"cut inside a name", "data: a\n\ndat", []Event{{Data: data("a")}}},
		{"keep-alives", ": OPENROUTER PROCESSING\n\n:\n\ndata: a\n: in between\ndata: b\n\n", []Event{{Data: data("a\nb")}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for name, source := range map[string]io.Reader{
				"whole":      strings.NewReader(test.stream),
				"by byte":    iotest.OneByteReader(strings.NewReader(test.stream)),
				"with error": iotest.DataErrReader(strings.NewReader(test.stream)),
			} {
				got, err := readAll(source, 0)
				if err != nil || show(got...) != show(test.want...) {
					t.Errorf("%s: got %s, %v\nwant %s", name, show(got...), err, show(test.want...))
				}
			}
		})
	}
}

// An event must be handed out when its last byte is there, without waiting for another.
func TestReaderDoesNotWait(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		in, out := io.Pipe()
		go func() { _, _ = out.Write([]byte("data: a" + end + end)) }()
		event, err := NewReader(in, 0).Next()
		if err != nil || string(event.Data) != "a" {
			t.Errorf("line end %q: got %q, %v", end, event.Data, err)
		}
		_ = in.Close()
	}
}

func TestReaderBounds(t *testing.T) {
	for name, stream := range map[string]string{
		"line": "data: a\n\ndata: " + strings.Repeat("x", 100) + "\n\n",
		"data": "data: a\n\n" + strings.Repeat("data: xxxxxxxx\n", 10) + "\n",
	} {
		events, err := readAll(strings.NewReader(stream), 64)
		if !errors.Is(err, ErrTooLong) || len(events) != 1 {
			t.Errorf("%s: got %d events and %v, want 1 and ErrTooLong", name, len(events), err)
		}
	}
}

func TestReaderKeepsTheSourcesError(t *testing.T) {
	broken := errors.New("connection reset")
	events, err := readAll(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)), 0)
	if !errors.Is(err, broken) || len(events) != 1 {
		t.Errorf("got %d events and %v, want 1 and the error", len(events), err)
	}
}

// chunks hands a stream out in pieces whose lengths are taken from cuts, over and over.
type chunks struct {
	rest string
	cuts []byte
	at   int
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.rest == "" {
		return 0, io.EOF
	}
	n := 1
	if len(c.cuts) > 0 {
		n += int(c.cuts[c.at%len(c.cuts)])
		c.at++
	}
	n = copy(p[:min(n, len(p))], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// However the bytes are split, the events are the same; and what they hold can be written and read again.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "\uFEFFid: 1\r\ndata: x\r\n\r\n", ": c\r\rdata:\rdata: y\r\r", "event: e\nretry: 5\ndata: {\"a\":\"ż\"}\n\ndata: cut",
	} {
		f.Add(seed, []byte{0}, uint8(0))
		f.Add(seed, []byte{1, 0, 5}, uint8(20))
	}
	f.Fuzz(func(t *testing.T, stream string, cuts []byte, bound uint8) {
		whole, wholeErr := readAll(strings.NewReader(stream), int(bound))
		split, splitErr := readAll(&chunks{rest: stream, cuts: cuts}, int(bound))
		if show(whole...) != show(split...) || fmt.Sprint(wholeErr) != fmt.Sprint(splitErr) {
			t.Fatalf("whole: %s, %v\nsplit: %s, %v", show(whole...), wholeErr, show(split...), splitErr)
		}
		for _, event := range whole {
			if bound > 0 && len(event.Data) > int(bound) {
				t.Fatalf("data of %d bytes passed a bound of %d", len(event.Data), bound)
			}
		}
	})
}

// Ready says that the next event is there, whatever its line ends, and not that a part of it is.
func TestReady(t *testing.T) {
	source, in := io.Pipe()
	reader := NewReader(source, 0)
	defer source.Close()
	go func() {
		for _, piece := range []string{"data: 1\n\ndata: 2\r\n\r\ndata: 3\n\nda", "ta: 4\n\n"} {
			_, _ = io.WriteString(in, piece)
		}
		_ = in.Close()
	}()
	var ready []bool
	for {
		event, err := reader.Next()
		if err == io.EOF {
			break
		}
		if err != nil || string(event.Data) != strconv.Itoa(len(ready)+1) {
			t.Fatalf("%q, %v", event.Data, err)
		}
		ready = append(ready, reader.Ready())
	}
	if want := []bool{true, true, false, false}; !slices.Equal(ready, want) {
		t.Errorf("ready %v, want %v", ready, want)
	}
}
