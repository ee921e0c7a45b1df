package gateway

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/gateway/match"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/turn"
)

// conversationHeader names the conversation of a request: an id, or a key that begins one.
const conversationHeader = "X-Conversation-ID"

// matched is the conversation of a request.
type matched struct {
	*match.Match
	conversation continuo.Conversation // without an id where it is to be created
	view         string                // what the model is shown; "": what the client sent
	from         int64                 // the seq of the first entry that the client sent; 0 for the conversation's first
	chat         *engine.Chat          // the turn that the request repeats; nil where Match says it
}

// match finds the conversation that a request belongs to, and forks it where the request says so.
func (g *Gateway) match(r *http.Request, scope continuo.Scope, asked *askedRequest, repeat engine.Repeat) (*matched, error) {
	ctx, query := r.Context(), match.Query{Scope: scope, Request: asked.Request, Header: r.Header, IdempotencyKey: repeat.Key}
	if repeat.Key != "" || repeat.Again {
		query.Repeats = func(ctx context.Context, conversation continuo.Conversation, turnID string) (bool, error) {
			return g.engine.Turns.IsRepeated(ctx, conversation, turnID, repeat)
		}
	}
	named := r.Header.Get(conversationHeader)
	if named != "" {
		conversation, err := g.engine.Conversations.Find(ctx, scope, named)
		switch {
		case err == nil:
			if err := conversations.TakesMessages(conversation); err != nil {
				return nil, err
			}
			query.Named = &conversation
		case !errors.Is(err, continuo.ErrNotFound):
			return nil, err
		}
	}
	if named != "" && query.Named == nil {
		if err := conversations.CheckKey(named); err != nil {
			return nil, api.At(conversationHeader, err)
		}
		query.Named = &continuo.Conversation{}
	}
	if query.Repeats != nil {
		if again, err := g.again(ctx, scope, repeat, query.Named); again != nil || err != nil {
			return again, err
		}
	}
	decided, err := g.matcher.Match(ctx, query)
	if err != nil {
		return nil, err
	}
	found := &matched{Match: decided, conversation: decided.Conversation}
	created := continuo.Conversation{
		ProjectID: scope.ProjectID, UserID: scope.UserID, ActiveMode: continuo.ModeChat, Kind: decided.Kind(), Key: decided.Key, ParentID: decided.Parent,
		Metadata: metadataOf(decided),
	}
	if named != "" && query.Named.ID == "" {
		created.Key = named
	}
	if decided.ParentKey != "" {
		parent, err := g.engine.Conversations.Session(ctx, scope, decided.ParentKey)
		if err != nil {
			return nil, err
		}
		created.ParentID = parent.ID
	}
	if found.conversation.ID != "" && found.conversation.Title == "" {
		if title := conversations.TitleOf(match.Title(asked.Entries)); title != "" {
			if found.conversation, err = g.engine.Conversations.Change(ctx, scope, found.conversation.ID, continuo.ConversationChange{Title: &title}); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case decided.Fork && decided.At > 0:
		created.ParentID = ""
		created.Title = found.conversation.Title
		found.conversation, err = g.forkOnce(ctx, scope, found.conversation.ID, decided.At, created, repeat)
	case decided.Fork || found.conversation.ID == "":
		found.conversation = created
	}
	if err == nil {
		err = g.chooseView(r.Header, asked, found)
	}
	return found, err
}

// viewHeader says what the model is shown of a request: client, or the name of a view.
const viewHeader = "X-Continuo-View"

// chooseView decides what the model is shown of a request.
func (g *Gateway) chooseView(header http.Header, asked *askedRequest, found *matched) error {
	repeats := found.conversation.LastSeq == 0 || found.tracked()
	switch chosen := cmp.Or(header.Get(viewHeader), asked.upstream.Window, engine.WindowAuto); {
	case chosen == engine.WindowAuto && !repeats:
		found.view = usualView(asked)
	case chosen == engine.WindowClient && !repeats:
		found.from = found.conversation.LastSeq + 1
	case chosen == engine.WindowAuto, chosen == engine.WindowClient:
	default:
		if _, err := g.engine.Catalog.View(chosen); err != nil {
			return api.Refuse(viewHeader, "%s", err)
		}
		found.view = chosen
	}
	return nil
}

// forkOnce forks a conversation for a request. One with an idempotency key makes one fork, however often it is sent.
func (g *Gateway) forkOnce(ctx context.Context, scope continuo.Scope, parent string, at int64, created continuo.Conversation, repeat engine.Repeat) (continuo.Conversation, error) {
	keyed := repeat.Key != "" && created.Key == ""
	if keyed {
		created.Key = repeat.ClientKey(scope)
	}
	fork, err := g.engine.Conversations.Fork(ctx, parent, at, created)
	if keyed && errors.Is(err, continuo.ErrExists) {
		return g.engine.Conversations.Find(ctx, scope, created.Key)
	}
	return fork, err
}

// metadataOf says why a new conversation or a fork was made; nil for the beginning of a conversation.
func metadataOf(decided *match.Match) []byte {
	var members rawjson.Object
	if decided.Side != "" {
		members.Set("side", rawjson.MustMarshal(decided.Side))
	}
	if decided.Rewritten {
		members.Set("rewritten", []byte("true"))
	}
	return members.Raw()
}

// tracked reports whether the request repeats the conversation, so that its messages are what the client shows.
func (m *matched) tracked() bool {
	_, ok := m.Chain()
	return ok
}

// snapshot has the newest entries of the conversation; nil where they are not known.
func (m *matched) snapshot() *continuo.Snapshot {
	if m.Snapshot == nil || m.Snapshot.Conversation.ID != m.conversation.ID {
		return nil
	}
	return m.Snapshot
}

// prefixes makes the prefixes of what the request adds, and of the answer; nil where the conversation has none.
func (m *matched) prefixes() func([]continuo.Entry, bool) func([]continuo.Entry) []continuo.Prefix {
	chain, ok := m.Chain()
	if !ok {
		return nil
	}
	return prefixesAfter(chain, m.SummaryPrefixes)
}

// keptPrefixes makes the prefixes of what a request adds to a conversation whose history the server keeps, and of the answer:
// a client that sends the whole history later finds it. Nil for none.
func (g *Gateway) keptPrefixes(ctx context.Context, conversation continuo.Conversation, system []string) (func([]continuo.Entry, bool) func([]continuo.Entry) []continuo.Prefix, error) {
	chain, ok, err := g.matcher.Resume(ctx, conversation, system)
	if err != nil || !ok {
		return nil, err
	}
	return prefixesAfter(chain, func(*continuo.Entry) []continuo.Prefix { return nil }), nil
}

// prefixesAfter makes the prefixes of entries after a state of the hash, and of the answer to them; more has others of the answer.
func prefixesAfter(chain match.Chain, more func(answer *continuo.Entry) []continuo.Prefix) func([]continuo.Entry, bool) func([]continuo.Entry) []continuo.Prefix {
	after := chain
	return func(entries []continuo.Entry, answer bool) func([]continuo.Entry) []continuo.Prefix {
		if !answer {
			next, prefixes := chain.Add(entries)
			after = next
			return prefixes
		}
		_, prefixes := after.Add(entries)
		return func(stored []continuo.Entry) []continuo.Prefix {
			return append(prefixes(stored), more(&stored[0])...)
		}
	}
}

// again finds the turn that a request repeats by its key, or in the conversation that it names; nil for none.
func (g *Gateway) again(ctx context.Context, scope continuo.Scope, repeat engine.Repeat, named *continuo.Conversation) (*matched, error) {
	var in []continuo.Conversation
	if named != nil && named.ID != "" {
		in = append(in, *named)
	}
	chat, err := g.engine.Turns.Repeated(ctx, scope, repeat, in...)
	if err != nil || chat == nil {
		return nil, err
	}
	begun, err := g.engine.Turns.Get(ctx, chat.Conversation, chat.TurnID)
	if err != nil {
		return nil, err
	}
	found := &matched{Match: &match.Match{By: match.ByHeader}, conversation: chat.Conversation, chat: chat}
	if begun.View != turn.ClientViewName {
		found.view = begun.View
	}
	return found, nil
}

// repeated returns the turn that a request repeats, where it is running or has finished; nil for none.
func (g *Gateway) repeated(ctx context.Context, found *matched) (*engine.Chat, error) {
	if found.chat != nil {
		return found.chat, nil
	}
	if !found.Retry || found.RetryOf == "" {
		return nil, nil
	}
	repeated, err := g.engine.Turns.Get(ctx, found.conversation, found.RetryOf)
	if errors.Is(err, continuo.ErrNotFound) || err == nil && repeated.State == continuo.TurnFailed {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &engine.Chat{Conversation: found.conversation, TurnID: repeated.ID, Events: g.engine.Turns.Follow(ctx, repeated, 0)}, nil
}
