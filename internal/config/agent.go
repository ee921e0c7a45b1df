package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/nearest"
	"github.com/continuo-log/continuo/internal/yamltree"
)

// AgentConfig is one agent of the file.
type AgentConfig struct {
	ID   string // the key under agents
	Name string // for people; default: the id
	// Persona is the text of persona, or the content of PersonaFile when the settings were loaded. Never blank.
	Persona     string
	PersonaFile string // "" if the persona is in the settings
	// Model is DemoModel or a key of Models or Connectors, View the name of a view; "" where the request decides.
	Model, View string
	Tools       AgentToolsConfig
	// MaxMessages, MaxChars and MaxTokens replace the view's limits unless they are 0.
	MaxMessages, MaxChars, MaxTokens int
	MaxOutputTokens                  int // 0: the model's own
}

// AgentToolsConfig narrows the section tools for an agent: the stricter of both decisions applies.
type AgentToolsConfig struct {
	Allow, Ask, Deny []string // patterns of tool names
	Otherwise        string   // "allow", which defers to the section tools, "ask" or "deny"
}

const agentsPrefix = "agents."

// rows lists the settings of one agent, their keys beginning with prefix. Views are the allowed names of views.
func (a *AgentConfig) rows(prefix, home string, views []string) []*setting {
	rows := append(a.ownRows(prefix, home, views), a.toolRows(prefix+"tools.")...)
	rows = append(rows, a.limitRows(prefix)...)
	for _, row := range rows {
		if row.phrase == "" {
			row.mustRead(row.def)
		}
	}
	return rows
}

func (a *AgentConfig) ownRows(prefix, home string, views []string) []*setting {
	const line = "a name on one line, without spaces around it"
	return []*setting{{
		key: prefix + "name", value: name(&a.Name, line), phrase: "the key under agents",
		doc: "What people call the agent.",
	}, {
		key: prefix + "persona", value: persona(&a.Persona), phrase: "none",
		doc: "Who the agent is and how it works, in words for the model: a system message in the modes agent and run, never in chat. Several lines stand below persona: |. An agent has this or persona_file.",
	}, {
		key: prefix + "persona_file", value: path(&a.PersonaFile, home, false), phrase: "none",
		doc: "A text file that holds the persona. It is read when the program starts.",
	}, {
		key: prefix + "model", value: name(&a.Model, "demo or a name under models or connectors"), phrase: "the setting model",
		doc: "Which model answers for the agent where a request names none.",
	}, {
		key: prefix + "view", value: viewName(&a.View, views), phrase: "codex",
		doc: "What the agent is shown of a conversation where a request names no view.",
	}}
}

// toolRows are the settings of an agent's section tools, their keys beginning with prefix.
func (a *AgentConfig) toolRows(prefix string) []*setting {
	patterns := func(place *[]string) value {
		v := patternList(place)
		v.allowed = "a list of tools' names, each once, in which * stands for any characters, such as fs.*"
		return v
	}
	return []*setting{{
		key: prefix + "allow", value: patterns(&a.Tools.Allow), def: "",
		doc: "The tools that the agent may call as far as the section tools lets it. Of both policies the more careful decision counts, and what either denies is not offered. A list in the place of tools, such as tools: [fs.read, fs.list], is short for this one with otherwise: deny.",
	}, {
		key: prefix + "ask", value: patterns(&a.Tools.Ask), def: "",
		doc: "The tools of which each call of the agent waits until a person allows or denies it.",
	}, {
		key: prefix + "deny", value: patterns(&a.Tools.Deny), def: "",
		doc: "The tools that the agent is not told of.",
	}, {
		key: prefix + "otherwise", value: oneOf(&a.Tools.Otherwise, "allow", "ask", "deny"), def: "allow",
		doc: "What is decided about a tool that none of the three lists matches; allow leaves it to the section tools.",
	}}
}

func (a *AgentConfig) limitRows(prefix string) []*setting {
	return []*setting{{
		key: prefix + "max_messages", value: whole(&a.MaxMessages, 0), def: "0",
		doc: "How many messages of the log the agent's requests hold at most. 0: as the view says.",
	}, {
		key: prefix + "max_chars", value: whole(&a.MaxChars, 0), def: "0",
		doc: "How many characters (Unicode) of messages they hold at most. 0: as the view says.",
	}, {
		key: prefix + "max_tokens", value: whole(&a.MaxTokens, 0), def: "0",
		doc: "How many tokens they hold at most. 0: as the view says.",
	}, {
		key: prefix + "max_output_tokens", value: whole(&a.MaxOutputTokens, 0), def: "0",
		doc: "How many tokens the agent may answer with. 0: as the model's own setting says.",
	}}
}

// persona is a non-blank text; it may have line feeds and tabs.
func persona(place *string) value {
	return value{
		allowed: "a text that is not blank, in one line or below persona: |",
		takes:   []yamltree.Kind{yamltree.Text},
		set: func(text string) error {
			if err := checkPersona(text); err != nil {
				return errNotAllowed
			}
			*place = text
			return nil
		},
		show: func() string { return *place },
	}
}

func checkPersona(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("it says nothing")
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

// viewName is the name of a view; with nil views, any name is accepted.
func viewName(place *string, views []string) value {
	v := name(place, "the name of a view")
	if len(views) == 0 {
		return v
	}
	v.allowed = strings.Join(views[:len(views)-1], ", ") + " or " + views[len(views)-1]
	v.set = func(text string) error {
		for _, view := range views {
			if text == view {
				*place = text
				return nil
			}
		}
		if near := nearest.Name(text, views); near != "" {
			return fmt.Errorf("there is no such view; did you mean %s?", near)
		}
		return errNotAllowed
	}
	return v
}
