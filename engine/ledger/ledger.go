// Package ledger says what requests to models used and cost, and which turns ended. What it reads was written in the commits
// of the turns themselves: it is exact, and stays when conversations are deleted.
package ledger

import (
	"context"
	"iter"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Ledger reads the ledger of a log.
type Ledger struct {
	log *continuo.Log
}

// New makes a Ledger.
func New(log *continuo.Log) *Ledger { return &Ledger{log: log} }

// Spent adds up what requests used; see continuo.SpendingQuery.
func (l *Ledger) Spent(ctx context.Context, query continuo.SpendingQuery) ([]continuo.Spending, error) {
	return l.log.Spent(ctx, query)
}

// Finished lists turns in the order in which they ended; see continuo.LedgerStore.
func (l *Ledger) Finished(ctx context.Context, query continuo.FeedQuery) ([]continuo.FinishedTurn, error) {
	return l.log.FinishedTurns(ctx, query)
}

// LastFinished is the position of the turn that ended last.
func (l *Ledger) LastFinished(ctx context.Context) (int64, error) { return l.log.LastFinished(ctx) }

// feedPoll is how often a follower looks for turns that ended: they may end in any process.
const feedPoll = time.Second

// feedPage bounds how many turns one look reads.
const feedPage = 100

// Follow yields the turns of a query that have ended and that end, in order, until ctx is done. A turn that ends is yielded
// within about a second. The zero turn says that all that have ended were yielded.
func (l *Ledger) Follow(ctx context.Context, query continuo.FeedQuery) iter.Seq2[continuo.FinishedTurn, error] {
	query.Limit = feedPage
	return func(yield func(continuo.FinishedTurn, error) bool) {
		ticker := time.NewTicker(feedPoll)
		defer ticker.Stop()
		for {
			page, err := l.Finished(ctx, query)
			if err != nil {
				if ctx.Err() == nil {
					yield(continuo.FinishedTurn{}, err)
				}
				return
			}
			for _, turn := range page {
				if !yield(turn, nil) {
					return
				}
				query.After = turn.Position
			}
			if len(page) == feedPage {
				continue
			}
			if !yield(continuo.FinishedTurn{}, nil) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}
}
