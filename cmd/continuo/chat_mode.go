package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
)

// modeAndAgent is the mode of the next message, and the agent that answers it; "" for none.
func (t *chatSession) modeAndAgent() (continuo.Mode, string) {
	mode, agent := t.mode, t.agent
	if mode == "" && agent != "" && agent != config.NoAgent {
		mode = continuo.ModeAgent
	}
	mode = cmp.Or(mode, t.conversation.ActiveMode, continuo.ModeChat)
	if agent == config.NoAgent {
		return mode, ""
	}
	if mode != continuo.ModeChat {
		agent = cmp.Or(agent, t.conversation.ActiveAgent)
	}
	return mode, agent
}

// modeText describes the mode of the next message, and the agent that answers it.
func (t *chatSession) modeText() string {
	mode, agent := t.modeAndAgent()
	words := "mode " + string(mode)
	if agent == "" {
		return words
	}
	words += ", agent " + term.OneLine(agent, 60)
	if name := t.settings.Agents[agent].Name; name != "" && name != agent {
		words += fmt.Sprintf(" (%s)", term.OneLine(name, 60))
	}
	return words
}

// prompt is the input prompt: the mode of the next message and its agent, unless that is a plain chat.
func (t *chatSession) prompt() string {
	mode, agent := t.modeAndAgent()
	if mode == continuo.ModeChat && agent == "" {
		return t.paint.Cyan("› ")
	}
	words := string(mode)
	if agent != "" {
		words += " " + term.OneLine(agent, 24)
	}
	return t.paint.Dim(words) + t.paint.Cyan(" › ")
}

// switchMode executes /mode.
func (t *chatSession) switchMode(ctx context.Context, argument string) error {
	switch mode := continuo.Mode(argument); mode {
	case "":
		return t.showMode(ctx)
	case continuo.ModeChat, continuo.ModeAgent, continuo.ModeRun:
		t.mode = mode
		t.printFromNextMessage()
		return nil
	}
	return usage("/mode %s; allowed: chat, agent, run", term.OneLine(argument, 40))
}

// switchAgent executes /agent.
func (t *chatSession) switchAgent(ctx context.Context, argument string) error {
	if argument == "" {
		return t.listAgents(ctx)
	}
	if err := t.chooseAgent(argument); err != nil {
		return err
	}
	if argument != config.NoAgent {
		t.mode = "" // that of an agent
	}
	t.printFromNextMessage()
	return nil
}

// chooseAgent sets the agent from the next message on.
func (t *chatSession) chooseAgent(id string) error {
	if id != config.NoAgent {
		if err := checkAgent(t.settings, id); err != nil || id == "" {
			return cmp.Or(err, usage("an agent's id is empty; none means no agent"))
		}
	}
	t.agent = id
	return nil
}

// removeAgent removes the conversation's agent if no agent was chosen.
func (t *chatSession) removeAgent(ctx context.Context) error {
	if t.agent != config.NoAgent {
		return nil
	}
	if t.conversation.ActiveAgent != "" {
		changed, err := t.engine.Conversations.Change(ctx, t.scope(), t.conversation.ID, continuo.ConversationChange{ActiveAgent: new(string)})
		if err != nil {
			return err
		}
		t.conversation = changed
	}
	t.agent = ""
	return nil
}

// printFromNextMessage prints the choice; it is stored with the next message.
func (t *chatSession) printFromNextMessage() {
	t.printAside("%s from the next message on.", capital(t.modeText()))
}

// capital begins a sentence.
func capital(words string) string { return strings.ToUpper(words[:1]) + words[1:] }

// showMode prints the active mode, and the one of the next message.
func (t *chatSession) showMode(ctx context.Context) error {
	if t.mode == "" && t.agent == "" {
		if t.conversation.ID != "" {
			if err := t.refresh(ctx); err != nil {
				return err
			}
		}
		t.printAside("%s.", capital(t.modeText()))
		return nil
	}
	t.printFromNextMessage()
	return nil
}

// listAgents lists the agents, and the current one.
func (t *chatSession) listAgents(ctx context.Context) error {
	if err := t.showMode(ctx); err != nil {
		return err
	}
	_, active := t.modeAndAgent()
	list := t.table()
	for _, id := range agentIDs(t.settings) {
		list.Add(t.mark(id == active), t.paint.Cyan(id), agentText(t.settings, t.settings.Agents[id]))
	}
	t.printTable(list, t.tableWidth())
	if list.Len() == 0 {
		t.printAside("There are no agents; they are set in continuo.yaml under agents.")
	}
	return nil
}
