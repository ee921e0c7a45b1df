package mcpserver

import (
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine/memories"
)

// memoryUser says whose memory is meant.
type memoryUser struct {
	// The user whose memory it is. Default: the key's user, else the memory of the conversations without a user.
	UserID string `json:"user_id,omitempty" maxLength:"256"`
	// The memory that all users of the project share instead.
	Project bool `json:"project,omitempty"`
}

func (u memoryUser) owner() memories.Owner {
	return memories.Owner{UserID: u.UserID, Project: u.Project}
}

// newFact is a fact to remember.
type newFact struct {
	memoryUser
	Text string `json:"text" doc:"minLength=1" maxLength:"2000"`
	// Default: found by rules, else other.
	Kind continuo.FactKind `json:"kind,omitempty" enum:"identity,preference,instruction,decision,event,relation,other"`
	// When its time ends. Default: the end of the day that the text names, such as "until Friday", in UTC; else it has no end.
	ValidTo *time.Time `json:"valid_to,omitempty"`
	// The conversation and the position of the message that says so, with its words. Default: the caller states the fact.
	Sources []memories.Source `json:"sources,omitempty" doc:"maxItems=64"`
	api.Once
}

func (f *projectServer) remember(c *call, in newFact) (memories.Fact, error) {
	statement := memories.Statement{Owner: in.owner(), Text: in.Text, Kind: in.Kind, Sources: in.Sources, By: "mcp", Key: string(in.Key)}
	if in.ValidTo != nil {
		statement.ValidTo = *in.ValidTo
	}
	fact, err := f.engine.Memories.Remember(c.ctx, f.scope, statement)
	return fact, api.AboutFact(err)
}

// recallQuery asks what is known.
type recallQuery struct {
	memoryUser
	// What the facts have to do with, such as a question in plain words.
	Query string `json:"query" doc:"minLength=1" maxLength:"2000"`
	Limit int    `json:"limit,omitempty" minimum:"1" maximum:"100" default:"10"`
}

// recalled are facts, the most likely ones first.
type recalled struct {
	Facts []memories.Fact `json:"facts"`
}

func (f *projectServer) recall(c *call, in recallQuery) (recalled, error) {
	facts, err := f.engine.Memories.Recall(c.ctx, f.scope, in.owner(), in.Query, in.Limit)
	return recalled{facts}, err
}

// forgottenFact names a fact to forget.
type forgottenFact struct {
	memoryUser
	// The id of the fact, as recall shows it.
	Fact int64 `json:"fact" minimum:"1"`
	// Also remove the content of the messages that the fact was taken from.
	Sources bool `json:"sources,omitempty"`
}

// forgotten says which fact was removed.
type forgotten struct {
	Forgotten int64 `json:"forgotten"`
}

func (f *projectServer) forget(c *call, in forgottenFact) (forgotten, error) {
	err := f.engine.Memories.Forget(c.ctx, f.scope, in.owner(), in.Fact, in.Sources)
	return forgotten{in.Fact}, err
}
