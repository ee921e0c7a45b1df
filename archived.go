package continuo

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Archives reads, restores and writes the archives of conversations, so that a redaction reaches into them. It is
// maintenance.Archivist, and must be safe for concurrent use.
type Archives interface {
	// Entries yields the own entries of an archived conversation, in order, without restoring it.
	Entries(ctx context.Context, archived Conversation) iter.Seq2[*Entry, error]
	// Restore moves an archived conversation back into the store; one that is not archived is left unchanged.
	Restore(ctx context.Context, id string) (Conversation, error)
	// Archive moves a conversation out of the store.
	Archive(ctx context.Context, id string) (Conversation, error)
}

// redactArchived redacts the own entries of an archived conversation that match, by what it is restored for a moment. One
// without any is only read. It fails with ErrArchived where the log has no archives.
func (l *Log) redactArchived(ctx context.Context, archived Conversation, matches func(*Entry) bool) error {
	if l.options.Archives == nil {
		return fmt.Errorf("conversation %s: %w", archived.ID, ErrArchived)
	}
	for entry, err := range l.options.Archives.Entries(ctx, archived) {
		if err != nil {
			return err
		}
		if entry.Redacted == nil && matches(entry) {
			return l.whileRestored(ctx, []Conversation{archived}, func() error { return l.redactMatching(ctx, archived.ID, matches) })
		}
	}
	return nil
}

// redactMatching redacts the own entries of a conversation that match.
func (l *Log) redactMatching(ctx context.Context, id string, matches func(*Entry) bool) error {
	conversation, err := l.Conversation(ctx, id)
	if err != nil {
		return err
	}
	var found []Entry
	for entry, err := range l.ReadShared(ctx, conversation, Range{From: conversation.ForkSeq + 1, isRaw: true}) {
		if err != nil {
			return err
		}
		if entry.Redacted == nil && matches(entry) {
			found = append(found, *entry)
		}
	}
	return l.redactQuoting(ctx, found)
}

// whileRestored calls do while conversations are in the store, and then archives those again that were archived. A process
// that ends in between leaves them restored.
func (l *Log) whileRestored(ctx context.Context, all []Conversation, do func() error) (err error) {
	for i := range all {
		if all[i].ArchivedAt.IsZero() {
			continue
		}
		if l.options.Archives == nil {
			return fmt.Errorf("conversation %s: %w", all[i].ID, ErrArchived)
		}
		if _, err := l.options.Archives.Restore(ctx, all[i].ID); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.archiveAgain(ctx, all[i].ID)) }()
	}
	return do()
}

// archiveAgain archives a conversation, unless another process has, or has removed it.
func (l *Log) archiveAgain(ctx context.Context, id string) error {
	_, err := l.options.Archives.Archive(context.WithoutCancel(ctx), id)
	if errors.Is(err, ErrArchived) || errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// lineageFrom returns a conversation, as it is now, and those of its ancestors of which it shows an entry from a seq on.
func (l *Log) lineageFrom(ctx context.Context, conversation Conversation, seq int64) ([]Conversation, error) {
	all := []Conversation{}
	for _, segment := range append([]Segment{{ConversationID: conversation.ID, Through: conversation.LastSeq}}, conversation.Lineage...) {
		if segment.Through < seq {
			continue
		}
		found, err := l.Conversation(ctx, segment.ConversationID)
		if errors.Is(err, ErrNotFound) {
			continue // deleted: its remaining entries are read with the conversation
		}
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return all, nil
}
