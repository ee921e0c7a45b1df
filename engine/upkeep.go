package engine

import (
	"context"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// Archive moves a conversation from the database into an archive; see upkeep.Archivist. It fails with a
// *continuo.BusyError while a turn runs, and with continuo.ErrInvalid where no storage for archives is configured.
func (cv *Conversations) Archive(ctx context.Context, conversation continuo.Conversation) (continuo.Conversation, error) {
	if cv.options.Archivist == nil {
		return continuo.Conversation{}, fmt.Errorf("archive conversation %s: %w: this program keeps no archives", conversation.ID, continuo.ErrInvalid)
	}
	return cv.options.Archivist.Archive(ctx, conversation.ID)
}

// Restore moves an archived conversation back into the database; one that is not archived is left unchanged.
func (cv *Conversations) Restore(ctx context.Context, conversation continuo.Conversation) (continuo.Conversation, error) {
	if conversation.ArchivedAt.IsZero() {
		return conversation, nil
	}
	if cv.options.Archivist == nil {
		return continuo.Conversation{}, fmt.Errorf("restore conversation %s: %w: this program keeps no archives", conversation.ID, continuo.ErrInvalid)
	}
	return cv.options.Archivist.Restore(ctx, conversation.ID)
}

// redactedSince lists the seqs of entries in a request that were redacted after its answer was appended, so that the
// request cannot be rebuilt as it was.
func redactedSince(plan *window.Plan, answer *continuo.Entry) []int64 {
	var seqs []int64
	for i := range plan.Messages {
		entry := plan.Messages[i].Entry
		if entry == nil || entry.Redacted == nil || entry.Redacted.At.Before(answer.CreatedAt) {
			continue
		}
		if len(seqs) == 0 || seqs[len(seqs)-1] != entry.Seq {
			seqs = append(seqs, entry.Seq)
		}
	}
	return seqs
}
