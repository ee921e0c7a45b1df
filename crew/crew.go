// Package crew knows crews and decides how their cycles go on. A [Crew] is read from a YAML file and checked as a
// whole ([Parse]); a [State] is what the events of a crew in a conversation come to, and says which role is next.
// Nothing is carried out: package engine does that, and keeps nothing but the log.
//
// A cycle begins with a person's message. The roles speak in turn, from the stored pointer on, until all in a row
// have nothing to add, the moderator has not, all in a row failed, or the limit is reached.
//
// Pitfalls: the text of a crew is kept with each of its cycles, which go on by it when the file has changed. A role
// is known by its name: one that is renamed is a new one, and has seen nothing.
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
	// ReminderInterval is after how many answers a role's system prompt comes back. 0: as the settings say.
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
	// Connector is who speaks for it: a connector of the settings, or "model" for one of the settings' models.
	Connector string
	// Model names the model of the connector "model"; "" for the default one.
	Model        string
	SystemPrompt string
	IsModerator  bool
	View         View
	// Tools narrows what the project allows, of the connector "model".
	Tools tool.Policy
	// Timeout bounds one turn. 0: as the settings say.
	Timeout time.Duration
	// BotToken names the environment's variable with the token of the role's own Telegram bot; "" for none.
	BotToken string
	Line     int // in the file
}

// View is how much of the talk a role is shown.
type View struct {
	// Kind is "" where the file says nothing: delta for an agent that remembers, full for others.
	Kind view.Kind
	// Newest is how many messages a window shows, or stand whole behind a summary. 0: as the settings say, or 20.
	Newest int
	// Chars and Tokens bound what one turn shows; 0: as the settings say.
	Chars, Tokens int
}
