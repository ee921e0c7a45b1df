package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestUpstreams(t *testing.T) {
	config, err := load(t, `
upstreams:
  claude:
    protocol: anthropic-messages
    credentials: forward
    models: ["claude-*"]
  local:
    base_url: http://127.0.0.1:8000/v1/
`, Options{Env: []string{"ANTHROPIC_API_KEY=x"}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]UpstreamConfig{
		"claude": {
			Name: "claude", APIKeySet: true, Protocol: "anthropic-messages", BaseURL: "https://api.anthropic.com", APIKeyEnv: "ANTHROPIC_API_KEY",
			Credentials: CredentialsForward, Models: []string{"claude-*"}, Provider: "anthropic", Headers: map[string]string{},
		},
		"local": {
			Name: "local", Protocol: "openai-chat", BaseURL: "http://127.0.0.1:8000/v1", Credentials: CredentialsOwn, Models: []string{"*"},
			Provider: "127.0.0.1:8000", Headers: map[string]string{},
		},
	}
	if !reflect.DeepEqual(config.Upstreams, want) {
		t.Errorf("upstreams:\n%+v\nwant:\n%+v", config.Upstreams, want)
	}
	if m := config.Upstreams["claude"].Model("claude-x"); m.Name != "claude-x" || m.Model != "claude-x" || m.MaxOutputTokens != 4096 || m.APIKeyEnv != "ANTHROPIC_API_KEY" {
		t.Errorf("the model is %+v", m)
	}
}

// Without models and upstreams, the keys of vendors in the environment make upstreams; one vendor alone serves every name.
func TestFoundUpstreams(t *testing.T) {
	for name, test := range map[string]struct {
		file, keys string
		want       string
	}{
		"none":                   {"", "", ""},
		"one vendor":             {"", "ANTHROPIC_API_KEY", "anthropic-messages:*"},
		"two vendors":            {"", "ANTHROPIC_API_KEY GEMINI_API_KEY", "anthropic-messages:claude-* gemini:gemini-*,gemma-*"},
		"OpenAI's two protocols": {"", "OPENAI_API_KEY", "openai-chat:* openai-responses:*"},
		"a model in the file":    {"models:\n  a: {}\n", "OPENAI_API_KEY", ""},
		"an upstream":            {"upstreams:\n  a: {}\n", "OPENAI_API_KEY", ""},
	} {
		config, err := load(t, test.file, Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, u := range config.FoundUpstreams(func(variable string) bool { return strings.Contains(test.keys, variable) }) {
			got = append(got, u.Protocol+":"+strings.Join(u.Models, ","))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %v, want %s", name, got, test.want)
		}
	}
}
