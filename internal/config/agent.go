package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/yamltree"
)

// AgentConfig is one agent of the file.
type AgentConfig struct {
	ID   string // the key under agents
	Name string `key:"name" unset:"the key under agents" help:"What people call the agent."`
	// Persona is the text of persona, or the content of PersonaFile when the settings were loaded. Never blank.
	Persona     string `key:"persona" kind:"persona" unset:"none" help:"Who the agent is and how it works, as text for the model: a system message in the modes agent and run, never in chat. Several lines are written below persona: |. An agent has this or persona_file."`
	PersonaFile string `key:"persona_file" kind:"path" unset:"none" help:"A text file that holds the persona. It is read when the program starts."`
	// Model is DemoModel or a key of Models or Connectors, View the name of a view; "" where the request decides.
	Model string           `key:"model" allowed:"demo or a name under models or connectors" unset:"the setting model" help:"Which model answers for the agent where a request names none."`
	View  string           `key:"view" kind:"view" unset:"codex" help:"What the agent is shown of a conversation where a request names no view."`
	Tools AgentToolsConfig `key:"tools"`
	// MaxMessages, MaxChars and MaxTokens replace the view's limits unless they are 0.
	MaxMessages     int `key:"max_messages" default:"0" help:"How many messages of the log the agent's requests hold at most. 0: as the view says."`
	MaxChars        int `key:"max_chars" default:"0" help:"How many characters (Unicode) of messages they hold at most. 0: as the view says."`
	MaxTokens       int `key:"max_tokens" default:"0" help:"How many tokens they hold at most. 0: as the view says."`
	MaxOutputTokens int `key:"max_output_tokens" default:"0" help:"How many tokens the agent may answer with. 0: as the model's own setting says."`
}

// AgentToolsConfig narrows the section tools for an agent: the stricter of both decisions applies.
type AgentToolsConfig struct {
	Allow     []string `key:"allow" kind:"tools" help:"The tools that the agent may call as far as the section tools lets it. Of both policies the more careful decision counts, and what either denies is not offered. A list as the value of tools, such as tools: [fs.read, fs.list], is short for this one with otherwise: deny."`
	Ask       []string `key:"ask" kind:"tools" help:"The tools of which each call of the agent waits until a person allows or denies it."`
	Deny      []string `key:"deny" kind:"tools" help:"The tools that are never offered to the agent."`
	Otherwise string   `key:"otherwise" enum:"allow,ask,deny" default:"allow" help:"What is decided about a tool that none of the three lists matches; allow leaves it to the section tools."`
}

// NoAgent means no agent in settings and commands, so that no agent can have this id.
const NoAgent = "none"

func takenByNoAgent(id string) string {
	if id == NoAgent {
		return NoAgent + " means no agent; choose another id"
	}
	return ""
}

func (a *AgentConfig) finish(r *fileReader, e *entry, sound bool) {
	e.row("name").setDefault(a.ID)
	if sound {
		a.persona(r, e)
	}
	if len(a.Tools.Allow) > 0 && a.Tools.Otherwise == "allow" {
		e.hints = append(e.hints, fmt.Sprintf("agents.%s.tools.allow changes nothing, because the agent may use all other tools too: add otherwise: deny, or write the list as the value of tools", a.ID))
	}
	r.config.Agents[a.ID] = *a
}

// check refuses an unknown model.
func (a *AgentConfig) check(l *loader, e *entry) {
	if names := l.config.AnswerNames(); a.Model != "" && !slices.Contains(names, a.Model) {
		row := e.row("model")
		l.problems.add(row.origin, "%s: given %s, which is not there; %s", row.key, quoted(a.Model), modelAdvice(a.Model, names))
	}
}

// agentTools applies an agent's section tools, or the list that abbreviates it.
func (r *fileReader) agentTools(e *entry, prefix string, section *yamltree.Node) {
	switch section.Kind {
	case yamltree.Null:
	case yamltree.List:
		denied := rawValue{text: "deny", origin: r.at(section)}
		r.set(e.row("tools.allow"), section)
		r.apply(e.row("tools.otherwise"), denied)
	case yamltree.Mapping:
		r.entryFields(e, prefix, "an agent's tools", section)
	default:
		r.problems.add(r.at(section), "%s: neither a list of the only tools that the agent may call nor a mapping with allow, ask, deny and otherwise", strings.TrimSuffix(prefix, "."))
	}
}

// persona checks that an agent has exactly one persona, and reads its file, of which only the name is shown.
func (a *AgentConfig) persona(r *fileReader, e *entry) {
	if !e.group.needs.check(r, e) {
		return
	}
	if file := e.fromFile("persona_file"); file != nil {
		read, err := readPersona(a.PersonaFile)
		if err != nil {
			r.problems.add(file.origin, "%s: read the persona: %w", file.key, err)
		}
		a.Persona = read
		e.row("persona").value.show = func() string { return "" }
	}
}

func checkPersona(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("it is empty")
	case !utf8.ValidString(text):
		return errors.New("it is not UTF-8 text")
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) }):
		return errors.New("it has control characters")
	}
	return nil
}

// maxPersonaBytes bounds a persona's file: it is sent with every request.
const maxPersonaBytes = 64 << 10

// readPersona reads a persona's file.
func readPersona(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxPersonaBytes+1))
	if err != nil {
		return "", err
	}
	if len(data) > maxPersonaBytes {
		return "", fmt.Errorf("%s is larger than %d bytes, which is more than a persona should have", name, maxPersonaBytes)
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	if err := checkPersona(text); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}
