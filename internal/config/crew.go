package config

import (
	"time"

	"github.com/continuo-log/continuo/internal/yamltree"
)

// CrewsConfig is the section crews.
type CrewsConfig struct {
	Dir string // "": none are read; a missing folder has none
}

// CrewConfig is the section crew: the defaults for roles whose crew sets nothing else.
type CrewConfig struct {
	MaxConversationLength  int // messages
	SystemReminderInterval int // answers
	AgentTimeout           time.Duration
}

func (c *Config) crewRows(home string) []*setting {
	return []*setting{{
		key: "crews.dir", value: path(&c.Crews.Dir, home, true), def: "crews",
		doc: "The folder with the crews: its files *.yaml and *.yml, one crew each, but not those in folders below it. It need not be there. Empty: none are read. A crew is read anew whenever it is named, so that a change counts for the next cycle.",
	}, {
		key: "crew.max_conversation_length", value: whole(&c.Crew.MaxConversationLength, 1), def: "200", knownAs: "MAX_CONVERSATION_LENGTH",
		doc: "How many messages a role with the view window is shown, where its crew does not say. What is new to it is shown besides, and what is kept is never bounded.",
	}, {
		key: "crew.system_reminder_interval", value: whole(&c.Crew.SystemReminderInterval, 1), def: "5", knownAs: "SYSTEM_REMINDER_INTERVAL",
		doc: "After how many of its answers a role is shown its system prompt again, where its crew does not say.",
	}, {
		key: "crew.agent_timeout", value: durationFrom(&c.Crew.AgentTimeout, time.Second), def: "10m", knownAs: "AGENT_TIMEOUT",
		doc: "How long one turn of a role may take, where its crew does not say; after that it has failed, and the next role speaks.",
	}}
}

// durationFrom is a duration of at least least.
func durationFrom(place *time.Duration, least time.Duration) value {
	return value{
		allowed: "a time of at least " + durationText(least) + " with its unit, such as 90s, 10m or 1h30m",
		takes:   []yamltree.Kind{yamltree.Text},
		set: func(text string) error {
			length, err := time.ParseDuration(text)
			if err != nil || length < least {
				return errNotAllowed
			}
			*place = length
			return nil
		},
		show: func() string { return durationText(*place) },
	}
}
