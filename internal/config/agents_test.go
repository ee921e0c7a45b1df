package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var someViews = []string{"codex", "continuity"}

func TestAgents(t *testing.T) {
	file := filepath.Join(t.TempDir(), "writer.md")
	if err := os.WriteFile(file, []byte("\ufeffYou write.\r\n\nIn short sentences.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := mustLoad(t, `
models:
  big: {}
agents:
  reviewer:
    name: The reviewer
    persona: |
      You review code.

      Name the line: always.
    model: big
    view: codex
    tools:
      allow: [fs.*]
      ask: [fs.write]
      deny: [shell]
      otherwise: ask
    max_messages: 10
    max_chars: 20
    max_tokens: 30
    max_output_tokens: 40
  writer-2:
    persona_file: `+file+`
    model: demo
    tools: [fs.read, fs.list]
  quiet:
    persona: You say little.
    tools: []
  free:
    persona: x
    tools: {allow: [fs.read]}
`, Options{Views: someViews})
	allow := AgentToolsConfig{Otherwise: "allow"}
	only := func(names ...string) AgentToolsConfig {
		tools := allow
		tools.Allow, tools.Otherwise = names, "deny"
		return tools
	}
	free := allow
	free.Allow = []string{"fs.read"}
	want := map[string]AgentConfig{
		"reviewer": {
			ID: "reviewer", Name: "The reviewer", Persona: "You review code.\n\nName the line: always.\n", Model: "big", View: "codex",
			Tools:       AgentToolsConfig{Allow: []string{"fs.*"}, Ask: []string{"fs.write"}, Deny: []string{"shell"}, Otherwise: "ask"},
			MaxMessages: 10, MaxChars: 20, MaxTokens: 30, MaxOutputTokens: 40,
		},
		"writer-2": {ID: "writer-2", Name: "writer-2", Persona: "You write.\r\n\nIn short sentences.\n", PersonaFile: file, Model: "demo", Tools: only("fs.read", "fs.list")},
		"quiet":    {ID: "quiet", Name: "quiet", Persona: "You say little.", Tools: only()},
		"free":     {ID: "free", Name: "free", Persona: "x", Tools: free},
	}
	if got := fmt.Sprintf("%+v", config.Agents); got != fmt.Sprintf("%+v", want) {
		t.Errorf("agents:\n%s\nwant:\n%+v", got, want)
	}
	for key, value := range map[string]string{
		"agents.reviewer.tools.ask": "fs.write", "agents.writer-2.persona_file": file, "agents.writer-2.persona": "", "agents.writer-2.name": "writer-2",
		"agents.writer-2.tools.otherwise": "deny", "agents.quiet.tools.allow": "", "agents.quiet.max_tokens": "0", "agents.quiet.model": "",
	} {
		if got := find(t, config, key).Value; got != value {
			t.Errorf("%s shows %q, want %q", key, got, value)
		}
	}
	if at := find(t, config, "agents.writer-2.tools.otherwise").Origin.String(); at != "continuo.yaml:25" {
		t.Errorf("the list as the value of tools is at %s", at)
	}
	hints := strings.Join(config.Hints(), "\n")
	if !strings.Contains(hints, "agents.free.tools.allow changes nothing") || strings.Contains(hints, "agents.writer-2") || strings.Contains(hints, "agents.reviewer") {
		t.Errorf("the hints are %s", hints)
	}
}

func TestAgentsRefused(t *testing.T) {
	const patterns = "a list of tools' names, each once, in which * matches any characters, such as fs.*"
	for text, want := range map[string]string{
		"agents: 5\n":                                                     `continuo.yaml:1:9: agents: not a mapping; write each agent's id, and its settings indented below it`,
		"agents: {A: {persona: x}}\n":                                     `continuo.yaml:1:10: agents: "A" is no id for an agent; allowed: a small letter, then at most 63 small letters, digits, _ and -`,
		"agents: {none: {persona: x}}\n":                                  `continuo.yaml:1:10: agents.none: none means no agent; choose another id`,
		"agents: {a: x}\n":                                                `continuo.yaml:1:13: agents.a: not a mapping; write the agent's settings indented below its id`,
		"agents: {a: {}}\n":                                               `continuo.yaml:1:10: agents.a: neither persona nor persona_file is there; an agent needs one of them`,
		"agents:\n  a:\n":                                                 `continuo.yaml:2:3: agents.a: neither persona nor persona_file is there; an agent needs one of them`,
		"agents: {a: {persona: x, persona_file: y}}\n":                    `continuo.yaml:1:40: agents.a.persona_file: there is a persona too; an agent has one of them`,
		"agents: {a: {persona: ' '}}\n":                                   `continuo.yaml:1:23: agents.a.persona: given the text " "; allowed: a text that is not blank, in one line or below persona: |`,
		"agents: {a: {persona: 5}}\n":                                     `continuo.yaml:1:23: agents.a.persona: given 5; allowed: a text that is not blank, in one line or below persona: |`,
		"agents: {a: {persona_file: /nowhere/at/all}}\n":                  `continuo.yaml:1:28: agents.a.persona_file: read the persona: stat /nowhere/at/all: no such file or directory`,
		"agents: {a: {persona_file: .}}\n":                                `continuo.yaml:1:28: agents.a.persona_file: read the persona: . is no regular file`,
		"agents: {a: {persona_file: big}}\n":                              `continuo.yaml:1:28: agents.a.persona_file: read the persona: big is larger than 65536 bytes, which is more than a persona should have`,
		"agents: {a: {persona_file: blank}}\n":                            `continuo.yaml:1:28: agents.a.persona_file: read the persona: blank: it is empty`,
		"agents: {a: {persona_file: bytes}}\n":                            `continuo.yaml:1:28: agents.a.persona_file: read the persona: bytes: it is not UTF-8 text`,
		"agents: {a: {persona: x, perona: y}}\n":                          `continuo.yaml:1:26: unknown key agents.a.perona; did you mean agents.a.persona?`,
		"agents: {a: {persona: x, colour: y}}\n":                          `continuo.yaml:1:26: unknown key agents.a.colour; the keys of an agent are max_chars, max_messages, max_output_tokens, max_tokens, model, name, persona, persona_file, tools, view`,
		"agents: {a: {persona: x, tools.deny: [y]}}\n":                    `continuo.yaml:1:26: the key agents.a.tools.deny must be written as deny, indented below tools:`,
		"agents: {a: {persona: x, tools: fs.read}}\n":                     `continuo.yaml:1:33: agents.a.tools: neither a list of the only tools that the agent may call nor a mapping with allow, ask, deny and otherwise`,
		"agents: {a: {persona: x, tools: [fs.read, 5]}}\n":                `continuo.yaml:1:43: agents.a.tools.allow: an item that is no text; allowed: ` + patterns,
		"agents: {a: {persona: x, tools: {alow: [y]}}}\n":                 `continuo.yaml:1:34: unknown key agents.a.tools.alow; did you mean agents.a.tools.allow?`,
		"agents: {a: {persona: x, tools: {x: [y]}}}\n":                    `continuo.yaml:1:34: unknown key agents.a.tools.x; the keys of an agent's tools are allow, ask, deny, otherwise`,
		"agents: {a: {persona: x, tools: {otherwise: perhaps}}}\n":        `continuo.yaml:1:45: agents.a.tools.otherwise: given the text "perhaps"; allowed: allow, ask or deny`,
		"agents: {a: {persona: x, model: claud}}\nmodels: {claude: {}}\n": `continuo.yaml:1:33: agents.a.model: given "claud", which is not there; did you mean claude?`,
		"agents: {a: {persona: x, view: codx}}\n":                         `continuo.yaml:1:32: agents.a.view: given the text "codx": there is no such view; did you mean codex?`,
		"agents: {a: {persona: x, view: window}}\n":                       `continuo.yaml:1:32: agents.a.view: given the text "window"; allowed: codex or continuity`,
		"agents: {a: {persona: x, max_chars: -1}}\n":                      `continuo.yaml:1:37: agents.a.max_chars: given -1; allowed: a whole number from 0 to 2147483647`,
		"agent: {}\n": `continuo.yaml:1:1: unknown key agent; did you mean agents?`,
	} {
		t.Chdir(t.TempDir())
		for name, content := range map[string]string{"continuo.yaml": text, "big": strings.Repeat("x", maxPersonaBytes+1), "blank": "\n\n", "bytes": "\xff"} {
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Load(Options{Env: []string{"HOME=/home/ada"}, Views: someViews})
		if err == nil || err.Error() != want {
			t.Errorf("%s got %v\nwant %s", text, err, want)
		}
	}
	for _, options := range []Options{{Flags: map[string]string{"agents.a.persona": "x"}}} {
		if _, err := load(t, "", options); err == nil || !strings.Contains(err.Error(), "agents are set in the file only") {
			t.Errorf("%+v gives %v", options, err)
		}
	}
}
