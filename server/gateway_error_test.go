package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/continuo-log/continuo/api"
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
