package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/nearest"
	"github.com/continuo-log/continuo/internal/yamltree"
)

// agentRows is one agent of the file with its settings.
type agentRows struct {
	config *AgentConfig
	rows   []*setting
}

// agentID matches an agent's id.
var agentID = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// NoAgent means no agent in settings and commands, so that no agent can have this id.
const NoAgent = "none"

// agentsSection applies the section agents: a mapping of ids to mappings.
func (r *fileReader) agentsSection(section *yamltree.Node) {
	switch section.Kind {
	case yamltree.Null:
		return
	case yamltree.Mapping:
	default:
		r.problems.add(r.at(section), "agents: not a mapping; write each agent's id, and its settings indented below it")
		return
	}
	for _, f := range section.Fields {
		switch id := f.Key.Text; {
		case id == NoAgent:
			r.problems.add(r.at(f.Key), "agents.%s: %s stands for no agent; choose another id", id, id)
		case !agentID.MatchString(id):
			r.problems.add(r.at(f.Key), "agents: %s is no id for an agent; allowed: a small letter, then at most 63 small letters, digits, _ and -", quoted(id))
		default:
			r.agent(id, f)
		}
	}
}

func (r *fileReader) agent(id string, f yamltree.Field) {
	config := &AgentConfig{ID: id}
	prefix := agentsPrefix + id + "."
	agent := &agentRows{config: config, rows: config.rows(prefix, r.home(), r.views)}
	if f.Value.Kind != yamltree.Mapping && f.Value.Kind != yamltree.Null {
		r.problems.add(r.at(f.Value), "agents.%s: not a mapping; write the agent's settings indented below its id", id)
		return
	}
	before := len(r.problems.list)
	for _, given := range f.Value.Fields {
		r.agentField(agent, prefix, given)
	}
	agent.row(prefix + "name").setDefault(id)
	if len(r.problems.list) == before {
		r.agentPersona(agent, prefix, f.Key)
	}
	r.agents = append(r.agents, agent)
	r.config.Agents[id] = *config
}

func (r *fileReader) agentField(agent *agentRows, prefix string, f yamltree.Field) {
	key := prefix + f.Key.Text
	row := agent.row(key)
	switch {
	case f.Key.Text == "tools":
		r.agentTools(agent, prefix+"tools.", f.Value)
	case strings.HasPrefix(f.Key.Text, "tools."):
		r.problems.add(r.at(f.Key), "the key %s must be written as %s, indented below tools:", word(key), word(strings.TrimPrefix(f.Key.Text, "tools.")))
	case row != nil:
		r.set(row, f.Value)
	case !r.problems.full():
		r.problems.add(r.at(f.Key), "unknown key %s; %s", word(key), agent.advice(prefix, f.Key.Text, "an agent"))
	}
}

// agentTools applies an agent's section tools, or the list that abbreviates it.
func (r *fileReader) agentTools(agent *agentRows, prefix string, value *yamltree.Node) {
	switch value.Kind {
	case yamltree.Null:
	case yamltree.List:
		r.set(agent.row(prefix+"allow"), value)
		r.apply(agent.row(prefix+"otherwise"), given{text: "deny", origin: r.at(value)})
	case yamltree.Mapping:
		for _, f := range value.Fields {
			if row := agent.row(prefix + f.Key.Text); row != nil {
				r.set(row, f.Value)
			} else if !r.problems.full() {
				r.problems.add(r.at(f.Key), "unknown key %s; %s", word(prefix+f.Key.Text), agent.advice(prefix, f.Key.Text, "an agent's tools"))
			}
		}
	default:
		r.problems.add(r.at(value), "%s: neither a list of the only tools that the agent may call nor a mapping with allow, ask, deny and otherwise", strings.TrimSuffix(prefix, "."))
	}
}

// agentPersona checks that an agent has exactly one persona, and reads its file.
func (r *fileReader) agentPersona(agent *agentRows, prefix string, at *yamltree.Node) {
	text, file := agent.row(prefix+"persona"), agent.row(prefix+"persona_file")
	switch {
	case text.origin.Kind == FromDefault && file.origin.Kind == FromDefault:
		r.problems.add(r.at(at), "agents.%s: neither persona nor persona_file is there; an agent needs one of them", agent.config.ID)
	case text.origin.Kind != FromDefault && file.origin.Kind != FromDefault:
		r.problems.add(file.origin, "%s: there is a persona too; an agent has one of them", file.key)
	case file.origin.Kind != FromDefault:
		read, err := readPersona(agent.config.PersonaFile)
		if err != nil {
			r.problems.add(file.origin, "%s: read the persona: %w", file.key, err)
		}
		agent.config.Persona = read
	}
}

// checkAgents refuses unknown models.
func (l *loader) checkAgents() {
	for _, agent := range l.agents {
		name := agent.config.Model
		if name == "" || slices.Contains(l.config.AnswerNames(), name) {
			continue
		}
		row := agent.row(agentsPrefix + agent.config.ID + ".model")
		l.problems.add(row.origin, "%s: given %s, which is not there; %s", row.key, quoted(name), modelAdvice(name, l.config.AnswerNames()))
	}
}

func (a *agentRows) row(key string) *setting {
	for _, row := range a.rows {
		if row.key == key {
			return row
		}
	}
	return nil
}

// advice suggests the key below prefix that was probably meant.
func (a *agentRows) advice(prefix, key, of string) string {
	var names []string
	for _, row := range a.rows {
		if rest, below := strings.CutPrefix(row.key, prefix); below {
			name, _, _ := strings.Cut(rest, ".")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if near := nearest.Name(key, names); near != "" {
		return meant(prefix+near, "")
	}
	return "the keys of " + of + " are " + strings.Join(names, ", ")
}

// public lists the agent's settings for a person to read. Of a persona from a file only the file's name is shown.
func (a *agentRows) public() []Setting {
	var all []Setting
	for _, row := range a.rows {
		shown := row.public()
		if row.key == agentsPrefix+a.config.ID+".persona" && a.config.PersonaFile != "" {
			shown.Value = ""
		}
		all = append(all, shown)
	}
	return all
}

// hints warns about a list without effect.
func (a *agentRows) hints() []string {
	if tools := a.config.Tools; len(tools.Allow) == 0 || tools.Otherwise != "allow" {
		return nil
	}
	return []string{fmt.Sprintf("agents.%s.tools.allow changes nothing, because the agent may use all other tools too: add otherwise: deny, or write the list in the place of tools", a.config.ID)}
}
