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
	"github.com/continuo-log/continuo/recall/search"
)

// Searched is how much of the evidence searches find with the questions as they are asked.
type Searched struct {
	Result
	Questions, Empty int // Empty found nothing
	Took             time.Duration
}

// MeasureSearch searches for all questions with evidence, and takes the first matches.
func MeasureSearch(ctx context.Context, conversations []evidence.Conversation, matches int, open Open) (Searched, error) {
	found := Searched{Result: Result{}}
	for i := range conversations {
		err := open.with(ctx, func(store maintenance.Store) error {
			return searchOne(ctx, store, &conversations[i], matches, &found)
		})
		if err != nil {
			return found, fmt.Errorf("conversation %s: %w", conversations[i].ID, err)
		}
	}
	return found, nil
}

func searchOne(ctx context.Context, store maintenance.Store, c *evidence.Conversation, matches int, sum *Searched) error {
	log := continuo.NewLog(store, continuo.LogOptions{})
	places, asked, err := load(ctx, log, c, false)
	if err != nil {
		return err
	}
	searcher := search.Searcher{Log: log, Store: store}
	if _, err := (index.Indexer{Log: log, Store: store}).Run(ctx, index.Scope{}, time.Time{}); err != nil {
		return err
	}
	for _, q := range c.Questions {
		if len(q.Evidence) == 0 {
			continue
		}
		began := time.Now()
		page, err := searcher.Search(ctx, index.Request{ProjectID: asked.ProjectID, Conversation: &asked, Query: q.Question, Limit: matches})
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
