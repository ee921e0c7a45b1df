package config

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-log/continuo"
)

// load reads text as continuo.yaml in a folder of its own, with a home folder in the environment.
func load(t *testing.T, text string, options Options) (*Config, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("continuo.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options.Env = append([]string{"HOME=/home/ada"}, options.Env...)
	return Load(options)
}

func mustLoad(t *testing.T, text string, options Options) *Config {
	t.Helper()
	config, err := load(t, text, options)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func find(t *testing.T, config *Config, key string) Setting {
	t.Helper()
	for _, s := range config.Settings() {
		if s.Key == key {
			return s
		}
	}
	t.Fatalf("no setting %s", key)
	return Setting{}
}

const defaultSecrets = ".env, .env.*, !.env.example, !.env.sample, !.env.template, *.pem, *.key, *.p12, *.pfx, *.keystore, key.txt, id_rsa*, id_dsa*, id_ecdsa*, id_ed25519*, " +
	".ssh, .gnupg, .aws, .netrc, .npmrc, .pypirc, .pgpass, .git-credentials, **/.git/config"

func TestDefaults(t *testing.T) {
	t.Chdir(t.TempDir())
	config, err := Load(Options{Env: []string{"HOME=/home/ada"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range config.Settings() {
		got = append(got, s.Key+" = "+s.Value)
		if s.Origin.String() != "default" || s.Default != s.Value {
			t.Errorf("%s: origin %s, value %q, default %q", s.Key, s.Origin, s.Value, s.Default)
		}
	}
	want := []string{
		"audit.enabled = true",
		"audit.keep = 90d",
		"audit.reads = false",
		"budgets.period = month",
		"budgets.project_cost = 0",
		"budgets.project_tokens = 0",
		"budgets.user_cost = 0",
		"budgets.user_tokens = 0",
		"catalogue.file = ",
		"chat.max_context_tokens = 6000",
		"chat.max_history_messages = 50",
		"chat.reserved_tokens = 4500",
		"chat.strategy = truncate",
		"context.include_collapsed = false",
		"context.include_tool_results = true",
		"context.low_water = 0.4",
		"context.max_chars = 120000",
		"context.max_messages = 80",
		"context.max_tokens = 0",
		"context.moves = priced",
		"context.outputs = short",
		"context.preview_chars = 1200",
		"context.strategy = truncate",
		"context.summarizer = ",
		"context.tool_output_chars = 8000",
		"crew.agent_timeout = 10m",
		"crew.max_conversation_length = 200",
		"crew.system_reminder_interval = 5",
		"crews.dir = crews",
		"demo.pace = 0s",
		"gateway.mcp_urls = ",
		"gateway.record = all",
		"gateway.window = auto",
		"handoff.agent_timeout = 30m",
		"handoff.assistant_max_chars = 150",
		"handoff.max_agents = 8",
		"handoff.max_messages = 50",
		"handoff.user_max_chars = 8000",
		"listen = 127.0.0.1:8787",
		"log.format = text",
		"log.level = info",
		"log.message_text = false",
		"memory.derive_every = 0s",
		"memory.enabled = auto",
		"memory.extractor = ",
		"memory.profile = true",
		"memory.tools = false",
		"model = demo",
		"objects.inline_output_bytes = 262144",
		"objects.inline_part_bytes = 65536",
		"objects.location = /home/ada/.local/share/continuo/continuo.db.objects",
		"project = default",
		"prompts.dir = ",
		"recall.embeddings.api_key_env = ",
		"recall.embeddings.base_url = ",
		"recall.embeddings.dimensions = 0",
		"recall.embeddings.model = ",
		"recall.reranker.api_key_env = ",
		"recall.reranker.base_url = ",
		"recall.reranker.model = ",
		"recall.reranker.timeout = 500ms",
		"recall.scope = conversation",
		"recall.share = 0.25",
		"recall.threshold = 0.15",
		"retention.agent_delete_after = 0s",
		"retention.archive_after = 0s",
		"retention.chat_delete_after = 0s",
		"retention.delete_after = 0s",
		"retention.feed = 90d",
		"retention.run_delete_after = 0s",
		"retention.side_delete_after = 0s",
		"retention.task_delete_after = 0s",
		"server.body_timeout = 30s",
		"server.cors = ",
		"server.inspector = true",
		"server.keys = once-made",
		"server.max_body_bytes = 33554432",
		"server.max_connections = 0",
		"server.max_turns = 0",
		"server.memory_budget_mib = 0",
		"server.requests_per_second = 0",
		"server.session_lifetime = 12h",
		"server.shutdown_timeout = 10s",
		"server.trusted_proxies = ",
		"store.cache_mib = 64",
		"store.max_connections = 16",
		"store.partitions = 0",
		"store.path = /home/ada/.local/share/continuo/continuo.db",
		"store.retry_timeout = 15s",
		"store.statement_timeout = 10s",
		"store.url = ",
		"telegram.api_url = https://api.telegram.org",
		"telegram.bot_token = ",
		"telegram.chat_id = 0",
		"telegram.crew = ",
		"telegram.max_message_length = 4096",
		"telegram.project = default",
		"telegram.webhook_secret = ",
		"telegram.webhook_url = ",
		"telemetry.message_text = false",
		"telemetry.otlp_endpoint = ",
		"telemetry.otlp_headers_env = OTEL_EXPORTER_OTLP_HEADERS",
		"telemetry.sample = 1",
		"tools.allow = fs.read, fs.list, fs.search, conversation.search",
		"tools.ask = ",
		"tools.ask_timeout = 5m",
		"tools.deny = ",
		"tools.deny_files = " + defaultSecrets,
		"tools.max_output_bytes = 67108864",
		"tools.otherwise = ask",
		"tools.project_dir = ",
		"transcript.history_messages = 15",
		"turn.breaker_cooldown = 30s",
		"turn.breaker_failures = 5",
		"turn.connect_timeout = 10s",
		"turn.first_token_timeout = 5m",
		"turn.idle_timeout = 2m",
		"turn.keep_events = 24h",
		"turn.lease = 15s",
		"turn.max_rounds = 25",
		"turn.retries = 3",
		"turn.retry_max_wait = 30s",
		"turn.retry_timeout = 2m",
		"turn.show_events = durable",
		"turn.timeout = 10m",
		"turn.tool_timeout = 1m",
		"turn.wait_timeout = 1m",
		"workflows.dir = workflows",
	}
	if !slices.Equal(got, want) {
		t.Errorf("settings:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if config.File != "" {
		t.Errorf("file %q, want none", config.File)
	}
	typed := []any{config.Listen, config.Context.MaxMessages, config.Context.LowWater, config.Turn.Timeout, config.Server.MaxBodyBytes, config.Tools.Allow}
	if want := []any{"127.0.0.1:8787", 80, 0.4, 10 * time.Minute, int64(33554432), []string{"fs.read", "fs.list", "fs.search", "conversation.search"}}; !reflect.DeepEqual(typed, want) {
		t.Errorf("typed values %v, want %v", typed, want)
	}
}

func TestLaterWinsAndOriginsAreKept(t *testing.T) {
	text := "listen: 127.0.0.1:1\nproject: one\ncontext:\n  max_messages: 10\n  max_chars: 20\n"
	config := mustLoad(t, text, Options{
		Env:       []string{"CONTINUO_LISTEN=127.0.0.1:2", "CONTINUO_CONTEXT_MAX_CHARS=30", "CONTINUO_TOOLS_ALLOW=a, b", "OTHER=x", "CONTINUO_DATA=/x", "CONTINUO_LONG=1"},
		Flags:     map[string]string{"listen": "127.0.0.1:3", "turn.timeout": "90s"},
		FlagNames: map[string]string{"listen": "listen"},
	})
	for key, want := range map[string][2]string{
		"listen":               {"127.0.0.1:3", "flag --listen"},
		"turn.timeout":         {"1m30s", "flag --set turn.timeout"},
		"context.max_chars":    {"30", "env CONTINUO_CONTEXT_MAX_CHARS"},
		"tools.allow":          {"a, b", "env CONTINUO_TOOLS_ALLOW"},
		"context.max_messages": {"10", "continuo.yaml:4"},
		"project":              {"one", "continuo.yaml:2"},
		"log.level":            {"info", "default"},
	} {
		if s := find(t, config, key); s.Value != want[0] || s.Origin.String() != want[1] {
			t.Errorf("%s = %q from %s, want %q from %s", key, s.Value, s.Origin, want[0], want[1])
		}
	}
	if config.Context.MaxChars != 30 || config.Context.MaxMessages != 10 || config.Listen != "127.0.0.1:3" || !slices.Equal(config.Tools.Allow, []string{"a", "b"}) {
		t.Errorf("typed values do not follow: %+v", config)
	}
	if config.File != "continuo.yaml" {
		t.Errorf("file %q", config.File)
	}
}

// TestTheStoreThatWasNamedLaterCounts: a flag that names a file must not be taken for the database of the
// environment.
func TestTheStoreThatWasNamedLaterCounts(t *testing.T) {
	const url = "postgres://u@h/d"
	for _, c := range []struct {
		text  string
		env   []string
		flags map[string]string
		want  string
	}{
		{"", []string{"CONTINUO_STORE_URL=" + url}, nil, url},
		{"", []string{"CONTINUO_STORE_URL=" + url}, map[string]string{"store.path": "x.db"}, ""},
		{"store: {url: 'postgres://u@h/d'}", []string{"CONTINUO_STORE_PATH=x.db"}, nil, ""},
		{"store: {path: x.db}", []string{"CONTINUO_STORE_URL=" + url}, nil, url},
		{"", []string{"CONTINUO_STORE_PATH=x.db", "CONTINUO_STORE_URL=" + url}, nil, url},
		{"", nil, map[string]string{"store.path": "x.db", "store.url": url}, url},
	} {
		config := mustLoad(t, c.text, Options{Env: c.env, Flags: c.flags})
		if config.Store.URL != c.want || find(t, config, "store.url").Value != c.want {
			t.Errorf("%q %v %v: store.url is %q, want %q", c.text, c.env, c.flags, config.Store.URL, c.want)
		}
	}
}

func TestEverySettingCanBeSetByEveryLayer(t *testing.T) {
	samples := map[string]string{
		"listen": "localhost:0", "project": "p", "model": "m", "store.path": "/s.db", "budgets.period": "day", "store.url": "postgres://u@h/d", "objects.location": "/o", "log.level": "debug", "log.format": "json",
		"log.message_text": "true", "context.include_tool_results": "false", "context.include_collapsed": "true", "context.low_water": "0.5",
		"chat.strategy": "summarize", "context.strategy": "summarize", "context.outputs": "whole", "context.summarizer": "m", "memory.enabled": "on", "memory.derive_every": "7d", "memory.extractor": "m", "memory.profile": "false", "memory.tools": "true", "prompts.dir": "/p", "workflows.dir": "/w", "tools.project_dir": "/q", "tools.allow": "x.y", "tools.ask": "x.*, y", "tools.deny": "*", "tools.deny_files": "x.*, y", "tools.otherwise": "deny", "server.keys": "always", "server.trusted_proxies": "10.0.0.0/8, 127.0.0.1", "audit.enabled": "false", "audit.keep": "30d", "audit.reads": "true", "server.cors": "https://a.example, http://localhost:5173", "gateway.window": "client", "gateway.record": "stored", "gateway.mcp_urls": "https://a.example/mcp, http://b.example", "server.inspector": "false", "turn.show_events": "immediate", "chat.max_context_tokens": "500", "recall.share": "0.5", "recall.scope": "user", "recall.threshold": "0.5",
		"recall.embeddings.base_url": "http://e:1/v1", "recall.embeddings.model": "e", "recall.embeddings.api_key_env": "E",
		"recall.reranker.base_url": "http://r:1/v1", "recall.reranker.model": "r", "recall.reranker.api_key_env": "R", "recall.reranker.timeout": "1s",
		"crews.dir": "/c", "telegram.crew": "a", "telegram.project": "p", "telegram.bot_token": "${T}", "telegram.webhook_secret": "${T}", "telegram.api_url": "http://t:1", "telegram.max_message_length": "100", "telegram.webhook_url": "https://w/t",
		"catalogue.file": catalogueFile(t), "telemetry.otlp_endpoint": "http://c:1", "telemetry.otlp_headers_env": "H", "telemetry.sample": "0.5", "telemetry.message_text": "true",
		"context.moves": "fixed",
	}
	for _, s := range Schema() {
		if groupIn(strings.Split(s.Key, ".")[0]) != nil {
			continue
		}
		sample := samples[s.Key]
		switch {
		case sample != "":
		case strings.HasSuffix(s.Key, "timeout"), strings.HasSuffix(s.Key, "wait"), strings.HasSuffix(s.Key, "cooldown"), strings.HasSuffix(s.Key, "lease"), strings.HasSuffix(s.Key, "lifetime"), strings.HasSuffix(s.Key, "keep_events"), strings.HasPrefix(s.Key, "retention."), s.Key == "demo.pace":
			sample = "3s"
		default:
			sample = "7"
		}
		text := "models: {m: {}}\n"
		written := sample
		if slices.Contains([]string{"tools.allow", "tools.ask", "tools.deny", "tools.deny_files", "server.cors", "server.trusted_proxies", "gateway.mcp_urls"}, s.Key) {
			written = "['" + strings.ReplaceAll(sample, ", ", "', '") + "']"
		}
		env := []string{}
		if s.Key == "telegram.webhook_url" { // needs a secret
			env = append(env, "CONTINUO_TELEGRAM_WEBHOOK_SECRET=s")
		}
		switch s.Key { // needs a model
		case "recall.embeddings.base_url":
			env = append(env, "CONTINUO_RECALL_EMBEDDINGS_MODEL=e")
		case "recall.reranker.base_url":
			env = append(env, "CONTINUO_RECALL_RERANKER_MODEL=r")
		}
		section, last := splitKey(s.Key)
		if section == "" {
			text += last + ": " + written + "\n"
		} else {
			text += section + ":\n  " + last + ": " + written + "\n"
		}
		for layer, config := range map[string]*Config{
			"file": mustLoad(t, text, Options{Env: env}),
			"env":  mustLoad(t, "models: {m: {}}", Options{Env: append(env, s.Env+"="+sample)}),
			"flag": mustLoad(t, "models: {m: {}}", Options{Env: env, Flags: map[string]string{s.Key: sample}}),
		} {
			if got := find(t, config, s.Key); got.Value != sample || got.Origin.Kind == FromDefault {
				t.Errorf("%s by %s: %q from %s, want %q", s.Key, layer, got.Value, got.Origin, sample)
			}
		}
	}
}

func TestFileIsFound(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	write := func(name, text string) string {
		full := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o700), os.WriteFile(full, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return full
	}
	xdg := write("xdg/continuo/continuo.yaml", "project: xdg\n")
	home := write("home/.config/continuo/continuo.yaml", "project: home\n")
	env := []string{"HOME=" + filepath.Join(folder, "home")}
	check := func(options Options, project, file string) {
		t.Helper()
		config, err := Load(options)
		if err != nil {
			t.Fatal(err)
		}
		if config.Project != project || config.File != file {
			t.Errorf("project %q of %q, want %q of %q", config.Project, config.File, project, file)
		}
	}
	check(Options{Env: env}, "home", home)
	check(Options{Env: append(env, "XDG_CONFIG_HOME=relative")}, "home", home)
	check(Options{Env: []string{"HOME=" + home}}, "default", "") // a file where the home folder should be
	env = append(env, "XDG_CONFIG_HOME="+filepath.Join(folder, "xdg"))
	check(Options{Env: env}, "xdg", xdg)
	write("continuo.yaml", "project: here\n")
	check(Options{Env: env}, "here", "continuo.yaml")
	asked := write("other.yaml", "project: asked\n")
	check(Options{Env: env, File: asked}, "asked", asked)

	_, err := Load(Options{Env: env, File: "missing.yaml"})
	if err == nil || !strings.Contains(err.Error(), "there is no file missing.yaml; continuo init missing.yaml makes one") {
		t.Errorf("a missing file gives %v", err)
	}
	if _, err := Load(Options{Env: env, File: folder}); err == nil {
		t.Error("a folder was read as a settings file")
	}
	large := write("large.yaml", strings.Repeat("# x\n", maxFileBytes/4+1))
	if _, err := Load(Options{Env: env, File: large}); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a large file gives %v", err)
	}
}

func TestAddressesNeedNoQuotes(t *testing.T) {
	for _, address := range []string{":8787", "0.0.0.0:80", "localhost:0", `"[::1]:8787"`} {
		config := mustLoad(t, "listen: "+address+"\n", Options{})
		if want := strings.Trim(address, `"`); config.Listen != want {
			t.Errorf("%s was read as %q", address, config.Listen)
		}
	}
}

func TestStorePath(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		env        []string
		want, fail string
	}{
		{[]string{"HOME=/home/ada"}, "/home/ada/.local/share/continuo/continuo.db", ""},
		{[]string{"HOME=/home/ada", "XDG_DATA_HOME=/data"}, "/data/continuo/continuo.db", ""},
		{[]string{"XDG_DATA_HOME=/data"}, "/data/continuo/continuo.db", ""},
		{[]string{"HOME=/home/ada", "XDG_DATA_HOME=data"}, "/home/ada/.local/share/continuo/continuo.db", ""},
		{[]string{"HOME=/home/ada", "CONTINUO_STORE_PATH=~/log.db"}, "/home/ada/log.db", ""},
		{[]string{"CONTINUO_STORE_PATH=log.db"}, "log.db", ""},
		{nil, "", "store.path: no default, because neither XDG_DATA_HOME nor HOME is set"},
		{[]string{"HOME=home"}, "", "store.path: no default"},
		{[]string{"CONTINUO_STORE_PATH=~/log.db"}, "", "write the whole path"},
	} {
		config, err := Load(Options{Env: c.env})
		if c.fail != "" {
			if err == nil || !strings.Contains(err.Error(), c.fail) {
				t.Errorf("%v: error %v, want %q", c.env, err, c.fail)
			}
		} else if err != nil || config.Store.Path != c.want {
			t.Errorf("%v: %v, error %v, want %s", c.env, config, err, c.want)
		}
	}
}

func TestModels(t *testing.T) {
	text := `
model: claude
models:
  gpt:
  claude:
    protocol: anthropic-messages
    model: claude-sonnet-4-5
    max_output_tokens: 0
    temperature: 1
    context_window: 200000
  thinker: {protocol: anthropic-messages, reasoning_effort: high, window: client}
  local:
    base_url: http://127.0.0.1:11434/v1/
    model: "qwen3:8b"
    fallback: gpt
    headers: {http-referer: https://example.org, X-Title: Continuo}
    tool_calls: transcript
  gate:
    base_url: https://gate.example.org/v1
    api_key_env: GATE_KEY
    provider: openai
    max_output_tokens: 900
`
	config := mustLoad(t, text, Options{Env: []string{"OPENAI_API_KEY=sk-canary", "GATE_KEY="}})
	one := 1.0
	want := map[string]ModelConfig{
		"gpt": {
			Name: "gpt", Protocol: "openai-chat", ToolCalls: "native", StructuredOutputs: "auto", InlineThinking: "auto", Strict: "auto", ReasoningEffort: "auto", BaseURL: "https://api.openai.com/v1", Model: "gpt", APIKeyEnv: "OPENAI_API_KEY", APIKeySet: true,
			Provider: "openai", Headers: map[string]string{},
		},
		"claude": {
			Name: "claude", Protocol: "anthropic-messages", ToolCalls: "native", StructuredOutputs: "auto", InlineThinking: "auto", Strict: "auto", ReasoningEffort: "auto", BaseURL: "https://api.anthropic.com", Model: "claude-sonnet-4-5", APIKeyEnv: "ANTHROPIC_API_KEY",
			Provider: "anthropic", ContextWindow: 200000, MaxOutputTokens: 4096, Temperature: &one, Headers: map[string]string{},
		},
		"thinker": {
			Name: "thinker", Protocol: "anthropic-messages", ToolCalls: "native", StructuredOutputs: "auto", InlineThinking: "auto", Strict: "auto", ReasoningEffort: "high", BaseURL: "https://api.anthropic.com", Model: "thinker", APIKeyEnv: "ANTHROPIC_API_KEY",
			Provider: "anthropic", Window: "client", Headers: map[string]string{},
		},
		"local": {
			Name: "local", Protocol: "openai-chat", ToolCalls: "transcript", StructuredOutputs: "auto", InlineThinking: "auto", Strict: "auto", ReasoningEffort: "auto", BaseURL: "http://127.0.0.1:11434/v1", Model: "qwen3:8b", Provider: "127.0.0.1:11434",
			Headers:  map[string]string{"Http-Referer": "https://example.org", "X-Title": "Continuo"},
			Fallback: "gpt",
		},
		"gate": {
			Name: "gate", Protocol: "openai-chat", ToolCalls: "native", StructuredOutputs: "auto", InlineThinking: "auto", Strict: "auto", ReasoningEffort: "auto", BaseURL: "https://gate.example.org/v1", Model: "gate", APIKeyEnv: "GATE_KEY",
			Provider: "openai", MaxOutputTokens: 900, Headers: map[string]string{},
		},
	}
	if !reflect.DeepEqual(config.Models, want) {
		t.Errorf("models:\n%+v\nwant:\n%+v", config.Models, want)
	}
	for key, shown := range map[string]string{
		"models.gpt.api_key_env":    "OPENAI_API_KEY (set)",
		"models.gate.api_key_env":   "GATE_KEY (not set)",
		"models.local.api_key_env":  "",
		"models.local.headers":      "Http-Referer, X-Title",
		"models.gpt.temperature":    "",
		"models.claude.temperature": "1",
	} {
		if got := find(t, config, key).Value; got != shown {
			t.Errorf("%s is shown as %q, want %q", key, got, shown)
		}
	}
	if got := find(t, config, "models.local.headers").Origin.String(); got != "continuo.yaml:16" {
		t.Errorf("headers come from %s", got)
	}
	if model, err := config.Model(""); err != nil || model.Name != "claude" {
		t.Errorf("the default model is %v, error %v", model, err)
	}
	if model, err := config.Model("demo"); err != nil || model.Protocol != ProtocolDemo {
		t.Errorf("demo is %v, error %v", model, err)
	}
	if got := config.ModelNames(); !slices.Equal(got, []string{"claude", "demo", "gate", "gpt", "local", "thinker"}) {
		t.Errorf("model names %v", got)
	}
	for name, want := range map[string]string{
		"clade": `find model "clade": not found; did you mean claude?`,
		"o3":    `find model "o3": not found; the models are claude, demo, gate, gpt, local, thinker`,
	} {
		if _, err := config.Model(name); !errors.Is(err, continuo.ErrNotFound) || err.Error() != want {
			t.Errorf("model %s: %v, want %s", name, err, want)
		}
	}
}

func TestHints(t *testing.T) {
	for _, c := range []struct {
		text string
		env  string
		want string // "" for none
	}{
		{"", "X=1", ""},
		{"", "OPENAI_API_KEY=sk-canary", "OPENAI_API_KEY is set, but no model uses it"},
		{"", "ANTHROPIC_API_KEY=sk-canary", "protocol anthropic-messages"},
		{"", "GEMINI_API_KEY=sk-canary", "protocol gemini"},
		{"models: {gpt: {}}", "X=1", "set model to the name of one"},
		{"model: gpt\nmodels: {gpt: {}}", "X=1", "OPENAI_API_KEY, which is not set"},
		{"model: gpt\nmodels: {gpt: {}}", "OPENAI_API_KEY=sk-canary", ""},
		{"model: gpt\nmodels: {gpt: {api_key_env: ''}}", "X=1", ""},
	} {
		hints := strings.Join(mustLoad(t, c.text, Options{Env: []string{c.env}}).Hints(), "\n")
		if strings.Count(hints, "\n") > 0 || (c.want == "") != (hints == "") || !strings.Contains(hints, c.want) || strings.Contains(hints, "canary") {
			t.Errorf("%q with %s: hints %q, want %q", c.text, c.env, hints, c.want)
		}
	}
}

func TestVariablesThatAreNoSettingsAreIgnored(t *testing.T) {
	config := mustLoad(t, "model: demo\n", Options{Env: []string{
		"CONTINUO_PORT=tcp://10.0.0.1:8787", "CONTINUO_SERVICE_HOST=10.0.0.1", "CONTINUO_PORT_8787_TCP=tcp://10.0.0.1:8787", // Kubernetes
		"CONTINUO_CONTXT_MAX_CHARS=1", "CONTINUO_MODELS_GPT_MODEL=x", "CONTINUO_MCP_SERVERS_A_URL=x", "CONTINUO_\nX=1", "CONTINUO_LOG_LEVEL=warn", "OTHER=1", "CONTINUO_LONG=1",
	}})
	if config.Log.Level != slog.LevelWarn {
		t.Errorf("a variable that is a setting was not read: %v", config.Log.Level)
	}
	want := []IgnoredVariable{
		{`"CONTINUO_\nX"`, ""},
		{"CONTINUO_CONTXT_MAX_CHARS", "did you mean CONTINUO_CONTEXT_MAX_CHARS?"},
		{"CONTINUO_MCP_SERVERS_A_URL", "MCP servers are set in the file only"},
		{"CONTINUO_MODELS_GPT_MODEL", "models are set in the file only"},
		{"CONTINUO_PORT", ""},
		{"CONTINUO_PORT_8787_TCP", ""},
		{"CONTINUO_SERVICE_HOST", ""},
	}
	if got := config.Ignored(); !slices.Equal(got, want) {
		t.Errorf("ignored:\n%v, want\n%v", got, want)
	}
}
