package api

import (
	"context"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/contexts"
)

// CacheQuery selects requests.
type CacheQuery struct {
	ConversationPath
	// How many of the newest requests to compare at most.
	Limit int `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

// ShowCache says how far the providers' caches served the requests of a conversation.
//
// Each of the newest requests is compared with the one before: what the provider counted as cached, whether that is less
// than what the request before had in the cache, and which part of the request changed first, in the order in which
// providers look for a prefix (tools, system, messages). Side calls are conversations of their own.
func (s *Service) ShowCache(ctx context.Context, scope continuo.Scope, in CacheQuery) (*contexts.CacheUse, error) {
	conversation, err := s.open(ctx, scope, in.Conversation)
	if err != nil {
		return nil, err
	}
	return s.Engine.Contexts.CacheUse(ctx, conversation, in.Limit)
}
