// Package langchaingo makes a log of Continuo the message history of langchaingo (schema.ChatMessageHistory), for its
// memories and conversation chains.
//
// A message is an entry. What an entry cannot say (a generic role, a function call of the older form) is kept beside it, so
// that langchaingo gets back what it gave. What no model could be shown at its place is a hidden record.
package langchaingo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/schema"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/internal/mirror"
)

// Options configures a history. The zero value works.
type Options struct {
	// Project is the project of the conversation, and UserID its user. Default continuo.DefaultProject, and none.
	Project string
	UserID  string
}

// History is the messages of one session. It is safe for concurrent use, also by several processes that share a store.
type History struct {
	log     *continuo.Log
	session string
	options Options
}

var _ schema.ChatMessageHistory = (*History)(nil)

// New makes the history of a session: a conversation with a key that is made of the session's name. It is created with its
// first message.
func New(log *continuo.Log, session string, options Options) *History {
	options.Project = cmp.Or(options.Project, continuo.DefaultProject)
	return &History{log: log, session: session, options: options}
}

// vendor is the name under which entries have what is not in them.
const vendor = "langchaingo"

// form is what an entry does not say of its message.
type form struct {
	Type    llms.ChatMessageType `json:"type"`
	Message json.RawMessage      `json:"message"`
}

func (h *History) conversation() continuo.Conversation {
	return continuo.Conversation{
		ProjectID: h.options.Project, UserID: h.options.UserID, Key: mirror.Key("langchaingo", h.options.UserID, h.session), Title: h.session,
	}
}

// AddMessage adds a message.
func (h *History) AddMessage(ctx context.Context, message llms.ChatMessage) error {
	kept, err := mirrored(message)
	if err != nil {
		return err
	}
	conversation, err := mirror.Open(ctx, h.log, h.conversation())
	if err == nil {
		_, err = mirror.Append(ctx, h.log, conversation.ID, kept)
	}
	if err != nil {
		return fmt.Errorf("langchaingo: add a message to session %s: %w", h.session, err)
	}
	return nil
}

// AddUserMessage adds what a person says.
func (h *History) AddUserMessage(ctx context.Context, text string) error {
	return h.AddMessage(ctx, llms.HumanChatMessage{Content: text})
}

// AddAIMessage adds what a model says.
func (h *History) AddAIMessage(ctx context.Context, text string) error {
	return h.AddMessage(ctx, llms.AIChatMessage{Content: text})
}

// Messages returns all messages.
func (h *History) Messages(ctx context.Context) ([]llms.ChatMessage, error) {
	conversation, err := mirror.Find(ctx, h.log, h.conversation())
	if errors.Is(err, continuo.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var messages []llms.ChatMessage
	for entry, err := range h.log.ReadShared(ctx, conversation, continuo.Range{}) {
		if err != nil {
			return nil, err
		}
		message, err := messageOf(entry)
		if err != nil {
			return nil, fmt.Errorf("langchaingo: entry %d of %s: %w", entry.Seq, conversation.ID, err)
		}
		if message != nil {
			messages = append(messages, message)
		}
	}
	return messages, nil
}

// Clear deletes the conversation with all of its messages.
func (h *History) Clear(ctx context.Context) error {
	return mirror.Remove(ctx, h.log, h.conversation())
}

// SetMessages replaces all messages: a new conversation has them before the old one is deleted.
func (h *History) SetMessages(ctx context.Context, messages []llms.ChatMessage) error {
	all := make([]mirror.Message, len(messages))
	for i, message := range messages {
		var err error
		if all[i], err = mirrored(message); err != nil {
			return err
		}
	}
	return mirror.Replace(ctx, h.log, h.conversation(), all)
}
