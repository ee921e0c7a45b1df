package conversations

import (
	"context"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/interchange"
)

// Imported is the result for one document.
type Imported struct {
	Conversation continuo.Conversation `json:"conversation"`
	// Existed says that the source had been imported before; Added counts its new entries.
	Existed bool `json:"existed"`
	Added   int  `json:"added"`
	// SourceTitle is the source's title where the conversation keeps another one.
	SourceTitle string `json:"source_title,omitempty"`
	// SourceID is the source's own id of the conversation, where that cannot be its key.
	SourceID string               `json:"source_id,omitempty"`
	Entries  int                  `json:"entries"`
	Repairs  []interchange.Repair `json:"repairs"`
	Source   string               `json:"source,omitempty"`
	Format   string               `json:"format,omitempty"`
}

// Import adds a document to a scope as a conversation, completely or not at all. Only the document's key identifies
// an earlier import, never its content: then Import appends just the messages that are new in the source, provided
// that the conversation has no entries of its own since. ErrExists says that the key is another conversation's, or
// that the two differ.
func (cv *Conversations) Import(ctx context.Context, scope continuo.Scope, document interchange.Document) (Imported, error) {
	conversation := document.Conversation
	user, err := scope.Owner(conversation.UserID)
	if err != nil {
		return Imported{}, err
	}
	conversation.ProjectID, conversation.UserID = scope.ProjectID, user
	if conversation.Title == "" {
		conversation.Title = firstWords(document.Entries)
	}
	conversation.Metadata = interchange.WithOrigin(conversation.Metadata, originOf(&document, int64(len(document.Entries))))
	result := Imported{SourceID: document.SourceID, Entries: len(document.Entries), Repairs: append([]interchange.Repair{}, document.Repairs...), Source: document.Source, Format: document.Format}
	for _, text := range document.Envelopes {
		if _, err := cv.log.PutText(ctx, []byte(text)); err != nil {
			return Imported{}, err
		}
	}
	result.Conversation, err = cv.log.Import(ctx, conversation, document.Entries)
	if err == nil {
		audit.About(ctx, result.Conversation.ID)
	}
	if !errors.Is(err, continuo.ErrExists) {
		return result, err
	}
	found, err := cv.log.Find(ctx, scope, conversation.Key)
	if errors.Is(err, continuo.ErrNotFound) {
		return Imported{}, fmt.Errorf("key %q: %w: choose another key", conversation.Key, continuo.ErrOtherUser)
	}
	if err != nil {
		return Imported{}, err
	}
	if found.UserID != user && user != "" {
		return Imported{}, fmt.Errorf("key %q: %w: choose another key", conversation.Key, continuo.ErrOtherUser)
	}
	if title := document.Conversation.Title; title != "" && title != found.Title {
		result.SourceTitle = title
	}
	result.Existed = true
	result.Conversation, result.Added, err = cv.importMore(ctx, found, &document)
	if err != nil || result.Added > 0 {
		audit.About(ctx, found.ID)
	}
	return result, err
}

func originOf(document *interchange.Document, last int64) interchange.Origin {
	n := document.Messages()
	return interchange.Origin{Messages: n, SHA256: document.Digest(n), LastSeq: last}
}

// importMore appends the messages that a source has gained since its conversation was imported.
func (cv *Conversations) importMore(ctx context.Context, found continuo.Conversation, document *interchange.Document) (continuo.Conversation, int, error) {
	differs := func(format string, args ...any) (continuo.Conversation, int, error) {
		return found, 0, fmt.Errorf("%w: the key %q is that of %s, %s; nothing was added: import it under a key of its own (--key, or key)",
			continuo.ErrExists, found.Key, found.ID, fmt.Sprintf(format, args...))
	}
	before, ok := interchange.OriginOf(found.Metadata)
	switch {
	case !ok:
		return differs("which was not imported")
	case before.Messages > document.Messages():
		return differs("which was imported with %d messages, and the source has %d", before.Messages, document.Messages())
	case before.SHA256 != document.Digest(before.Messages):
		return differs("whose first %d messages are not those of the source", before.Messages)
	case before.Messages == document.Messages():
		return found, 0, nil
	case found.LastSeq != before.LastSeq:
		return differs("which was continued here as well as in the source")
	}
	more := document.After(before.Messages)
	for _, entry := range more {
		if len(entry.Repairs) > 0 {
			return differs("and what the source has more needs repairs (%s)", entry.Repairs[0])
		}
	}
	stored, err := cv.log.Append(ctx, found.ID, more, continuo.AppendOptions{ExpectSeq: found.LastSeq + 1})
	if err != nil {
		return found, 0, fmt.Errorf("add what the source of conversation %s has more: %w", found.ID, err)
	}
	last := stored[len(stored)-1]
	updated := document.Conversation.UpdatedAt
	if updated.Before(last.CreatedAt) {
		updated = last.CreatedAt
	}
	changed, err := cv.log.Update(ctx, found.ID, continuo.ConversationChange{
		Metadata:  interchange.WithOrigin(found.Metadata, originOf(document, last.Seq)),
		UpdatedAt: updated,
	})
	return changed, len(stored), err
}

// ImportOnce is Import with an idempotency key instead of the document's own; ErrKeyReused says that the key was used
// for another document or another user.
func (cv *Conversations) ImportOnce(ctx context.Context, scope continuo.Scope, document interchange.Document, key string) (Imported, error) {
	document.Conversation.Key = OnceKey(scope, "import\n"+key)
	imported, err := cv.Import(ctx, scope, document)
	if errors.Is(err, continuo.ErrExists) || errors.Is(err, continuo.ErrOtherUser) {
		return Imported{}, fmt.Errorf("%w: key %q imported another list of messages", continuo.ErrKeyReused, key)
	}
	return imported, err
}

// firstWords makes a title from the first user entry.
func firstWords(entries []continuo.Entry) string {
	for _, entry := range entries {
		if title := TitleOf(entry.Content); entry.Role == continuo.User && title != "" {
			return title
		}
	}
	return ""
}
