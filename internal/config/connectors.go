package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/nearest"
	"github.com/continuo-log/continuo/internal/yamltree"
)

// connectorRows is one connector of the file with its settings.
type connectorRows struct {
	config *ConnectorConfig
	at     Origin // of its name
	rows   []*setting
	env    *setting
	unset  []string // variables that are referenced and not set
}

// modelConnector is the connector of roles whose texts come from a model; see crew.ConnectorModel.
const modelConnector = "model"

// connectorName matches a connector's name.
var connectorName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// connectorsSection applies the section connectors: a mapping of names to mappings.
func (r *fileReader) connectorsSection(section *yamltree.Node) {
	switch section.Kind {
	case yamltree.Null:
		return
	case yamltree.Mapping:
	default:
		r.problems.add(r.at(section), "connectors: not a mapping; write each connector's name, and its settings indented below it")
		return
	}
	for _, f := range section.Fields {
		switch name := f.Key.Text; {
		case name == DemoModel:
			r.problems.add(r.at(f.Key), "connectors.demo: the name demo is taken by the built-in model; choose another")
		case name == modelConnector:
			r.problems.add(r.at(f.Key), "connectors.model: the name model stands for the settings' models in crews; choose another")
		case !connectorName.MatchString(name):
			r.problems.add(r.at(f.Key), "connectors: %s is no name for a connector; allowed: a small letter, then at most 63 small letters, digits, _ and -", quoted(name))
		default:
			r.connector(name, f)
		}
	}
}

func (r *fileReader) connector(name string, f yamltree.Field) {
	config := &ConnectorConfig{Name: name, Env: map[string]string{}}
	prefix := connectorsPrefix + name + "."
	connector := &connectorRows{config: config, at: r.at(f.Key), rows: config.rows(prefix, r.home()), env: config.envRow(prefix)}
	if f.Value.Kind != yamltree.Mapping && f.Value.Kind != yamltree.Null {
		r.problems.add(r.at(f.Value), "connectors.%s: not a mapping; write the connector's settings indented below its name", name)
		return
	}
	before := len(r.problems.list)
	for _, given := range f.Value.Fields {
		r.connectorField(connector, prefix, given)
	}
	if len(r.problems.list) == before {
		r.connectorConflict(connector, prefix)
	}
	r.connectors = append(r.connectors, connector)
	r.config.Connectors[name] = *config
}

func (r *fileReader) connectorField(connector *connectorRows, prefix string, f yamltree.Field) {
	key := prefix + f.Key.Text
	row := connector.row(key)
	switch {
	case f.Key.Text == "env":
		r.texts(&connector.unset, connector.env, f.Value, connector.config.Env, func(name string) (string, error) { return name, checkVariable(name) })
	case row != nil:
		r.set(row, f.Value)
	case !r.problems.full():
		r.problems.add(r.at(f.Key), "unknown key %s; %s", word(key), connector.advice(prefix, f.Key.Text))
	}
}

// connectorConflict reports conflicts between settings that are each valid, and sets the values that follow from them.
func (r *fileReader) connectorConflict(connector *connectorRows, prefix string) {
	given := func(key string) *setting {
		if row := connector.row(prefix + key); row.origin.Kind == FromFile {
			return row
		}
		return nil
	}
	command, agent := given("command"), given("acp")
	others, only := []string{"permissions"}, "acp"
	switch {
	case command == nil && agent == nil:
		r.problems.add(connector.at, "connectors.%s: neither command nor acp is there; a connector needs one of them", connector.config.Name)
		return
	case command != nil && agent != nil:
		r.problems.add(agent.origin, "%s: there is a command too; a connector has one of them", agent.key)
		return
	case agent != nil:
		others, only = []string{"prompt", "format"}, "command"
	}
	for _, key := range others {
		if row := given(key); row != nil {
			r.problems.add(row.origin, "%s: only a connector with %s has %s", row.key, only, key)
		}
	}
	if agent != nil {
		if slices.ContainsFunc(connector.config.ACP, hasPlace) {
			r.problems.add(agent.origin, "%s: %s and %s can stand in a command only; an agent that speaks ACP is sent them", agent.key, PromptPlace, SystemPlace)
		}
		return
	}
	r.connectorPlaces(connector, command, connector.row(prefix+"prompt"))
}

// aPlace matches an argument that a text of the request replaces. A text within a longer argument could be interpreted
// by the program that reads it, above all by a shell.
var aPlace = regexp.MustCompile(`^(?s:.*=)?(?:\{prompt\}|\{system\})$`)

func hasPlace(argument string) bool {
	return strings.Contains(argument, PromptPlace) || strings.Contains(argument, SystemPlace)
}

// connectorPlaces checks the positions of the placeholders in a command, and sets how it receives the prompt.
func (r *fileReader) connectorPlaces(connector *connectorRows, command, prompt *setting) {
	seen := map[string]int{}
	for i, argument := range connector.config.Command {
		for _, place := range []string{PromptPlace, SystemPlace} {
			seen[place] += strings.Count(argument, place)
		}
		if hasPlace(argument) && (i == 0 || !aPlace.MatchString(argument) || strings.Count(argument, "{prompt}")+strings.Count(argument, "{system}") > 1) {
			r.problems.add(command.origin, "%s: %s and %s must each be a whole argument, or all that stands behind = in one", command.key, PromptPlace, SystemPlace)
			return
		}
	}
	switch {
	case seen[PromptPlace] > 1 || seen[SystemPlace] > 1:
		r.problems.add(command.origin, "%s: %s and %s can stand there once", command.key, PromptPlace, SystemPlace)
	case seen[PromptPlace] > 0 && prompt.origin.Kind == FromFile && connector.config.Prompt == PromptStdin:
		r.problems.add(prompt.origin, "%s: %s stands in the command, so that the prompt is an argument; leave out one of them", prompt.key, PromptPlace)
	case seen[PromptPlace] > 0:
		prompt.setDefault(PromptArgument)
	default:
		prompt.setDefault(PromptStdin)
	}
}

// checkConnectors refuses connectors with the name of a model: a name must be unambiguous.
func (l *loader) checkConnectors() {
	for _, connector := range l.connectors {
		if _, taken := l.config.Models[connector.config.Name]; taken {
			l.problems.add(connector.at, "connectors.%s: there is a model of that name; choose another", connector.config.Name)
		}
	}
}

func (c *connectorRows) row(key string) *setting {
	for _, row := range c.rows {
		if row.key == key {
			return row
		}
	}
	return nil
}

// advice suggests the key of a connector that was probably meant.
func (c *connectorRows) advice(prefix, key string) string {
	names := []string{"env"}
	for _, row := range c.rows {
		names = append(names, strings.TrimPrefix(row.key, prefix))
	}
	if near := nearest.Name(key, names); near != "" {
		return meant(prefix+near, "")
	}
	slices.Sort(names)
	return "the keys of a connector are " + strings.Join(names, ", ")
}

// public lists the connector's settings for a person to read, with only the names of its environment variables.
func (c *connectorRows) public() []Setting {
	var all []Setting
	for _, row := range append(slices.Clone(c.rows), c.env) {
		all = append(all, row.public())
	}
	return all
}

// hints names the variables that the connector needs and that are not set.
func (c *connectorRows) hints() []string {
	if len(c.unset) == 0 {
		return nil
	}
	slices.Sort(c.unset)
	return []string{fmt.Sprintf("the connector %s takes %s from the environment, which is not set: set it where continuo starts",
		c.config.Name, strings.Join(slices.Compact(c.unset), ", "))}
}
