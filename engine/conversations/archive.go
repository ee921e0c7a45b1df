package conversations

import (
	"context"
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

// Archive moves a conversation from the database into an archive; see maintenance.Archivist. It fails with a
// *continuo.BusyError while a turn runs, and with continuo.ErrInvalid for a memory, and where no storage for archives is
// configured.
func (cv *Conversations) Archive(ctx context.Context, conversation continuo.Conversation) (continuo.Conversation, error) {
	if cv.options.Archivist == nil {
		return continuo.Conversation{}, fmt.Errorf("archive conversation %s: %w: this program has no object store for archives", conversation.ID, continuo.ErrInvalid)
	}
	defer cv.removed.Add(1)
	return cv.options.Archivist.Archive(ctx, conversation.ID)
}

// Restore moves an archived conversation back into the database; one that is not archived is left unchanged.
func (cv *Conversations) Restore(ctx context.Context, conversation continuo.Conversation) (continuo.Conversation, error) {
	if conversation.ArchivedAt.IsZero() {
		return conversation, nil
	}
	if cv.options.Archivist == nil {
		return continuo.Conversation{}, fmt.Errorf("restore conversation %s: %w: this program has no object store for archives", conversation.ID, continuo.ErrInvalid)
	}
	return cv.options.Archivist.Restore(ctx, conversation.ID)
}
