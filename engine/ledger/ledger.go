// Package ledger says what requests to models used and cost, and which turns ended. What it reads was written in the commits
// of the turns themselves: it is exact, and stays when conversations are deleted.
package ledger

import (
	"context"
	"errors"
	"iter"
	"math"
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

// prunedAtOnce bounds how many turns one commit removes.
const prunedAtOnce = 1000

// Prune removes from the feed the turns that ended before keep ago. Turns after the position of one of the receivers are kept
// for the same time again. It returns how many it removed.
func (l *Ledger) Prune(ctx context.Context, now time.Time, keep time.Duration, receivers []string) (removed int, err error) {
	through := int64(math.MaxInt64)
	for _, name := range receivers {
		position, err := l.log.FeedPosition(ctx, name)
		switch {
		case errors.Is(err, continuo.ErrNotFound): // it has not begun
		case err != nil:
			return 0, err
		default:
			through = min(through, position)
		}
	}
	removed, err = l.prune(ctx, now.Add(-keep), through)
	if err == nil && through < math.MaxInt64 {
		var more int
		more, err = l.prune(ctx, now.Add(-2*keep), math.MaxInt64)
		removed += more
	}
	return removed, err
}

func (l *Ledger) prune(ctx context.Context, before time.Time, through int64) (removed int, err error) {
	for {
		count, err := l.log.PruneFinished(ctx, before, through, prunedAtOnce)
		if removed += count; err != nil || count < prunedAtOnce {
			return removed, err
		}
	}
}

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
