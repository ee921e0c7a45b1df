package config

import (
	"strings"
	"testing"
)

func TestSetKeepsTheRest(t *testing.T) {
	const file = "# top\nlisten: 127.0.0.1:1 # here\n\ncontext:\n  # how many\n  max_messages: 10\nmodels:\n  gpt-4.1:\n    model: \"x # y\"   # quoted\n"
	for _, test := range []struct{ text, key, value, want string }{
		{file, "listen", "127.0.0.1:2", strings.Replace(file, ":1 #", ":2 #", 1)},
		{file, "context.max_messages", "11", strings.Replace(file, "10", "11", 1)},
		{file, "context.max_chars", "5", strings.Replace(file, "context:\n", "context:\n  max_chars: 5\n", 1)},
		{file, "models.gpt-4.1.model", "gpt-4.1", strings.Replace(file, "\"x # y\"   #", "gpt-4.1   #", 1)},
		{file, "models.gpt-4.1.context_window", "5", strings.Replace(file, "  gpt-4.1:\n", "  gpt-4.1:\n    context_window: 5\n", 1)},
		{file, "models.new one.protocol", "gemini", strings.Replace(file, "models:\n", "models:\n  \"new one\":\n    protocol: gemini\n", 1)},
		{file, "log.level", "debug", file + "\nlog:\n  level: debug\n"},
		{file, "tools.allow", "fs.*, a b", file + "\ntools:\n  allow: [\"fs.*\", \"a b\"]\n"},
		{file, "tools.allow", "[fs.*, \"a b\"]", file + "\ntools:\n  allow: [\"fs.*\", \"a b\"]\n"},
		{"tools:\n  allow: [\"a]\", 'b]', c] # why\n", "tools.allow", "[x]", "tools:\n  allow: [x] # why\n"},
		{"", "models.a.stop", "[END]", "models:\n  a:\n    stop: [\"[END]\"]\n"},
		{"", "models.a.stop", "[END, STOP]", "models:\n  a:\n    stop: [END, STOP]\n"},
		{"", "tools.deny_files", "[ab].key, c[d]", "tools:\n  deny_files: [\"[ab].key\", \"c[d]\"]\n"},
		{file, "project", "7", file + "project: \"7\"\n"},
		{"", "mcp.servers.files.url", "http://h/mcp", "mcp:\n  servers:\n    files:\n      url: http://h/mcp\n"},
		{"models:\n  a:\n    model: x\n#    context_window: 9   # why\n#    strict: auto\nlog:\n", "models.a.context_window", "5", "models:\n  a:\n    model: x\n    context_window: 5   # why\n#    strict: auto\nlog:\n"},
		{"context:\n", "context.low_water", "0.5", "context:\n  low_water: 0.5\n"},
		{"context:\n  low_water:\n", "context.low_water", "0.5", "context:\n  low_water: 0.5\n"},
		{"tools:\n  allow: [a,\n    b]\n", "tools.deny", "x", "tools:\n  deny: [x]\n  allow: [a,\n    b]\n"},
	} {
		got, err := Set([]byte(test.text), test.key, test.value)
		if err != nil || string(got) != test.want {
			t.Errorf("%s = %s: %v\n%s\nwant:\n%s", test.key, test.value, err, got, test.want)
		}
	}
}

// In the example file, a setting is written where it is commented out.
func TestSetInTheExample(t *testing.T) {
	text := Example()
	for key, value := range map[string]string{"context.max_messages": "33", "log.level": "debug", "listen": "127.0.0.1:5", "turn.retries": "0"} {
		got, err := Set([]byte(text), key, value)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(got), "\n") != strings.Count(text, "\n") {
			t.Errorf("%s: lines were added", key)
		}
		if s := find(t, mustLoad(t, string(got), Options{}), key); s.Value != value || s.Origin.Kind != FromFile {
			t.Errorf("%s is %q from %s", key, s.Value, s.Origin)
		}
		text = string(got)
	}
}

func TestSetRefuses(t *testing.T) {
	for _, test := range []struct{ text, key, value, want string }{
		{"", "context.max_message", "1", "did you mean context.max_messages?"},
		{"", "models.a.flavour", "1", "the keys of a model are"},
		{"", "models.a.headers", "x", "is a mapping"},
		{"context: {max_messages: 1}", "context.max_messages", "2", "change it in the file"},
		{"context: {max_messages: 1}", "context.max_chars", "2", "change it in the file"},
		{"agents:\n  a:\n    persona: |\n      A.\n", "agents.a.persona", "B.", "change it in the file"},
		{"tools:\n  allow: [a,\n    b]\n", "tools.allow", "x", "change it in the file"},
		{"context: 5", "context.max_chars", "2", "change it in the file"},
		{"a: [", "listen", "127.0.0.1:1", "not valid YAML"},
	} {
		if got, err := Set([]byte(test.text), test.key, test.value); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s in %q: %v, want %q; got\n%s", test.key, test.text, err, test.want, got)
		}
	}
}
