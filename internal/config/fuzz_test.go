package config

import (
	"regexp"
	"strings"
	"testing"
)

// FuzzLoad reads any bytes as a settings file. Whatever they are, Load ends with settings that are
// themselves acceptable, or with problems that are each on a line of their own and point into the
// file.
func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		"", "# only a comment\n", "\ufefflisten: :1\r\nlog:\r\n  level: warn\r\n", Example(), "project: |\n  text\n",
		"model: m\nmodels:\n  m: {protocol: anthropic-messages, headers: {X-A: b}, temperature: .5}\n",
		"tools:\n  allow:\n  - a\n  - 'b'\n", "context: {low_water: 0.25, max_chars: 0x10}\n", "? a\n: b\n", "<<: {a: 1}\n", "a: &b [*b]\n",
		"%YAML 1.2\n---\nproject: x\n...\n", "models:\n  1: {}\n  ~: {}\n", "a: b: c\n", "{", "- - -\n", "log: !!map {level: debug}\n",
		"agents:\n  a: {persona: x, tools: [fs.*], view: codex}\n  b:\n    persona: |\n      two\n      lines\n    tools: {deny: [x]}\n", "turn: {timeout: 1h, timeout: 2h}\n",
	} {
		f.Add([]byte(text))
	}
	pointed := regexp.MustCompile(`^f\.yaml:([1-9][0-9]*):([1-9][0-9]*): .`)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > maxFileBytes {
			return
		}
		l := newLoader([]string{"HOME=/home/ada"})
		l.applyFile("f.yaml", data)
		l.finish()
		err := l.problems.err()
		if err == nil {
			checkAcceptable(t, l)
			return
		}
		lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + 1
		for problem := range strings.SplitSeq(err.Error(), "\n") {
			position := pointed.FindStringSubmatch(problem)
			switch {
			case strings.HasPrefix(problem, "and "):
			case position == nil:
				t.Fatalf("a problem without a position: %q", problem)
			case len(position[1]) > 7 || atoi(position[1]) > lines:
				t.Fatalf("a position outside of the file's %d lines: %q", lines, problem)
			}
		}
	})
}

func atoi(digits string) int {
	n := 0
	for _, digit := range digits {
		n = 10*n + int(digit-'0')
	}
	return n
}

// checkAcceptable gives every value again as a flag and expects the same settings.
func checkAcceptable(t *testing.T, l *loader) {
	for _, row := range l.table {
		before := row.value.show()
		if err := row.apply(rawValue{text: before}); err != nil || row.value.show() != before {
			t.Fatalf("%s: %q is not accepted again: %v, %q", row.key, before, err, row.value.show())
		}
	}
	for name, model := range l.config.Models {
		if model.Protocol == "" || model.BaseURL == "" || model.Model == "" || model.Provider == "" || name == DemoModel {
			t.Fatalf("an incomplete model: %+v", model)
		}
	}
	if _, err := l.config.Model(""); err != nil {
		t.Fatalf("there is no default model: %v", err)
	}
}
