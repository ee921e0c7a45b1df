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

// stance is the mode of the next message, and the agent that answers it; "" for none.
func (t *talk) stance() (continuo.Mode, string) {
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
func (t *talk) modeText() string {
	mode, agent := t.stance()
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
func (t *talk) prompt() string {
	mode, agent := t.stance()
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
func (t *talk) switchMode(ctx context.Context, argument string) error {
	switch mode := continuo.Mode(argument); mode {
	case "":
		return t.showStance(ctx)
	case continuo.ModeChat, continuo.ModeAgent, continuo.ModeRun:
		t.mode = mode
		t.fromNextMessage()
		return nil
	}
	return usage("/mode %s: known are chat, agent, run", term.OneLine(argument, 40))
}

// switchAgent executes /agent.
func (t *talk) switchAgent(ctx context.Context, argument string) error {
	if argument == "" {
		return t.listAgents(ctx)
	}
	if err := t.chooseAgent(argument); err != nil {
		return err
	}
	if argument != config.NoAgent {
		t.mode = "" // that of an agent
	}
	t.fromNextMessage()
	return nil
}

// chooseAgent sets the agent from the next message on.
func (t *talk) chooseAgent(id string) error {
	if id != config.NoAgent {
		if err := checkAgent(t.settings, id); err != nil || id == "" {
			return cmp.Or(err, usage("an agent's id is empty; none means no agent"))
		}
	}
	t.agent = id
	return nil
}

// dismiss removes the conversation's agent if no agent was chosen.
func (t *talk) dismiss(ctx context.Context) error {
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

// fromNextMessage prints the choice; it is stored with the next message.
func (t *talk) fromNextMessage() {
	t.remark("%s from the next message on.", capital(t.modeText()))
}

// capital begins a sentence.
func capital(words string) string { return strings.ToUpper(words[:1]) + words[1:] }

// showStance prints the active mode, and the one of the next message.
func (t *talk) showStance(ctx context.Context) error {
	if t.mode == "" && t.agent == "" {
		if t.conversation.ID != "" {
			if err := t.refresh(ctx); err != nil {
				return err
			}
		}
		t.remark("%s.", capital(t.modeText()))
		return nil
	}
	t.fromNextMessage()
	return nil
}

// listAgents lists the agents, and the current one.
func (t *talk) listAgents(ctx context.Context) error {
	if err := t.showStance(ctx); err != nil {
		return err
	}
	_, active := t.stance()
	list := t.table()
	for _, id := range agentIDs(t.settings) {
		mark := " "
		if id == active {
			mark = t.paint.Cyan("›")
		}
		list.Add(mark, t.paint.Cyan(id), agentText(t.settings, t.settings.Agents[id]))
	}
	t.printTable(list, t.tableWidth())
	if list.Len() == 0 {
		t.remark("There are no agents; they are set in continuo.yaml under agents.")
	}
	return nil
}
