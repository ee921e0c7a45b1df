package main

import (
	"context"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/chatscreen"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/window"
)

// completions lists what can follow in a line that ends at the cursor: commands, their arguments, and files. It may be called
// at any time.
func (t *chatSession) completions(ctx context.Context, line string) []chatscreen.Completion {
	if at := strings.LastIndexAny(line, " \n") + 1; strings.HasPrefix(line[at:], "@") {
		return completeFile(t.env, line[:at], line[at+1:])
	}
	if name, argument, ok := strings.Cut(line, " "); ok {
		return t.completeArgument(ctx, name, strings.TrimLeft(argument, " "))
	}
	var all []chatscreen.Completion
	for _, command := range slashCommands() {
		if strings.HasPrefix(command.name, line) {
			text := command.name
			if command.argument != "" {
				text += " "
			}
			all = append(all, chatscreen.Completion{Text: text, Label: strings.TrimSpace(command.name + " " + command.argument), Help: command.help})
		}
	}
	return all
}

func completeFile(env []string, before, beginning string) (all []chatscreen.Completion) {
	for _, name := range fileNames(strings.TrimPrefix(beginning, `"`), env) {
		text := chatscreen.Mention(name)
		if strings.HasSuffix(name, "/") {
			text = "@" + name
		} else {
			text += " "
		}
		all = append(all, chatscreen.Completion{Text: before + text, Label: term.OneLine(name, 60)})
	}
	return all
}

func (t *chatSession) completeArgument(ctx context.Context, command, beginning string) (all []chatscreen.Completion) {
	add := func(value, help string) {
		if strings.HasPrefix(value, beginning) {
			all = append(all, chatscreen.Completion{Text: command + " " + value, Label: value, Help: help})
		}
	}
	settings := t.settings
	switch command {
	case "/mode":
		for _, mode := range []continuo.Mode{continuo.ModeChat, continuo.ModeAgent, continuo.ModeRun} {
			add(string(mode), "")
		}
	case "/agent":
		for _, id := range agentIDs(settings) {
			add(id, agentText(settings, settings.Agents[id]))
		}
		add(config.NoAgent, "")
	case "/model", "/retry":
		for _, name := range t.engine.Catalog.Models() {
			add(name, behindModel(settings, name))
		}
	case "/view":
		for _, name := range window.Names() {
			add(name, viewTexts[name])
		}
	case "/open":
		choices, _ := t.choices(ctx, "")
		for _, choice := range choices {
			add(choice.Name, choice.Title)
		}
	}
	return all
}
