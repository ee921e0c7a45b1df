package recallbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/evidence"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/recall/reorder"
	"github.com/continuo-log/continuo/recall/search"
	"github.com/continuo-log/continuo/recall/vector"
)

// Searched is how much of the evidence searches find with the questions as they are asked.
type Searched struct {
	Result
	Questions, Empty int // Empty found nothing
	Took             time.Duration
}

// SearchOptions say what is searched, and how.
type SearchOptions struct {
	Matches int // that are taken, the first
	// Sessions makes each session a conversation, and searches all of them. Default: each conversation is searched by itself.
	Sessions bool
	// Embedder and Reranker are those of the search. Default none.
	Embedder vector.Embedder
	Reranker reorder.Reranker
	Open     Open
}

// MeasureSearch searches for all questions with evidence.
func MeasureSearch(ctx context.Context, conversations []evidence.Conversation, options SearchOptions) (Searched, error) {
	found := Searched{Result: Result{}}
	for i := range conversations {
		err := options.Open.with(ctx, func(store maintenance.Store) error {
			return options.search(ctx, store, &conversations[i], &found)
		})
		if err != nil {
			return found, fmt.Errorf("conversation %s: %w", conversations[i].ID, err)
		}
	}
	return found, nil
}

func (o *SearchOptions) search(ctx context.Context, store maintenance.Store, c *evidence.Conversation, sum *Searched) error {
	log := continuo.NewLog(store, continuo.LogOptions{})
	places, stored, err := load(ctx, log, c, o.Sessions)
	if err != nil {
		return err
	}
	asked := &stored
	if o.Sessions {
		asked = nil
	}
	searcher := search.Searcher{Log: log, Store: store}
	if o.Embedder != nil {
		searcher.Vectors = &vector.Finder{Store: store, Embedder: o.Embedder}
	}
	if o.Reranker != nil {
		searcher.Reranker = &reorder.Merger{Reranker: o.Reranker}
	}
	if err := makeIndex(ctx, log, store, o.Embedder); err != nil {
		return err
	}
	for _, q := range c.Questions {
		if len(q.Evidence) == 0 {
			continue
		}
		began := time.Now()
		page, err := searcher.Search(ctx, index.Request{ProjectID: stored.ProjectID, Conversation: asked, Query: q.Question, Limit: o.Matches})
		sum.Took += time.Since(began)
		if err != nil && !errors.Is(err, continuo.ErrInvalid) {
			return err
		}
		has := map[place]bool{}
		for _, item := range page.Items {
			has[place{item.ConversationID, item.Seq}] = true
		}
		sum.Questions++
		if len(has) == 0 {
			sum.Empty++
		}
		sum.add(&q, func(message int) bool { return has[places[message]] })
	}
	return nil
}
