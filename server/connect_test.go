package server

import (
	"strings"
	"testing"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
)

// Every client has lines for the address that was asked about; an address that would need quotes is refused.
func TestReadyLinesOfClients(t *testing.T) {
	handler := New(newEngine(t, engine.Options{}), Options{})
	var got api.Connections
	ask(t, handler, "GET", "/api/connect?base_url=https://log.example:8443&keys=true", "").into(200, &got)
	if len(got.BaseURLs) == 0 || got.BaseURLs[0].URL != "https://log.example:8443/v1" {
		t.Errorf("base URLs: %+v", got.BaseURLs)
	}
	found := false
	for _, client := range got.Clients {
		found = found || client.ID == "pi"
		if !strings.Contains(client.Text, "https://log.example:8443") || !strings.Contains(client.Text, "CONTINUO_API_KEY") {
			t.Errorf("%s:\n%s", client.ID, client.Text)
		}
	}
	if !found {
		t.Errorf("pi is not among %+v", got.Clients)
	}
	for _, address := range []string{"log.example", "javascript:alert(1)", "https://log.example/"} {
		ask(t, handler, "GET", "/api/connect?base_url="+address, "").failed(400, "invalid_request", "base_url")
	}
}

// TestConnectSaysWhatToSet: without an upstream, agents ask for models that the server does not have.
func TestConnectSaysWhatToSet(t *testing.T) {
	none := func(string, string) (engine.Upstream, bool) { return engine.Upstream{}, false }
	for name, test := range map[string]struct {
		options engine.Options
		says    bool
	}{
		"without an upstream": {engine.Options{}, true},
		"with one":            {engine.Options{Serve: none}, false},
	} {
		var got api.Connections
		ask(t, New(newEngine(t, test.options), Options{}), "GET", "/api/connect", "").into(200, &got)
		if says := strings.Contains(got.Note, "upstreams") && strings.Contains(got.Note, "OPENAI_API_KEY") && strings.Contains(got.Note, "has only obedient"); says != test.says || !says && got.Note != "" {
			t.Errorf("%s: %q", name, got.Note)
		}
	}
}
