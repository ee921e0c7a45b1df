package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/continuo-log/continuo/engine/conversations"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
)

// conversation finds the conversation that a path names by its id or key. An archived one is refused.
func (s *server) conversation(r *http.Request) (continuo.Conversation, error) {
	found, err := s.anyConversation(r)
	if err == nil && !found.ArchivedAt.IsZero() {
		err = fmt.Errorf("conversation %q: %w", bounded(r.PathValue("id")), continuo.ErrArchived)
	}
	return found, err
}

// anyConversation finds the conversation that a path names, archived or not.
func (s *server) anyConversation(r *http.Request) (continuo.Conversation, error) {
	id := r.PathValue("id")
	if !engine.KeyPattern.MatchString(id) { // all ids and keys match this pattern
		return continuo.Conversation{}, fmt.Errorf("conversation %q: %w", bounded(id), continuo.ErrNotFound)
	}
	return s.engine.Log.Find(r.Context(), scopeOf(r), id)
}

func (s *server) getConversation(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	conversation, err := s.anyConversation(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, conversation)
}

// conversationPlace is a cursor of the list of conversations.
type conversationPlace struct {
	UpdatedAt time.Time `json:"updated_at"`
	ID        string    `json:"id"`
}

func (s *server) listConversations(w http.ResponseWriter, r *http.Request) error {
	q, err := parseQuery(r, "limit", "cursor", "archived", "kind", "user_id", metadataParams)
	if err != nil {
		return err
	}
	limit, err := q.whole("limit", 1, 100, 20)
	if err != nil {
		return err
	}
	archived, err := q.flag("archived")
	if err != nil {
		return err
	}
	kind, err := kindOf(q)
	if err != nil {
		return err
	}
	query := continuo.ConversationQuery{ProjectID: scopeOf(r).ProjectID, Kind: kind, Archived: archived, Limit: int(limit) + 1}
	if query.UserID, err = q.user(scopeOf(r)); err != nil {
		return err
	}
	if query.Labels, err = q.labels(); err != nil {
		return err
	}
	if q.has("cursor") {
		var place conversationPlace
		if err := q.cursor(&place); err != nil {
			return err
		}
		query.Before = continuo.ConversationCursor(place)
	}
	found, err := s.engine.Log.Conversations(r.Context(), query)
	if err != nil {
		return err
	}
	page := paged(append([]continuo.Conversation{}, found...), limit, func(c continuo.Conversation) any { return conversationPlace{c.UpdatedAt, c.ID} })
	return writeJSON(w, http.StatusOK, page)
}

// kindOf reads the parameter kind; the default is people's conversations.
func kindOf(q query) (continuo.Kind, error) {
	switch name := q.text("kind"); {
	case !q.has("kind") || name == "talk":
		return continuo.KindTalk, nil
	case name == "":
		return "", refuse("kind", "kind is empty: leave it out for people's conversations")
	default:
		return continuo.Kind(name), oneOf("kind", name, "talk", string(continuo.KindTask), string(continuo.KindAgent))
	}
}

// conversationFields are the fields of a conversation that a client may set.
type conversationFields struct {
	Title       *string         `json:"title"`
	Metadata    json.RawMessage `json:"metadata"`
	ActiveMode  *continuo.Mode  `json:"active_mode"`
	Mode        *continuo.Mode  `json:"mode"` // a shorter name for ActiveMode
	ActiveAgent *string         `json:"active_agent"`
	Key         setting         `json:"key"`
	UserID      setting         `json:"user_id"`
}

// setting is a text that null clears.
type setting struct {
	value *string // nil when absent, "" for null
}

// UnmarshalJSON reads a string or null.
func (s *setting) UnmarshalJSON(data []byte) error {
	s.value = new(string)
	return json.Unmarshal(data, s.value)
}

// text is the given text; "" for none.
func (s setting) text() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// agent is the given agent; "" for none.
func (f conversationFields) agent() string {
	if f.ActiveAgent == nil {
		return ""
	}
	return *f.ActiveAgent
}

// mode is the mode given under either name; nil for none.
func (f conversationFields) mode() *continuo.Mode { return cmp.Or(f.ActiveMode, f.Mode) }

// The limits of the fields of a conversation that a client may set.
const (
	maxTitle         = 500      // Unicode characters
	maxMetadataBytes = 16 << 10 // of JSON
)

func (f conversationFields) check() error {
	if f.Title != nil && utf8.RuneCountInString(*f.Title) > maxTitle {
		return refuse("title", "title must have at most %d characters", maxTitle)
	}
	if len(f.Metadata) > maxMetadataBytes {
		return refuse("metadata", "metadata must have at most %d bytes of JSON", maxMetadataBytes)
	}
	if f.ActiveMode != nil && f.Mode != nil {
		return refuse("mode", "mode and active_mode are two names of one thing: give one of them")
	}
	for name, mode := range map[string]*continuo.Mode{"active_mode": f.ActiveMode, "mode": f.Mode} {
		if mode == nil {
			continue
		}
		if *mode == "" {
			return refuse(name, "%s must be one of chat, agent, run", name)
		}
		if err := oneOf(name, *mode, continuo.ModeChat, continuo.ModeAgent, continuo.ModeRun); err != nil {
			return err
		}
	}
	if key := f.Key.text(); key != "" {
		if err := conversations.CheckKey(key); err != nil {
			return at("key", err)
		}
	}
	if err := continuo.CheckUserID(f.UserID.text()); err != nil {
		return at("user_id", err)
	}
	return at("metadata", continuo.CheckMetadata(f.Metadata))
}

func (s *server) createConversation(w http.ResponseWriter, r *http.Request) error {
	var fields conversationFields
	if err := s.readOptional(w, r, &fields); err != nil {
		return err
	}
	if err := cmp.Or(fields.check(), s.api.CheckAgent("active_agent", fields.agent())); err != nil {
		return err
	}
	conversation := continuo.Conversation{UserID: fields.UserID.text(), Key: fields.Key.text(), ActiveAgent: fields.agent(), Metadata: fields.Metadata}
	if fields.Title != nil {
		conversation.Title = *fields.Title
	}
	if mode := fields.mode(); mode != nil {
		conversation.ActiveMode = *mode
	}
	created, err := s.engine.Conversations.Create(r.Context(), scopeOf(r), conversation)
	if err != nil {
		return aboutOwner(err)
	}
	return writeJSON(w, http.StatusCreated, created)
}

// readOptional decodes a body that may be absent.
func (s *server) readOptional(w http.ResponseWriter, r *http.Request, into any) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	body, err := s.readBody(w, r)
	if err != nil || body == nil {
		return err
	}
	return decode(body, into)
}

func (s *server) changeConversation(w http.ResponseWriter, r *http.Request) error {
	var fields conversationFields
	if err := s.readOptional(w, r, &fields); err != nil {
		return err
	}
	if fields.Title == nil && fields.Metadata == nil && fields.mode() == nil && fields.ActiveAgent == nil && fields.Key.value == nil && fields.UserID.value == nil {
		return refuse("", "there is nothing to change: give title, metadata, key, user_id, active_mode or active_agent")
	}
	if err := cmp.Or(fields.check(), s.api.CheckAgent("active_agent", fields.agent())); err != nil {
		return err
	}
	conversation, err := s.conversation(r)
	if err != nil {
		return err
	}
	changed, err := s.engine.Conversations.Change(r.Context(), scopeOf(r), conversation.ID, continuo.ConversationChange{
		Title: fields.Title, Metadata: fields.Metadata, ActiveMode: fields.mode(), ActiveAgent: fields.ActiveAgent,
		Key: fields.Key.value, UserID: fields.UserID.value,
	})
	if err != nil {
		return aboutOwner(err)
	}
	return writeJSON(w, http.StatusOK, changed)
}

// aboutOwner adds the field that caused an error when a client changes the owner or the key of a conversation.
func aboutOwner(err error) error {
	switch {
	case errors.Is(err, continuo.ErrOtherUser):
		return at("user_id", err)
	case errors.Is(err, continuo.ErrExists):
		return at("key", err)
	}
	return err
}

func (s *server) deleteConversation(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	conversation, err := s.anyConversation(r)
	if err != nil {
		return err
	}
	if err := s.engine.Log.Delete(r.Context(), conversation.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *server) forkConversation(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		At    *int64  `json:"at"`
		Title *string `json:"title"`
	}
	if err := s.readOptional(w, r, &request); err != nil {
		return err
	}
	if err := (conversationFields{Title: request.Title}).check(); err != nil {
		return err
	}
	parent, err := s.conversation(r)
	if err != nil {
		return err
	}
	var place int64 // the newest
	if request.At != nil {
		if place = *request.At; place < 1 {
			return refuse("at", "at must be a seq from 1 to %d; leave it out for the newest", parent.LastSeq)
		}
	}
	var fork continuo.Conversation
	if request.Title != nil {
		fork.Title = *request.Title
	}
	created, err := s.engine.Log.Fork(r.Context(), parent.ID, place, fork)
	if err != nil {
		return at("at", err)
	}
	return writeJSON(w, http.StatusCreated, created)
}
