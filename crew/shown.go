package crew

import (
	"github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/tool"
)

// Summary is a row of a list of crews.
type Summary struct {
	ID          string        `json:"id"`
	Name        string        `json:"name"` // for people
	Description string        `json:"description,omitempty"`
	Roles       []SummaryRole `json:"roles"` // in the order in which they speak
}

// SummaryRole is a role in a Summary.
type SummaryRole struct {
	Name        string `json:"role_name"`
	DisplayName string `json:"display_name"` // what people and the other roles call it
	AgentType   string `json:"agent_type"`   // for people
	// Connector answers for it: a connector of the settings, or "model" for one of their models.
	Connector   string `json:"connector"`
	IsModerator bool   `json:"is_moderator,omitempty"` // a cycle ends when it has nothing to add
}

// Summary is the crew's row in a list.
func (c *Crew) Summary() Summary {
	summary := Summary{ID: c.ID, Name: c.Name, Description: c.Description, Roles: []SummaryRole{}}
	for i := range c.Roles {
		summary.Roles = append(summary.Roles, c.Roles[i].summary())
	}
	return summary
}

func (r *Role) summary() SummaryRole {
	return SummaryRole{r.Name, r.DisplayName, r.AgentType, r.Connector, r.IsModerator}
}

// Shown is a crew as the API and the command line show it in JSON: several agents that share one conversation and speak
// in turn.
type Shown struct {
	ID          string `json:"id"`
	Name        string `json:"name"` // for people
	Description string `json:"description,omitempty"`
	MaxRounds   int    `json:"max_rounds" minimum:"1"` // how many turns each role may have in one cycle
	// ReminderInterval is the number of its answers after which a role is shown its system prompt again; absent: the
	// settings' value.
	ReminderInterval int         `json:"reminder_interval,omitempty" minimum:"1"`
	Summarizer       string      `json:"summarizer,omitempty"` // the model that makes summaries and notes; absent: the built-in one
	Roles            []ShownRole `json:"roles"`                // in the order in which they speak
	SHA256           string      `json:"sha256"`               // of the text, in hex
	Text             string      `json:"text"`                 // the file
}

// ShownRole is a role.
type ShownRole struct {
	SummaryRole
	Model        string       `json:"model,omitempty"` // for the connector "model"; absent: the default one
	SystemPrompt string       `json:"system_prompt"`
	View         *ShownView   `json:"view,omitempty"`
	Tools        *ShownPolicy `json:"tools,omitempty"`   // for the connector "model"
	Timeout      string       `json:"timeout,omitempty"` // of one turn, such as 5m0s; absent: the settings' value
	// BotToken is the name of the variable with the token of its Telegram bot. A crew never contains the token itself.
	BotToken string `json:"bot_token,omitempty"`
}

// ShownView is how much of the conversation a role is shown; absent fields have the settings' values.
type ShownView struct {
	Kind   view.Kind `json:"kind,omitempty"`
	Newest int       `json:"newest,omitempty"`
	Chars  int       `json:"chars,omitempty"`
	Tokens int       `json:"tokens,omitempty"`
}

// ShownPolicy are the patterns of a role's tools, within what the project allows.
type ShownPolicy struct {
	Allow     []string      `json:"allow,omitempty"`
	Ask       []string      `json:"ask,omitempty"`
	Deny      []string      `json:"deny,omitempty"`
	Otherwise tool.Decision `json:"otherwise" enum:"allow,ask,deny"` // for tools that match no pattern
}

// Shown is the crew for programs to read.
func (c *Crew) Shown() Shown {
	shown := Shown{
		ID: c.ID, Name: c.Name, Description: c.Description, MaxRounds: c.MaxRounds, ReminderInterval: c.ReminderInterval,
		Summarizer: c.Summarizer, Roles: []ShownRole{}, SHA256: c.Hash(), Text: string(c.Text),
	}
	for i := range c.Roles {
		shown.Roles = append(shown.Roles, c.Roles[i].shown())
	}
	return shown
}

func (r *Role) shown() ShownRole {
	shown := ShownRole{SummaryRole: r.summary(), Model: r.Model, SystemPrompt: r.SystemPrompt, BotToken: r.BotToken}
	if view := ShownView(r.View); view != (ShownView{}) {
		shown.View = &view
	}
	if r.Connector == ConnectorModel {
		shown.Tools = &ShownPolicy{r.Tools.Allow, r.Tools.Ask, r.Tools.Deny, r.Tools.Otherwise}
	}
	if r.Timeout > 0 {
		shown.Timeout = r.Timeout.String()
	}
	return shown
}
