package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
)

// pruner archives or deletes the conversations of a project that have not changed since a time.
type pruner struct {
	w       *services
	project string
	before  time.Time // conversations last changed before this
	remove  bool      // deletes, otherwise archives
}

// one prunes a conversation, unless it has changed since it was listed.
func (p *pruner) one(ctx context.Context, listed continuo.Conversation) (pruned bool, err error) {
	now, err := p.w.engine.Conversations.Conversation(ctx, listed.ID)
	if err == nil && (!now.UpdatedAt.Equal(listed.UpdatedAt) || now.LastSeq != listed.LastSeq) {
		return false, nil
	}
	if err == nil && p.remove {
		err = p.w.engine.Conversations.Delete(ctx, listed.ID)
	} else if err == nil {
		audit.About(ctx, listed.ID)
		_, err = p.w.archivist().Archive(ctx, listed.ID)
	}
	var changed *continuo.ConflictError
	if is(continuo.ErrNotFound, continuo.ErrBusy, continuo.ErrArchived)(err) || errors.As(err, &changed) {
		return false, nil
	}
	return err == nil, err
}

// each visits the conversations to prune among those of a query; archived ones too, if they are deleted.
func (p *pruner) each(ctx context.Context, query continuo.ConversationQuery, visit func(continuo.Conversation) error) error {
	for _, archived := range []bool{false, true} {
		if archived && !p.remove {
			continue
		}
		query.Archived = archived
		if err := p.eachOf(ctx, query, visit); err != nil {
			return err
		}
	}
	return nil
}

// eachOf visits the conversations to prune among those of a query, a page at a time.
func (p *pruner) eachOf(ctx context.Context, query continuo.ConversationQuery, visit func(continuo.Conversation) error) error {
	query.ProjectID, query.Limit, query.Before = p.project, listPage, continuo.ConversationCursor{UpdatedAt: p.before.UTC()}
	for {
		page, err := p.w.engine.Conversations.List(ctx, query)
		if err != nil {
			return fmt.Errorf("list conversations: %w", err)
		}
		for _, conversation := range page {
			if err := errors.Join(ctx.Err(), visit(conversation)); err != nil {
				return err
			}
			query.Before = continuo.ConversationCursor{UpdatedAt: conversation.UpdatedAt, ID: conversation.ID}
		}
		if len(page) < listPage {
			return nil
		}
	}
}
