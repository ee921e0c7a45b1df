package api

import (
	"context"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/conversations"
)

// liveOperations follow conversations, and list their requests.
func (s *Service) liveOperations() []Operation {
	const one = "/api/conversations/{id}"
	return []Operation{
		define(Operation{
			ID: "listConversationRounds", Method: "GET", Path: one + "/rounds", Tag: "context", Summary: "list the requests to models that it has",
			Answers: answers(ok("A page of rounds.")),
		}, s.ListConversationRounds),
		handled[ListEvents, None](Operation{
			ID: "followConversations", Method: "GET", Path: "/api/events", Tag: "conversations", Summary: "follow the list of conversations",
			Description: "The rows of the list that are new or change from now on, or since a time, on whichever process, within about a " +
				"second. With `state`, a conversation is sent from when it has that state on, also when it leaves it. A row may come " +
				"twice, and deletions are not reported. The stream has no end of its own; it breaks off as that of a conversation does.",
			Answers: answers(ok("The events.").as(events[ListStream]())),
		}),
		handled[ConversationEvents, None](Operation{
			ID: "followConversation", Method: "GET", Path: one + "/events", Tag: "conversations", Summary: "follow its entries and turns as they come",
			Description: "The entries after the last one that the client has received, and then what changes, whichever process changes it. The " +
				"stream has no end of its own: it breaks off with an `error` when the conversation is deleted (`not_found`) or " +
				"archived, when the program ends (`closing`), or when the caller's key or session does. The texts of models are not in it " +
				"while they are generated: `GET …/turns/{turn}/events` has those of the turn that `turn` names.",
			Answers: answers(ok("The events.").as(events[ConversationStream]())),
		}),
	}
}

// RoundFilter selects a page of a conversation's rounds.
type RoundFilter struct {
	ConversationPath
	// The maximum number of rounds.
	Limit int `query:"limit" minimum:"1" maximum:"200" default:"50"`
	// Only those with a `seq` below this one. The newest come first.
	Before *int64 `query:"before" minimum:"1"`
	// Only those with a `seq` above this one. The oldest come first then. Not with `before`.
	After *int64 `query:"after" minimum:"0"`
	Cursor
}

// Check refuses both directions at once.
func (in *RoundFilter) Check() error {
	if in.Before != nil && in.After != nil {
		return Refuse("after", "give before or after, not both")
	}
	return nil
}

// roundCursor is a cursor of the list of rounds.
type roundCursor struct {
	Before int64 `json:"before,omitempty"`
	After  int64 `json:"after,omitempty"`
}

// ListConversationRounds lists a conversation's requests to models.
//
// Each by the entry that answers it, whose request `GET …/entries/{seq}/request` shows. The newest come first. A page may be
// short, or empty, while `has_more` is true: at most 2 000 entries are searched for one.
func (s *Service) ListConversationRounds(ctx context.Context, scope continuo.Scope, in RoundFilter) (page List[engine.Round], err error) {
	conversation, err := s.open(ctx, scope, in.Conversation)
	if err != nil {
		return page, err
	}
	position := roundCursor{Before: valueOf(in.Before), After: valueOf(in.After)}
	ascending := in.After != nil
	if given, err := in.decode(&position); err != nil {
		return page, err
	} else if given {
		ascending = position.After > 0
	}
	query := conversations.RoundQuery{Limit: in.Limit, Before: position.Before}
	if ascending {
		query = conversations.RoundQuery{Limit: in.Limit, After: position.After, Ascending: true}
	}
	found, next, err := s.Engine.Conversations.Rounds(ctx, conversation, query)
	if err != nil {
		return page, err
	}
	page.Data = append([]engine.Round{}, found...)
	if next == 0 {
		return page, nil
	}
	page.HasMore = true
	if ascending {
		page.NextCursor = WriteCursor(roundCursor{After: next})
	} else {
		page.NextCursor = WriteCursor(roundCursor{Before: next})
	}
	return page, nil
}

// ConversationEvents is a request to follow a conversation.
type ConversationEvents struct {
	ConversationPath
	// The id of the last event with an id that the client has received. It takes precedence over `after`.
	LastEventID string `header:"Last-Event-ID" pattern:"^[0-9]+$"`
	// The `seq` of the last entry that the client has, for clients that cannot set headers. The default is the newest entry:
	// only what comes is sent.
	Seq *int64 `query:"after" minimum:"0"`
}

// Check reads the id of the last event.
func (in *ConversationEvents) Check() error {
	if in.LastEventID == "" {
		return nil
	}
	after := After{LastEventID: in.LastEventID}
	if err := after.Check(); err != nil {
		return err
	}
	if after.Ended() {
		return Refuse("Last-Event-ID", "Last-Event-ID must be the id of an event of this stream, not %q", Bounded(in.LastEventID))
	}
	in.Seq = &after.Seq
	return nil
}

// ConversationStream is the stream of a conversation.
type ConversationStream struct {
	// An entry; its `seq` is the `id`. No other event has one.
	Entry continuo.Entry `event:"entry"`
	// A turn began, or ended; the first event where one runs already. After the entries that it was committed with.
	Turn Turn `event:"turn"`
	// The title, the key, the user, the mode, the agent or the metadata changed.
	Conversation continuo.Conversation `event:"conversation"`
	// Stored entries changed, by a redaction: read again what is shown.
	Revised RevisedEvent `event:"revised"`
	// The last event of a stream that broke off.
	Error Error `event:"error"`
}

// RevisedEvent says that stored entries of a conversation changed.
type RevisedEvent struct {
	ConversationID string `json:"conversation_id"`
}

// FollowConversation finds the conversation that a client follows, and the seq after which its entries are sent.
func (s *Service) FollowConversation(ctx context.Context, scope continuo.Scope, in ConversationEvents) (conversation continuo.Conversation, after int64, err error) {
	conversation, err = s.open(ctx, scope, in.Conversation)
	if err != nil {
		return conversation, 0, err
	}
	if in.Seq == nil {
		return conversation, conversation.LastSeq, nil
	}
	if *in.Seq > conversation.LastSeq {
		return conversation, 0, At("after", fmt.Errorf("%w: the newest entry is %d", continuo.ErrBadRange, conversation.LastSeq))
	}
	return conversation, *in.Seq, nil
}

// PublicTurn is a turn in the form for clients.
func PublicTurn(t continuo.Turn) Turn { return public(t) }
