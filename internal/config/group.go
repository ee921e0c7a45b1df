package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/nearest"
	"github.com/continuo-log/continuo/internal/yamltree"
)

// group is a section whose keys are names that the file chooses, each with settings: the models, upstreams, agents,
// connectors, webhooks and MCP servers. Groups are set in the file only.
type group struct {
	key     string                        // of the section
	one     string                        // what an entry is, with its article, in errors that name the section
	full    string                        // the same in other texts
	many    string                        // its plural
	called  string                        // what its name is called
	allowed string                        // describes the names
	isName  func(string) bool             // whether a text has the form of a name
	taken   func(name string) string      // why an entry cannot have a name, and what to do; "" if it can
	begin   func(name string) groupConfig // makes the settings of one, with a non-nil map for each mapping
	needs   needs                         // what an entry must have
	note    string                        // for docs/settings.md
	example string
}

// needs are the settings that an entry must have, by their keys. The JSON Schema demands them, too.
type needs struct {
	all    []string            // each of them
	either []string            // exactly one of these two
	with   map[string][]string // settings that only an entry with all of some others has; finish refuses them
}

// check reports what an entry lacks, or has twice; it reports false then.
func (n needs) check(r *fileReader, e *entry) bool {
	name, isSound := e.group.key+"."+e.name, true
	for _, key := range n.all {
		if e.fromFile(key) == nil {
			r.problems.add(e.at, "%s: %s is missing", name, key)
			isSound = false
		}
	}
	if len(n.either) == 0 {
		return isSound
	}
	one, other := n.either[0], n.either[1]
	switch first, second := e.fromFile(one), e.fromFile(other); {
	case first == nil && second == nil:
		r.problems.add(e.at, "%s: neither %s nor %s is there; %s needs one of them", name, one, other, e.group.one)
		return false
	case first != nil && second != nil:
		r.problems.add(second.origin, "%s: there is a %s too; %s has one of them", second.key, one, e.group.one)
		return false
	}
	return isSound
}

// schema adds to the JSON Schema of an entry.
func (n needs) schema(entry *node) {
	more := map[string]any{}
	if len(n.all) > 0 {
		more["required"] = n.all
	}
	if len(n.either) > 0 {
		more["oneOf"] = []any{map[string]any{"required": n.either[:1]}, map[string]any{"required": n.either[1:]}}
	}
	if len(more) > 0 {
		entry.Type = "object" // with something in it
	}
	if len(n.with) > 0 {
		more["dependentRequired"] = n.with
	}
	entry.More = more
}

// groupConfig is what the settings of one entry of a group are read into.
type groupConfig interface {
	// finish checks conditions over the entry's settings once all are read, sets the defaults that follow from others,
	// and stores the entry in the Config. sound says that each setting is valid by itself.
	finish(r *fileReader, e *entry, sound bool)
	// check refuses names of others that do not exist, once all layers are read.
	check(l *loader, e *entry)
}

// entry is one model, agent, connector, webhook or MCP server of the file with its settings.
type entry struct {
	table
	group  *group
	name   string
	at     Origin // of its name
	config groupConfig
	hints  []string
}

var shortName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

const shortNameForm = "a small letter, then at most 63 small letters, digits, _ and -"

var groups = []*group{{
	key: "models", one: "a model", full: "a model", many: "models", called: "name",
	allowed: "one line of text without spaces around it", isName: isName, taken: takenByDemo,
	begin: func(name string) groupConfig { return &ModelConfig{Name: name, Headers: map[string]string{}} },
	needs: needs{with: map[string][]string{
		"input_price": {"output_price"}, "output_price": {"input_price"},
		"cached_input_price": {"input_price", "output_price"}, "cache_write_price": {"input_price", "output_price"},
	}},
	note:    "Models are set in the file only. NAME is what requests, agents and `model` call the model.",
	example: exampleModels,
}, {
	key: "upstreams", one: "an upstream", full: "an upstream", many: "upstreams", called: "name",
	allowed: shortNameForm, isName: shortName.MatchString, taken: func(string) string { return "" },
	begin:   func(name string) groupConfig { return &UpstreamConfig{Name: name, Headers: map[string]string{}} },
	note:    "Upstreams are set in the file only. They serve models that clients of the [gateway](gateway.md) ask for and that are\nnot under models.",
	example: exampleUpstreams,
}, {
	key: "agents", one: "an agent", full: "an agent", many: "agents", called: "id",
	allowed: shortNameForm, isName: shortName.MatchString, taken: takenByNoAgent,
	begin:   func(id string) groupConfig { return &AgentConfig{ID: id} },
	needs:   needs{either: []string{"persona", "persona_file"}},
	note:    "Agents are set in the file only. NAME is the agent's id, by which requests, conversations and workflows name it; see\n[modes and agents](modes.md).",
	example: exampleAgents,
}, {
	key: "connectors", one: "a connector", full: "a connector", many: "connectors", called: "name",
	allowed: shortNameForm, isName: shortName.MatchString, taken: takenByModels,
	begin: func(name string) groupConfig { return &ConnectorConfig{Name: name, Env: map[string]string{}} },
	needs: needs{either: []string{"command", "acp"}, with: map[string][]string{
		"prompt": {"command"}, "format": {"command"}, "permissions": {"acp"},
	}},
	note:    "Connectors are set in the file only. NAME is what requests, agents and `model` call the connector, instead of a\nmodel; see [connectors](connectors.md).",
	example: exampleConnectors,
}, {
	key: "webhooks", one: "a webhook", full: "a webhook", many: "webhooks", called: "name",
	allowed: shortNameForm, isName: shortName.MatchString, taken: func(string) string { return "" },
	begin:   func(name string) groupConfig { return &WebhookConfig{Name: name} },
	needs:   needs{all: []string{"url", "secret"}},
	note:    "Webhooks are set in the file only. NAME is what metrics and the log call the webhook, and what its place in the feed is kept\nunder: one with another name is a new one, which gets the turns that end from then on; see [the API](api.md#webhooks).",
	example: exampleWebhooks,
}, {
	key: "mcp.servers", one: "a server", full: "an MCP server", many: "MCP servers", called: "name",
	allowed: strings.Replace(shortNameForm, "63", "31", 1), isName: isServerName, taken: takenByTools,
	begin: func(name string) groupConfig {
		return &MCPServerConfig{Name: name, Env: map[string]string{}, Headers: map[string]string{}}
	},
	needs: needs{either: []string{"command", "url"}, with: map[string][]string{
		"env": {"command"}, "dir": {"command"}, "headers": {"url"},
	}},
	note:    "MCP servers are set in the file only. NAME begins the names of the server's tools; see [MCP servers](mcp-servers.md).",
	example: exampleMCP,
}}

// section is the first part of the group's key.
func (g *group) section() string {
	section, _, _ := strings.Cut(g.key, ".")
	return section
}

// groupIn returns the group of a section of the file, nil if the section is none of a group.
func groupIn(section string) *group {
	for _, g := range groups {
		if g.section() == section {
			return g
		}
	}
	return nil
}

// noun is a noun without its article.
func noun(one string) string {
	_, noun, _ := strings.Cut(one, " ")
	return noun
}

// row returns a setting of the entry by its key below the entry's name.
func (e *entry) row(key string) *setting { return e.table.row(e.prefix() + key) }

func (e *entry) prefix() string { return e.group.key + "." + e.name + "." }

// fromFile returns a setting by its key below the entry's name if the file has it, nil otherwise.
func (e *entry) fromFile(key string) *setting {
	if row := e.row(key); row.origin.Kind == FromFile {
		return row
	}
	return nil
}

// group applies the section of a group: a mapping of names to mappings.
func (r *fileReader) group(g *group, section *yamltree.Node) {
	switch section.Kind {
	case yamltree.Null:
		return
	case yamltree.Mapping:
	default:
		r.problems.add(r.at(section), "%s: not a mapping; write each %s's %s, and its settings indented below it", g.key, noun(g.one), g.called)
		return
	}
	for _, f := range section.Fields {
		name := f.Key.Text
		if reason := g.taken(name); reason != "" {
			r.problems.add(r.at(f.Key), "%s.%s: %s", g.key, name, reason)
		} else if !g.isName(name) {
			r.problems.add(r.at(f.Key), "%s: %s is no %s for %s; allowed: %s", g.key, quoted(name), g.called, g.one, g.allowed)
		} else {
			r.entry(g, f)
		}
	}
}

func (r *fileReader) entry(g *group, f yamltree.Field) {
	e := &entry{group: g, name: f.Key.Text, at: r.at(f.Key), config: g.begin(f.Key.Text)}
	e.table = binder{home: r.home(), views: r.views, fileOnly: true}.settings(e.prefix(), e.config)
	before := len(r.problems.list)
	if f.Value.Kind != yamltree.Mapping && f.Value.Kind != yamltree.Null {
		r.problems.add(r.at(f.Value), "%s.%s: not a mapping; write the %s's settings indented below its %s", g.key, e.name, noun(g.one), g.called)
	}
	r.entryFields(e, e.prefix(), g.full, f.Value)
	e.config.finish(r, e, len(r.problems.list) == before)
	r.entries = append(r.entries, e)
}

// entryFields applies the fields of an entry, or of a section in it; of names what has them.
func (r *fileReader) entryFields(e *entry, prefix, of string, given *yamltree.Node) {
	for _, f := range given.Fields {
		key := prefix + f.Key.Text
		switch row := e.table.row(key); {
		case row != nil && strings.Contains(f.Key.Text, "."):
			section, last := splitKey(f.Key.Text)
			r.problems.add(r.at(f.Key), "the key %s must be written as %s, indented below %s:", keyText(key), last, section)
		case row != nil:
			r.set(row, f.Value)
		case e.isSection(key):
			r.agentTools(e, key+".", f.Value) // agents alone have a section in an entry
		case !r.problems.full():
			r.problems.add(r.at(f.Key), "unknown key %s; %s", keyText(key), e.advice(prefix, f.Key.Text, of))
		}
	}
}

// advice suggests the key below prefix that was probably meant.
func (e *entry) advice(prefix, key, of string) string {
	if _, model := e.config.(*ModelConfig); model && (key == "api_key" || key == "apikey" || key == "key") {
		return "keys are never written in the file: name the environment variable that holds it in " + prefix + "api_key_env"
	}
	names := e.below(prefix)
	if near := nearest.Name(key, names); near != "" {
		return meant(prefix+near, "")
	}
	return "the keys of " + of + " are " + strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// hintUnset warns about the variables that the entry needs and that are not set.
func (e *entry) hintUnset() {
	var unset []string
	for _, row := range e.table {
		unset = append(unset, row.unset...)
	}
	if len(unset) > 0 {
		slices.Sort(unset)
		e.hints = append(e.hints, fmt.Sprintf("the %s %s takes %s from the environment, which is not set: set it where continuo starts",
			noun(e.group.full), e.name, strings.Join(slices.Compact(unset), ", ")))
	}
}

// refuse reports the given settings of the entry that do not go with another one.
func (r *fileReader) refuse(e *entry, because string, keys ...string) {
	for _, key := range keys {
		if row := e.fromFile(key); row != nil {
			r.problems.add(row.origin, "%s: %s %s", row.key, because, key)
		}
	}
}

func isGroup(key string) bool {
	return slices.ContainsFunc(groups, func(g *group) bool { return g.key == key })
}
