package mirror

import (
	"context"
	"errors"

	continuo "github.com/continuo-log/continuo"
)

// replacing follows the key in that of a conversation which replaces the one with the key: it has all messages, and takes
// the key over when that one is deleted. Where a process ended before that, the next one that finds it does this.
const replacing = "/next"

// attempts is how often an operation is tried when other processes are faster.
const attempts = 100

// Find finds the conversation that has the key of another one, in its project and of its user; ErrNotFound.
func Find(ctx context.Context, log *continuo.Log, like continuo.Conversation) (continuo.Conversation, error) {
	found, err := find(ctx, log, like, like.Key)
	if errors.Is(err, continuo.ErrNotFound) {
		return settle(ctx, log, like)
	}
	return found, err
}

func find(ctx context.Context, log *continuo.Log, like continuo.Conversation, key string) (continuo.Conversation, error) {
	return log.Find(ctx, continuo.Scope{ProjectID: like.ProjectID, UserID: like.UserID}, key)
}

// Open finds the conversation that has the key of another one, or creates that one. A replacement that a process began
// is finished before, so that it cannot remove what is appended now.
func Open(ctx context.Context, log *continuo.Log, like continuo.Conversation) (continuo.Conversation, error) {
	found, err := settle(ctx, log, like)
	if !errors.Is(err, continuo.ErrNotFound) {
		return found, err
	}
	made, err := log.Create(ctx, like)
	if errors.Is(err, continuo.ErrExists) { // another process was faster
		return settle(ctx, log, like)
	}
	return made, err
}

// Remove deletes the conversation that has the key of another one; none is no error.
func Remove(ctx context.Context, log *continuo.Log, like continuo.Conversation) error {
	for _, key := range []string{like.Key + replacing, like.Key} { // in this order, so that nothing takes the key over
		found, err := find(ctx, log, like, key)
		if err == nil {
			err = log.Delete(ctx, found.ID)
		}
		if ignoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// Replace makes messages all that the conversation with a key has. A process that ends meanwhile leaves all old messages or
// all new ones.
func Replace(ctx context.Context, log *continuo.Log, like continuo.Conversation, messages []Message) error {
	unnamed := like
	unnamed.Key = ""
	made, err := log.Create(ctx, unnamed)
	if err != nil {
		return err
	}
	for _, message := range messages {
		if _, err := Append(ctx, log, made.ID, message); err != nil {
			return errors.Join(err, log.Delete(ctx, made.ID))
		}
	}
	if err := rename(ctx, log, made, like); err != nil {
		return errors.Join(err, log.Delete(ctx, made.ID))
	}
	_, err = settle(ctx, log, like)
	return ignoreNotFound(err) // another process removed it
}

// rename makes a conversation the replacement of the one with a key, after those of other processes.
func rename(ctx context.Context, log *continuo.Log, made, like continuo.Conversation) error {
	key := like.Key + replacing
	for range attempts {
		if _, err := settle(ctx, log, like); ignoreNotFound(err) != nil {
			return err
		}
		if _, err := log.Update(ctx, made.ID, continuo.ConversationChange{Key: &key}); !errors.Is(err, continuo.ErrExists) {
			return err
		}
	}
	return continuo.ErrExists
}

// settle returns the conversation with a key, after it deleted the one that another replaces, and gave the key to that one;
// ErrNotFound. Several processes may do it at once: the old one is read first, so that it is one that is to be replaced.
func settle(ctx context.Context, log *continuo.Log, like continuo.Conversation) (continuo.Conversation, error) {
	for range attempts {
		old, missing := find(ctx, log, like, like.Key)
		if ignoreNotFound(missing) != nil {
			return old, missing
		}
		next, err := find(ctx, log, like, like.Key+replacing)
		switch {
		case errors.Is(err, continuo.ErrNotFound) && missing == nil:
			return old, nil
		case errors.Is(err, continuo.ErrNotFound):
			return find(ctx, log, like, like.Key) // another process may have given it the key between the two
		case err == nil && missing == nil:
			err = ignoreNotFound(log.Delete(ctx, old.ID))
		}
		if err != nil {
			return old, err
		}
		taken, err := log.Update(ctx, next.ID, continuo.ConversationChange{Key: &like.Key})
		if !errors.Is(err, continuo.ErrExists) && !errors.Is(err, continuo.ErrNotFound) {
			return taken, err
		}
	}
	return continuo.Conversation{}, continuo.ErrExists
}

func ignoreNotFound(err error) error {
	if errors.Is(err, continuo.ErrNotFound) {
		return nil
	}
	return err
}
