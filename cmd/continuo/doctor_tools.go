package main

import (
	"context"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/internal/yamlform"
	"github.com/continuo-log/continuo/telegram"
)

// tools checks the policy, the folder of the files, and whether the MCP servers can be started.
func (d *diagnosis) tools(settings *config.Config) {
	known, err := builtIn(settings, nil, nil, nil)
	if err == nil {
		_, err = policy(settings, known)
	}
	if err != nil {
		d.add("tools", bad, "%s", err)
	} else {
		d.add("tools", good, "%s", strings.Join(toolNames(known), ", "))
	}
	if words := storeInProject(settings); words != "" {
		d.add("tools", warning, "%s", words)
	}
	for _, name := range slices.Sorted(maps.Keys(settings.MCP.Servers)) {
		d.server(settings.MCP.Servers[name])
	}
}

// agents lists the agents and checks what they may use.
func (d *diagnosis) agents(settings *config.Config) {
	known, err := builtIn(settings, nil, nil, nil)
	if err != nil {
		return // reported already
	}
	if _, err := agentsOf(settings, known); err != nil {
		d.add("agent", bad, "%s", err)
	}
	for _, id := range agentIDs(settings) {
		d.add("agent", good, "%s: %s", id, agentText(settings, settings.Agents[id]))
	}
}

// workflows lists the workflows and the errors of invalid ones.
func (d *diagnosis) workflows(settings *config.Config) {
	found, err := newWorkflowFolder(settings).Workflows()
	for _, one := range found {
		d.add("workflow", good, "%s: %s, %s", one.ID, term.OneLine(one.Name, 60), term.Count(len(one.Nodes), "step"))
	}
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			d.add("workflow", bad, "%s", line)
		}
	}
}

// crews lists the crews, the errors of invalid ones, and what their roles lack.
func (d *diagnosis) crews(ctx context.Context, settings *config.Config, env []string, online bool) {
	found, err := newCrewFolder(settings).Crews()
	for _, one := range found {
		d.add("crew", good, "%s: %s, %s", one.ID, term.OneLine(one.Name, 60), term.Count(len(one.Roles), "role"))
		if _, unset := botTokens(one, env); len(unset) > 0 {
			d.add("crew", warning, "%s: not set: %s, so that the crew's bot speaks for those roles on Telegram", one.ID, strings.Join(unset, ", "))
		}
	}
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			d.add("crew", bad, "%s", line)
		}
	}
	id := settings.Telegram.Crew
	if id == "" {
		return
	}
	at := slices.IndexFunc(found, func(one *crew.Crew) bool { return one.ID == id })
	if at < 0 {
		d.add("telegram", bad, "telegram.crew: there is no crew %s that can be used", yamlform.Quoted(id))
		return
	}
	options, _, err := telegramOptions(settings.Telegram, found[at], env)
	if err != nil {
		d.add("telegram", bad, "%s", err)
		return
	}
	d.add("telegram", good, "crew %s in chat %d", id, options.ChatID)
	if online {
		d.askTelegram(ctx, options)
	}
}

// askTelegram asks Telegram about the bots and the chat.
func (d *diagnosis) askTelegram(ctx context.Context, options telegram.Options) {
	report, err := telegram.Check(ctx, options)
	if err != nil {
		d.add("online", bad, "telegram: %s", err)
		return
	}
	for _, bot := range report.Bots {
		switch {
		case bot.Role != "":
			d.add("online", good, "telegram: @%s speaks for %s", bot.Username, bot.Role)
		case report.ChatType == "":
			d.add("online", good, "telegram: @%s", bot.Username)
		default:
			d.add("online", good, "telegram: @%s in %s (%s)", bot.Username, report.Chat, report.ChatType)
		}
	}
	for _, found := range report.Findings {
		how := warning
		if found.Fatal {
			how = bad
		}
		d.add("online", how, "telegram: %s", found.Text)
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
