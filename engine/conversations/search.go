package conversations

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/recall/search"
	"github.com/continuo-log/continuo/recall/vector"
)

// Search finds entries within a scope by full text; see [search.Searcher.Search]. In a scope without a user, the request
// may name one.
func (cv *Conversations) Search(ctx context.Context, scope continuo.Scope, request index.Request) (index.Result, error) {
	user, err := scope.Owner(request.UserID)
	if err != nil {
		return index.Result{}, err
	}
	request.ProjectID, request.UserID = scope.ProjectID, user
	if request.Conversation != nil {
		user = request.Conversation.UserID
	}
	ctx = continuo.WithOwner(ctx, scope.ProjectID, user) // requests to other servers are charged to it
	began := time.Now()
	result, err := cv.Searcher().Search(ctx, request)
	if err == nil {
		err = cv.noteDeleted(ctx, request.Conversation, result.Items)
	}
	took := time.Since(began)
	cv.options.Searched(ctx, took)
	if err != nil {
		return result, err
	}
	logger := cv.options.Logger
	if request.Conversation != nil {
		logger = logger.With("conversation_id", request.Conversation.ID)
	}
	if result.Problem != nil {
		logger.WarnContext(ctx, "not_indexed", "error", result.Problem.Error())
	}
	attributes := []any{"duration_ms", took.Milliseconds(), "matches", len(result.Items), "more", result.NextCursor != "", "incomplete", result.Incomplete}
	if cv.options.LogText {
		attributes = append(attributes, "query", request.Query)
	}
	logger.InfoContext(ctx, "searched", attributes...)
	return result, nil
}

// noteDeleted marks the matches that clients have deleted: who searches the log still finds what it has. All are of one
// conversation where one was searched.
func (cv *Conversations) noteDeleted(ctx context.Context, searched *continuo.Conversation, items []index.Item) error {
	seqs := map[string][]int64{}
	for i := range items {
		if items[i].Seq > 0 {
			seqs[items[i].ConversationID] = append(seqs[items[i].ConversationID], items[i].Seq)
		}
	}
	in, err := cv.searched(ctx, searched, slices.Collect(maps.Keys(seqs)))
	if err != nil {
		return err
	}
	deleted := map[string][]int64{}
	for id, conversation := range in {
		deleted[id], err = cv.log.Deleted(ctx, *conversation, seqs[id])
		if err != nil && !errors.Is(err, continuo.ErrNotFound) && !errors.Is(err, continuo.ErrArchived) { // it was removed meanwhile
			return fmt.Errorf("search: %w", err)
		}
	}
	for i := range items {
		items[i].Deleted = slices.Contains(deleted[items[i].ConversationID], items[i].Seq)
	}
	return nil
}

// searched is the one conversation that was searched, or those with some ids.
func (cv *Conversations) searched(ctx context.Context, one *continuo.Conversation, ids []string) (map[string]*continuo.Conversation, error) {
	if one != nil {
		return map[string]*continuo.Conversation{one.ID: one}, nil
	}
	return cv.log.ConversationsByID(ctx, ids)
}

// Searcher is what searches.
func (cv *Conversations) Searcher() search.Searcher {
	return search.Searcher{Log: cv.log, Store: cv.options.Index, Vectors: cv.options.Vectors, Reranker: cv.options.Reranker}
}

// The bounds of one write by the watch to the index: a write of some milliseconds, since other writers wait for it.
const (
	watchDocuments = 64
	watchBytes     = 128 << 10
)

// WatchIndex updates the full-text index from the log at every interval, until ctx is done, so that searches need
// not. After each write it pauses for as long as the write took. Several processes may run it on one store. A failure
// is logged once until its text changes, and retried at the next interval. It returns at once without Options.Index.
func (cv *Conversations) WatchIndex(ctx context.Context, interval time.Duration) {
	if cv.options.Index == nil {
		return
	}
	indexer := index.Indexer{Log: cv.log, Store: cv.options.Index, MaxDocuments: watchDocuments, MaxBytes: watchBytes, Pause: true}
	cv.repeat(ctx, interval, "not_indexed", func() error {
		_, err := indexer.Run(ctx, index.Scope{}, time.Time{})
		return err
	})
}

// WatchVectors makes the embeddings of indexed entries at every interval, until ctx is done, as WatchIndex indexes them. It
// returns at once without Options.Vectors.
func (cv *Conversations) WatchVectors(ctx context.Context, interval time.Duration) {
	if cv.options.Vectors == nil {
		return
	}
	runner := vector.Runner{Log: cv.log, Store: cv.options.Index, Embedder: cv.options.Vectors.Embedder}
	cv.repeat(ctx, interval, "not_embedded", func() error { return runner.Run(ctx) })
}

// repeat works at every interval. A failure is logged once until its text changes.
func (cv *Conversations) repeat(ctx context.Context, interval time.Duration, event string, work func() error) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	text := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := work()
		switch {
		case ctx.Err() != nil, errors.Is(err, continuo.ErrClosed):
			return
		case err == nil:
			text = ""
		case err.Error() != text:
			text = err.Error()
			cv.options.Logger.WarnContext(ctx, event, "error", text)
		}
	}
}
