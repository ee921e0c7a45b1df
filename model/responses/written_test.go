package responses_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"pgregory.net/rapid"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	wire "github.com/continuo-log/continuo/internal/wire/responses"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/responses"
)

// written is the events that wire.Stream makes of an entry, cut into pieces.
func written(t *rapid.T, entry *continuo.Entry) (events []wire.Event) {
	stream := wire.Stream{Response: wire.NewResponse("resp_1", "m", 1_795_000_000), EntryID: entry.ID}
	events = append(events, stream.Begin()...)
	if entry.Reasoning != nil {
		for _, piece := range pieces(t, entry.Reasoning.Text) {
			events = append(events, stream.Reasoning(piece)...)
		}
	}
	for _, piece := range pieces(t, entry.Content.String()) {
		events = append(events, stream.Text(piece)...)
	}
	for _, call := range entry.ToolCalls {
		events = append(events, stream.Call(call)...)
	}
	for _, call := range entry.ToolCalls { // as providers that stream parallel calls do
		for _, piece := range pieces(t, call.Arguments) {
			events = append(events, stream.Arguments(call.ID, piece)...)
		}
	}
	return append(events, stream.Complete("stop", &continuo.Usage{InputTokens: 3, OutputTokens: 4}, 1_795_000_001)...)
}

func pieces(t *rapid.T, text string) []string {
	runes := []rune(text)
	at := rapid.IntRange(0, len(runes)).Draw(t, "cut")
	return []string{string(runes[:at]), string(runes[at:])}
}

// What is written for clients is read by the client of the same protocol as the entry that it was made of, and the items
// in the last event are those that a list has.
func TestWhatIsWrittenIsRead(t *testing.T) {
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(body)
	}))
	defer server.Close()
	client := responses.New(responses.Options{BaseURL: server.URL, Provider: "p"})
	text := rapid.SampledFrom([]string{"", "a", "Hello\n\nworld", "日本 🌍", "<b>&", "\n\n"})
	rapid.Check(t, func(t *rapid.T) {
		entry := continuo.Entry{ID: "ent_0199", Role: continuo.Assistant, Content: continuo.Text(text.Draw(t, "text"))}
		if thought := text.Draw(t, "reasoning"); thought != "" {
			entry.Reasoning = &continuo.Reasoning{Text: thought}
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
			call := continuo.FunctionCall(fmt.Sprintf("call_%d", i), "f", rapid.SampledFrom([]string{"{}", `{"x": 1}`, "", `{"a`}).Draw(t, "arguments"))
			if rapid.Bool().Draw(t, "custom") {
				call.Type = "custom"
			}
			entry.ToolCalls = append(entry.ToolCalls, call)
		}
		if entry.Content.String() == "" && len(entry.ToolCalls) > 0 {
			entry.Content = continuo.Null()
		}
		body = nil
		var last wire.Response
		for i, event := range written(t, &entry) {
			if event.SequenceNumber != i {
				t.Fatalf("event %d has the number %d", i, event.SequenceNumber)
			}
			body = fmt.Appendf(body, "event: %s\ndata: %s\n\n", event.Type, rawjson.MustMarshal(event))
			if event.Type == wire.EventCompleted {
				if err := json.Unmarshal(event.Response, &last); err != nil {
					t.Fatal(err)
				}
			}
		}
		answer := model.Answer{}
		for delta, err := range client.Stream(t.Context(), []byte("{}")) {
			if err != nil {
				t.Fatalf("%v in\n%s", err, body)
			}
			answer.Add(delta)
		}
		read := answer.Entry(nil)
		read.ID = entry.ID
		if got, want := string(rawjson.MustMarshal(read)), string(rawjson.MustMarshal(entry)); got != want {
			t.Fatalf("got  %s\nwant %s\nin %s", got, want, body)
		}
		if entry.Content.String() == "" && len(entry.ToolCalls) == 0 {
			return // a list has an empty message where a stream has none
		}
		if got, want := string(rawjson.MustMarshal(last.Output)), string(rawjson.MustMarshal(wire.Output(&entry, wire.Options{}))); got != want {
			t.Fatalf("the last event has\n%s\na list has\n%s", got, want)
		}
		for i, raw := range last.Output {
			item, err := wire.ParseItem(raw)
			if id, at, ok := wire.EntryOf(item.ID); err != nil || !ok || id != entry.ID || at != i {
				t.Fatalf("item %d with the id %s is of %s, %d", i, item.ID, id, at)
			}
		}
	})
}
