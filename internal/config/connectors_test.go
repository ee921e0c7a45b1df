package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestConnectors(t *testing.T) {
	config := mustLoad(t, `
model: claude-code
connectors:
  claude-code:
    command: [claude, -p, "{prompt}", "--append-system-prompt={system}"]
    dir: ~/work
    env: {ANTHROPIC_API_KEY: "${KEY}", GONE: "${NONE}"}
    timeout: 30m
    max_output_bytes: 5000
  filter: {command: [llm]}
  last: {command: [codex, exec], prompt: argument}
  gemini: {acp: [gemini, --acp], permissions: allow}
models: {big: {}}
agents: {coder: {persona: x, model: gemini}}
`, Options{Env: []string{"HOME=/home/ada", "KEY=canary", "OPENAI_API_KEY=x"}})
	want := map[string]ConnectorConfig{
		"claude-code": {
			Name: "claude-code", Command: []string{"claude", "-p", "{prompt}", "--append-system-prompt={system}"}, Prompt: PromptArgument, Dir: "/home/ada/work",
			Env: map[string]string{"ANTHROPIC_API_KEY": "canary", "GONE": ""}, Timeout: 30 * time.Minute, MaxOutputBytes: 5000, Format: "text", Permissions: "deny",
		},
		"filter": {Name: "filter", Command: []string{"llm"}, Prompt: PromptStdin, Env: map[string]string{}, MaxOutputBytes: 1 << 20, Format: "text", Permissions: "deny"},
		"last":   {Name: "last", Command: []string{"codex", "exec"}, Prompt: PromptArgument, Env: map[string]string{}, MaxOutputBytes: 1 << 20, Format: "text", Permissions: "deny"},
		"gemini": {Name: "gemini", ACP: []string{"gemini", "--acp"}, Env: map[string]string{}, MaxOutputBytes: 1 << 20, Format: "text", Permissions: "allow"},
	}
	if !reflect.DeepEqual(config.Connectors, want) {
		t.Errorf("connectors:\n%+v\nwant:\n%+v", config.Connectors, want)
	}
	if got := config.AnswerNames(); !slices.Equal(got, []string{"big", "claude-code", "demo", "filter", "gemini", "last"}) {
		t.Errorf("these answer: %v", got)
	}
	if got := config.ModelNames(); !slices.Equal(got, []string{"big", "demo"}) {
		t.Errorf("the models are %v", got)
	}
	for _, s := range config.Settings() {
		if strings.Contains(s.Value+s.Default+s.Origin.String(), "canary") {
			t.Errorf("doctor would show the secret: %+v", s)
		}
	}
	if got := find(t, config, "connectors.claude-code.command").Value; got != "claude and 3 arguments" {
		t.Errorf("the command shows as %q", got)
	}
	if hints := strings.Join(config.Hints(), "\n"); hints != "the connector claude-code takes NONE from the environment, which is not set: set it where continuo starts" {
		t.Errorf("the hints are %s", hints)
	}
}

func TestConnectorsRefused(t *testing.T) {
	const placeholders = "{prompt} and {system} must each be a whole argument, or everything after = in one"
	for text, want := range map[string]string{
		"connectors: 5\n":                                                         `1:13: connectors: not a mapping; write each connector's name, and its settings indented below it`,
		"connectors: {demo: {command: [x]}}\n":                                    `1:14: connectors.demo: the name demo is taken by the built-in model; choose another`,
		"connectors: {A: {command: [x]}}\n":                                       `1:14: connectors: "A" is no name for a connector; allowed: a small letter, then at most 63 small letters, digits, _ and -`,
		"connectors: {a: x}\n":                                                    `1:17: connectors.a: not a mapping; write the connector's settings indented below its name`,
		"connectors:\n  a:\n":                                                     `2:3: connectors.a: neither command nor acp is there; a connector needs one of them`,
		"connectors: {a: {command: [x], acp: [y]}}\n":                             `1:37: connectors.a.acp: there is a command too; a connector has one of them`,
		"connectors: {a: {comand: [x]}}\n":                                        `1:18: unknown key connectors.a.comand; did you mean connectors.a.command?`,
		"connectors: {a: {colour: [x]}}\n":                                        `1:18: unknown key connectors.a.colour; the keys of a connector are acp, command, dir, env, format, max_output_bytes, permissions, prompt, timeout`,
		"connectors: {a: {command: x canary}}\n":                                  `1:27: connectors.a.command: given a text of 8 characters (not repeated, it may be secret); allowed: a list of a program and its arguments, such as [claude, -p] or [some-agent, "--ask={prompt}"]`,
		"connectors: {a: {command: [x], permissions: allow}}\n":                   `1:45: connectors.a.permissions: only a connector with acp has permissions`,
		"connectors: {a: {acp: [x], prompt: stdin}}\n":                            `1:36: connectors.a.prompt: only a connector with command has prompt`,
		"connectors: {a: {acp: [x], format: text}}\n":                             `1:36: connectors.a.format: only a connector with command has format`,
		"connectors: {a: {acp: [x, '{prompt}']}}\n":                               `1:23: connectors.a.acp: {prompt} and {system} are allowed in a command only; an agent that speaks ACP is sent them`,
		"connectors: {a: {command: ['{prompt}']}}\n":                              `1:27: connectors.a.command: ` + placeholders,
		"connectors: {a: {command: [sh, 'ask {prompt}']}}\n":                      `1:27: connectors.a.command: ` + placeholders,
		"connectors: {a: {command: [x, '{system}={prompt}']}}\n":                  `1:27: connectors.a.command: ` + placeholders,
		"connectors: {a: {command: [x, '{prompt}', '-p={prompt}']}}\n":            `1:27: connectors.a.command: {prompt} and {system} are allowed once each`,
		"connectors: {a: {command: [x, '{prompt}'], prompt: stdin}}\n":            `1:52: connectors.a.prompt: {prompt} is in the command, so that the prompt is an argument; leave out one of them`,
		"connectors: {a: {command: [x], env: {MY_TOKEN: canary}}}\n":              `1:38: connectors.a.env: MY_TOKEN looks as if it carried a secret; secrets are never written in the file: write ${NAME} for the environment variable that holds it`,
		"connectors: {a: {command: [x], format: json}}\n":                         `1:40: connectors.a.format: given the text "json"; allowed: text`,
		"connectors: {a: {command: [x], max_output_bytes: 0}}\n":                  `1:50: connectors.a.max_output_bytes: given 0; allowed: a whole number from 1 to 2147483647`,
		"connectors: {a: {command: [x]}}\nmodels: {a: {}}\n":                      `1:14: connectors.a: there is a model of that name; choose another`,
		"model: claud\nconnectors: {claude: {command: [x]}}\n":                    `1:8: model: given "claud", which is not there; did you mean claude?`,
		"models: {m: {fallback: c}}\nconnectors: {c: {command: [x]}}\n":           `1:24: models.m.fallback: given "c", which is no other model; there is no other model`,
		"agents: {a: {persona: x, model: y}}\nconnectors: {claude: {acp: [x]}}\n": `1:33: agents.a.model: given "y", which is not there; the models are claude, demo`,
	} {
		_, err := load(t, text, Options{})
		if err == nil || err.Error() != "continuo.yaml:"+want {
			t.Errorf("%s got %v\nwant continuo.yaml:%s", text, err, want)
		}
	}
	for _, options := range []Options{{Flags: map[string]string{"connectors.a.dir": "x"}}} {
		if _, err := load(t, "", options); err == nil || !strings.Contains(err.Error(), "connectors are set in the file only") {
			t.Errorf("%+v gives %v", options, err)
		}
	}
}
