package index

import (
	"context"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// Owners are the conversations of a project's hits. A conversation is read once.
type Owners struct {
	Log   *continuo.Log
	Scope continuo.Scope
	// Kinds are the kinds of conversations that are searched. Default: all.
	Kinds []continuo.Kind

	known map[string]*continuo.Conversation // nil for one that is not searched
}

// Find finds conversations with one query of the log: by their id those that are searched, the ones found before included.
func (o *Owners) Find(ctx context.Context, ids []string) (map[string]*continuo.Conversation, error) {
	if o.known == nil {
		o.known = map[string]*continuo.Conversation{}
	}
	var unknown []string
	for _, id := range ids {
		if _, known := o.known[id]; !known {
			o.known[id] = nil
			unknown = append(unknown, id)
		}
	}
	found, err := o.Log.ConversationsByID(ctx, unknown)
	for id, conversation := range found {
		isKind := len(o.Kinds) == 0 || slices.Contains(o.Kinds, conversation.Kind)
		if o.Scope.Has(*conversation) && conversation.ArchivedAt.IsZero() && isKind {
			o.known[id] = conversation
		}
	}
	return o.known, err
}
