package mcpserver

import (
	"context"
	"errors"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/fulltext/index"
)

// conversation finds the conversation of the project that an id or a key names. An archived one is refused.
func (f *projectServer) conversation(ctx context.Context, id string) (continuo.Conversation, error) {
	return f.engine.Conversations.Get(ctx, f.scope, id)
}

// matches is a page of matches of a search.
type matches struct {
	Matches []index.Item `json:"matches"`
	// The cursor of the next page; absent on the last one.
	NextCursor string `json:"next_cursor,omitempty"`
	// There may be more matches: not everything was indexed yet.
	Incomplete bool `json:"incomplete"`
}

func (f *projectServer) searchConversations(c *call, in api.SearchQuery) (matches, error) {
	page, err := f.api.Search(c.ctx, f.scope, in)
	page.Data = slices.DeleteFunc(page.Data, func(item index.Item) bool { return item.Deleted }) // a model reads them
	return matches{page.Data, cursorOf(page.NextCursor), page.Incomplete}, err
}

func (f *projectServer) getContext(c *call, in api.ContextQuery) (api.ConversationContext, error) {
	return f.api.ShowContext(c.ctx, f.scope, in)
}

// newMessage is a message to append.
type newMessage struct {
	api.ConversationPath
	// The author of the message.
	Role    continuo.Role `json:"role" enum:"user,assistant"`
	Content string        `json:"content" doc:"minLength=1"`
	// The author's name, where several have the same role.
	Name string `json:"name,omitempty" doc:"maxLength=64"`
	// The seq that the message must get; the call fails with the type conflict if another entry has it. Default: any.
	ExpectSeq int64 `json:"expect_seq,omitempty" minimum:"1"`
	api.Once
}

// appendedMessage is a message as it is stored.
type appendedMessage struct {
	ConversationID string        `json:"conversation_id"`
	ID             string        `json:"id"`  // the entry's id
	Seq            int64         `json:"seq"` // its position in the conversation, from 1
	Role           continuo.Role `json:"role"`
	CreatedAt      time.Time     `json:"created_at"`
	Chars          int           `json:"chars"`  // Unicode characters
	Tokens         int           `json:"tokens"` // by the log's counter
}

func (f *projectServer) appendMessage(c *call, in newMessage) (appendedMessage, error) {
	conversation, err := f.conversation(c.ctx, in.Conversation)
	if err != nil {
		return appendedMessage{}, err
	}
	entry := continuo.Entry{Role: in.Role, Content: continuo.Text(in.Content), Name: in.Name}
	options := continuo.AppendOptions{ExpectSeq: in.ExpectSeq, Key: string(in.Key)}
	stored, err := f.engine.Conversations.Append(c.ctx, conversation, []continuo.Entry{entry}, options)
	if errors.As(err, new(*engine.KindError)) {
		return appendedMessage{}, api.Refuse("conversation", "%s", err)
	}
	if err != nil {
		return appendedMessage{}, err
	}
	kept := stored[0]
	return appendedMessage{conversation.ID, kept.ID, kept.Seq, kept.Role, kept.CreatedAt, kept.Chars, kept.Tokens}, nil
}
