package token

import "testing"

func TestForModel(t *testing.T) {
	tests := []struct {
		want   string
		exact  bool
		models []string
	}{
		{"o200k_base", true, []string{
			"gpt-4o", "gpt-4o-mini-2024-07-18", "GPT-4o", "openai/gpt-4o", "openrouter/openai/gpt-4o:free", "gpt-4.1", "gpt-4.1-nano",
			"gpt-4.5-preview", "gpt-5", "gpt-5-mini", "gpt-5.1", "gpt-5.2-codex", "o1", "o1-preview", "o3", "o3-mini-2025-01-31", "o4-mini",
			"chatgpt-4o-latest", "codex-mini-latest", "ft:gpt-4o-mini-2024-07-18:org::id", "azure/gpt-4o", "gpt-oss-120b", " gpt-4o ",
		}},
		{"cl100k_base", true, []string{
			"gpt-4", "gpt-4-0613", "gpt-4-32k", "gpt-4-turbo-2024-04-09", "gpt-3.5-turbo", "gpt-35-turbo-16k", "ft:gpt-3.5-turbo:org::id",
			"text-embedding-3-small", "openai/text-embedding-3-large", "text-embedding-ada-002",
		}},
		{"o200k_base", false, []string{
			"", "/", "openai/", "claude-sonnet-4-5", "anthropic/claude-opus-4", "gemini-2.5-pro", "llama-3.1-70b", "qwen3", "o", "o2", "o10", "omni",
			"gpt", "gpt-4x", "gpt-4.2", "gpt-40", "gpt-6", "gpt-neo", "gpt-2", "text-davinci-003", "text-embedding-4", "davinci", "codexample",
		}},
	}
	for _, test := range tests {
		for _, model := range test.models {
			enc, exact := ForModel(model)
			if enc.Name() != test.want || exact != test.exact {
				t.Errorf("ForModel(%q) = %s, %v, want %s, %v", model, enc.Name(), exact, test.want, test.exact)
			}
		}
	}
}
