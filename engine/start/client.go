package start

import (
	"cmp"
	"context"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/turn"
)

// ClientRequest is a model request of a client that keeps its history itself, runs tools itself, or both.
type ClientRequest struct {
	// Conversation is the one that the request belongs to, as it was read; one without an id is created.
	Conversation continuo.Conversation
	// Entries are what the request adds to the log. They are appended only if the log still ends where Conversation says.
	Entries []continuo.Entry
	Mode    continuo.Mode
	// Model is the name of a model; "": the default.
	Model string
	// Forward returns the request that is sent as it came.
	Forward func(ctx context.Context, conversation continuo.Conversation) (*turn.Forward, error)
	// Detached lets the turn continue when the caller's context ends.
	Detached bool
}

// Request begins the turn of a client's request. It fails with a *continuo.ConflictError where the conversation has grown
// since it was read.
func (ts *Turns) Request(ctx context.Context, request ClientRequest) (*Chat, error) {
	upstream, err := ts.catalog.Upstream(request.Model)
	if err != nil {
		return nil, err
	}
	if ts.life.IsClosed() {
		return nil, ErrClosing // before a conversation is created for it
	}
	conversation := request.Conversation
	if conversation.ID == "" {
		conversation.Title = cmp.Or(conversation.Title, titleOf(request.Entries))
		if conversation, err = ts.log.Create(ctx, conversation); err != nil {
			return nil, err
		}
	}
	forward, err := request.Forward(ctx, conversation)
	if err != nil {
		return nil, err
	}
	wanted := continuo.Turn{ID: ts.log.NewID("turn"), ConversationID: conversation.ID}
	wanted.Mode, wanted.View, wanted.Model = request.Mode, turn.ClientViewName, request.Model
	runner := &turn.Runner{Log: ts.log, Model: upstream.Model, View: turn.ClientView{}, Limits: ts.catalog.Options.Limits, Forward: forward}
	return ts.Start(ctx, Request{
		Project: conversation.ProjectID, conversation: conversation, Policy: Wait, Detached: request.Detached,
		Wanted: wanted,
		Prepare: func(_ context.Context, now continuo.Conversation) (*turn.Runner, turn.Input, error) {
			if now.LastSeq != conversation.LastSeq {
				return nil, turn.Input{}, fmt.Errorf("begin a turn: %w", &continuo.ConflictError{Want: conversation.LastSeq + 1, Have: now.LastSeq + 1})
			}
			return runner, turn.Input{Entries: request.Entries, Fits: true, Mode: request.Mode}, nil
		},
	})
}

// titleOf makes a title from the first message of a user; "" where there is none.
func titleOf(entries []continuo.Entry) string {
	for _, entry := range entries {
		if entry.Role == continuo.User && !entry.Content.IsBlank() {
			return conversations.TitleOf(entry.Content)
		}
	}
	return ""
}
