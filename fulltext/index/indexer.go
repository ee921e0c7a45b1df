package index

import (
	"context"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Indexer indexes the log. It holds one batch in memory, may be used concurrently, and may race with others.
type Indexer struct {
	Log   *continuo.Log
	Store Store
	// MaxDocuments and MaxBytes bound a batch: its documents, and the bytes of their texts without the last
	// entry. Default 256 and 1 MiB.
	MaxDocuments, MaxBytes int
	// Pause makes the indexer pause after each batch for as long as the batch took, so that others can write.
	// Default false.
	Pause bool
	// Indexed is called after each batch with the number of entries added. Default nil.
	Indexed func(entries int64)
}

// Scope is one conversation, or those of a project, or, if both are empty, all.
type Scope struct{ ConversationID, ProjectID string }

const (
	listed     = 64     // conversations in the first page
	maxRaces   = 100    // lost races in a conversation before it is left to the other indexer
	maxPassed  = 100    // conversations that a run skips before it gives up
	maxHandled = 10_000 // conversations that a run remembers
)

// run is one Run.
type run struct {
	Indexer
	until   time.Time
	handled map[string]bool // conversations that were completely indexed at their turn
	passed  map[string]bool // conversations that cannot be indexed, or that other indexers handle
	races   map[string]int
	err     error // the first error of those that cannot be indexed
}

var errTimeUp = errors.New("the time is up")

// Run indexes a scope until everything that waited at its start is indexed, or until the deadline (zero:
// none), after which it finishes the current batch. It reports whether everything was indexed. A conversation
// that cannot be indexed is skipped: the first such error is returned at the end.
func (x Indexer) Run(ctx context.Context, scope Scope, until time.Time) (done bool, err error) {
	r := run{Indexer: x, until: until, handled: map[string]bool{}, passed: map[string]bool{}, races: map[string]int{}}
	query := UnindexedQuery{ConversationID: scope.ConversationID, ProjectID: scope.ProjectID, Limit: listed}
	for {
		waiting, err := x.Store.Unindexed(ctx, query)
		if err != nil {
			return false, fmt.Errorf("index: %w", err)
		}
		fresh := 0
		for _, unindexed := range waiting {
			if id := unindexed.Conversation.ID; r.handled[id] || r.passed[id] {
				continue
			}
			fresh++
			if err := r.one(ctx, unindexed); errors.Is(err, errTimeUp) {
				return false, r.err
			} else if err != nil {
				return false, err
			}
		}
		switch {
		case fresh > 0:
		case len(waiting) < query.Limit:
			return len(r.passed) == 0, r.err
		default:
			query.Limit *= 2 // conversations that have changed again hide others
		}
	}
}

// one indexes a conversation. Its error ends the run.
func (r *run) one(ctx context.Context, unindexed Unindexed) error {
	id := unindexed.Conversation.ID
	err := r.conversation(ctx, unindexed)
	var faster *continuo.ConflictError
	switch {
	case err == nil:
		if len(r.handled) == maxHandled {
			clear(r.handled)
		}
		r.handled[id] = true
		return nil
	case errors.Is(err, errTimeUp):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("index: %w", ctx.Err())
	case errors.As(err, &faster):
		r.races[id]++
		r.passed[id] = r.races[id] > maxRaces
		return nil
	}
	for _, hopeless := range []error{continuo.ErrClosed, continuo.ErrUnavailable, continuo.ErrReadOnly, continuo.ErrFull} {
		if errors.Is(err, hopeless) {
			return fmt.Errorf("index conversation %s: %w", id, err)
		}
	}
	r.passed[id] = true
	if now, err := r.Log.Conversation(ctx, id); errors.Is(err, continuo.ErrNotFound) || err == nil && !now.ArchivedAt.IsZero() {
		return nil
	}
	if r.err == nil {
		r.err = fmt.Errorf("index conversation %s: %w", id, err)
	}
	if len(r.passed) > maxPassed {
		return r.err
	}
	return nil
}

// conversation indexes a conversation's entries that are not indexed yet.
func (r *run) conversation(ctx context.Context, unindexed Unindexed) error {
	conversation, next := unindexed.Conversation, unindexed.Indexed+1
	newest, err := r.newestOf(ctx, conversation, unindexed.Indexed)
	if err != nil {
		return err
	}
	b, began := newBatch(conversation.ID, unindexed.Indexed, newest), time.Now()
	if !unindexed.Title {
		b.title(conversation)
	}
	if next <= conversation.LastSeq {
		for entry, err := range r.Log.Read(ctx, conversation, continuo.Range{From: next}) {
			if err != nil {
				return err
			}
			b.add(&entry)
			if !r.isFull(&b) {
				continue
			}
			if err := r.commit(ctx, &b, began); err != nil {
				return err
			}
			b, began = newBatch(conversation.ID, b.Through, b.newest), time.Now()
		}
	}
	if b.isEmpty() {
		return nil
	}
	return r.commit(ctx, &b, began)
}

// lookBack is how many entries before a batch are searched for a later time.
const lookBack = 8

// newestOf returns the latest time of the conversation's own newest entries up to a seq.
func (r *run) newestOf(ctx context.Context, conversation continuo.Conversation, to int64) (newest int64, err error) {
	newest = nanoseconds(time.Time{})
	if to <= conversation.ForkSeq {
		return newest, nil
	}
	for entry, err := range r.Log.Read(ctx, conversation, continuo.Range{From: max(conversation.ForkSeq+1, to-lookBack+1), To: to}) {
		if err != nil {
			return 0, err
		}
		newest = max(newest, nanoseconds(entry.CreatedAt))
	}
	return newest, nil
}

func (r *run) isFull(b *batch) bool {
	documents, bytes := r.MaxDocuments, r.MaxBytes
	if documents <= 0 {
		documents = 256
	}
	if bytes <= 0 {
		bytes = 1 << 20
	}
	return len(b.Documents) >= documents || b.bytes >= bytes || b.Through-b.After >= int64(8*documents)
}

// commit sends a batch to the index, and pauses. errTimeUp means that it was the last one.
func (r *run) commit(ctx context.Context, b *batch, began time.Time) error {
	if err := r.Store.Index(ctx, b.Batch); err != nil {
		return err
	}
	if r.Indexed != nil {
		r.Indexed(b.Through - b.After)
	}
	if !r.until.IsZero() && !time.Now().Before(r.until) {
		return errTimeUp
	}
	if !r.Pause {
		return nil
	}
	pause := time.NewTimer(time.Since(began))
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-pause.C:
		return nil
	}
}
