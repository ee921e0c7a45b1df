package conversations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/recall/reorder"
	"github.com/continuo-log/continuo/recall/vector"
)

// Conversations finds, reads, creates, changes, imports, archives and searches conversations.
type Conversations struct {
	Reader
	log     *continuo.Log
	options Options
	removed atomic.Uint64
}

// Options configures Conversations.
type Options struct {
	Index     index.Store            // nil: only single conversations can be searched
	Vectors   *vector.Finder         // nil: entries are found by their words alone
	Reranker  *reorder.Merger        // nil: the words' order stands
	Archivist *maintenance.Archivist // nil: no conversation can be archived
	Logger    *slog.Logger
	LogText   bool
	// Searched measures a search.
	Searched func(ctx context.Context, took time.Duration)
}

func New(log *continuo.Log, options Options) *Conversations {
	return &Conversations{Reader: log, log: log, options: options}
}

// Create creates an empty conversation. Its user is the scope's, or, where the scope has none, the one in
// conversation. ErrExists says that another conversation has the key.
func (cv *Conversations) Create(ctx context.Context, scope continuo.Scope, conversation continuo.Conversation) (continuo.Conversation, error) {
	user, err := scope.Owner(conversation.UserID)
	if err != nil {
		return continuo.Conversation{}, err
	}
	if conversation.Key != "" {
		if err := CheckKey(conversation.Key); err != nil {
			return continuo.Conversation{}, err
		}
	}
	conversation.ProjectID, conversation.UserID = scope.ProjectID, user
	created, err := cv.log.Create(ctx, conversation)
	if err == nil {
		audit.About(ctx, created.ID)
	}
	return created, keyTaken(conversation.Key, err)
}

// Session finds the conversation of a client's session by its key, or creates it. The key is one that no client can give
// itself, see package gateway/match.
func (cv *Conversations) Session(ctx context.Context, scope continuo.Scope, key string) (continuo.Conversation, error) {
	created, err := cv.log.Create(ctx, continuo.Conversation{ProjectID: scope.ProjectID, UserID: scope.UserID, ActiveMode: continuo.ModeChat, Key: key})
	if errors.Is(err, continuo.ErrExists) {
		return cv.log.Find(ctx, scope, key)
	}
	return created, err
}

// Change changes the properties of a conversation of the scope. A scope with a user cannot change the
// conversation's user or remove it: ErrOtherUser. ErrExists says that another conversation has the key.
func (cv *Conversations) Change(ctx context.Context, scope continuo.Scope, id string, change continuo.ConversationChange) (continuo.Conversation, error) {
	if change.UserID != nil && scope.UserID != "" && *change.UserID != scope.UserID {
		return continuo.Conversation{}, fmt.Errorf("user_id %q: %w: a caller that is bound to a user cannot give conversations away", *change.UserID, continuo.ErrOtherUser)
	}
	if change.Key != nil && *change.Key != "" {
		if err := CheckKey(*change.Key); err != nil {
			return continuo.Conversation{}, err
		}
	}
	changed, err := cv.log.Update(ctx, id, change)
	if change.Key != nil {
		err = keyTaken(*change.Key, err)
	}
	return changed, err
}

// keyTaken adds the key to the error that another conversation has it.
func keyTaken(key string, err error) error {
	if errors.Is(err, continuo.ErrExists) {
		return fmt.Errorf("key %q: %w: it is another conversation's", key, continuo.ErrExists)
	}
	return err
}
