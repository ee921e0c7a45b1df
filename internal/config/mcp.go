package config

import (
	"regexp"
	"slices"
	"time"

	"github.com/continuo-log/continuo/internal/yamltree"
)

// MCPConfig is the section mcp.
type MCPConfig struct {
	Servers map[string]MCPServerConfig
}

// MCPServerConfig is one MCP server of the file. Exactly one of Command and URL is set.
type MCPServerConfig struct {
	Name    string   // the key under mcp.servers
	Command []string `key:"command" kind:"command" unset:"none" help:"The program that is the server, and its arguments; it speaks MCP over its stdin and stdout. Of the environment it gets PATH, HOME, LANG, TMPDIR and what env names."`
	Dir     string   `key:"dir" kind:"path" empty:"for none" help:"The folder that the program starts in. Empty: the one that Continuo was started in."`
	URL     string   `key:"url" kind:"endpoint" unset:"none" help:"Where the server speaks MCP over streamable HTTP, instead of command."`
	// Timeout bounds a call; with 0 only turn.tool_timeout does.
	Timeout time.Duration `key:"timeout" unset:"turn.tool_timeout" help:"How long one call may take. turn.tool_timeout holds as well."`
	Enabled bool          `key:"enabled" default:"true" help:"Whether the server is started. Its tools are gone while it is not."`
	// Env and Headers have each ${NAME} replaced, so that they may contain secrets: never show their values.
	Env     map[string]string `key:"env" kind:"variables" unset:"none" help:"What the program gets in its environment. Secrets are never written in the file: write ${NAME} for the variable that holds one."`
	Headers map[string]string `key:"headers" kind:"headers" unset:"none" help:"HTTP headers that each request to the server carries, such as Authorization: Bearer ${NAME}. Secrets are never written in the file."`
}

var serverName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

func isServerName(text string) bool { return serverName.MatchString(text) }

// builtinTools are the prefixes of built-in tools' names, which a server's name must not resemble.
var builtinTools = [...]string{"fs", "conversation"}

func takenByTools(name string) string {
	if slices.Contains(builtinTools[:], name) {
		return "the name " + name + " is taken by built-in tools; choose another"
	}
	return ""
}

// mcpSection applies the section mcp, whose only key is that of its group.
func (r *fileReader) mcpSection(g *group, section *yamltree.Node) {
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
			r.group(g, f.Value)
			continue
		}
		r.problems.add(r.at(f.Key), "unknown key %s; %s", keyText("mcp."+f.Key.Text), "its only key is servers")
	}
}

func (m *MCPServerConfig) finish(r *fileReader, e *entry, sound bool) {
	if sound {
		m.conflict(r, e)
	}
	if m.Enabled {
		e.hintUnset()
	}
	r.config.MCP.Servers[m.Name] = *m
}

func (m *MCPServerConfig) check(*loader, *entry) {}

// conflict reports conflicts between settings that are each valid.
func (m *MCPServerConfig) conflict(r *fileReader, e *entry) {
	switch {
	case !e.group.needs.check(r, e):
	case e.fromFile("url") != nil:
		r.refuse(e, "only a server with a command has", "env", "dir")
	default:
		r.refuse(e, "only a server with a url has", "headers")
	}
}
