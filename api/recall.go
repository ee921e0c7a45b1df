package api

import (
	"context"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/recalls"
)

// ExplainQuery selects what is explained.
type ExplainQuery struct {
	ConversationPath
	// The next message.
	Query *string `query:"query" required:"true" doc:"minLength=1,maxLength=20000"`
	// The view of the turn; `role:NAME` is that of a role of a crew that has spoken in the conversation. The default is that of
	// the context.
	View string `query:"view" pattern:"^(chat|agent|run|codex|continuity|replay|handoff|role:.+)$"`
	// The crew of the role that `view` names. The default is the one that has spoken last.
	Crew *string `query:"crew"`
	// Replaces the view's limit of tokens; 0 lifts it.
	MaxTokens *int `query:"max_tokens" minimum:"0"`
	// Only this entry, whether it is ranked or not.
	Seq int64 `query:"seq" minimum:"1"`
	// How many entries of the ranking to give at most.
	Limit int `query:"limit" minimum:"1" maximum:"100" default:"10"`
}

// ExplainRecall says what a turn would recall for a message, and why.
//
// The entries are those that the ranking puts first, each with its rank, the features that its score is made of, and what
// becomes of it. `outcome` says why nothing is recalled at all. Asks no model and changes nothing.
func (s *Service) ExplainRecall(ctx context.Context, scope continuo.Scope, in ExplainQuery) (*recalls.Explanation, error) {
	if in.Query == nil || *in.Query == "" {
		return nil, Refuse("query", "query is missing: give the next message")
	}
	if in.View == catalog.RecallView {
		return nil, Refuse("view", "the view recall is none of turns")
	}
	if err := s.checkView(&ContextQuery{View: in.View, Crew: in.Crew}); err != nil {
		return nil, err
	}
	conversation, err := s.open(ctx, scope, in.Conversation)
	if err != nil {
		return nil, err
	}
	made, err := s.Engine.Contexts.ExplainRecall(ctx, conversation, engine.ContextRequest{View: in.View, Crew: valueOf(in.Crew), Query: *in.Query, MaxTokens: in.MaxTokens}, recalls.ExplainRequest{Seq: in.Seq, Limit: in.Limit})
	return made, At("seq", err)
}
