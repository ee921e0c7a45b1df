package gateway_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/store/storetest"
)

// The items of an answer with tools that the provider ran, as it sent them.
var ownItemsOfProvider = []string{
	`{"id":"rs_p1","type":"reasoning","summary":[],"encrypted_content":"sealed"}`,
	`{"id":"ws_p2","type":"web_search_call","status":"completed","action":{"type":"search","query":"x","unknown":[1,2]}}`,
	`{"id":"mcpr_p3","type":"mcp_approval_request","server_label":"s","name":"look","arguments":"{}"}`,
	`{"id":"msg_p4","type":"message","status":"completed","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"Found.","annotations":[{"type":"url_citation","url":"http://x","start_index":0,"end_index":5,"title":"t"}]}]}`,
	`{"id":"fc_p5","type":"function_call","status":"completed","call_id":"call_1","name":"look","arguments":"{}"}`,
}

// ownStream is a stream with those items.
func ownStream() string {
	var events []string
	add := func(event string) {
		events = append(events, strings.Replace(event, `,`, fmt.Sprintf(`,"sequence_number":%d,`, len(events)), 1))
	}
	add(`{"type":"response.created","response":{"id":"resp_p","status":"in_progress","output":[]}}`)
	for i, item := range ownItemsOfProvider {
		add(fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, i, item))
		switch i {
		case 1:
			add(fmt.Sprintf(`{"type":"response.web_search_call.in_progress","output_index":%d,"item_id":"ws_p2"}`, i))
		case 3:
			add(fmt.Sprintf(`{"type":"response.output_text.delta","output_index":%d,"content_index":0,"item_id":"msg_p4","delta":"Found."}`, i))
		}
		add(fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item))
	}
	add(fmt.Sprintf(`{"type":"response.completed","response":{"id":"resp_p","status":"completed","output":[%s],"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}}`, strings.Join(ownItemsOfProvider, ",")))
	stream := ""
	for _, event := range events {
		kind, _, _ := strings.Cut(strings.TrimPrefix(event, `{"type":"`), `"`)
		stream += "event: " + kind + "\ndata: " + event + "\n\n"
	}
	return stream
}

const ownTools = `[{"type":"web_search","search_context_size":"low"},{"type":"mcp","server_label":"s","server_url":"http://x"},{"type":"namespace","name":"n","tools":[]},{"type":"function","name":"look","parameters":{"type":"object"}}]`

// Items of the provider's own tools come back as the provider sent them, in its order and under ids of this server that are
// the same everywhere: in the stream, the response, lists, replays, after a restart and after a stay in the archive. They
// go back to the provider under its own ids.
func TestItemsOfTheProvidersToolsComeBack(t *testing.T) {
	u := newUpstream(t, stream(ownStream()), stream(responsesStream("b", "done")), stream(responsesStream("c", "done")))
	store := storetest.NewMemory()
	g := newGatewayOver(t, u, store)
	_, streamed := g.post(t, "/v1/responses", `{"model":"o4","input":"find x","stream":true,"include":["reasoning.encrypted_content"],"tools":`+ownTools+`}`)
	if sent := (<-u.requests).body; !strings.Contains(sent, `{"type":"web_search","search_context_size":"low"},{"type":"mcp"`) || !strings.Contains(sent, `"namespace"`) {
		t.Errorf("the upstream got %s", sent)
	}
	events := eventsOf(t, streamed)
	final := decode[shownResponse](t, string(events[len(events)-1].Response))
	checkLifecycle(t, events, final)
	output := decode[struct{ Output []json.RawMessage }](t, string(events[len(events)-1].Response)).Output
	if len(output) != len(ownItemsOfProvider) {
		t.Fatalf("the response has %s", output)
	}
	for i, raw := range output {
		got, want := decode[map[string]any](t, string(raw)), decode[map[string]any](t, ownItemsOfProvider[i])
		if got["id"] == want["id"] || got["type"] != want["type"] {
			t.Errorf("item %d is %s", i, raw)
		}
		if i == 3 {
			want["content"].([]any)[0].(map[string]any)["logprobs"] = []any{}
		}
		delete(got, "id")
		delete(want, "id")
		if i == 0 || i == 4 {
			continue // written in our form
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("item %d is %v, want %v", i, got, want)
		}
	}
	check := func(g *testGateway) {
		t.Helper()
		if got := g.get(t, "/v1/responses/"+final.ID+"?include=reasoning.encrypted_content"); got.body != string(events[len(events)-1].Response)+"\n" {
			t.Errorf("retrieved\n%s\nstreamed\n%s", got.body, events[len(events)-1].Response)
		}
		var listed []string
		for _, item := range decode[struct{ Data []struct{ ID string } }](t, g.get(t, "/v1/conversations/"+conversationOf(final.ID)+"/items?order=asc").body).Data[1:] {
			listed = append(listed, item.ID)
		}
		var ids []string
		for _, item := range final.Output {
			ids = append(ids, item.ID)
			if got := g.get(t, "/v1/conversations/"+conversationOf(final.ID)+"/items/"+item.ID); !strings.Contains(got.body, `"`+item.ID+`"`) {
				t.Errorf("item %s: got %+v", item.ID, got)
			}
		}
		if !slices.Equal(listed, ids) {
			t.Errorf("listed are %v, the response has %v", listed, ids)
		}
	}
	check(g)
	again := newGatewayOver(t, u, store)
	check(again)
	if got := again.get(t, "/v1/responses/"+final.ID+"?stream=true&include=reasoning.encrypted_content"); got.body != streamed {
		t.Errorf("replayed\n%s\nwant\n%s", got.body, streamed)
	}

	next := again.call(t, "POST", "/v1/responses", fmt.Sprintf(`{"model":"o4","previous_response_id":%q,"tools":%s,"input":[{"type":"function_call_output","call_id":"call_1","output":"seen"},{"type":"mcp_approval_response","approve":true,"approval_request_id":%q}]}`, final.ID, ownTools, final.Output[2].ID))
	if next.status != 200 {
		t.Fatalf("continued: %+v", next)
	}
	sent := (<-u.requests).body
	for _, want := range []string{`"sealed"`, ownItemsOfProvider[1], `"approval_request_id":"mcpr_p3"`, `"phase":"final_answer"`, `"seen"`} {
		if !strings.Contains(sent, want) {
			t.Errorf("the upstream got %s\nwithout %s", sent, want)
		}
	}
	if got := again.call(t, "POST", "/v1/responses", fmt.Sprintf(`{"model":"o4","input":[{"type":"item_reference","id":%q},{"role":"user","content":"look"}]}`, final.Output[1].ID)); got.status != 200 {
		t.Fatalf("referred: %+v", got)
	}
	if sent := (<-u.requests).body; !strings.Contains(sent, ownItemsOfProvider[1]) {
		t.Errorf("the upstream got %s without the item as it sent it", sent)
	}
}

// Items of other types that a client adds to a conversation come back with everything that they had: also a provider's
// compaction.
func TestAddedItemsComeBack(t *testing.T) {
	g := newGateway(t, newUpstream(t))
	added := []string{
		`{"type":"compaction","encrypted_content":"of-another-provider"}`,
		`{"type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}`,
		`{"type":"code_interpreter_call","status":"completed","code":"1+1","container_id":"c","outputs":null}`,
	}
	conversation := decode[struct{ ID string }](t, g.call(t, "POST", "/v1/conversations", `{"items":[{"role":"user","content":"hi"},`+strings.Join(added, ",")+`]}`).body)
	items := decode[struct{ Data []map[string]any }](t, g.get(t, "/v1/conversations/"+conversation.ID+"/items?order=asc").body).Data
	if len(items) != 4 {
		t.Fatalf("the items are %v", items)
	}
	for i, want := range added {
		id := items[i+1]["id"]
		delete(items[i+1], "id")
		if want := decode[map[string]any](t, want); fmt.Sprint(items[i+1]) != fmt.Sprint(want) {
			t.Errorf("item %d is %v, want %v", i, items[i+1], want)
		}
		if got := g.call(t, "DELETE", fmt.Sprintf("/v1/conversations/%s/items/%s", conversation.ID, id), ""); got.status != 200 {
			t.Errorf("deleted: %+v", got)
		}
	}
	if left := decode[struct{ Data []map[string]any }](t, g.get(t, "/v1/conversations/"+conversation.ID+"/items").body).Data; len(left) != 1 {
		t.Errorf("left are %v", left)
	}
}

// Tools that only a provider of the Responses API runs are refused where the model is another's, with the name of the type.
func TestToolsOfProvidersAreRefusedElsewhere(t *testing.T) {
	g := newGateway(t, newUpstream(t))
	for _, tool := range []string{"web_search", "file_search", "code_interpreter", "computer_use", "custom", "namespace"} { // a namespace of other tools than functions
		got := g.call(t, "POST", "/v1/responses", `{"model":"claude","input":"x","tools":[{"type":"`+tool+`","name":"n","tools":[{"type":"custom","name":"c"}]}]}`)
		if got.status != 400 || !strings.Contains(got.body, tool) || !strings.Contains(got.body, `"param":"tools[0].type"`) {
			t.Errorf("%s: got %+v", tool, got)
		}
	}
}
