package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/internal/rawjson"
)

func (s *Service) conversationOperations() []Operation {
	const conversations, one = "/api/conversations", "/api/conversations/{id}"
	const tag = "conversations"
	return []Operation{
		define(Operation{
			ID: "listConversations", Method: "GET", Path: conversations, Tag: tag, Summary: "list conversations, the newest change first",
			Answers: answers(ok("A page of conversations, and their activity.")),
		}, s.ListConversations),
		define(Operation{
			ID: "createConversation", Method: "POST", Path: conversations, Tag: tag, Summary: "begin an empty conversation",
			Answers: answers(created("The new conversation."), failing(http.StatusConflict, "The key is taken (`exists`).")),
		}, s.CreateConversation),
		define(Operation{
			ID: "getConversation", Method: "GET", Path: one, Tag: tag, Summary: "show a conversation",
			Answers: answers(ok("The conversation.")),
		}, s.GetConversation),
		define(Operation{
			ID: "changeConversation", Method: "PATCH", Path: one, Tag: tag, Summary: "change its title, metadata, mode or agent",
			NeedsBody: true, Answers: answers(ok("The conversation as it is now.")),
		}, s.ChangeConversation),
		define(Operation{
			ID: "deleteConversation", Method: "DELETE", Path: one, Tag: tag, Summary: "delete it",
			Answers: answers(Answer{Status: http.StatusNoContent, Description: "It is gone."}),
		}, s.DeleteConversation),
		define(Operation{
			ID: "forkConversation", Method: "POST", Path: one + "/fork", Tag: tag, Summary: "begin a conversation with its entries",
			Answers: answers(created("The fork.")),
		}, s.ForkConversation),
		define(Operation{
			ID: "archiveConversation", Method: "POST", Path: one + "/archive", Tag: tag, Summary: "take it out of the database, into an archive",
			Answers: answers(ok("The conversation, with `archived_at`."), failing(http.StatusConflict,
				"A turn runs (`conversation_busy`), it is archived already (`archived`), or it changed meanwhile, again and again (`conflict`).")),
		}, s.ArchiveConversation),
		define(Operation{
			ID: "restoreConversation", Method: "POST", Path: one + "/restore", Tag: tag, Summary: "bring it back from its archive",
			Answers: answers(ok("The conversation as it is now.")),
		}, s.RestoreConversation),
		define(Operation{
			ID: "redactEntries", Method: "POST", Path: one + "/redact", Tag: tag, Summary: "remove the content of entries permanently",
			NeedsBody: true, Answers: answers(ok("What was removed."), failing(http.StatusConflict,
				"One of their turns runs (`conversation_busy`), or the conversation is archived (`archived`).")),
		}, s.RedactEntries),
	}
}

// ConversationPath names a conversation in a path.
type ConversationPath struct {
	// A conversation's id or key.
	Conversation string `path:"id" arg:"conversation"`
}

// open finds a conversation by its id or key. An archived one is refused.
func (s *Service) open(ctx context.Context, scope continuo.Scope, id string) (continuo.Conversation, error) {
	return s.Engine.Conversations.Get(ctx, scope, id)
}

// Find finds a conversation by its id or key, archived or not.
func (s *Service) Find(ctx context.Context, scope continuo.Scope, id string) (continuo.Conversation, error) {
	return s.Engine.Conversations.Find(ctx, scope, id)
}

// GetConversation shows a conversation.
func (s *Service) GetConversation(ctx context.Context, scope continuo.Scope, in ConversationPath) (continuo.Conversation, error) {
	return s.Find(ctx, scope, in.Conversation)
}

// UserFilter limits a list to what one user owns.
type UserFilter struct {
	// Only what is this user's. A key that is bound to a user sees that user's alone, and may not name another one.
	UserID *string `query:"user_id" doc:"minLength=1,maxLength=256"`
}

// user is the user that the filter names; "" for all users of the scope.
func (f UserFilter) user(scope continuo.Scope) (string, error) {
	if f.UserID == nil {
		return scope.UserID, nil
	}
	if *f.UserID == "" {
		return "", Refuse("user_id", "user_id is empty: leave it out for those of all users")
	}
	user, err := scope.Owner(*f.UserID)
	return user, At("user_id", err)
}

// MetadataFilter limits a list to conversations with certain metadata.
type MetadataFilter struct {
	// `metadata.NAME=VALUE`, up to 8 of them: only conversations whose metadata have a member NAME that is a string, a
	// number or a boolean with this text, such as `metadata.plan=pro&metadata.seats=3`. Values of over 512 bytes are not
	// found.
	Labels Labels `query:"metadata." arg:"metadata"`
}

// Labels are values of metadata as text, by the names of the members.
type Labels map[string]string

// UnmarshalJSON reads them from an object whose values are strings, numbers and booleans.
func (l *Labels) UnmarshalJSON(data []byte) error {
	object, err := rawjson.ParseObject(data)
	if err != nil {
		return wrongType("metadata", "metadata must be an object")
	}
	if *l = continuo.LabelsOf(object.Raw()); len(*l) != len(object) {
		return Refuse("metadata", "the values of metadata must be strings of at most %d bytes, numbers or booleans", continuo.MaxLabelBytes)
	}
	return nil
}

// Check refuses names and values that no metadata can have.
func (f *MetadataFilter) Check() error {
	wanted := map[string]string{}
	for name, value := range f.Labels {
		param := "metadata." + name
		if name == "" {
			return Refuse(param, "write metadata.NAME=VALUE, with the name of a member of the metadata")
		}
		wanted[name] = value
		if err := continuo.CheckLabels(wanted); err != nil {
			return At(param, err)
		}
	}
	return nil
}

// ConversationFields are the fields of a conversation that a client may set.
type ConversationFields struct {
	Title *string `json:"title,omitempty" maxLength:"500"`
	// Up to 16 KiB of JSON.
	Metadata   json.RawMessage `json:"metadata,omitempty" type:"object"`
	ActiveMode *continuo.Mode  `json:"active_mode,omitempty" enum:"chat,agent,run"`
	// Another name of `active_mode`; only one of them may be given.
	Mode *continuo.Mode `json:"mode,omitempty" enum:"chat,agent,run"`
	// One of `/api/agents`; empty for none.
	ActiveAgent *string `json:"active_agent,omitempty"`
	// The client's own name for the conversation, as `session_id` has it; it must not begin with `conv_`. Empty or null
	// for none. 409 when another conversation has it.
	Key Setting `json:"key,omitempty" pattern:"^([A-Za-z0-9][A-Za-z0-9._:@-]{0,127})?$"`
	// The user that it belongs to: any text without control characters, of at most 256 bytes; empty or null for none. A key
	// that is bound to a user needs none, and may not name another one (403, `other_user`).
	UserID Setting `json:"user_id,omitempty" doc:"maxLength=256"`
}

// Setting is a text that null clears.
type Setting struct {
	Value *string // nil when absent, "" for null
}

// UnmarshalJSON reads a string or null.
func (s *Setting) UnmarshalJSON(data []byte) error {
	s.Value = new(string)
	return json.Unmarshal(data, s.Value)
}

// Text is the given text; "" for none.
func (s Setting) Text() string { return valueOf(s.Value) }

// mode is the mode given under either name; nil for none.
func (f *ConversationFields) mode() *continuo.Mode { return cmp.Or(f.ActiveMode, f.Mode) }

// maxMetadataBytes bounds the JSON of a conversation's metadata.
const maxMetadataBytes = 16 << 10

// Check checks what the tags do not say.
func (f *ConversationFields) Check() error {
	if len(f.Metadata) > maxMetadataBytes {
		return Refuse("metadata", "metadata must have at most %d bytes of JSON", maxMetadataBytes)
	}
	if f.ActiveMode != nil && f.Mode != nil {
		return Refuse("mode", "mode and active_mode are two names of one thing: give one of them")
	}
	if key := f.Key.Text(); key != "" {
		if err := conversations.CheckKey(key); err != nil {
			return At("key", err)
		}
	}
	if err := continuo.CheckUserID(f.UserID.Text()); err != nil {
		return At("user_id", err)
	}
	return At("metadata", continuo.CheckMetadata(f.Metadata))
}

// ConversationRequest is a new conversation.
type ConversationRequest struct{ ConversationFields }

// CreateConversation begins an empty conversation.
func (s *Service) CreateConversation(ctx context.Context, scope continuo.Scope, in ConversationRequest) (continuo.Conversation, error) {
	agent := valueOf(in.ActiveAgent)
	if err := s.checkAgent("active_agent", agent); err != nil {
		return continuo.Conversation{}, err
	}
	created, err := s.Engine.Conversations.Create(ctx, scope, continuo.Conversation{
		Title: valueOf(in.Title), Metadata: in.Metadata, ActiveMode: valueOf(in.mode()), ActiveAgent: agent,
		Key: in.Key.Text(), UserID: in.UserID.Text(),
	})
	return created, aboutOwner(err)
}

// ConversationChange changes fields of a conversation.
type ConversationChange struct {
	ConversationPath
	ConversationFields
}

// ChangeConversation changes a conversation.
//
// What is left out stays as it is. New metadata replace the old ones whole. An empty `active_agent` takes the agent away.
func (s *Service) ChangeConversation(ctx context.Context, scope continuo.Scope, in ConversationChange) (continuo.Conversation, error) {
	var none continuo.Conversation
	if in.Title == nil && in.Metadata == nil && in.mode() == nil && in.ActiveAgent == nil && in.Key.Value == nil && in.UserID.Value == nil {
		return none, Refuse("", "there is nothing to change: give title, metadata, key, user_id, active_mode or active_agent")
	}
	if err := s.checkAgent("active_agent", valueOf(in.ActiveAgent)); err != nil {
		return none, err
	}
	conversation, err := s.open(ctx, scope, in.Conversation)
	if err != nil {
		return none, err
	}
	changed, err := s.Engine.Conversations.Change(ctx, scope, conversation.ID, continuo.ConversationChange{
		Title: in.Title, Metadata: in.Metadata, ActiveMode: in.mode(), ActiveAgent: in.ActiveAgent, Key: in.Key.Value, UserID: in.UserID.Value,
	})
	return changed, aboutOwner(err)
}

// aboutOwner adds the field that caused an error when a client changes the owner or the key of a conversation.
func aboutOwner(err error) error {
	switch {
	case errors.Is(err, continuo.ErrOtherUser):
		return At("user_id", err)
	case errors.Is(err, continuo.ErrExists):
		return At("key", err)
	}
	return err
}

// DeleteConversation deletes a conversation.
//
// Its forks keep the entries that they began with. An archived one goes with its archive.
func (s *Service) DeleteConversation(ctx context.Context, scope continuo.Scope, in ConversationPath) (None, error) {
	conversation, err := s.Find(ctx, scope, in.Conversation)
	if err != nil {
		return None{}, err
	}
	return None{}, s.Engine.Conversations.Delete(ctx, conversation.ID)
}

// ForkRequest says where a fork begins.
type ForkRequest struct {
	ConversationPath
	// The last seq that the fork shares. The default is the newest.
	At *int64 `json:"at,omitempty" minimum:"1"`
	// The default is the conversation's own.
	Title *string `json:"title,omitempty" maxLength:"500"`
}

// ForkConversation begins a conversation with the entries of another.
//
// Copies nothing, however long the conversation is. A fork cannot be between a call and its result.
func (s *Service) ForkConversation(ctx context.Context, scope continuo.Scope, in ForkRequest) (continuo.Conversation, error) {
	parent, err := s.open(ctx, scope, in.Conversation)
	if err != nil {
		return parent, err
	}
	if in.At != nil && *in.At < 1 {
		return parent, Refuse("at", "at must be a seq from 1 to %d; leave it out for the newest", parent.LastSeq)
	}
	created, err := s.Engine.Conversations.Fork(ctx, parent.ID, valueOf(in.At), continuo.Conversation{Title: valueOf(in.Title)})
	return created, At("at", err)
}

// ConversationCommand is an operation on a conversation without further input.
type ConversationCommand struct {
	ConversationPath
	EmptyBody
}

// ArchiveConversation takes a conversation out of the database.
//
// Its entries, turns and idempotency records go into an archive, packed, until `restore` brings them back as they were.
// Meanwhile it can be shown, listed (`archived=true`), restored and deleted; every other call about it, and `POST /chat`,
// is refused with 409 `archived`. Its forks keep the entries that they began with.
func (s *Service) ArchiveConversation(ctx context.Context, scope continuo.Scope, in ConversationCommand) (continuo.Conversation, error) {
	conversation, err := s.open(ctx, scope, in.Conversation)
	if err != nil {
		return conversation, err
	}
	return s.Engine.Conversations.Archive(ctx, conversation)
}

// RestoreConversation brings an archived conversation back.
//
// One that is not archived is shown as it is.
func (s *Service) RestoreConversation(ctx context.Context, scope continuo.Scope, in ConversationCommand) (continuo.Conversation, error) {
	conversation, err := s.Find(ctx, scope, in.Conversation)
	if err != nil {
		return conversation, err
	}
	return s.Engine.Conversations.Restore(ctx, conversation)
}

// RedactRequest says what is to be removed. Either `seq`, or `from` and perhaps `to`.
type RedactRequest struct {
	ConversationPath
	// The one entry.
	Seq *int64 `json:"seq,omitempty" minimum:"1"`
	// The first entry.
	From *int64 `json:"from,omitempty" minimum:"1"`
	// The last entry. The default is the newest. At most 10 000 entries at once.
	To *int64 `json:"to,omitempty" minimum:"1"`
	// The reason, which the log records.
	Reason *string `json:"reason,omitempty" maxLength:"500"`
	// Whether the names of tools go too, also of entries that were redacted before.
	Tools bool `json:"tools,omitempty"`
}

// seqs returns the first and the last seq; the last is 0 for the newest.
func (r *RedactRequest) seqs() (from, to int64, err error) {
	switch {
	case r.Seq != nil && (r.From != nil || r.To != nil):
		return 0, 0, Refuse("seq", "give seq, or from and to, not both")
	case r.Seq != nil:
		return *r.Seq, *r.Seq, nil
	case r.From == nil:
		return 0, 0, Refuse("seq", "say which entries: give seq, or from, or from and to")
	case r.To != nil:
		to = max(*r.To, 1)
	}
	return *r.From, to, nil
}

// Redacted says what was removed.
type Redacted struct {
	ConversationID string `json:"conversation_id"`
	// The seqs of the entries that were redacted now, without those that had been before.
	Redacted []int64 `json:"redacted"`
	// Whether SQLite's write-ahead log still holds what was removed, because a reader needs it. It is cleared as soon as no
	// reader does.
	Residue bool `json:"residue"`
}

// RedactEntries removes the content of entries permanently.
//
// Removed are text, author, agent, name, arguments of calls, thinking, large outputs, attachments, the events of their turns
// and the entries of the search index; each entry keeps its position, role, time and calls. Summaries that replace one of
// the entries are removed too, also those of forks, and what other conversations have recalled of them. Entries that the
// conversation inherited are redacted where they were written, so that all forks show it. Archived forks, exports, backups and
// what providers keep are not reached.
func (s *Service) RedactEntries(ctx context.Context, scope continuo.Scope, in RedactRequest) (Redacted, error) {
	from, to, err := in.seqs()
	if err != nil {
		return Redacted{}, err
	}
	conversation, err := s.open(ctx, scope, in.Conversation)
	if err != nil {
		return Redacted{}, err
	}
	redacted, err := s.Engine.Conversations.Redact(ctx, conversation, continuo.RedactRequest{From: from, To: to, Reason: valueOf(in.Reason), Tools: in.Tools})
	if err != nil {
		return Redacted{}, err
	}
	seqs := make([]int64, len(redacted))
	for i := range redacted {
		seqs[i] = redacted[i].Seq
	}
	return Redacted{conversation.ID, seqs, s.Engine.Conversations.HasResidue()}, nil
}
