package gateway_test

import (
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// The title for which a client asks its model, beside the session, becomes the title of the session's conversation, whichever
// of the two comes first. A title that somebody gave it stays.
func TestAClientsTitleNamesItsConversation(t *testing.T) {
	const (
		ask   = `{"model":"gpt","stream":true,"messages":[{"role":"user","content":"Please fix the build"}],"tools":[{"type":"function","function":{"name":"f"}}]}`
		title = `{"model":"gpt","stream":true,"messages":[{"role":"system","content":"You are a title generator. Be short."},{"role":"user","content":"Generate a title: Please fix the build"}]}`
		named = `data: {"choices":[{"index":0,"delta":{"content":"\"Fixing the build\""},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	)
	headers := []string{"User-Agent", "opencode/1.18.33", "X-Session-Id", "ses_1"}
	for name, test := range map[string]struct {
		calls []string
		given string
		want  string
	}{
		"the title last":         {[]string{ask, title}, "", "Fixing the build"},
		"the title first":        {[]string{title, ask}, "", "Fixing the build"},
		"a title that was given": {[]string{ask, title}, "Mine", "Mine"},
	} {
		t.Run(name, func(t *testing.T) {
			answerTo := map[string]string{ask: chatStream, title: named}
			g := newGateway(t, newUpstream(t, stream(answerTo[test.calls[0]]), stream(answerTo[test.calls[1]])))
			session := ""
			for _, call := range test.calls {
				response, got := g.post(t, "/v1/chat/completions", call, headers...)
				if got != answerTo[call] {
					t.Fatalf("got %d %s", response.StatusCode, got)
				}
				if call != ask {
					continue
				}
				if session = response.Header.Get("X-Conversation-ID"); test.given != "" {
					if _, err := g.engine.Conversations.Change(t.Context(), continuo.Scope{ProjectID: continuo.DefaultProject}, session, continuo.ConversationChange{Title: &test.given}); err != nil {
						t.Fatal(err)
					}
				}
			}
			conversation, err := g.log.Conversation(t.Context(), session)
			if err != nil || conversation.Title != test.want {
				t.Errorf("the title is %q, %v, want %q", conversation.Title, err, test.want)
			}
		})
	}
}
