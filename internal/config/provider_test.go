package config

import "testing"

// Anthropic's blocks go back through any host that speaks its protocol; other data goes to the host that it came from.
func TestTheProviderFollowsTheProtocolOfAnthropic(t *testing.T) {
	text := "models:\n  a: {protocol: anthropic-messages, base_url: \"http://127.0.0.1:9/x\"}\n  b: {base_url: \"http://127.0.0.1:9/v1\"}\n  c: {protocol: anthropic-messages, base_url: \"http://127.0.0.1:9/x\", provider: other}\n"
	config := mustLoad(t, text, Options{})
	for name, want := range map[string]string{"a": "anthropic", "b": "127.0.0.1:9", "c": "other"} {
		if model := config.Models[name]; model.Provider != want || model.APIKeyEnv != "" {
			t.Errorf("%s: provider %q, key from %q", name, model.Provider, model.APIKeyEnv)
		}
	}
}
