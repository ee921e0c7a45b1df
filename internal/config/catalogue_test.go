package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

func catalogueFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "models.json")
	text := `{"openai": {"models": {"gpt-4.1": {"limit": {"context": 5000}, "cost": {"input": 7, "output": 8}}, "new": {"limit": {"context": 9000}}}},
		"local": {"api": "http://127.0.0.1:8000/v1", "models": {"own": {"limit": {"context": 4000, "output": 500}}}}}`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestCatalogueFillsWhatModelsLeave(t *testing.T) {
	const models = `
models:
  gpt: {model: gpt-4.1}
  small: {model: gpt-4.1, context_window: 9000}
  new: {}
  claude: {protocol: anthropic-messages, model: claude-sonnet-4-5-20250929}
  short: {protocol: anthropic-messages, model: claude-sonnet-4-5, max_output_tokens: 100}
  other: {protocol: anthropic-messages, model: own-name}
  own: {base_url: http://127.0.0.1:8000/v1}
  proxied: {base_url: http://127.0.0.1:9000/v1, model: deployment, known_as: openai/gpt-4o}
`
	builtIn, merged := mustLoad(t, models, Options{}), mustLoad(t, models, Options{Flags: map[string]string{"catalogue.file": catalogueFile(t)}})
	for _, want := range []struct {
		config         *Config
		name           string
		window, output int
	}{
		{builtIn, "gpt", 1_047_576, 0},
		{builtIn, "small", 9000, 0},
		{builtIn, "new", 0, 0},
		{builtIn, "claude", 200_000, 64_000},
		{builtIn, "short", 200_000, 100},
		{builtIn, "other", 0, 4096},
		{builtIn, "own", 0, 0},
		{builtIn, "proxied", 128_000, 0},
		{merged, "gpt", 5000, 0},
		{merged, "small", 9000, 0},
		{merged, "new", 9000, 0},
		{merged, "claude", 200_000, 64_000},
		{merged, "own", 4000, 0},
	} {
		m := want.config.Models[want.name]
		if m.ContextWindow != want.window || m.MaxOutputTokens != want.output {
			t.Errorf("%s: window %d, output %d; want %d and %d", want.name, m.ContextWindow, m.MaxOutputTokens, want.window, want.output)
		}
		if row := find(t, want.config, "models."+want.name+".context_window"); want.window > 0 && want.name != "small" && row.Origin.Kind != FromDefault {
			t.Errorf("%s: its window is from %s", want.name, row.Origin)
		}
	}
	served := UpstreamConfig{Protocol: "anthropic-messages", Provider: "anthropic"}
	if m := builtIn.WithKnown(served.Model("claude-opus-4-1")); m.ContextWindow != 200_000 || m.MaxOutputTokens != 32_000 {
		t.Errorf("a model that a client asks for: %+v", m)
	}
}

func TestPricesOfSettingsTakePrecedence(t *testing.T) {
	config := mustLoad(t, `
models:
  gpt: {model: gpt-4.1, input_price: 1, output_price: 10, cached_input_price: 0.5}
  free: {base_url: "http://127.0.0.1:8000/v1", input_price: 0, output_price: 0}
  proxied: {base_url: "http://127.0.0.1:9000/v1", model: deployment, known_as: openai/gpt-4o}
`, Options{})
	usage := continuo.Usage{InputTokens: 1000, CachedTokens: 400, OutputTokens: 10}
	for _, want := range []struct {
		provider, model string
		nano            int64
		known           bool
	}{
		{"openai", "gpt-4.1", 900_000, true},
		{"openai", "gpt-4o", 2_100_000, true},
		{"127.0.0.1:8000", "free", 0, true},
		{"127.0.0.1:9000", "deployment", 2_100_000, true},
		{"demo", "demo", 0, true},
		{"127.0.0.1:9000", "other", 0, false},
	} {
		got := config.PriceList().Cost(want.provider, want.model, usage)
		if got.Nano != want.nano || (got.Currency == continuo.USD) != want.known {
			t.Errorf("%s %s: %+v, want %d, known %v", want.provider, want.model, got, want.nano, want.known)
		}
	}
}

func TestCatalogueIsRefused(t *testing.T) {
	wrong := filepath.Join(t.TempDir(), "wrong.json")
	if err := os.WriteFile(wrong, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"catalogue: {file: " + wrong + "}":                "lists no models",
		"catalogue: {file: " + wrong + "x}":               "no such file",
		"models: {a: {known_as: gpt-4o}}":                 "models.a.known_as: given \"gpt-4o\", which is not in the catalogue",
		"models: {a: {input_price: 1}}":                   "input_price and output_price are given together",
		"models: {a: {output_price: 1}}":                  "input_price and output_price are given together",
		"models: {a: {cached_input_price: 1}}":            "give input_price and output_price too",
		"models: {a: {input_price: 1, output_price: -1}}": "allowed: a number from 0",
	} {
		if _, err := load(t, text, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A catalogue that cannot be read is one problem, not one for each model in it besides.
func TestOfABrokenCatalogueNothingIsMissed(t *testing.T) {
	text := "catalogue: {file: " + filepath.Join(t.TempDir(), "none.json") + "}\nmodels: {a: {known_as: acme/one}}"
	if _, err := load(t, text, Options{}); err == nil || !strings.Contains(err.Error(), "none.json") || strings.Contains(err.Error(), "known_as") {
		t.Errorf("%v", err)
	}
}
