package gemini_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	wire "github.com/continuo-log/continuo/internal/wire/gemini"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/gemini"
)

// What is written for clients is read by the client of the same protocol as the entry that it was made of.
func TestWhatIsWrittenIsRead(t *testing.T) {
	entry := continuo.Entry{
		Role: continuo.Assistant, Content: continuo.Text("I look."), Reasoning: &continuo.Reasoning{Text: "hm"},
		ToolCalls: []continuo.ToolCall{continuo.FunctionCall("a", "f", `{"x":1}`), continuo.FunctionCall("b", "f", `{}`)},
	}
	usage := continuo.Usage{InputTokens: 9, OutputTokens: 7, CachedTokens: 4, ReasoningTokens: 3}
	var body []byte
	for _, part := range wire.Output(&entry, wire.Options{}) {
		body = fmt.Appendf(body, "data: %s\n\n", rawjson.MustMarshal(wire.Answer([]json.RawMessage{part}, "", nil)))
	}
	body = fmt.Appendf(body, "data: %s\n\n", rawjson.MustMarshal(wire.Answer(nil, "tool_calls", &usage)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(body)
	}))
	defer server.Close()
	answer := model.Answer{}
	for delta, err := range gemini.New(gemini.Options{BaseURL: server.URL, Name: "m"}).Stream(t.Context(), []byte("{}")) {
		if err != nil {
			t.Fatal(err)
		}
		answer.Add(delta)
	}
	if got, want := string(rawjson.MustMarshal(answer.Entry(nil))), string(rawjson.MustMarshal(entry)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if answer.Finish() != "tool_calls" || *answer.Usage() != usage {
		t.Errorf("finish %s, usage %+v", answer.Finish(), answer.Usage())
	}
}
