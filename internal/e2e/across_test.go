package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// One conversation through three endpoints: it begins as Claude Code's, is continued through the Responses API and in
// /chat. Each answer of the scripted model repeats what an earlier endpoint brought, so it was sent all of it.
func TestConversationAcrossClients(t *testing.T) {
	t.Parallel()
	mock := startScriptedMock(t)
	s := serve(t, fmt.Sprintf(`model: gpt-4o
models:
  gpt-4o: {protocol: openai-responses, base_url: "%[1]s/v1", model: gpt-4o, api_key_env: ""}
  claude-sonnet-4-5: {protocol: anthropic-messages, base_url: "%[1]s", model: claude-sonnet-4-5, api_key_env: ""}
`, mock.url))
	answer, header := s.post(t, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":100,"system":"You are an agent.","messages":[
		{"role":"user","content":"Remember: my code = 4711"}]}`, "X-Claude-Code-Session-Id", "s1")
	if !strings.Contains(answer, `"OK"`) {
		t.Fatalf("Claude Code got %s", answer)
	}
	conversation := header.Get("X-Conversation-ID")
	answer, _ = s.post(t, "/v1/responses", fmt.Sprintf(`{"model":"gpt-4o","conversation":%q,"input":"What is my code?"}`, conversation))
	if !strings.Contains(answer, `"4711"`) {
		t.Errorf("the Responses API answers %s", answer)
	}
	answer, _ = s.post(t, "/v1/responses", fmt.Sprintf(`{"model":"gpt-4o","conversation":%q,"input":"Remember: my secret = 815"}`, conversation))
	if !strings.Contains(answer, `"OK"`) {
		t.Errorf("the Responses API answers %s", answer)
	}
	if got := s.ask(t, conversation, "gpt-4o", "What is my secret?", false); got.answer.Response != "815" {
		t.Errorf("/chat answers %+v", got)
	}
	answer, header = s.post(t, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"What is my secret?"}]}`,
		"X-Conversation-ID", conversation, "X-Continuo-View", "continuity")
	if !strings.Contains(answer, `"815"`) || header.Get("X-Conversation-ID") != conversation {
		t.Errorf("the Messages API answers %s in %s", answer, header.Get("X-Conversation-ID"))
	}
	var said []string
	for _, entry := range s.entries(t, conversation) {
		said = append(said, string(entry.Role)+" "+entry.Content.String())
	}
	want := "user Remember: my code = 4711|assistant OK|user What is my code?|assistant 4711|user Remember: my secret = 815|assistant OK|" +
		"user What is my secret?|assistant 815|user What is my secret?|assistant 815"
	if got := strings.Join(said, "|"); got != want {
		t.Errorf("the log has %s", got)
	}
}

// post sends a body with headers and returns the answer.
func (s server) post(t *testing.T, path, body string, header ...string) (string, http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), response.Header
}
