package server

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	_ "github.com/continuo-log/continuo/internal/rapidseed" // the same values in every run
	"pgregory.net/rapid"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/sse"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// schemaOf names the schema of each event's data.
var schemaOf = map[string]string{
	"turn": "TurnEvent", "context": "ChatContext", "reasoning": "TextEvent", "delta": "TextEvent",
	"tool_call": "ToolCallEvent", "tool_call_delta": "ToolCallDeltaEvent", "approval": "ToolCallEvent", "decision": "DecisionEvent",
	"fallback": "FallbackEvent", "tool_result": "ToolResultEvent", "done": "ChatAnswer", "error": "ChatFailure",
}

// The document lists the events that streams have: the tests of streams accept no others.
func TestEventsAreListed(t *testing.T) {
	listed := map[string]bool{}
	for field := range reflect.TypeFor[api.EventStream]().Fields() {
		listed[field.Tag.Get("event")] = true
	}
	if have, want := slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(schemaOf)); !slices.Equal(have, want) {
		t.Errorf("api.EventStream lists the events %q, not %q", have, want)
	}
}

// readEvents reads a stream, checks its form, and holds its events against openapi.json.
func readEvents(t *testing.T, answer *reply) []sse.Event {
	t.Helper()
	if answer.status != 200 || answer.header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("status %d, %s: %s", answer.status, answer.header.Get("Content-Type"), answer.body)
	}
	events, err := allEvents(bytes.NewReader(answer.body))
	if err != nil || len(events) == 0 || events[0].Type != "turn" {
		t.Fatalf("%v: the stream does not begin with turn: %s", err, answer.body)
	}
	d, err := description()
	if err != nil {
		t.Fatal(err)
	}
	for i, event := range events {
		if terminal := event.Type == "done" || event.Type == "error"; terminal != (i == len(events)-1) {
			t.Errorf("event %d of %d is %s", i+1, len(events), event.Type)
		}
		if schemaOf[event.Type] == "" || event.Cut {
			t.Fatalf("event %d is %q, cut: %v", i+1, event.Type, event.Cut)
		}
		if err := d.validate("/components/schemas/"+schemaOf[event.Type], event.Data); err != nil {
			t.Errorf("event %s: %v\n%s", event.Type, err, event.Data)
		}
	}
	return events
}

func allEvents(source io.Reader) ([]sse.Event, error) {
	reader := sse.NewReader(source, 0)
	var events []sse.Event
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

// A stream must read the same however its bytes are split in transit.
func TestStreamSplitAnywhere(t *testing.T) {
	answer := ask(t, newServer(t), "POST", "/chat", `{"message": "use the tool: höhe 🎯 and much", "stream": true}`)
	want := readEvents(t, answer)
	same := func(got []sse.Event) bool {
		return slices.EqualFunc(got, want, func(a, b sse.Event) bool { return a.Type == b.Type && bytes.Equal(a.Data, b.Data) })
	}
	if got, err := allEvents(iotest.OneByteReader(bytes.NewReader(answer.body))); err != nil || !same(got) {
		t.Errorf("byte by byte: %v, %d events", err, len(got))
	}
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(0, len(answer.body)).Draw(t, "at")
		length := rapid.IntRange(0, len(answer.body)-at).Draw(t, "length")
		pieces := io.MultiReader(bytes.NewReader(answer.body[:at]), bytes.NewReader(answer.body[at:at+length]), bytes.NewReader(answer.body[at+length:]))
		if got, err := allEvents(pieces); err != nil || !same(got) {
			t.Fatalf("%v, %d events", err, len(got))
		}
	})
}

// A tool's output is bounded in events and whole in the log.
func TestStreamBoundsToolOutput(t *testing.T) {
	handler := New(newEngine(t, engine.Options{Tools: tool.Set{upper{}}}), Options{})
	events := readEvents(t, ask(t, handler, "POST", "/chat", `{"message": "use the tool: much", "session_id": "s", "stream": true}`))
	at := slices.IndexFunc(events, func(event sse.Event) bool { return event.Type == "tool_result" })
	var result api.ToolResultEvent
	if at < 0 || json.Unmarshal(events[at].Data, &result) != nil {
		t.Fatalf("no tool_result among %d events", len(events))
	}
	if len(result.Content) != 2000 || !result.Truncated || result.OutputRef == "" {
		t.Errorf("%d characters, truncated %v, %q", len(result.Content), result.Truncated, result.OutputRef)
	}
	entries := entriesOf(t, handler, "s")
	if checkLog(t, entries); len(entries[2].Content.String()) != 5000 {
		t.Errorf("the log has %d characters of the output", len(entries[2].Content.String()))
	}
}

// A silent stream must carry comments, each written out at once.
func TestStreamKeepsAlive(t *testing.T) {
	gate := newGate()
	remote := httptest.NewServer(New(newEngine(t, withModel(gate.model())), Options{KeepAlive: time.Millisecond}))
	defer remote.Close()
	response, err := http.Post(remote.URL+"/chat", "application/json", strings.NewReader(`{"message": "tell", "stream": true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var whole bytes.Buffer
	lines := bufio.NewScanner(io.TeeReader(response.Body, &whole))
	comments := 0
	for lines.Scan() {
		if lines.Text() == ": keep-alive" {
			if comments++; comments == 3 { // the model is let on by the comments alone
				close(gate.open)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	events := readEvents(t, &reply{t, 200, response.Header, whole.Bytes()})
	if comments < 3 || events[len(events)-1].Type != "done" {
		t.Errorf("%d comments; the stream ends with %s", comments, events[len(events)-1].Type)
	}
}

// After a stream, the connection must serve the next request: no deadline may stay behind.
func TestStreamLeavesTheConnectionUsable(t *testing.T) {
	remote := httptest.NewServer(newServer(t))
	defer remote.Close()
	client := remote.Client()
	for range 3 {
		response, err := client.Post(remote.URL+"/chat", "application/json", strings.NewReader(`{"message": "hello", "session_id": "s", "stream": true}`))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || !strings.Contains(string(body), "event: done") {
			t.Fatalf("%v: %s", err, body)
		}
	}
}

// A client that disconnects is no failure of the server: the turn continues, and the log has its request only.
func TestAClientThatDisconnectsIsNoError(t *testing.T) {
	log, gate := &logBuffer{}, newGate()
	remote := httptest.NewServer(New(newEngine(t, withModel(gate.model())), Options{Logger: log.logger()}))
	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, "POST", remote.URL+"/chat", strings.NewReader(`{"message": "hello", "stream": true}`))
	if err != nil {
		t.Fatal(err)
	}
	response, err := remote.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	within(t, "the first word", gate.reached)
	leave()
	remote.Close() // when the handler has returned
	close(gate.open)
	log.line(t, "request")
	if strings.Contains(log.String(), "request_failed") {
		t.Errorf("logged\n%s", log)
	}
}

// Whatever ends a stream, it has a last event, and only one.
func TestStreamAlwaysEnds(t *testing.T) {
	for _, last := range []string{"", "done", "error"} {
		recorder := httptest.NewRecorder()
		out := newEventStream(recorder, time.Hour)
		out.sendAs(0, "turn", api.ChatIDs{SessionID: "s", ConversationID: "c", TurnID: "t"})
		if last != "" {
			out.sendAs(0, last, struct{}{})
		}
		out.close()
		events, err := allEvents(recorder.Body)
		if err != nil || len(events) != 2 || events[1].Type != cmp.Or(last, "error") {
			t.Errorf("after %q: %v, %d events", last, err, len(events))
		}
	}
}

// A client that has the header misses nothing that comes: no comment sends the header before the handler does.
func TestAKeepAliveSendsNoHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := httptest.NewRecorder()
		out := newEventStream(recorder, time.Second)
		time.Sleep(time.Minute)
		synctest.Wait()
		if recorder.Flushed || recorder.Body.Len() > 0 {
			t.Errorf("before the header came %q", recorder.Body)
		}
		out.sendHeader()
		time.Sleep(time.Minute)
		synctest.Wait()
		if comments := strings.Count(recorder.Body.String(), ": keep-alive\n"); comments < 59 {
			t.Errorf("%d comments came in a minute", comments)
		}
		out.close()
	})
}

// flushes is a client that has what was flushed.
type flushes struct {
	*httptest.ResponseRecorder
	sent int // bytes
	each []string
}

func (f *flushes) Flush() {
	f.each = append(f.each, f.Body.String()[f.sent:])
	f.sent = f.Body.Len()
}

// Events that a reader gets at once are sent with one flush, and nothing waits for an event that comes later.
func TestEventsAreSentTogether(t *testing.T) {
	client := &flushes{ResponseRecorder: httptest.NewRecorder()}
	s := &server{options: Options{KeepAlive: time.Hour}}
	entry := &continuo.Entry{Seq: 2, Role: continuo.Assistant, Content: continuo.Text("one two")}
	events := func(yield func(turn.Event, error) bool) {
		for _, event := range []turn.Event{
			{ID: 2, Kind: turn.TextDelta, Text: "one ", More: true},
			{ID: 3, Kind: turn.TextDelta, Text: "two", More: true},
			{ID: 4, Kind: turn.Answered, Entry: entry}, // nothing is sent for it
			{ID: 5, Kind: turn.TextDelta, Text: "three", More: true},
			{ID: 6, Kind: turn.Finished, Entry: entry},
		} {
			yield(event, nil)
			if !event.More && !event.IsEnd() && client.sent < client.Body.Len() {
				t.Errorf("at event %d, %q waits", event.ID, client.Body.String()[client.sent:])
			}
		}
	}
	// The stream does not begin with its first event: no store is asked for the turn.
	if err := s.stream(client, httptest.NewRequest(http.MethodPost, "/chat", http.NoBody), nil, events, &progress{lastID: 1, begun: true}); err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, sent := range client.each {
		part := ""
		read, err := allEvents(strings.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range read {
			part += event.Type + " "
		}
		types = append(types, part)
	}
	if want := []string{"delta delta ", "delta done "}; !slices.Equal(types, want) {
		t.Errorf("sent %q, want %q", types, want)
	}
}
