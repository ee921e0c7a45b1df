package config

import (
	"strings"
	"testing"
)

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		text string // of continuo.yaml
		env  string
		flag [2]string
		want string // the whole error
	}{
		// Unknown keys, at any depth and from everywhere.
		{text: "contxt:\n  max_messages: 1\n", want: `continuo.yaml:1:1: unknown key contxt; did you mean context?`},
		{text: "context:\n  # note\n  max_mesages: 1\n", want: `continuo.yaml:3:3: unknown key context.max_mesages; did you mean context.max_messages?`},
		{text: "context: {max_chars: 1, low_watr: 1}\n", want: `continuo.yaml:1:25: unknown key context.low_watr; did you mean context.low_water?`},
		{text: "max_messages: 1\n", want: `continuo.yaml:1:1: unknown key max_messages; did you mean context.max_messages?`},
		{text: "contextMaxChars: 1\n", want: `continuo.yaml:1:1: unknown key contextMaxChars; did you mean context.max_chars?`},
		{text: "conversation_max_history_messages: 1\n", want: `continuo.yaml:1:1: unknown key conversation_max_history_messages; did you mean chat.max_history_messages?`},
		{text: "log:\n  colour: red\n", want: `continuo.yaml:2:3: unknown key log.colour; the keys of log are level, format, message_text`},
		{text: "quux: 1\n", want: `continuo.yaml:1:1: unknown key quux; the file's keys are listen, project, model, log, store, objects, context, chat, memory, recall, transcript, handoff, crews, crew, telegram, turn, server, budgets, retention, audit, gateway, demo, prompts, workflows, tools, telemetry, catalogue, models, upstreams, agents, connectors, webhooks, mcp`},
		{text: "context.max_chars: 1\n", want: `continuo.yaml:1:1: the key context.max_chars must be written as max_chars, indented below context:`},
		{text: "models:\n  gpt:\n    protcol: x\n", want: `continuo.yaml:3:5: unknown key models.gpt.protcol; did you mean models.gpt.protocol?`},
		{text: "models:\n  gpt:\n    flavour: x\n", want: `continuo.yaml:3:5: unknown key models.gpt.flavour; the keys of a model are api_key_env, base_url, cache_write_price, cached_input_price, context_window, extra_body, fallback, first_token_timeout, headers, inline_thinking, input_price, known_as, max_output_tokens, model, output_price, protocol, provider, reasoning_effort, response_format, seed, stop, strict, structured_outputs, temperature, thinking_budget, tool_calls, top_p, window`},
		{text: "models:\n  gpt:\n    api_key: sk-canary\n", want: `continuo.yaml:3:5: unknown key models.gpt.api_key; keys are never written in the file: name the environment variable that holds it in models.gpt.api_key_env`},
		{flag: [2]string{"turn.max_round", "1"}, want: `--set: unknown key turn.max_round; did you mean turn.max_rounds?`},
		{flag: [2]string{"models.gpt.model", "1"}, want: `--set: models are set in the file only; write them to continuo.yaml`},

		// Wrong types.
		{text: "context:\n  max_messages: eighty\n", want: `continuo.yaml:2:17: context.max_messages: given the text "eighty"; allowed: a whole number from 1 to 2147483647`},
		{text: "context: {max_messages: \"80\"}\n", want: `continuo.yaml:1:25: context.max_messages: given the text "80"; allowed: a whole number from 1 to 2147483647`},
		{text: "context:\n  max_messages: 1.5\n", want: `continuo.yaml:2:17: context.max_messages: given 1.5; allowed: a whole number from 1 to 2147483647`},
		{text: "context:\n  max_messages: 010\n", want: `continuo.yaml:2:17: context.max_messages: given 010; allowed: a whole number from 1 to 2147483647`},
		{text: "context:\n  max_messages:\n", want: `continuo.yaml:2:3: context.max_messages: given nothing; allowed: a whole number from 1 to 2147483647`},
		{text: "context:\n  max_messages: [1]\n", want: `continuo.yaml:2:17: context.max_messages: given the list "1"; allowed: a whole number from 1 to 2147483647`},
		{text: "context:\n  max_messages:\n    a: 1\n", want: `continuo.yaml:3:5: context.max_messages: given a mapping; allowed: a whole number from 1 to 2147483647`},
		{text: "context: 5\n", want: `continuo.yaml:1:10: context is no setting but a section: write its settings indented below it`},
		{text: "log: {message_text: yes}\n", want: `continuo.yaml:1:21: log.message_text: given the text "yes"; allowed: true or false`},
		{text: "project: 5 words\n", want: `continuo.yaml:1:10: project: given the text "5 words"; allowed: 1 to 64 letters, digits and . _ -, beginning with a letter or digit`},
		{text: "turn:\n  timeout: 600\n", want: `continuo.yaml:2:12: turn.timeout: given 600; allowed: a time of at least 1ms with its unit, such as 90s, 10m, 1h30m, 7d or 2w`},
		{text: "tools:\n  allow: fs.read\n", want: `continuo.yaml:2:10: tools.allow: given the text "fs.read"; allowed: a list of tools' names, each once, in which * matches any characters, such as fs.* (in the environment and in flags: separated by commas)`},
		{text: "tools:\n  allow: [fs.read, 3]\n", want: `continuo.yaml:2:20: tools.allow: an item that is no text; allowed: a list of tools' names, each once, in which * matches any characters, such as fs.* (in the environment and in flags: separated by commas)`},
		{env: "CONTINUO_TURN_MAX_ROUNDS=", want: `env CONTINUO_TURN_MAX_ROUNDS: turn.max_rounds: given ""; allowed: a whole number from 1 to 2147483647`},
		{text: "server:\n  cors: [\"*\"]\n", want: `continuo.yaml:2:9: server.cors: given the list "*"; allowed: a list of origins, each once, as browsers send them, such as https://app.example or http://localhost:5173 (in the environment and in flags: separated by commas)`},
		{flag: [2]string{"server.cors", "https://app.example/"}, want: `--set: server.cors: given "https://app.example/"; allowed: a list of origins, each once, as browsers send them, such as https://app.example or http://localhost:5173 (in the environment and in flags: separated by commas)`},

		// Out of range.
		{text: "context:\n  max_messages: 0\n", want: `continuo.yaml:2:17: context.max_messages: given 0; allowed: a whole number from 1 to 2147483647`},
		{text: "context:\n  max_messages: 99999999999999999999\n", want: `continuo.yaml:2:17: context.max_messages: given the text "99999999999999999999"; allowed: a whole number from 1 to 2147483647`},
		{text: "objects: {inline_part_bytes: 0}\n", want: `continuo.yaml:1:30: objects.inline_part_bytes: given 0; allowed: a whole number from 1 to 4194304`},
		{flag: [2]string{"objects.inline_output_bytes", "4194305"}, want: `--set: objects.inline_output_bytes: given "4194305"; allowed: a whole number from 1 to 4194304`},
		{text: "context:\n  low_water: 1.01\n", want: `continuo.yaml:2:14: context.low_water: given 1.01; allowed: a number above 0, at most 1`},
		{text: "context: {low_water: 0}\n", want: `continuo.yaml:1:22: context.low_water: given 0; allowed: a number above 0, at most 1`},
		{text: "context:\n  low_water: .nan\n", want: `continuo.yaml:2:14: context.low_water: given .nan; allowed: a number above 0, at most 1`},
		{env: "CONTINUO_CHAT_MAX_CONTEXT_TOKENS=499", want: `env CONTINUO_CHAT_MAX_CONTEXT_TOKENS: chat.max_context_tokens: given "499"; allowed: a whole number from 500 to 2147483647`},
		{flag: [2]string{"turn.timeout", "0s"}, want: `--set: turn.timeout: given "0s"; allowed: a time of at least 1ms with its unit, such as 90s, 10m, 1h30m, 7d or 2w`},
		{flag: [2]string{"listen", "localhost"}, want: `--set: listen: given "localhost"; allowed: host:port with a port from 0 to 65535, such as 127.0.0.1:8787`},
		{flag: [2]string{"listen", ":65536"}, want: `--set: listen: given ":65536"; allowed: host:port with a port from 0 to 65535, such as 127.0.0.1:8787`},
		{flag: [2]string{"log.level", "loud"}, want: `--set: log.level: given "loud"; allowed: debug, info, warn or error`},
		{flag: [2]string{"tools.allow", "a,,b"}, want: `--set: tools.allow: given "a,,b"; allowed: a list of tools' names, each once, in which * matches any characters, such as fs.* (in the environment and in flags: separated by commas)`},
		{text: "tools:\n  otherwise: maybe\n", want: `continuo.yaml:2:14: tools.otherwise: given the text "maybe"; allowed: ask, allow or deny`},

		// What does not fit together.
		{text: "context:\n  summarizer: gtp\nmodels:\n  gpt: {}\n", want: `continuo.yaml:2:15: context.summarizer: given "gtp", which is no model; the models are gpt`},
		{text: "memory:\n  extractor: gtp\nmodels:\n  gpt: {}\n", want: `continuo.yaml:2:14: memory.extractor: given "gtp", which is no model; the models are gpt`},
		{text: "context:\n  summarizer: demo\n", want: `continuo.yaml:2:15: context.summarizer: given "demo", and there are no models; leave it empty for the built-in summarizer`},
		{text: "model: gtp\nmodels:\n  gpt: {}\n", want: `continuo.yaml:1:8: model: given "gtp", which is not there; did you mean gpt?`},
		{env: "CONTINUO_MODEL=sonnet", want: `env CONTINUO_MODEL: model: given "sonnet", which is not there; the only model is the built-in demo; add others under models in continuo.yaml`},
		{text: "models:\n  demo: {}\n", want: `continuo.yaml:2:3: models.demo: the name demo is taken by the built-in model; choose another`},
		{text: "models: [gpt]\n", want: `continuo.yaml:1:9: models: not a mapping; write each model's name, and its settings indented below it`},
		{text: "models:\n  gpt: openai\n", want: `continuo.yaml:2:8: models.gpt: not a mapping; write the model's settings indented below its name`},
		{text: "models:\n  c: {tool_calls: transcript, structured_outputs: json_object}\n", want: `continuo.yaml:2:51: models.c.structured_outputs: given json_object; allowed: auto or off for openai-chat with tool_calls: transcript`},
		{text: "models:\n  c: {strict: maybe}\n", want: `continuo.yaml:2:15: models.c.strict: given the text "maybe"; allowed: auto, true, false or no_system`},
		{text: "models:\n  c: {protocol: anthropic-messages, strict: true}\n", want: `continuo.yaml:2:45: models.c.strict: given true; allowed: auto for anthropic-messages, whose requests keep to that form anyway`},
		{text: "models:\n  c: {protocol: anthropic-messages, temperature: 1.5}\n", want: `continuo.yaml:2:50: models.c.temperature: given 1.5; allowed: a number from 0 to 1 for anthropic-messages`},
		{text: "models:\n  c: {protocol: anthropic-messages, context_window: 4096}\n", want: `continuo.yaml:2:53: models.c.context_window: given 4096; allowed: more than max_output_tokens, which is 4096, or 0 when it is not known`},
		{text: "models:\n  c: {headers: {X-A: \"1\", x-a: \"2\"}}\n", want: `continuo.yaml:2:27: models.c.headers: the header X-A is there twice`},
		{text: "models:\n  c: {api_key_env: CONTINUO_KEY}\n", want: `continuo.yaml:2:20: models.c.api_key_env: given a text of 12 characters (not repeated, it may be secret): variables that begin with CONTINUO_ are settings; give the key another one`},
		{text: "models:\n  c: {base_url: ftp://x}\n", want: `continuo.yaml:2:17: models.c.base_url: given a text of 7 characters (not repeated, it may be secret); allowed: an http or https URL with a host and without user, query and fragment, such as https://api.openai.com/v1`},
		{text: "listen: [::1]:8787\n", want: `continuo.yaml:1:14: not valid YAML: value is not allowed in this context`},
		{text: "models:\n  c: {headers: {X-A: 1}}\n", want: `continuo.yaml:2:22: models.c.headers: the value of X-A is no text; put it in quotes`},

		// Not a settings file. Other faults of the form are tested in internal/yamltree.
		{text: "- a\n", want: `continuo.yaml:1:1: the file must be a mapping of settings, such as listen: 127.0.0.1:8787`},
		{text: "project: a\n---\nproject: b\n", want: `continuo.yaml:3:8: a second YAML document begins here; write all settings in one`},
		{text: "project: &p a\nmodel: *p\n", want: `continuo.yaml:1:10: anchors and aliases cannot be used in settings; write the value out`},
		{text: "models:\n  a:\n    fallback: a\n  b:\n", want: `continuo.yaml:3:15: models.a.fallback: given "a", which is no other model; the other models are b`},
		{text: "models:\n  a:\n    fallback: demo\n", want: `continuo.yaml:3:15: models.a.fallback: given "demo", which is no other model; there is no other model`},
		{text: "store:\n  url: postgres://ada:s3cret@db/logs\n", want: `continuo.yaml:2:8: store.url: it holds a password, and secrets are never written in the file: set CONTINUO_STORE_URL, PGPASSWORD or ~/.pgpass instead`},
		{text: "store:\n  url: mysql://ada:s3cret@db/logs\n", want: `continuo.yaml:2:8: store.url: given a text of 26 characters (not repeated, it may be secret); allowed: a URL such as postgres://user@host:5432/database, or "" for the SQLite file`},
		{text: strings.Repeat("[", 60000), want: `continuo.yaml:1:17: values are nested too deeply for settings`},
	} {
		options := Options{}
		if c.env != "" {
			options.Env = []string{c.env}
		}
		if c.flag[0] != "" {
			options.Flags = map[string]string{c.flag[0]: c.flag[1]}
		}
		config, err := load(t, c.text, options)
		if err == nil || err.Error() != c.want || config != nil {
			t.Errorf("%.60q %s %v\n got %v\nwant %s", c.text, c.env, c.flag, err, c.want)
		}
	}
}

func TestAllProblemsAreReportedInOrder(t *testing.T) {
	text := "listne: x\ncontext:\n  max_chars: 0\n  max_tokens: -1\nlog:\n  level: loud\n"
	_, err := load(t, text, Options{
		Env:   []string{"CONTINUO_LOG_FORMAT=xml"},
		Flags: map[string]string{"zz": "1", "model": "nope"},
	})
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		"continuo.yaml:1:1: unknown key listne; did you mean listen?", "continuo.yaml:3:14: context.max_chars: ", "continuo.yaml:4:15: context.max_tokens: ",
		"continuo.yaml:6:10: log.level: ", "env CONTINUO_LOG_FORMAT: ", "--set: unknown key zz", "--set: model: ",
	}
	lines := strings.Split(err.Error(), "\n")
	for i := range want {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want[i]) {
			t.Fatalf("line %d should begin with %q:\n%v", i+1, want[i], err)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%d lines, want %d:\n%v", len(lines), len(want), err)
	}
	_, err = load(t, strings.Repeat("x", 300)+": 1\n"+manyKeys(200), Options{})
	lines = strings.Split(err.Error(), "\n")
	if len(lines) != maxProblems+1 || lines[maxProblems] != "and 151 more" || len(lines[0]) > 450 { // the names of all sections are in it
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

func manyKeys(n int) string {
	var text strings.Builder
	for i := range n {
		text.WriteString(strings.Repeat("k", i+1) + ": 1\n")
	}
	return text.String()
}

// People paste keys where names belong. No error may carry them to a screen or a log.
func TestSecretsAreNotRepeated(t *testing.T) {
	const secret = "sk-canary_0123456789"
	for _, text := range []string{
		"models: {m: {api_key_env: " + secret + "}}",
		"models: {m: {api_key_env: gsk_canary0123}}",
		"models: {m: {api_key_env: [" + secret + "]}}",
		"models: {m: {api_key_env: {a: " + secret + "}}}",
		"models: {m: {api_key: " + secret + "}}",
		"models: {m: {token: " + secret + "}}",
		"models: {m: {base_url: \"https://user:" + secret + "@example.org/v1\"}}",
		"models: {m: {base_url: \"https://example.org/v1?key=" + secret + "\"}}",
		"models: {m: {base_url: " + secret + "}}",
		"models: {m: {headers: {Authorization: Bearer " + secret + "}}}",
		"models: {m: {headers: {x-api-key: " + secret + "}}}",
		"models: {m: {headers: {cf-aig-authorization: " + secret + "}}}",
		"models: {m: {headers: {X-A: \"" + secret + "\\n\"}}}",
		"models: {m: {headers: {X A: " + secret + "}}}",
		"models: {m: {headers: " + secret + "}}",
		"models: " + secret,
		"models: {m: " + secret + "}",
		"models: {m: {api_key_env: " + secret,
		"models:\n  m:\n   api_key_env: " + secret + "\n  oops\n",
	} {
		_, err := load(t, text, Options{})
		if err == nil {
			t.Errorf("%s was accepted", text)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error repeats the secret: %v", text, err)
		}
	}
	config := mustLoad(t, "models: {m: {headers: {X-A: "+secret+"}, api_key_env: K}}", Options{Env: []string{"K=" + secret}})
	for _, s := range config.Settings() {
		if strings.Contains(s.Value+s.Default+s.Origin.String(), "canary") {
			t.Errorf("doctor would show the secret: %+v", s)
		}
	}
}

func TestForeignTextStaysOnItsLine(t *testing.T) {
	_, err := load(t, "\"a\\nb\": 1\nproject: \"x\\ny\"\n", Options{Flags: map[string]string{"e\nf": "1"}})
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("three problems on other than three lines:\n%v", err)
	}
}
