package main

import (
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/config"
)

// tools checks what may run, the folder of the files, and whether the MCP servers can be started.
func (d *diagnosis) tools(settings *config.Config) {
	known, err := builtIn(settings, nil)
	if err == nil {
		_, err = policy(settings, known)
	}
	if err != nil {
		d.add("tools", bad, "%s", err)
	} else {
		d.add("tools", good, "%s", strings.Join(toolNames(known), ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(settings.MCP.Servers)) {
		d.server(settings.MCP.Servers[name])
	}
}

// agents lists the agents and checks what they may use.
func (d *diagnosis) agents(settings *config.Config) {
	known, err := builtIn(settings, nil)
	if err != nil {
		return // it has been told
	}
	if _, err := agentsOf(settings, known); err != nil {
		d.add("agent", bad, "%s", err)
	}
	for _, id := range agentIDs(settings) {
		d.add("agent", good, "%s: %s", id, agentWords(settings, settings.Agents[id]))
	}
}

// workflows lists the workflows and what is wrong with those that cannot be used.
func (d *diagnosis) workflows(settings *config.Config) {
	found, err := newWorkflowFolder(settings).Workflows()
	for _, one := range found {
		d.add("workflow", good, "%s: %s, %s", one.ID, oneLine(one.Name, 60), count(len(one.Nodes), "step"))
	}
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			d.add("workflow", bad, "%s", line)
		}
	}
}

// server checks one MCP server without starting it.
func (d *diagnosis) server(server config.MCPServerConfig) {
	switch {
	case !server.Enabled:
		d.add("mcp", good, "%s: not enabled", server.Name)
	case server.URL != "":
		d.add("mcp", good, "%s: at %s", server.Name, server.URL)
	default:
		if _, err := exec.LookPath(server.Command[0]); err != nil {
			d.add("mcp", bad, "%s: its program cannot be found: %s", server.Name, err)
			return
		}
		d.add("mcp", good, "%s: %s", server.Name, server.Command[0])
	}
}
