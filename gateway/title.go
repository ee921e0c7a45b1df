package gateway

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/gateway/match"
	"github.com/continuo-log/continuo/turn"
)

// titleEntries is how many of the first entries of a conversation may give it its own title.
const titleEntries = 8

// titling passes on the events of a call in which a client asks for the title of its session, and names the session's
// conversation by the answer, before the end of the call is shown. Other calls have no such effect.
func (g *Gateway) titling(ctx context.Context, scope continuo.Scope, found *matched, chat *engine.Chat) iter.Seq2[turn.Event, error] {
	session, events := chat.Conversation.ParentID, chat.Events
	if found.Side != match.SideTitle || session == "" {
		return events
	}
	return func(yield func(turn.Event, error) bool) {
		for event, err := range events {
			if err == nil && event.Kind == turn.Finished && event.Entry != nil {
				if failed := g.retitle(context.WithoutCancel(ctx), scope, session, event.Entry); failed != nil {
					g.options.Logger.ErrorContext(ctx, "title_not_set", "conversation", session, "error", failed.Error())
				}
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// retitle names a conversation by an answer, unless it has a name that somebody gave it.
func (g *Gateway) retitle(ctx context.Context, scope continuo.Scope, id string, answer *continuo.Entry) error {
	title := conversations.TitleOf(continuo.Text(titleIn(answer.Content.String())))
	if title == "" {
		return nil
	}
	conversation, err := g.engine.Conversations.Find(ctx, scope, id)
	if err != nil || conversation.Title == title {
		return err
	}
	if conversation.Title != "" {
		var first []continuo.Entry
		for entry, err := range g.engine.Conversations.Read(ctx, conversation, continuo.Range{To: min(titleEntries, conversation.LastSeq)}) {
			if err != nil {
				return err
			}
			first = append(first, entry)
		}
		if conversation.Title != conversations.TitleOf(match.Title(first)) {
			return nil
		}
	}
	_, err = g.engine.Conversations.Change(ctx, scope, id, continuo.ConversationChange{Title: &title})
	return err
}

// titleIn is the title in an answer: its text, or the title of an object, as a schema may require it.
func titleIn(text string) string {
	var object struct{ Title string }
	if json.Unmarshal([]byte(text), &object) == nil && object.Title != "" {
		return object.Title
	}
	return strings.Trim(strings.TrimSpace(text), `"`)
}
