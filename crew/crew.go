// Package crew defines crews and decides how their cycles proceed. A [Crew] is read from a YAML file and checked as a
// whole ([Parse]); a [State] is computed from the events of a crew in a conversation, and says which role is next.
// This package does no I/O: package engine runs the turns, and stores everything in the log.
//
// A cycle begins with a person's message. The roles speak one after another, starting at the stored pointer, until
// all roles in a row have nothing to add, the moderator has nothing to add, all roles in a row failed, or the limit
// is reached.
//
// Pitfalls: the text of a crew is stored with each of its cycles, which keep using it when the file has changed. A
// role is identified by its name: a renamed role is a new one, and has seen nothing.
package crew

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/tool"
)

// Crew is a checked crew. It is read-only, and safe for concurrent use.
type Crew struct {
	ID          string // a small letter, then small letters, digits, _ and -
	Name        string // for people; default: the id
	Description string
	Roles       []Role // in the order in which they speak; at least one
	// MaxRounds is how often each role may have its turn in one cycle. Default 10.
	MaxRounds int
	// ReminderInterval is the number of answers after which a role's system prompt is repeated. 0: the settings' value.
	ReminderInterval int
	// Summarizer names the model that makes summaries and notes. Default "": the built-in extractive one.
	Summarizer string
	// Text is the file as it was read.
	Text []byte
}

// Hash is the SHA-256 of the text, in hex.
func (c *Crew) Hash() string {
	sum := sha256.Sum256(c.Text)
	return hex.EncodeToString(sum[:])
}

// Role finds a role by name; nil.
func (c *Crew) Role(name string) *Role {
	for i := range c.Roles {
		if c.Roles[i].Name == name {
			return &c.Roles[i]
		}
	}
	return nil
}

// Role is a member of a crew.
type Role struct {
	Name        string // role_name: a small letter, then small letters, digits and _
	DisplayName string // default: the name
	AgentType   string // what kind of agent it is, for people; default: the connector's name
	// Connector is the connector of the settings that answers for the role, or "model" for one of the settings' models.
	Connector string
	// Model names the model for the connector "model"; "" for the default one.
	Model        string
	SystemPrompt string
	IsModerator  bool
	View         View
	// Tools narrows the project's tool policy, for the connector "model".
	Tools tool.Policy
	// Timeout bounds one turn. 0: the settings' value.
	Timeout time.Duration
	// BotToken names the environment variable with the token of the role's own Telegram bot; "" for none.
	BotToken string
	Line     int // in the file
}

// View is how much of the conversation a role is shown.
type View struct {
	// Kind is "" where the file has none: delta for an agent that remembers, full for others.
	Kind view.Kind
	// Newest is how many messages a window shows, or are shown whole after a summary. 0: the settings' value, or 20.
	Newest int
	// Chars and Tokens bound what one turn shows; 0: the settings' values.
	Chars, Tokens int
}
