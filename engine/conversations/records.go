package conversations

import (
	"context"
	"errors"

	continuo "github.com/continuo-log/continuo"
)

// Records finds or creates the conversation of a scope in which a front end keeps records of its own, under a key that no
// client can give. It is of the kind side: lists leave it out, and clients cannot add to it.
func (cv *Conversations) Records(ctx context.Context, scope continuo.Scope, key, title string) (continuo.Conversation, error) {
	found, err := cv.log.Find(ctx, scope, key)
	if !errors.Is(err, continuo.ErrNotFound) {
		return found, err
	}
	created, err := cv.log.Create(ctx, continuo.Conversation{
		ProjectID: scope.ProjectID, UserID: scope.UserID, ActiveMode: continuo.ModeChat, Kind: continuo.KindSide, Key: key, Title: title,
	})
	if errors.Is(err, continuo.ErrExists) {
		return cv.log.Find(ctx, scope, key)
	}
	return created, err
}

// AppendRecord appends a record to such a conversation: a hidden system entry.
func (cv *Conversations) AppendRecord(ctx context.Context, conversation continuo.Conversation, record []byte, options continuo.AppendOptions) (continuo.Entry, error) {
	stored, err := cv.log.Append(ctx, conversation.ID, []continuo.Entry{{
		Role: continuo.System, Hidden: true, PartType: continuo.PartRecord, Content: continuo.Text(string(record)),
	}}, options)
	if err != nil {
		return continuo.Entry{}, err
	}
	return stored[0], nil
}
