package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/continuo-log/continuo/internal/config"
)

// The models of an upstream are those that it lists and that its patterns match; its list is asked for once. The client's
// own credentials are sent where they are forwarded, and their answer is not kept.
func TestTheModelsOfUpstreamsAreListed(t *testing.T) {
	asked := 0
	keys := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		keys[r.URL.Path] = r.Header.Get("X-Api-Key") + r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"data":[{"id":"claude-a"},{"id":"other"},{"id":"claude-b"}]}`)
	}))
	t.Cleanup(server.Close)
	own := config.UpstreamConfig{Name: "own", Protocol: "openai-chat", BaseURL: server.URL + "/v1", APIKeyEnv: "KEY", Models: []string{"claude-*", "named"}}
	theirs := config.UpstreamConfig{Name: "theirs", Protocol: "anthropic-messages", BaseURL: server.URL + "/theirs", Credentials: config.CredentialsForward, Models: []string{"*"}}
	named := config.UpstreamConfig{Name: "named", Protocol: "openai-chat", BaseURL: server.URL + "/never", Models: []string{"one", "two"}}
	l := &listedModels{
		modelWiring: modelWiring{env: []string{"KEY=ours"}, logger: slog.New(slog.DiscardHandler)}, known: map[string]knownList{},
		upstreams: []config.UpstreamConfig{own, named},
	}
	for range 2 {
		if got := l.list(t.Context(), http.Header{}); !slices.Equal(got, []string{"named", "claude-a", "claude-b", "one", "two"}) || asked != 1 {
			t.Errorf("got %q after %d requests", got, asked)
		}
	}
	l.upstreams = []config.UpstreamConfig{theirs}
	for range 2 {
		if got := l.list(t.Context(), http.Header{"X-Api-Key": {"client's"}}); !slices.Equal(got, []string{"claude-a", "other", "claude-b"}) {
			t.Errorf("got %q", got)
		}
	}
	if asked != 3 || keys["/v1/models"] != "Bearer ours" || keys["/theirs/v1/models"] != "client's" {
		t.Errorf("%d requests, with the keys %q", asked, keys)
	}
}
