package conversations

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/continuo-log/continuo/engine/internal/brief"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/interchange"
)

// Reader reads conversations; see the methods of [continuo.Log].
type Reader interface {
	Conversation(ctx context.Context, id string) (continuo.Conversation, error)
	Read(ctx context.Context, conversation continuo.Conversation, r continuo.Range) iter.Seq2[continuo.Entry, error]
	Tail(ctx context.Context, id string, after int64) iter.Seq2[continuo.Entry, error]
	Listen(id string) *continuo.Listener
	Attachment(ctx context.Context, entry *continuo.Entry, attachment continuo.Attachment) (continuo.Part, error)
	EntryByOutputRef(ctx context.Context, conversation continuo.Conversation, ref string) (continuo.Entry, error)
	Output(ctx context.Context, entry *continuo.Entry) *io.SectionReader
	Mark(ctx context.Context, conversationID, name string) (continuo.Mark, error)
	AdvanceMark(ctx context.Context, conversationID, name string, mark continuo.Mark) (continuo.Mark, error)
	HasResidue() bool
	NewID(prefix string) string
	Now() time.Time
}

// Find finds the conversation of a scope that an id or a key names, archived or not. The operation of the context is about it
// (see [audit.About]).
func (cv *Conversations) Find(ctx context.Context, scope continuo.Scope, name string) (continuo.Conversation, error) {
	found, err := continuo.Conversation{}, continuo.ErrNotFound
	if KeyPattern.MatchString(name) { // all ids and keys match it
		found, err = cv.log.Find(ctx, scope, name)
	}
	if err == nil {
		audit.About(ctx, found.ID)
	}
	if errors.Is(err, continuo.ErrNotFound) {
		err = fmt.Errorf("conversation %q: %w", brief.Shorten(name, maxNamed), continuo.ErrNotFound)
	}
	return found, err
}

// maxNamed bounds how much of an unknown name an error repeats; longer ones are not keys.
const maxNamed = 130

// Get finds a conversation whose entries can be read: an archived one is refused with ErrArchived.
func (cv *Conversations) Get(ctx context.Context, scope continuo.Scope, name string) (continuo.Conversation, error) {
	found, err := cv.Find(ctx, scope, name)
	if err == nil && !found.ArchivedAt.IsZero() {
		err = fmt.Errorf("conversation %q: %w", name, continuo.ErrArchived)
	}
	return found, err
}

// List lists conversations, the newest change first.
func (cv *Conversations) List(ctx context.Context, query continuo.ConversationQuery) ([]continuo.Conversation, error) {
	return cv.log.Conversations(ctx, query)
}

// Delete deletes a conversation; see [continuo.Log.Delete].
func (cv *Conversations) Delete(ctx context.Context, id string) error {
	defer cv.removed.Add(1)
	audit.About(ctx, id)
	return cv.log.Delete(ctx, id)
}

// Removed changes whenever this process has deleted or archived a conversation: a hint that a list may have become shorter.
func (cv *Conversations) Removed() uint64 { return cv.removed.Load() }

// Fork forks a conversation behind an entry, 0 for the newest; see [continuo.Log.Fork].
func (cv *Conversations) Fork(ctx context.Context, parentID string, at int64, fork continuo.Conversation) (continuo.Conversation, error) {
	forked, err := cv.log.Fork(ctx, parentID, at, fork)
	if err == nil {
		audit.Targets(ctx, forked.ID)
	}
	return forked, err
}

// Append appends entries of a client; see [continuo.Log.Append]. The conversations of tasks and agents take none.
func (cv *Conversations) Append(ctx context.Context, conversation continuo.Conversation, entries []continuo.Entry, options continuo.AppendOptions) ([]continuo.Entry, error) {
	if err := TakesMessages(conversation); err != nil {
		return nil, err
	}
	return cv.log.Append(ctx, conversation.ID, entries, options)
}

// Redact removes the content of entries; see [continuo.Log.RedactWith].
func (cv *Conversations) Redact(ctx context.Context, conversation continuo.Conversation, request continuo.RedactRequest) ([]continuo.Entry, error) {
	audit.About(ctx, conversation.ID)
	return cv.log.RedactWith(ctx, conversation, request)
}

// Export writes a conversation in a format; see [interchange.Export].
func (cv *Conversations) Export(ctx context.Context, w io.Writer, format string, conversation continuo.Conversation) error {
	return interchange.Export(ctx, w, format, cv.log, conversation)
}

// Unindexed counts the entries of a scope that the full-text index lacks, in at most so many conversations.
func (cv *Conversations) Unindexed(ctx context.Context, scope index.Scope, conversations int) (entries int64, err error) {
	if cv.options.Index == nil {
		return 0, nil
	}
	waiting, err := cv.options.Index.Unindexed(ctx, index.UnindexedQuery{ConversationID: scope.ConversationID, ProjectID: scope.ProjectID, Limit: conversations})
	for _, unindexed := range waiting {
		entries += unindexed.Conversation.LastSeq - unindexed.Indexed
	}
	return entries, err
}

// Index brings the full-text index up to date for a scope; indexed is called with the number of entries of each
// write.
func (cv *Conversations) Index(ctx context.Context, scope index.Scope, indexed func(entries int64)) error {
	if cv.options.Index == nil {
		return nil
	}
	_, err := (&index.Indexer{Log: cv.log, Store: cv.options.Index, Indexed: indexed}).Run(ctx, scope, time.Time{})
	return err
}
