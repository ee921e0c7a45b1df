package main

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/known"
	"github.com/continuo-log/continuo/window"
)

type initCommand struct {
	File     string `arg:"" optional:"" default:"continuo.yaml" help:"Where to write the settings. Default: continuo.yaml."`
	Provider string `placeholder:"NAME" enum:"openai,anthropic,google,deepseek,mistral,xai,alibaba,moonshotai,zai,ollama,other,demo," default:"" help:"Who answers: openai, anthropic, google, deepseek, mistral, xai, alibaba, moonshotai, zai, ollama, other (a server with an OpenAI-compatible API) or demo (built in). Default: asked in a terminal, else the one whose key is in the environment."`
	Model    string `placeholder:"MODEL" help:"The provider's name of the model. Default: one of the provider's current ones."`
	BaseURL  string `name:"base-url" placeholder:"URL" help:"Where the provider's API is; --provider other needs it."`
	KeyEnv   string `name:"key-env" placeholder:"VARIABLE" help:"The environment variable that holds the API key. Default: the provider's usual one."`
	All      bool   `help:"Write every setting with its meaning, commented out, besides the model."`
}

func (initCommand) Help() string {
	return `Writes a settings file, with comments, for one model, and beside it the JSON Schema (` + config.SchemaName + `) by which editors complete and check it. An existing file is not changed. API keys are never written: the file names the variable of the environment that holds one.

Examples:

    continuo init
    continuo init --provider anthropic --model claude-opus-5-5
    continuo init --provider other --base-url http://127.0.0.1:8000/v1 --model my-model
    continuo init --provider demo --all ~/.config/continuo/continuo.yaml`
}

// initProvider is what init knows of a provider. Base is empty for the protocol's own.
type initProvider struct {
	id, name, protocol, base, keyEnv, model string
}

func initProviders() []initProvider {
	api := func(vendor string) string { return known.BuiltIn()[vendor].API }
	return []initProvider{
		{"openai", "OpenAI", model.ProtocolOpenAIChat, "", "OPENAI_API_KEY", "gpt-6.1-sol"},
		{"anthropic", "Anthropic", model.ProtocolAnthropic, "", "ANTHROPIC_API_KEY", "claude-sonnet-5-5"},
		{"google", "Google Gemini", model.ProtocolGemini, "", "GEMINI_API_KEY", "gemini-3.8-flash"},
		{"deepseek", "DeepSeek", model.ProtocolOpenAIChat, api("deepseek"), "DEEPSEEK_API_KEY", "deepseek-v4-flash"},
		{"mistral", "Mistral", model.ProtocolOpenAIChat, api("mistral"), "MISTRAL_API_KEY", "mistral-large-latest"},
		{"xai", "xAI", model.ProtocolOpenAIChat, api("xai"), "XAI_API_KEY", "grok-4.6"},
		{"alibaba", "Alibaba (Qwen)", model.ProtocolOpenAIChat, api("alibaba"), "DASHSCOPE_API_KEY", "qwen3.7-plus"},
		{"moonshotai", "Moonshot AI (Kimi)", model.ProtocolOpenAIChat, api("moonshotai"), "MOONSHOT_API_KEY", "kimi-k3"},
		{"zai", "Z.AI (GLM)", model.ProtocolOpenAIChat, api("zai"), "ZAI_API_KEY", "glm-5.2"},
		{"ollama", "Ollama on this machine", model.ProtocolOpenAIChat, "http://127.0.0.1:11434/v1", "", "qwen3:8b"},
		{"other", "another server with an OpenAI-compatible API", model.ProtocolOpenAIChat, "", "", ""},
		{"demo", "the built-in demo model, which needs no key", config.ProtocolDemo, "", "", ""},
	}
}

// variableForm is that of the names of environment variables.
var variableForm = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)

// Run writes the file.
func (c *initCommand) Run(a *app) error {
	if _, err := os.Lstat(c.File); err == nil {
		return usage("%s is there already; change it with continuo config set KEY VALUE, or give another name", c.File)
	}
	chosen, err := c.choose(a)
	if err != nil {
		return err
	}
	text := chosen.settings(c.All)
	if err := checkNew(a, c.File, text); err != nil {
		return err
	}
	if err := a.writeWithSchema(c.File, []byte(text), config.JSONSchema(), config.SchemaName); err != nil {
		return err
	}
	a.print("%s", c.File)
	c.explain(a, chosen)
	return nil
}

// checkNew refuses settings that would not load: a model's name may be anything.
func checkNew(a *app, name, text string) error {
	folder, err := os.MkdirTemp("", "continuo-init-")
	if err != nil {
		return fmt.Errorf("check the settings: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // a copy of what is written elsewhere
	file := filepath.Join(folder, "continuo.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("check the settings: %w", err)
	}
	if _, err := config.Load(config.Options{File: file, Env: a.env, Views: window.Names()}); err != nil {
		return &usageError{config.Renamed(err, file, name)}
	}
	return nil
}

// choose is the provider of the flags, or of the answers of a person, or else of the environment.
func (c *initCommand) choose(a *app) (initProvider, error) {
	all := initProviders()
	asks := c.Provider == "" && a.inTerminal && a.errTerminal
	var in *bufio.Reader
	id := c.Provider
	switch {
	case asks:
		in = bufio.NewReader(a.in)
		id = askProvider(a, in, all, usualProvider(a, all))
	case id == "":
		id = usualProvider(a, all)
	}
	at := slices.IndexFunc(all, func(p initProvider) bool { return p.id == id })
	if at < 0 {
		return initProvider{}, usage("%q is none of the providers", term.OneLine(id, 60))
	}
	chosen := all[at]
	if asks && chosen.id == "other" && c.BaseURL == "" {
		c.BaseURL = a.answer(in, "Where is its API, such as http://127.0.0.1:8000/v1?", "")
	}
	if asks && chosen.id != "demo" && c.Model == "" {
		c.Model = a.answer(in, "Which model?", chosen.model)
	}
	if asks && chosen.id == "other" && c.KeyEnv == "" {
		c.KeyEnv = a.answer(in, "Which environment variable holds its API key? (empty: it needs none)", "")
	}
	chosen.base, chosen.model, chosen.keyEnv = cmp.Or(c.BaseURL, chosen.base), cmp.Or(c.Model, chosen.model), cmp.Or(c.KeyEnv, chosen.keyEnv)
	switch {
	case chosen.id == "demo" && (c.BaseURL != "" || c.Model != "" || c.KeyEnv != ""):
		return chosen, usage("the demo model has no other name, address or key; give another --provider")
	case c.KeyEnv != "" && !variableForm.MatchString(c.KeyEnv):
		return chosen, usage("--key-env: give the name of an environment variable, such as OPENAI_API_KEY; the key itself stays in the environment")
	case chosen.id == "other" && (chosen.base == "" || chosen.model == ""):
		return chosen, usage("--provider other needs --base-url and --model")
	}
	return chosen, nil
}

// usualProvider is the first whose key is in the environment, else the demo.
func usualProvider(a *app, all []initProvider) string {
	for _, p := range all {
		if envValue(a.env, p.keyEnv) != "" {
			return p.id
		}
	}
	return "demo"
}

func askProvider(a *app, in *bufio.Reader, all []initProvider, usual string) string {
	a.note("Who answers?")
	for i, p := range all {
		key := ""
		if envValue(a.env, p.keyEnv) != "" {
			key = a.notePaint.Dim("  (" + p.keyEnv + " is set)")
		}
		a.note("  %2d  %s%s", i+1, p.name, key)
	}
	given := a.answer(in, "A number or a name", usual)
	for i, p := range all {
		if given == fmt.Sprint(i+1) {
			return p.id
		}
	}
	return strings.ToLower(given)
}

// answer asks for a line; an empty one is the usual answer.
func (a *app) answer(in *bufio.Reader, question, usual string) string {
	shown := question
	if usual != "" {
		shown += " [" + usual + "]"
	}
	_, _ = fmt.Fprint(a.err, shown+": ")
	line, err := in.ReadString('\n')
	if err != nil && line == "" {
		a.note("")
	}
	return cmp.Or(strings.TrimSpace(line), usual)
}

// settings is the file for a provider.
func (p initProvider) settings(all bool) string {
	var models strings.Builder
	if p.id != "demo" {
		fmt.Fprintf(&models, "  %s:\n", p.id)
		fmt.Fprintf(&models, "    protocol: %s\n", p.protocol)
		if p.base != "" {
			fmt.Fprintf(&models, "    base_url: %s\n", config.Scalar(p.base))
		}
		fmt.Fprintf(&models, "    model: %s\n", config.Scalar(p.model))
		if p.keyEnv != "" {
			fmt.Fprintf(&models, "    api_key_env: %s   # the variable of the environment; the key itself is never written here\n", p.keyEnv)
		}
		models.WriteString(p.more())
	}
	name := p.id
	if all {
		return config.ExampleWith(name, models.String())
	}
	var text strings.Builder
	text.WriteString("# Settings of Continuo. All there are: docs/settings.md, or continuo init --all FILE.\n# continuo doctor prints what is in force and why; continuo config set KEY VALUE changes a line.\n\n")
	fmt.Fprintf(&text, "# The model that answers where a request names none: demo, which is built in, or a name under models.\nmodel: %s\n", name)
	if p.id == "demo" {
		text.WriteString("\n#models:\n#  openai:\n#    model: gpt-6.1-sol         # its key is taken from OPENAI_API_KEY\n")
	} else {
		text.WriteString("\nmodels:\n" + models.String() + p.upstreams())
	}
	text.WriteString(initRest)
	return text.String()
}

// upstreams serve coding agents and other programs, which ask for models by the provider's names: at OpenAI itself also those
// that speak the Responses API.
func (p initProvider) upstreams() string {
	text := "\n# Coding agents (continuo launch) and other programs ask for models by the provider's own names. They go here.\nupstreams:\n"
	protocols := map[string]string{p.id: p.protocol}
	if p.id == "openai" {
		protocols["openai-responses"] = model.ProtocolResponses
	}
	for _, name := range slices.Sorted(maps.Keys(protocols)) {
		text += "  " + name + ":\n    protocol: " + protocols[name] + "\n"
		if p.base != "" {
			text += "    base_url: " + config.Scalar(p.base) + "\n"
		}
		if p.keyEnv != "" {
			text += "    api_key_env: " + p.keyEnv + "\n"
		}
	}
	return text
}

// more says what the catalogue knows of the model, or what to write where it knows nothing.
func (p initProvider) more() string {
	settings := &config.Config{Known: known.BuiltIn()}
	vendor := p.id
	if p.id == "other" || p.id == "ollama" {
		vendor = ""
	}
	found, ok := settings.Known.Find(vendor, p.model)
	if !ok || found.Window() == 0 {
		return "#    context_window: 32768          # tokens of prompt and answer together; unknown, so that characters are counted\n" +
			"#    input_price: 0                 # US dollars per million tokens, for the cost of requests\n#    output_price: 0\n"
	}
	text := fmt.Sprintf("#    context_window: %d        # the model's own, which the catalogue knows; write another one to lower it\n", found.Window())
	if found.Reasoning {
		text += "#    reasoning_effort: medium       # more takes longer and costs more\n"
	}
	return text
}

const initRest = `
# Where continuo serve listens.
#listen: 127.0.0.1:8787

# The database: one SQLite file, or PostgreSQL with store.url.
#store:
#  path: ~/.local/share/continuo/continuo.db

# What models may read and call.
#tools:
#  project_dir: .               # readable for models as @project
#  allow: [fs.read, fs.list, fs.search, conversation.search]
#  otherwise: ask               # of all other tools: ask, allow or deny

# How much of a conversation a request holds; without limits here, what the model's window leaves.
#chat:
#  max_context_tokens: 32000
#context:
#  max_messages: 80
`

// explain says what to do next.
func (c *initCommand) explain(a *app, p initProvider) {
	step := func(command, why string) { a.note("  %s  %s", term.Pad(command, 42), a.notePaint.Dim(why)) }
	config := ""
	if c.File != "continuo.yaml" {
		config = " --config " + c.File
	}
	a.note("\nNext:")
	if p.keyEnv != "" && envValue(a.env, p.keyEnv) == "" {
		step("export "+p.keyEnv+"=…", "the API key, where continuo starts")
	}
	if p.id != "demo" {
		step("continuo"+config+" doctor --online", "is the model there, does it take the key?")
	}
	step("continuo"+config+" chat", "talk to it in the terminal")
	step("continuo"+config+" serve", "the server, its page and the gateway for other programs")
}
