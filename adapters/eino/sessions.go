// Package eino makes a log of Continuo what Eino (github.com/cloudwego/eino) keeps agents in: the store of their checkpoints,
// and the histories of their sessions.
//
// Eino itself declares a store for checkpoints only, CheckPoints here. Histories are up to each program; Sessions has the
// methods that the programs of Eino's own examples have for them: Read, Write and Query, or Append.
//
// A message of a session is an entry, which the inspector shows and a search finds. What an entry does not say (extra fields,
// token usage, images) is kept beside it, so that Eino gets back what it gave. What no model could be shown at its place is
// a hidden record.
package eino

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/cloudwego/eino/schema"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/internal/mirror"
)

// Options configures a store. The zero value works.
type Options struct {
	// Project is the project of the conversations, and UserID their user. Default continuo.DefaultProject, and none.
	Project string
	UserID  string
}

// Message is what Eino's agents take and give: *schema.Message, or *schema.AgenticMessage.
type Message interface {
	*schema.Message | *schema.AgenticMessage
}

// Sessions is the histories of sessions. It is safe for concurrent use, also by several processes that share a store.
type Sessions[M Message] struct {
	log     *continuo.Log
	options Options
}

// NewSessions makes histories over a log, whose store the caller closes.
func NewSessions[M Message](log *continuo.Log, options Options) *Sessions[M] {
	options.Project = cmp.Or(options.Project, continuo.DefaultProject)
	return &Sessions[M]{log: log, options: options}
}

// vendor is the name under which entries have what is not in them.
const vendor = "eino"

func (s *Sessions[M]) conversation(session string) continuo.Conversation {
	return continuo.Conversation{
		ProjectID: s.options.Project, UserID: s.options.UserID, Key: mirror.Key("eino", s.options.UserID, session), Title: session, ActiveMode: continuo.ModeAgent,
	}
}

// Append appends messages to a session, one after another, and creates the session with the first. Each is durable before
// the next.
func (s *Sessions[M]) Append(ctx context.Context, session string, messages ...M) error {
	if len(messages) == 0 {
		return nil
	}
	conversation, err := mirror.Open(ctx, s.log, s.conversation(session))
	if err != nil {
		return fmt.Errorf("eino: session %s: %w", session, err)
	}
	for _, message := range messages {
		kept, err := mirrored(message)
		if err == nil {
			_, err = mirror.Append(ctx, s.log, conversation.ID, kept)
		}
		if err != nil {
			return fmt.Errorf("eino: append to session %s: %w", session, err)
		}
	}
	return nil
}

// Read returns the messages of a session, none where there is no such session.
func (s *Sessions[M]) Read(ctx context.Context, session string) ([]M, error) {
	conversation, err := mirror.Find(ctx, s.log, s.conversation(session))
	if errors.Is(err, continuo.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("eino: session %s: %w", session, err)
	}
	var messages []M
	for entry, err := range s.log.ReadShared(ctx, conversation, continuo.Range{}) {
		if err != nil {
			return nil, fmt.Errorf("eino: session %s: %w", session, err)
		}
		message, err := messageOf[M](entry)
		if err != nil {
			return nil, fmt.Errorf("eino: entry %d of %s: %w", entry.Seq, conversation.ID, err)
		}
		if message != nil {
			messages = append(messages, message)
		}
	}
	return messages, nil
}

// Write makes messages the whole history of a session. Where they begin with what the session has, which is the usual case,
// the others are appended; otherwise the session's conversation is replaced by a new one.
func (s *Sessions[M]) Write(ctx context.Context, session string, messages []M) error {
	stored, err := s.Read(ctx, session)
	if err != nil {
		return err
	}
	same, err := begins(messages, stored)
	if err != nil {
		return err
	}
	if same {
		return s.Append(ctx, session, messages[len(stored):]...)
	}
	all := make([]mirror.Message, len(messages))
	for i, message := range messages {
		if all[i], err = mirrored(message); err != nil {
			return err
		}
	}
	if err := mirror.Replace(ctx, s.log, s.conversation(session), all); err != nil {
		return fmt.Errorf("eino: write session %s: %w", session, err)
	}
	return nil
}

// begins reports whether messages begin with others.
func begins[M Message](messages, others []M) (bool, error) {
	if len(others) > len(messages) {
		return false, nil
	}
	for i, other := range others {
		one, err := json.Marshal(messages[i])
		if err != nil {
			return false, err
		}
		two, err := json.Marshal(other)
		if err != nil || !bytes.Equal(one, two) {
			return false, err
		}
	}
	return true, nil
}

// Query returns the messages of a session whose text has a text in it, in any case, the oldest first: at most limit, or all
// for 0. An empty text is in none.
func (s *Sessions[M]) Query(ctx context.Context, session, text string, limit int) ([]M, error) {
	if text == "" {
		return nil, nil
	}
	messages, err := s.Read(ctx, session)
	if err != nil {
		return nil, err
	}
	var found []M
	for _, message := range messages {
		if strings.Contains(strings.ToLower(textOf(message)), strings.ToLower(text)) {
			if found = append(found, message); len(found) == limit {
				break
			}
		}
	}
	return found, nil
}

// Delete deletes a session with all of its messages; none is no error.
func (s *Sessions[M]) Delete(ctx context.Context, session string) error {
	if err := mirror.Remove(ctx, s.log, s.conversation(session)); err != nil {
		return fmt.Errorf("eino: delete session %s: %w", session, err)
	}
	return nil
}
