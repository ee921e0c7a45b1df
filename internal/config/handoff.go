package config

import "time"

// HandoffConfig is the section handoff.
type HandoffConfig struct {
	MaxMessages       int
	UserMaxChars      int // Unicode characters
	AssistantMaxChars int // Unicode characters
	MaxAgents         int // running concurrently, of a project in one program
	AgentTimeout      time.Duration
}

func (c *Config) handoffRows() []*setting {
	return []*setting{{
		key: "handoff.max_messages", value: whole(&c.Handoff.MaxMessages, 1), def: "50",
		doc: "How many messages of a conversation a task that is given away keeps at most: the newest, or with relevance those that have most to do with the work.",
	}, {
		key: "handoff.user_max_chars", value: whole(&c.Handoff.UserMaxChars, 1), def: "8000",
		doc: "How many characters (Unicode) a user's message may have in a task's history. A longer one is cut 100 characters below it.",
	}, {
		key: "handoff.assistant_max_chars", value: whole(&c.Handoff.AssistantMaxChars, 1), def: "150",
		doc: "How many characters (Unicode) of every other message a task's history keeps.",
	}, {
		key: "handoff.max_agents", value: whole(&c.Handoff.MaxAgents, 1), def: "8",
		doc: "How many agents of one project may be at work on tasks in one program. Others are refused with status 429.",
	}, {
		key: "handoff.agent_timeout", value: duration(&c.Handoff.AgentTimeout), def: "30m",
		doc: "How long an agent may work on a task, in the place of turn.timeout; after that it has failed. A connector's own timeout counts as well where it is set.",
	}}
}
