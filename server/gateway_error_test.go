package server

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
)

// The errors of requests to the gateway are written in the form of its APIs, those of others in the server's own.
func TestErrorsOfTheGatewayHaveItsForm(t *testing.T) {
	s := &server{options: Options{GatewayError: func(w http.ResponseWriter, _ *http.Request, p *api.Problem) { w.WriteHeader(p.Status + 100) }}}
	for path, want := range map[string]int{"/v1/messages": 501, "/v1beta/models": 501, "/api/conversations": 401, "/v1": 401} {
		recorder := httptest.NewRecorder()
		s.fail(recorder, httptest.NewRequest(http.MethodGet, path, nil), unauthenticated("missing_api_key", "send a key"))
		if recorder.Code != want || recorder.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s: got %d %v, want %d", path, recorder.Code, recorder.Header(), want)
		}
	}
}

// Clients of Google's API send their key in a header of their own.
func TestKeyOfAGeminiClient(t *testing.T) {
	if token, err := tokenOf(http.Header{"X-Goog-Api-Key": {"key"}}); token != "key" || err != nil {
		t.Errorf("got %q, %v", token, err)
	}
}

// The bodies of requests to the gateway have the server's limit, too.
func TestBodiesForTheGatewayAreBounded(t *testing.T) {
	var read error
	handler := New(newEngine(t, engine.Options{}), Options{
		MaxBodyBytes: 8, GatewayPatterns: []string{"/v1/"},
		Gateway: func(continuo.Scope) http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, read = io.ReadAll(r.Body) })
		},
	})
	for body, code := range map[string]string{"12345678": "", "123456789": "body_too_large"} {
		read = nil
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "http://localhost/v1/messages", strings.NewReader(body)))
		if got := new(api.Problem); errors.As(read, &got) != (code != "") || got.Code != code {
			t.Errorf("%d bytes: got %v, want %q", len(body), read, code)
		}
	}
}
