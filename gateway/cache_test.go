package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// For each request of a session it can be seen what the provider's cache gave, and where it gave less than before, which part
// of the request changed: the tools, the system prompt, or a message.
func TestWhichPartOfARequestMissedTheCache(t *testing.T) {
	answer := func(input, cached, written int) string {
		return strings.Replace(messagesStream, `"usage":{"input_tokens":9,"output_tokens":1}`,
			fmt.Sprintf(`"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,"output_tokens":1}`, input, cached, written), 1)
	}
	const (
		lookTool  = `{"name":"look","input_schema":{"type":"object"}}`
		marked    = `{"type":"ephemeral"}`
		assistant = `{"role":"assistant","content":[{"type":"text","text":"Grüß Gott"}]}`
	)
	text := func(words string, mark bool) string {
		if mark {
			return fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q,"cache_control":%s}]}`, words, marked)
		}
		return fmt.Sprintf(`{"role":"user","content":%q}`, words)
	}
	one, two, three := text("one", false)+","+assistant, text("two", false)+","+assistant, text("three", false)+","+assistant
	steps := []struct{ tools, system, messages, answer, want string }{
		{lookTool, "Be brief.", text("one", true), answer(10, 0, 2000), "first  "},
		{lookTool, "Be brief.", one + "," + text("two", true), answer(10, 2000, 500), "hit  "},
		{lookTool + `,{"name":"see","input_schema":{"type":"object"}}`, "Be brief.", one + "," + two + "," + text("three", true), answer(2600, 0, 0), "miss tools tools[1]"},
		{lookTool + `,{"name":"see","input_schema":{"type":"object"}}`, "Be long.", one + "," + two + "," + three + "," + text("four", true), answer(2700, 0, 2700), "miss system system[0]"},
	}
	var answers []http.HandlerFunc
	for _, step := range steps {
		answers = append(answers, stream(step.answer))
	}
	g := newGateway(t, newUpstream(t, answers...))
	var conversation string
	for _, step := range steps {
		response, body := g.post(t, "/v1/messages", fmt.Sprintf(`{"model":"claude","max_tokens":10,"stream":true,"tools":[%s],"system":%q,"messages":[%s]}`, step.tools, step.system, step.messages),
			"X-Claude-Code-Session-Id", "s1")
		if response.StatusCode != http.StatusOK {
			t.Fatal(response.StatusCode, body)
		}
		conversation = response.Header.Get("X-Conversation-ID")
	}
	found, err := g.log.Conversation(t.Context(), conversation)
	if err != nil {
		t.Fatal(err)
	}
	use, err := g.engine.Contexts.CacheUse(t.Context(), found, 50)
	if err != nil || len(use.Data) != len(steps) || use.Hits != 1 || use.Misses != 2 {
		t.Fatalf("%+v %v", use, err)
	}
	for i, request := range use.Data {
		if got := fmt.Sprintf("%s %s %s", request.Outcome, request.Reason, request.Changed); got != steps[i].want {
			t.Errorf("request %d: %q, want %q", i, got, steps[i].want)
		}
	}
	newest, err := g.engine.Contexts.CacheUse(t.Context(), found, 1)
	if err != nil || len(newest.Data) != 1 || newest.Data[0].Reason != "system" {
		t.Errorf("the newest: %+v %v", newest, err)
	}
}
