package config

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/continuo-log/continuo/internal/nearest"
	"github.com/continuo-log/continuo/internal/yamltree"
)

// MCPConfig is the section mcp.
type MCPConfig struct {
	Servers map[string]MCPServerConfig
}

// MCPServerConfig is one MCP server of the file. Exactly one of Command and URL is set.
type MCPServerConfig struct {
	Name    string // the key under mcp.servers
	Enabled bool
	Command []string
	Dir     string
	// Env and Headers have each ${NAME} replaced, so that they may contain secrets: never show their values.
	Env, Headers map[string]string
	URL          string
	// Timeout bounds a call; with 0 only turn.tool_timeout does.
	Timeout time.Duration
}

// mcpRows is one server of the file with its settings.
type mcpRows struct {
	config       *MCPServerConfig
	rows         []*setting
	env, headers *setting
	unset        []string // variables that are referenced and not set
}

const mcpPrefix = "mcp.servers."

var mcpName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// builtinTools are the prefixes of built-in tools' names, which a server's name must not resemble.
var builtinTools = [...]string{"fs", "conversation"}

// rows lists the settings of one server, their keys beginning with prefix.
func (m *MCPServerConfig) rows(prefix, home string) []*setting {
	timeout := duration(&m.Timeout)
	timeout.show = func() string {
		if m.Timeout == 0 {
			return ""
		}
		return durationText(m.Timeout)
	}
	rows := []*setting{{
		key: prefix + "command", value: commandLine(&m.Command), phrase: "none",
		doc: "The program that is the server, and its arguments; it speaks MCP over its stdin and stdout. Of the environment it gets PATH, HOME, LANG, TMPDIR and what env names.",
	}, {
		key: prefix + "dir", value: path(&m.Dir, home, true), def: "",
		doc: "The folder that the program starts in. Empty: the one that Continuo was started in.",
	}, {
		key: prefix + "url", value: endpoint(&m.URL), phrase: "none",
		doc: "Where the server speaks MCP over streamable HTTP, instead of command.",
	}, {
		key: prefix + "timeout", value: timeout, phrase: "turn.tool_timeout",
		doc: "How long one call may take. turn.tool_timeout holds as well.",
	}, {
		key: prefix + "enabled", value: boolean(&m.Enabled), def: "true",
		doc: "Whether the server is started. Its tools are gone while it is not.",
	}}
	for _, row := range rows {
		if row.phrase == "" {
			row.mustRead(row.def)
		}
	}
	return rows
}

func (m *MCPServerConfig) envRow(prefix string) *setting {
	return mappingRow(prefix+"env", &m.Env, "a mapping of names of variables to texts, in which ${NAME} stands for a variable of Continuo's own environment",
		"What the program gets in its environment. Secrets never stand in the file: write ${NAME} for the variable that holds one.")
}

func (m *MCPServerConfig) headersRow(prefix string) *setting {
	return mappingRow(prefix+"headers", &m.Headers, "a mapping of header names to texts, in which ${NAME} stands for a variable of Continuo's environment",
		"HTTP headers that each request to the server carries, such as Authorization: Bearer ${NAME}. Secrets never stand in the file.")
}

// mappingRow is a row for display: of a mapping it shows the names only. Mappings are read one by one
// (fileReader.texts).
func mappingRow(key string, place *map[string]string, allowed, doc string) *setting {
	return &setting{key: key, phrase: "none", doc: doc, value: value{
		allowed: allowed, takes: []yamltree.Kind{yamltree.Mapping}, hidden: true,
		set:  func(string) error { return errNotAllowed },
		show: func() string { return strings.Join(slices.Sorted(maps.Keys(*place)), ", ") },
	}}
}

// commandLine is a program and its arguments. Arguments may contain secrets, so that only their number is shown.
func commandLine(place *[]string) value {
	return value{
		allowed: "a list of a program and its arguments, such as [npx, -y, some-server]",
		takes:   []yamltree.Kind{yamltree.List},
		hidden:  true,
		setList: func(items []string) error {
			if len(items) == 0 || !isName(items[0]) || slices.ContainsFunc(items, func(item string) bool { return strings.ContainsRune(item, 0) }) {
				return errNotAllowed
			}
			*place = items
			return nil
		},
		show: func() string {
			switch arguments := len(*place) - 1; {
			case arguments < 0:
				return ""
			case arguments == 0:
				return (*place)[0]
			case arguments == 1:
				return (*place)[0] + " and 1 argument"
			default:
				return fmt.Sprintf("%s and %d arguments", (*place)[0], arguments)
			}
		},
	}
}

// endpoint is an http or https URL without any part that could contain a secret.
func endpoint(place *string) value {
	return value{
		allowed: "an http or https URL with a host and without user, query and fragment, such as http://127.0.0.1:3000/mcp; a key goes into headers",
		takes:   []yamltree.Kind{yamltree.Text},
		hidden:  true,
		set: func(text string) error {
			location, err := url.Parse(text)
			if err != nil || location.Scheme != "https" && location.Scheme != "http" || location.Hostname() == "" || !isName(text) ||
				location.User != nil || strings.ContainsAny(text, "?# ") {
				return errNotAllowed
			}
			*place = text
			return nil
		},
		show: func() string { return *place },
	}
}

// mcpSection applies the section mcp.
func (r *fileReader) mcpSection(section *yamltree.Node) {
	switch section.Kind {
	case yamltree.Null:
		return
	case yamltree.Mapping:
	default:
		r.problems.add(r.at(section), "mcp is no setting but a section: write servers: indented below it")
		return
	}
	for _, f := range section.Fields {
		if f.Key.Text == "servers" {
			r.mcpServers(f.Value)
			continue
		}
		r.problems.add(r.at(f.Key), "unknown key %s; %s", word("mcp."+f.Key.Text), "its only key is servers")
	}
}

func (r *fileReader) mcpServers(section *yamltree.Node) {
	switch section.Kind {
	case yamltree.Null:
		return
	case yamltree.Mapping:
	default:
		r.problems.add(r.at(section), "mcp.servers: not a mapping; write each server's name, and its settings indented below it")
		return
	}
	for _, f := range section.Fields {
		switch name := f.Key.Text; {
		case slices.Contains(builtinTools[:], name):
			r.problems.add(r.at(f.Key), "mcp.servers.%s: the name %s is taken by built-in tools; choose another", name, name)
		case !mcpName.MatchString(name):
			r.problems.add(r.at(f.Key), "mcp.servers: %s is no name for a server; allowed: a small letter, then at most 31 small letters, digits, _ and -", quoted(name))
		default:
			r.mcpServer(name, f)
		}
	}
}

func (r *fileReader) mcpServer(name string, f yamltree.Field) {
	config := &MCPServerConfig{Name: name, Env: map[string]string{}, Headers: map[string]string{}}
	prefix := mcpPrefix + name + "."
	server := &mcpRows{config: config, rows: config.rows(prefix, r.home()), env: config.envRow(prefix), headers: config.headersRow(prefix)}
	if f.Value.Kind != yamltree.Mapping && f.Value.Kind != yamltree.Null {
		r.problems.add(r.at(f.Value), "mcp.servers.%s: not a mapping; write the server's settings indented below its name", name)
		return
	}
	before := len(r.problems.list)
	for _, given := range f.Value.Fields {
		r.mcpField(server, prefix, given)
	}
	if len(r.problems.list) == before {
		r.mcpConflict(server, prefix, f.Key)
	}
	r.mcp = append(r.mcp, server)
	r.config.MCP.Servers[name] = *config
}

func (r *fileReader) mcpField(server *mcpRows, prefix string, f yamltree.Field) {
	key := prefix + f.Key.Text
	row := server.row(key)
	switch {
	case f.Key.Text == "env":
		r.texts(&server.unset, server.env, f.Value, server.config.Env, func(name string) (string, error) { return name, checkVariable(name) })
	case f.Key.Text == "headers":
		r.texts(&server.unset, server.headers, f.Value, server.config.Headers, func(name string) (string, error) {
			return http.CanonicalHeaderKey(name), checkHeaderName(name)
		})
	case row != nil:
		r.set(row, f.Value)
	case !r.problems.full():
		r.problems.add(r.at(f.Key), "unknown key %s; %s", word(key), server.advice(prefix, f.Key.Text))
	}
}

// texts applies a mapping of names to texts with ${NAME} in them, and adds the variables that are not set to missing.
// Its errors never repeat the given texts.
func (r *fileReader) texts(missing *[]string, row *setting, given *yamltree.Node, into map[string]string, check func(name string) (string, error)) {
	switch given.Kind {
	case yamltree.Null:
		return
	case yamltree.Mapping:
	default:
		r.problems.add(r.at(given), "%s: not a mapping; allowed: %s", row.key, row.value.allowed)
		return
	}
	row.origin = r.at(given)
	for _, f := range given.Fields {
		name, err := check(f.Key.Text)
		_, twice := into[name]
		switch {
		case err != nil:
			r.problems.add(r.at(f.Key), "%s: %s: %w", row.key, word(f.Key.Text), err)
		case f.Value.Kind != yamltree.Text:
			r.problems.add(r.at(f.Value), "%s: the value of %s is no text; put it in quotes", row.key, word(f.Key.Text))
		case twice:
			r.problems.add(r.at(f.Key), "%s: %s is there twice", row.key, name)
		case looksSecret(name) && !reference.MatchString(f.Value.Text):
			r.problems.add(r.at(f.Key), "%s: %s looks as if it carried a secret; secrets never stand in the file: write ${NAME} for the environment variable that holds it", row.key, name)
		default:
			text, unset := fillIn(f.Value.Text, r.env)
			*missing = append(*missing, unset...)
			if !isLine(text) || strings.TrimSpace(text) != text && len(unset) == 0 {
				r.problems.add(r.at(f.Value), "%s: the value of %s is not one line of text without spaces around it", row.key, name)
			}
			into[name] = text
		}
	}
}

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// fillIn replaces each ${NAME} by the variable's value and returns the variables that are not set.
func fillIn(text string, env map[string]string) (filled string, unset []string) {
	filled = reference.ReplaceAllStringFunc(text, func(found string) string {
		name := found[2 : len(found)-1]
		if env[name] == "" {
			unset = append(unset, name)
		}
		return env[name]
	})
	return filled, unset
}

func checkVariable(name string) error {
	if name == "" || len(name) > 200 || strings.ContainsAny(name, "= ") || !isLine(name) {
		return fmt.Errorf("not a name of an environment variable")
	}
	return nil
}

func checkHeaderName(name string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isTokenRune(r) }) {
		return fmt.Errorf("not a header name; allowed: letters, digits and -")
	}
	return nil
}

// looksSecret reports whether a variable or a header of that name usually contains a secret.
func looksSecret(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	for _, part := range []string{"token", "secret", "password", "cookie", "authorization", "api_key", "apikey", "credential"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return strings.HasSuffix(name, "_key") || strings.HasSuffix(name, "_auth")
}

// mcpConflict reports conflicts between settings that are each valid.
func (r *fileReader) mcpConflict(server *mcpRows, prefix string, at *yamltree.Node) {
	given := func(key string) *setting {
		for _, row := range append(slices.Clone(server.rows), server.env, server.headers) {
			if row.key == prefix+key && row.origin.Kind == FromFile {
				return row
			}
		}
		return nil
	}
	command, address := given("command"), given("url")
	switch {
	case command == nil && address == nil:
		r.problems.add(r.at(at), "mcp.servers.%s: neither command nor url is there; a server needs one of them", server.config.Name)
		return
	case command != nil && address != nil:
		r.problems.add(address.origin, "%s: there is a command too; a server has one of them", address.key)
		return
	}
	other, only := []string{"headers"}, "url"
	if address != nil {
		other, only = []string{"env", "dir"}, "command"
	}
	for _, key := range other {
		if row := given(key); row != nil {
			r.problems.add(row.origin, "%s: only a server with a %s has %s", row.key, only, key)
		}
	}
}

func (m *mcpRows) row(key string) *setting {
	for _, row := range m.rows {
		if row.key == key {
			return row
		}
	}
	return nil
}

// advice suggests the key of a server that was probably meant.
func (m *mcpRows) advice(prefix, key string) string {
	names := []string{"env", "headers"}
	for _, row := range m.rows {
		names = append(names, strings.TrimPrefix(row.key, prefix))
	}
	if near := nearest.Name(key, names); near != "" {
		return meant(prefix+near, "")
	}
	slices.Sort(names)
	return "the keys of an MCP server are " + strings.Join(names, ", ")
}

// public lists the server's settings for a person to read, with only the names of its mappings.
func (m *mcpRows) public() []Setting {
	var all []Setting
	for _, row := range append(slices.Clone(m.rows), m.env, m.headers) {
		all = append(all, row.public())
	}
	return all
}

// hints names the variables that the server needs and that are not set.
func (m *mcpRows) hints() []string {
	if !m.config.Enabled || len(m.unset) == 0 {
		return nil
	}
	slices.Sort(m.unset)
	return []string{fmt.Sprintf("the MCP server %s takes %s from the environment, which is not set: set it where continuo starts",
		m.config.Name, strings.Join(slices.Compact(m.unset), ", "))}
}
