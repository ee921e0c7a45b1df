package mirror

import (
	"context"
	"errors"

	continuo "github.com/continuo-log/continuo"
)

// Find finds the conversation that has the key of another one, in its project and of its user; ErrNotFound.
func Find(ctx context.Context, log *continuo.Log, like continuo.Conversation) (continuo.Conversation, error) {
	return log.Find(ctx, continuo.Scope{ProjectID: like.ProjectID, UserID: like.UserID}, like.Key)
}

// Open finds the conversation that has the key of another one, or creates that one.
func Open(ctx context.Context, log *continuo.Log, like continuo.Conversation) (continuo.Conversation, error) {
	found, err := Find(ctx, log, like)
	if !errors.Is(err, continuo.ErrNotFound) {
		return found, err
	}
	made, err := log.Create(ctx, like)
	if errors.Is(err, continuo.ErrExists) { // another process was faster
		return Find(ctx, log, like)
	}
	return made, err
}

// Remove deletes the conversation that has the key of another one; none is no error.
func Remove(ctx context.Context, log *continuo.Log, like continuo.Conversation) error {
	found, err := Find(ctx, log, like)
	if err == nil {
		err = log.Delete(ctx, found.ID)
	}
	if errors.Is(err, continuo.ErrNotFound) {
		return nil
	}
	return err
}

// Replace makes messages all that the conversation with a key has: a new conversation has them before the old one is deleted.
func Replace(ctx context.Context, log *continuo.Log, like continuo.Conversation, messages []Message) error {
	key := like.Key
	like.Key = ""
	made, err := log.Create(ctx, like)
	if err != nil {
		return err
	}
	for _, message := range messages {
		if err := appendTo(ctx, log, made.ID, message); err != nil {
			return errors.Join(err, log.Delete(ctx, made.ID))
		}
	}
	like.Key = key
	if err := Remove(ctx, log, like); err != nil {
		return errors.Join(err, log.Delete(ctx, made.ID))
	}
	_, err = log.Update(ctx, made.ID, continuo.ConversationChange{Key: &key})
	return err
}

func appendTo(ctx context.Context, log *continuo.Log, id string, message Message) error {
	_, err := Append(ctx, log, id, message)
	return err
}
