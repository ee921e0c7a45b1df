package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// wireEvent is an event of a stream of a response.
type wireEvent struct {
	Type           string `json:"type"`
	SequenceNumber int    `json:"sequence_number"`
	OutputIndex    *int   `json:"output_index"`
	ItemID         string `json:"item_id"`
	Delta          string `json:"delta"`
	Item           struct{ ID, Type, Status string }
	Response       json.RawMessage
}

// shownResponse is a response as far as the tests read it.
type shownResponse struct {
	ID, Object, Status string
	Output             []struct {
		ID, Type, Status, Arguments, Name string
		CallID                            string `json:"call_id"`
		Content                           []struct{ Type, Text string }
	}
	Usage *struct {
		InputTokens int `json:"input_tokens"`
	}
	PreviousResponseID *string `json:"previous_response_id"`
}

func decode[T any](t *testing.T, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// eventsOf reads the stream of a response, and checks what every stream must keep to.
func eventsOf(t *testing.T, stream string) []wireEvent {
	t.Helper()
	var events []wireEvent
	blocks := strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n")
	if blocks[len(blocks)-1] != "data: [DONE]" {
		t.Errorf("the stream ends with %q", blocks[len(blocks)-1])
	}
	for _, block := range blocks[:len(blocks)-1] {
		name, data, ok := strings.Cut(block, "\ndata: ")
		event := decode[wireEvent](t, data)
		if !ok || name != "event: "+event.Type {
			t.Errorf("the event %q has the name %q", event.Type, name)
		}
		if len(events) > 0 && event.SequenceNumber != events[len(events)-1].SequenceNumber+1 {
			t.Errorf("the event %d comes after %d", event.SequenceNumber, events[len(events)-1].SequenceNumber)
		}
		events = append(events, event)
	}
	return events
}

// checkLifecycle checks the rules of OpenAI's own client: the first event creates the response, each item has the next free
// index and an id of its own, and every delta names the item at its index.
func checkLifecycle(t *testing.T, events []wireEvent, final shownResponse) {
	t.Helper()
	if events[0].Type != "response.created" || events[0].SequenceNumber != 0 {
		t.Errorf("the stream begins with %+v", events[0])
	}
	var items []string
	for _, event := range events {
		switch {
		case event.Type == "response.output_item.added":
			if *event.OutputIndex != len(items) || event.Item.ID == "" || slices.Contains(items, event.Item.ID) {
				t.Errorf("item %q is added at %d, after %v", event.Item.ID, *event.OutputIndex, items)
			}
			items = append(items, event.Item.ID)
		case event.ItemID != "" && items[*event.OutputIndex] != event.ItemID:
			t.Errorf("%s names %s at %d, which is %s", event.Type, event.ItemID, *event.OutputIndex, items[*event.OutputIndex])
		}
	}
	var ended []string
	for _, item := range final.Output {
		ended = append(ended, item.ID)
	}
	if !slices.Equal(items, ended) {
		t.Errorf("the stream added %v, the response has %v", items, ended)
	}
}

func TestAResponseIsStreamedRetrievedAndReplayed(t *testing.T) {
	calls := `data: {"choices":[{"index":0,"delta":{"content":"Look."}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":"{\"x\""}}]}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"see","arguments":""}}]}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	for name, answer := range map[string]string{"text": chatStream, "text and calls": calls} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, newUpstream(t, stream(answer)))
			_, streamed := g.post(t, "/v1/responses", `{"model":"gpt","input":"hi","stream":true}`)
			events := eventsOf(t, streamed)
			final := decode[shownResponse](t, string(events[len(events)-1].Response))
			checkLifecycle(t, events, final)
			if final.Status != "completed" || final.Usage == nil {
				t.Errorf("the response ends as %+v", final)
			}
			if got := g.get(t, "/v1/responses/"+final.ID); got.status != http.StatusOK || string(decode[json.RawMessage](t, got.body)) != strings.TrimSpace(got.body) ||
				decode[shownResponse](t, got.body).Output == nil || got.body != string(events[len(events)-1].Response)+"\n" {
				t.Errorf("retrieved\n%s\nstreamed\n%s", got.body, events[len(events)-1].Response)
			}
			if got := g.get(t, "/v1/responses/"+final.ID+"?stream=true"); got.body != streamed {
				t.Errorf("replayed\n%s\nwant\n%s", got.body, streamed)
			}
			for after := range events {
				want := streamed
				for range after + 1 {
					_, want, _ = strings.Cut(want, "\n\n")
				}
				if got := g.get(t, fmt.Sprintf("/v1/responses/%s?stream=true&starting_after=%d", final.ID, after)); got.body != want {
					t.Errorf("replayed after %d\n%s\nwant\n%s", after, got.body, want)
				}
			}
			for _, item := range final.Output {
				if got := g.get(t, "/v1/conversations/"+conversationOf(final.ID)+"/items/"+item.ID); got.status != http.StatusOK || !strings.Contains(got.body, item.ID) {
					t.Errorf("item %s: got %d %s", item.ID, got.status, got.body)
				}
			}
		})
	}
}

// got is an answer.
type got struct {
	status int
	body   string
	header http.Header
}

func (g *testGateway) get(t *testing.T, path string) got { return g.call(t, http.MethodGet, path, "") }

func (g *testGateway) call(t *testing.T, method, path, body string) got {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, g.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := g.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got{response.StatusCode, string(answer), response.Header}
}

// conversationOf is the conversation of a response, by its id.
func conversationOf(responseID string) string {
	return "conv_" + strings.TrimPrefix(responseID, "resp_")[:32]
}

// A response continues the one that it names; where that one has been continued already, in a conversation of its own.
func TestAResponseContinuesAnother(t *testing.T) {
	u := newUpstream(t, stream(chatStream), stream(chatStream), stream(chatStream))
	g := newGateway(t, u)
	first := decode[shownResponse](t, g.call(t, "POST", "/v1/responses", `{"model":"gpt","input":"one","instructions":"Be brief."}`).body)
	second := decode[shownResponse](t, g.call(t, "POST", "/v1/responses", fmt.Sprintf(`{"model":"gpt","input":"two","previous_response_id":%q}`, first.ID)).body)
	other := decode[shownResponse](t, g.call(t, "POST", "/v1/responses", fmt.Sprintf(`{"model":"gpt","input":"three","previous_response_id":%q}`, first.ID)).body)
	if conversationOf(first.ID) != conversationOf(second.ID) || conversationOf(first.ID) == conversationOf(other.ID) {
		t.Errorf("the responses are %s, %s and %s", first.ID, second.ID, other.ID)
	}
	for _, want := range []struct{ has, lacks []string }{
		{[]string{"one", "Be brief."}, []string{"two"}},
		{[]string{"one", "Grüß Gott", "two"}, []string{"Be brief."}},
		{[]string{"one", "Grüß Gott", "three"}, []string{"Be brief.", "two"}},
	} {
		sent := (<-u.requests).body
		for _, text := range want.has {
			if !strings.Contains(sent, text) {
				t.Errorf("the upstream got %s without %q", sent, text)
			}
		}
		for _, text := range want.lacks {
			if strings.Contains(sent, text) {
				t.Errorf("the upstream got %s with %q", sent, text)
			}
		}
	}
}

// What cannot be retrieved, continued or found is refused with OpenAI's codes.
func TestRefusedResponses(t *testing.T) {
	g := newGateway(t, newUpstream(t, stream(chatStream), stream(chatStream)))
	unstored := decode[shownResponse](t, g.call(t, "POST", "/v1/responses", `{"model":"gpt","input":"one","store":false}`).body)
	deleted := decode[shownResponse](t, g.call(t, "POST", "/v1/responses", `{"model":"gpt","input":"one"}`).body)
	if got := g.call(t, "DELETE", "/v1/responses/"+deleted.ID, ""); got.status != http.StatusOK || !strings.Contains(got.body, `"deleted":true`) {
		t.Errorf("deleted: %+v", got)
	}
	for _, test := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/v1/responses/" + unstored.ID, "", 404, "response_not_found"},
		{"GET", "/v1/responses/" + deleted.ID, "", 404, "response_not_found"},
		{"GET", "/v1/responses/resp_nope", "", 404, "response_not_found"},
		{"POST", "/v1/responses", `{"model":"gpt","input":"x","previous_response_id":"` + unstored.ID + `"}`, 400, "previous_response_not_found"},
		{"POST", "/v1/responses", `{"model":"gpt","input":"x","previous_response_id":"` + deleted.ID + `"}`, 400, "previous_response_not_found"},
		{"POST", "/v1/responses", `{"model":"gpt","input":"x","previous_response_id":"resp_nope"}`, 400, "previous_response_not_found"},
		{"POST", "/v1/responses", `{"model":"gpt","input":"x","conversation":"conv_nope"}`, 404, "conversation_not_found"},
		{"POST", "/v1/responses", `{"model":"gpt","input":"x","conversation":"a","previous_response_id":"b"}`, 400, "exclude each other"},
		{"POST", "/v1/responses", `{"model":"gpt","input":7}`, 400, "invalid_request_error"},
		{"POST", "/v1/responses", `{"input":"x"}`, 400, `"param":"model"`},
		{"POST", "/v1/responses", `{"model":"gpt","input":[{"type":"function_call_output","call_id":"nope","output":"x"}]}`, 400, "invalid_request_error"},
		{"POST", "/v1/responses", `{"model":"gpt","input":[{"type":"item_reference","id":"msg_nope"}]}`, 404, "item_not_found"},
	} {
		got := g.call(t, test.method, test.path, test.body)
		if got.status != test.status || !strings.Contains(got.body, test.want) {
			t.Errorf("%s %s %s: got %d %s, want %d with %s", test.method, test.path, test.body, got.status, got.body, test.status, test.want)
		}
	}
}

// The functions of a response have all the members that the API's schema requires, those that the request left out as null.
func TestAResponseRepeatsItsTools(t *testing.T) {
	g := newGateway(t, newUpstream(t, stream(chatStream)))
	got := g.call(t, "POST", "/v1/responses", `{"model":"gpt","input":"x","tools":[{"type":"function","name":"look"},{"type":"function","name":"see","description":"sees","parameters":{"type":"object"},"strict":false}]}`)
	want := `"tools":[{"type":"function","name":"look","description":null,"parameters":null,"strict":null},{"type":"function","name":"see","description":"sees","parameters":{"type":"object"},"strict":false}]`
	if !strings.Contains(got.body, want) {
		t.Errorf("got %s, want it with %s", got.body, want)
	}
}

// A deleted item is not listed any more, and neither it nor its group is shown to the model.
func TestADeletedItemIsNotShown(t *testing.T) {
	u := newUpstream(t, stream(chatStream))
	g := newGateway(t, u)
	conversation := decode[struct{ ID string }](t, g.call(t, "POST", "/v1/conversations", `{"items":[
		{"type":"message","role":"user","content":"keep"},
		{"type":"function_call","call_id":"c","name":"look","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"seen"},
		{"type":"message","role":"user","content":"forget"},{"type":"message","role":"assistant","content":"known"}]}`).body)
	items := decode[struct{ Data []struct{ ID, Type string } }](t, g.get(t, "/v1/conversations/"+conversation.ID+"/items?order=asc").body).Data
	for _, at := range []int{2, 3} {
		if got := g.call(t, "DELETE", "/v1/conversations/"+conversation.ID+"/items/"+items[at].ID, ""); got.status != http.StatusOK || !strings.Contains(got.body, conversation.ID) {
			t.Errorf("deleted: %+v", got)
		}
	}
	var left []string
	for _, item := range decode[struct{ Data []struct{ ID, Type string } }](t, g.get(t, "/v1/conversations/"+conversation.ID+"/items?order=asc").body).Data {
		left = append(left, item.ID)
	}
	if want := []string{items[0].ID, items[1].ID, items[4].ID}; !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
	g.call(t, "POST", "/v1/responses", fmt.Sprintf(`{"model":"gpt","input":"go on","conversation":%q}`, conversation.ID))
	sent := (<-u.requests).body
	for text, shown := range map[string]bool{"keep": true, "known": true, "go on": true, "forget": false, "seen": false, "look": false} {
		if strings.Contains(sent, text) != shown {
			t.Errorf("%q is shown: %v, in %s", text, !shown, sent)
		}
	}
}

// A compaction item continues the conversation that it stands for.
func TestACompactionItemContinuesItsConversation(t *testing.T) {
	u := newUpstream(t, stream(chatStream))
	g := newGateway(t, u)
	compacted := decode[struct {
		Object string
		Output []json.RawMessage
	}](t, g.call(t, "POST", "/v1/responses/compact", `{"model":"gpt","input":[{"role":"user","content":"one"},{"role":"assistant","content":"two"}]}`).body)
	if compacted.Object != "response.compaction" || len(compacted.Output) != 2 {
		t.Fatalf("compacted: %+v", compacted)
	}
	input, _ := json.Marshal(append(compacted.Output, json.RawMessage(`{"role":"user","content":"three"}`)))
	g.call(t, "POST", "/v1/responses", fmt.Sprintf(`{"model":"gpt","input":%s}`, input))
	sent := (<-u.requests).body
	if strings.Count(sent, `"one"`) != 1 || !strings.Contains(sent, `"two"`) || !strings.Contains(sent, `"three"`) {
		t.Errorf("the upstream got %s", sent)
	}
}

// The conversations of tasks only record work: no endpoint appends to one that a request names.
func TestTheConversationOfATaskTakesNoMessages(t *testing.T) {
	g := newGateway(t, newUpstream(t))
	record, err := g.log.Create(t.Context(), continuo.Conversation{ProjectID: continuo.DefaultProject, Kind: continuo.KindTask, ActiveMode: continuo.ModeAgent})
	if err != nil {
		t.Fatal(err)
	}
	for path, body := range map[string]string{
		"/v1/responses": `{"model":"gpt","input":"hi","conversation":"` + record.ID + `"}`,
		"/v1/conversations/" + record.ID + "/items":   `{"items":[{"role":"user","content":"hi"}]}`,
		"/v1/chat/completions":                        `{"model":"gpt","messages":[{"role":"user","content":"hi"}]}`,
		"/v1beta/models/gpt:generateContent?key=none": `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
	} {
		if response, got := g.post(t, path, body, "X-Conversation-ID", record.ID); response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: got %d %s", path, response.StatusCode, got)
		}
	}
	if now, err := g.log.Conversation(t.Context(), record.ID); err != nil || now.LastSeq != 0 {
		t.Errorf("the task has %d entries, %v", now.LastSeq, err)
	}
}

// A conversation whose history the server keeps is found by its beginning, when a client sends the whole of it: through the
// Responses API, and through an endpoint whose request names the conversation.
func TestAKeptHistoryIsFoundByItsBeginning(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, g *testGateway) string{
		"by responses": func(t *testing.T, g *testGateway) string {
			first := decode[shownResponse](t, g.call(t, "POST", "/v1/responses", `{"model":"gpt","input":"one"}`).body)
			second := g.call(t, "POST", "/v1/responses", `{"model":"gpt","input":"two","previous_response_id":"`+first.ID+`"}`)
			return second.header.Get("X-Conversation-ID")
		},
		"by its key": func(t *testing.T, g *testGateway) string {
			for _, text := range []string{"one", "two"} {
				g.post(t, "/v1/chat/completions", `{"model":"gpt","messages":[{"role":"user","content":"`+text+`"}]}`, "X-Conversation-ID", "k")
			}
			response, _ := g.post(t, "/v1/chat/completions", `{"model":"gpt","messages":[{"role":"user","content":"three"}]}`, "X-Conversation-ID", "k")
			return response.Header.Get("X-Conversation-ID")
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, newUpstream(t, stream(chatStream), stream(chatStream), stream(chatStream), stream(chatStream)))
			kept := begin(t, g)
			said := func(words ...string) string {
				var messages []string
				for _, text := range words {
					messages = append(messages, `{"role":"user","content":"`+text+`"},{"role":"assistant","content":"Grüß Gott"}`)
				}
				return strings.Join(messages, ",")
			}
			words := []string{"one", "two"}
			if name == "by its key" {
				words = append(words, "three")
			}
			response, body := g.post(t, "/v1/chat/completions", `{"model":"gpt","stream":true,"messages":[`+said(words...)+`,{"role":"user","content":"more"}]}`)
			if response.Header.Get("X-Conversation-ID") != kept || response.Header.Get("X-Continuo-Matched") != "prefix" {
				t.Errorf("%s: %s by %s, want %s", body, response.Header.Get("X-Conversation-ID"), response.Header.Get("X-Continuo-Matched"), kept)
			}
		})
	}
}
