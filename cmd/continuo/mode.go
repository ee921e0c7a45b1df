package main

import (
	"context"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
)

type modeCommand struct {
	Conversation string  `arg:"" name:"conv" help:"Which one: id, key or @1."`
	Mode         *string `arg:"" optional:"" enum:"chat,agent,run" help:"The new mode: chat, agent or run. Default: agent where --agent is given, else as it is."`
	Agent        *string `placeholder:"AGENT" help:"The agent that answers in the modes agent and run: an agent of the settings, or none."`
	JSON         bool    `help:"Write the conversation as JSON."`
}

func (c *modeCommand) changes() bool { return c.Mode != nil || c.Agent != nil }

func (modeCommand) Help() string {
	return `Says in which mode a conversation is and who answers in it, or changes that: the next request has other system messages then, and the same history. Without a mode and --agent nothing is changed.

Examples:

    continuo conversations mode s1
    continuo conversations mode s1 chat
    continuo conversations mode s1 --agent reviewer
    continuo conversations mode s1 agent --agent none`
}

// Run shows or changes the mode.
func (m *modeCommand) Run(ctx context.Context, a *app, w *services) error {
	change, err := m.change(w.settings)
	if err != nil {
		return err
	}
	conversation, err := w.find(ctx, m.Conversation)
	if err == nil && (m.Mode != nil || m.Agent != nil) {
		conversation, err = w.engine.Conversations.Change(ctx, w.scope(), conversation.ID, change)
	}
	if err != nil {
		return err
	}
	return a.show(m.JSON, conversation, func() {
		agent := "none"
		if conversation.ActiveAgent != "" {
			agent = term.OneLine(conversation.ActiveAgent, 60)
		}
		a.print("%s is in mode %s, agent %s", nameOf(conversation), conversation.ActiveMode, agent)
	})
}

// change is the change that the command requests.
func (m *modeCommand) change(settings *config.Config) (change continuo.ConversationChange, err error) {
	if m.Mode != nil {
		change.ActiveMode = (*continuo.Mode)(m.Mode)
	}
	switch {
	case m.Agent == nil:
		return change, nil
	case *m.Agent == config.NoAgent:
		change.ActiveAgent = new(string)
		return change, nil
	case *m.Agent == "":
		return change, usage("an agent's id is empty; none means no agent")
	}
	change.ActiveAgent = m.Agent
	if m.Mode == nil {
		mode := continuo.ModeAgent
		change.ActiveMode = &mode
	}
	return change, checkAgent(settings, *m.Agent)
}

// modeOf formats a conversation's mode, with the agent that answers in it.
func modeOf(conversation continuo.Conversation) string {
	if conversation.ActiveAgent == "" || conversation.ActiveMode == continuo.ModeChat {
		return string(conversation.ActiveMode)
	}
	return string(conversation.ActiveMode) + " " + term.OneLine(conversation.ActiveAgent, 20)
}
