package anthropic

import (
	"encoding/json"
	"testing"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// What is read and written again stays what it was.
func TestRoundTrip(t *testing.T) {
	for _, test := range []struct {
		value any
		text  string
	}{
		{new(Response), `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"<"},{"type":"odd","x":null}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":4}}`},
		{new(ErrorBody), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`},
		{new(Event), `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}`},
		{new(Event), `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`},
		{new(Event), `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`},
		{new(Event), `{"type":"content_block_stop","index":0}`},
		{new(Event), `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}}`},
		{new(Event), `{"type":"message_stop"}`},
		{new(Event), `{"type":"error","error":{"type":"api_error","message":"x"}}`},
		{new(BlockDelta), `{"type":"input_json_delta","partial_json":""}`},
		{new(BlockDelta), `{"type":"citations_delta","citation":{"url":"x"}}`},
		{new(MessageDelta), `{"stop_reason":"stop_sequence","stop_sequence":"END"}`},
	} {
		if err := json.Unmarshal([]byte(test.text), test.value); err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if got := string(rawjson.MustMarshal(test.value)); got != test.text {
			t.Errorf("got  %s\nwant %s", got, test.text)
		}
	}
}
