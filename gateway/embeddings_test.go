package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// answered answers with a status and a body.
func answered(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Request-Id", "upstream-1")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// A request for embeddings and the answer to it pass unchanged but for the name of the model and the credentials, and
// belong to no conversation.
func TestEmbeddingsAreForwarded(t *testing.T) {
	const answer = `{"object":"list", "data":[{"object":"embedding","index":0,"embedding":[0.10, -1e-3]}],"model":"e","usage":{"prompt_tokens":4,"total_tokens":4}}`
	for name, sent := range map[string]string{"gpt": "gpt-4o-2024", "o4": "o4-2025", "served-embedding": "served-embedding"} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, answered(200, "application/json", answer))
			g := newGateway(t, u)
			response, got := g.post(t, "/v1/embeddings?x=1", `{"input" : ["a", "b"],"model":"`+name+`","dimensions":2,"x_unknown":{"b":1.0}}`, "Authorization", "Bearer the-clients-key", "User-Agent", "client/1.0")
			if response.StatusCode != http.StatusOK || got != answer || response.Header.Get("X-Request-Id") != "upstream-1" || response.Header.Get("Content-Type") != "application/json" {
				t.Errorf("got %d %v %s", response.StatusCode, response.Header, got)
			}
			request := <-u.requests
			key := "Bearer the-servers-key"
			if strings.HasPrefix(name, "served-") {
				key = "Bearer the-clients-key"
			}
			if want := `{"input" : ["a", "b"],"model":"` + sent + `","dimensions":2,"x_unknown":{"b":1.0}}`; request.path != "/v1/embeddings?x=1" || request.body != want ||
				request.header.Get("Authorization") != key || request.header.Get("User-Agent") != "client/1.0" {
				t.Errorf("the upstream got %+v, want %s", request, want)
			}
			if got := response.Header.Get("X-Conversation-ID"); got != "" {
				t.Errorf("the answer names the conversation %s", got)
			}
		})
	}
}

// What cannot be answered is refused in OpenAI's form, an upstream's own refusal as it came.
func TestRefusedEmbeddings(t *testing.T) {
	const refusal = `{"error":{"message":"too much", "type":"requests","param":null,"code":"rate_limit_exceeded"}}`
	for _, test := range []struct {
		body   string
		answer http.HandlerFunc
		status int
		want   string
	}{
		{`{"model":"claude","input":"a"}`, nil, 400, "embeddings_not_supported"},
		{`{"model":"demo","input":"a"}`, nil, 400, "embeddings_not_supported"},
		{`{"model":"nope","input":"a"}`, nil, 404, "model_not_found"},
		{`{"input":"a"}`, nil, 400, `"param":"model"`},
		{`{"model":"gpt"`, nil, 400, `"error"`},
		{`{"model":"gpt","input":"a"}`, answered(429, "application/json", refusal), 429, refusal},
		{`{"model":"gpt","input":"a"}`, answered(502, "text/html", "<html>"), 502, "<html>"},
		{`{"model":"gpt","input":"a"}`, answered(200, "application/json", `{"data":[`), 502, `"error"`},
	} {
		var answers []http.HandlerFunc
		if test.answer != nil {
			answers = append(answers, test.answer)
		}
		g := newGateway(t, newUpstream(t, answers...))
		if response, got := g.post(t, "/v1/embeddings", test.body); response.StatusCode != test.status || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %d %s, want %d %s", test.body, response.StatusCode, got, test.status, test.want)
		}
	}
}
