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

func (h *History) key() string { return mirror.Key("langchaingo", h.options.UserID, h.session) }

// find finds the conversation; ErrNotFound where there is none yet.
func (h *History) find(ctx context.Context) (continuo.Conversation, error) {
	return h.log.Find(ctx, continuo.Scope{ProjectID: h.options.Project, UserID: h.options.UserID}, h.key())
}

// conversation finds the conversation, or creates it.
func (h *History) conversation(ctx context.Context) (continuo.Conversation, error) {
	found, err := h.find(ctx)
	if !errors.Is(err, continuo.ErrNotFound) {
		return found, err
	}
	made, err := h.log.Create(ctx, continuo.Conversation{ProjectID: h.options.Project, UserID: h.options.UserID, Key: h.key(), Title: h.session})
	if errors.Is(err, continuo.ErrExists) { // another one was faster
		return h.find(ctx)
	}
	return made, err
}

// AddMessage adds a message.
func (h *History) AddMessage(ctx context.Context, message llms.ChatMessage) error {
	conversation, err := h.conversation(ctx)
	if err != nil {
		return err
	}
	return h.add(ctx, conversation.ID, message)
}

func (h *History) add(ctx context.Context, conversationID string, message llms.ChatMessage) error {
	kept, err := mirrored(message)
	if err != nil {
		return err
	}
	if _, err := mirror.Append(ctx, h.log, conversationID, kept); err != nil {
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
	conversation, err := h.find(ctx)
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
	conversation, err := h.find(ctx)
	if err == nil {
		err = h.log.Delete(ctx, conversation.ID)
	}
	if errors.Is(err, continuo.ErrNotFound) {
		return nil
	}
	return err
}

// SetMessages replaces all messages: a new conversation has them before the old one is deleted.
func (h *History) SetMessages(ctx context.Context, messages []llms.ChatMessage) error {
	made, err := h.log.Create(ctx, continuo.Conversation{ProjectID: h.options.Project, UserID: h.options.UserID, Title: h.session})
	if err != nil {
		return err
	}
	for _, message := range messages {
		if err := h.add(ctx, made.ID, message); err != nil {
			return errors.Join(err, h.log.Delete(ctx, made.ID))
		}
	}
	if err := h.Clear(ctx); err != nil {
		return errors.Join(err, h.log.Delete(ctx, made.ID))
	}
	key := h.key()
	_, err = h.log.Update(ctx, made.ID, continuo.ConversationChange{Key: &key})
	return err
}
