package config

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEveryKeyIsDocumented(t *testing.T) {
	page, env := Markdown(), map[string]string{}
	for _, s := range Schema() {
		if s.Doc == "" || !strings.HasSuffix(s.Doc, ".") || s.Allowed == "" {
			t.Errorf("%s: doc %q, allowed %q", s.Key, s.Doc, s.Allowed)
		}
		if s.Env != "" && env[s.Env] != "" {
			t.Errorf("%s and %s have one variable", s.Key, env[s.Env])
		}
		env[s.Env] = s.Key
		if headings := strings.Count(page, "\n### `"+s.Key+"`\n"); headings != 1 {
			t.Errorf("%s has %d headings in the page", s.Key, headings)
		}
	}
	for line := range strings.SplitSeq(page, "\n") {
		if utf8.RuneCountInString(line) > 100 && strings.Contains(line, " ") && !strings.HasPrefix(strings.TrimSpace(line), "`") {
			t.Errorf("a line of %d characters: %s", utf8.RuneCountInString(line), line)
		}
	}
}

func TestKnownAs(t *testing.T) {
	known := map[string]string{}
	for _, s := range Schema() {
		if s.KnownAs != "" {
			known[s.Key] = s.KnownAs
		}
	}
	for key, want := range map[string]string{
		"context.max_messages":         "contextMaxMessages",
		"context.max_chars":            "contextMaxChars",
		"context.include_tool_results": "includeToolResultsInContext",
		"context.include_collapsed":    "includeCollapsedUiEventsInContext",
		"chat.max_history_messages":    "conversation_max_history_messages",
		"chat.max_context_tokens":      "conversation_max_context_tokens",
		"chat.strategy":                "conversation_context_strategy",
	} {
		if known[key] != want {
			t.Errorf("%s is known as %q, want %q", key, known[key], want)
		}
	}
}

// The example changes nothing as it is, and sets every key to its default once all lines are in force.
func TestExampleHoldsTheDefaults(t *testing.T) {
	defaults := mustLoad(t, "", Options{}).Settings()
	asItIs := mustLoad(t, Example(), Options{}).Settings()
	if !slices.Equal(asItIs, defaults) {
		t.Errorf("the example changes settings: %+v", asItIs)
	}
	inForce := regexp.MustCompile(`(?m)^( *)#( *[a-zA-Z-][\w-]*:)`).ReplaceAllStringFunc(Example(), func(line string) string {
		if strings.HasPrefix(line, "# ") && !strings.HasPrefix(line, "#  ") || strings.HasPrefix(line, " ") {
			return line
		}
		return strings.Replace(line, "#", "", 1)
	})
	inForce = regexp.MustCompile(`(?m)^#( {4}[^:\n]*[\],])$`).ReplaceAllString(inForce, "$1") // lists of several lines
	config := mustLoad(t, inForce, Options{})
	seen := 0
	for _, s := range config.Settings() {
		if groupIn(strings.Split(s.Key, ".")[0]) != nil {
			continue
		}
		seen++
		if s.Value != s.Default || s.Origin.Kind != FromFile {
			t.Errorf("%s is %q from %s, want %q from the file", s.Key, s.Value, s.Origin, s.Default)
		}
	}
	if seen != len(defaults) {
		t.Errorf("%d settings in force, want %d", seen, len(defaults))
	}
	if got := config.ModelNames(); !slices.Equal(got, []string{"claude", "demo", "local", "openai"}) {
		t.Errorf("the example's models are %v", got)
	}
	if got := config.Agents["reviewer"]; got.Model != "claude" || got.Tools.Otherwise != "deny" || len(config.Agents) != 2 || strings.Contains(strings.Join(config.Hints(), ""), "agents.") {
		t.Errorf("the example's agents are %+v, with the hints %q", config.Agents, config.Hints())
	}
	for line := range strings.SplitSeq(Example(), "\n") {
		if len(line) > 110 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
}
