// Package clients knows how agents and libraries are pointed at a server: the variables, arguments and lines that
// continuo launch, GET /api/connect and the page Connect have in common.
package clients

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Agent is a coding agent and how it is pointed at a server. Each was run with the program whose version docs/gateway.md names.
type Agent struct {
	ID   string // of continuo launch
	Name string // for people
	// Program is the name of its program.
	Program string
	// Install is the command that installs it, where Node.js is.
	Install string
	// Arguments are those before the user's; nil for none.
	Arguments func(base string) []string
	// KeyVariable is the variable in which Arguments make it look for a key, without which it does not start; "" for none.
	KeyVariable string
	// Env are its variables, each NAME=value. Key is an API key of the server; "" where the agent has one itself.
	Env func(base, key string) []string
	// Extended says that it needs an extension besides, so that nothing but continuo launch can start it.
	Extended bool
}

// withKey adds a variable with the key, if there is one.
func withKey(key, variable string, env ...string) []string {
	if key == "" {
		return env
	}
	return append(env, variable+"="+key)
}

// Agents returns all agents, in the order in which people are shown them.
func Agents() []Agent {
	return []Agent{
		{ID: "claude", Name: "Claude Code", Program: "claude", Install: "npm install -g @anthropic-ai/claude-code", Env: func(base, key string) []string {
			return withKey(key, "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL="+base)
		}},
		{ID: "codex", Name: "Codex", Program: "codex", Install: "npm install -g @openai/codex", Arguments: codexArguments, KeyVariable: "OPENAI_API_KEY", Env: func(_, key string) []string {
			return withKey(key, "OPENAI_API_KEY")
		}},
		{ID: "gemini", Name: "Gemini CLI", Program: "gemini", Install: "npm install -g @google/gemini-cli", Env: func(base, key string) []string {
			return withKey(key, "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL="+base)
		}},
		{ID: "opencode", Name: "opencode", Program: "opencode", Install: "npm install -g opencode-ai", Env: opencodeEnv},
		{ID: "pi", Name: "pi", Program: "pi", Install: "npm install -g @mariozechner/pi-coding-agent", Extended: true, Env: func(base, key string) []string {
			return withKey(key, "OPENAI_API_KEY", "PI_CONTINUO_URL="+base)
		}},
		{
			ID: "qwen", Name: "Qwen Code", Program: "qwen", Install: "npm install -g @qwen-code/qwen-code", Arguments: func(string) []string { return []string{"--auth-type", "openai"} },
			KeyVariable: "OPENAI_API_KEY",
			Env:         func(base, key string) []string { return withKey(key, "OPENAI_API_KEY", "OPENAI_BASE_URL="+base+"/v1") },
		},
	}
}

// Find returns the agent with an id.
func Find(id string) (Agent, bool) {
	for _, agent := range Agents() {
		if agent.ID == id {
			return agent, true
		}
	}
	return Agent{}, false
}

func codexArguments(base string) []string {
	return []string{
		"-c", "model_provider=continuo", "-c", "model_providers.continuo.name=continuo", "-c", `model_providers.continuo.wire_api="responses"`,
		"-c", fmt.Sprintf("model_providers.continuo.base_url=%q", base+"/v1"), "-c", `model_providers.continuo.env_key="OPENAI_API_KEY"`,
	}
}

func opencodeEnv(base, key string) []string {
	apiKey := ""
	if key != "" {
		apiKey = fmt.Sprintf(`,"apiKey":"%s"`, key)
	}
	provider := func(name, path string) string {
		return fmt.Sprintf(`"%s":{"options":{"baseURL":"%s%s"%s}}`, name, base, path, apiKey)
	}
	return []string{"OPENCODE_CONFIG_CONTENT={\"provider\":{" + provider("openai", "/v1") + "," + provider("anthropic", "/v1") + "," + provider("google", "/v1beta") + "}}"}
}

// Lines are the lines of a shell that start the agent with a server, where more are arguments after its own: exports of its
// variables, and the command.
func (a Agent) Lines(base, key string, more ...string) []string {
	var lines []string
	for _, variable := range a.Env(base, key) {
		name, value, _ := strings.Cut(variable, "=")
		lines = append(lines, fmt.Sprintf("export %s=%s", name, Quoted(value)))
	}
	words := []string{a.Program}
	if a.Arguments != nil {
		words = append(words, a.Arguments(base)...)
	}
	words = slices.Concat(words, more)
	for i, word := range words {
		words[i] = Quoted(word)
	}
	return append(lines, strings.Join(words, " "))
}

// Quoted quotes a word for a shell where that is needed.
func Quoted(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n'\"\\$`!*?[]{}();<>|&~#") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// KeyPlace stands for the API key in ready lines.
const KeyPlace = "CONTINUO_API_KEY"

// Ready are the ready lines of one client.
type Ready struct {
	ID    string `json:"id"`
	Name  string `json:"name"` // for people
	Group string `json:"group" enum:"agents,libraries,other"`
	// Text are lines of a shell, a program or a file of settings; `CONTINUO_API_KEY` in them stands for an API key.
	Text string `json:"text"`
}

// Endpoint is an API that the server has for clients.
type Endpoint struct {
	Protocol string `json:"protocol"` // for people
	URL      string `json:"url"`      // the base URL that such clients are given
}

// Endpoints are the base URLs of a server.
func Endpoints(base string) []Endpoint {
	return []Endpoint{
		{"OpenAI: chat completions, Responses, embeddings", base + "/v1"},
		{"Anthropic: messages", base},
		{"Google: Gemini", base + "/v1beta"},
		{"Model Context Protocol", base + "/mcp"},
		{"Continuo", base + "/api"},
	}
}

// WithoutUpstream says what to set before an agent is connected to a server that has only some models.
func WithoutUpstream(models []string) string {
	return fmt.Sprintf("Set an upstream before you connect an agent: agents ask for models such as gpt-… and claude-…, and this server has only %s; "+
		"name upstreams in its settings, or, where those have no models, set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY where it starts.",
		strings.Join(models, ", "))
}

// All are the ready lines for a server. Model is one that it has; keys says that it needs API keys.
func All(base, model string, keys bool) []Ready {
	key, header, secret := "none", "", ""
	if keys {
		key, secret = KeyPlace, KeyPlace
		header = fmt.Sprintf(" \\\n  -H \"Authorization: Bearer %s\"", KeyPlace)
	}
	var all []Ready
	for _, agent := range Agents() {
		text := fmt.Sprintf("# with a server of its own:\ncontinuo launch %s\n\n# with this server:\n", agent.ID)
		// Most agents refuse to start without any key.
		own := key
		if agent.ID == "claude" {
			own = secret
		}
		if agent.Extended {
			text += strings.Join(append(exports(agent.Env("", own)[1:]), fmt.Sprintf("continuo launch --server %s %s", base, agent.ID)), "\n")
		} else {
			text += strings.Join(agent.Lines(base, own), "\n")
		}
		all = append(all, Ready{agent.ID, agent.Name, "agents", text})
	}
	mcp := map[string]any{"type": "http", "url": base + "/mcp"}
	if keys {
		mcp["headers"] = map[string]string{"Authorization": "Bearer " + KeyPlace}
	}
	settings, _ := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{"continuo": mcp}}, "", "  ")
	return append(all,
		Ready{"openai-python", "OpenAI, Python", "libraries", fmt.Sprintf(openAIPython, base, key, model)},
		Ready{"openai-javascript", "OpenAI, JavaScript", "libraries", fmt.Sprintf(openAIJavaScript, base, key, model)},
		Ready{"anthropic-python", "Anthropic, Python", "libraries", fmt.Sprintf(anthropicPython, base, key, model)},
		Ready{"curl", "curl", "other", fmt.Sprintf("curl -s %s/chat%s \\\n  -d '{\"message\": \"My dog is called Rex.\", \"session_id\": \"dog\"}'", base, header)},
		Ready{"mcp", "An MCP client", "other", string(settings)},
	)
}

func exports(env []string) []string {
	var lines []string
	for _, variable := range env {
		lines = append(lines, "export "+variable)
	}
	return lines
}

const openAIPython = `from openai import OpenAI

client = OpenAI(base_url="%s/v1", api_key="%s")
answer = client.chat.completions.create(
    model="%s",
    messages=[{"role": "user", "content": "My dog is called Rex."}],
)
print(answer.choices[0].message.content)`

const openAIJavaScript = `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '%s/v1', apiKey: '%s' });
const answer = await client.chat.completions.create({
  model: '%s',
  messages: [{ role: 'user', content: 'My dog is called Rex.' }],
});
console.log(answer.choices[0].message.content);`

const anthropicPython = `from anthropic import Anthropic

client = Anthropic(base_url="%s", api_key="%s")
answer = client.messages.create(
    model="%s", max_tokens=500,
    messages=[{"role": "user", "content": "My dog is called Rex."}],
)
print(answer.content[0].text)`
