package turn

import (
	"context"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

// Recovery is the decision about a running turn whose process is gone.
type Recovery string

// The fates.
const (
	RecoveryClose Recovery = ""      // the turn ends as interrupted
	RecoveryTaken Recovery = "taken" // this process continues it
	RecoveryLeave Recovery = "left"  // another process will continue it
)

// Takeover is a turn that continues in this process.
type Takeover struct {
	Journal *Journal
	// Started says that the turn's input is in the log: run the turn with Input.Resume.
	Started bool
}

// TakeUp takes over a running turn whose process is gone, under its own id; the caller must [Runner.Run] it. An
// unfinished answer becomes an entry with the reason interrupted, as when a turn is closed. A turn that was started in
// starts processes already is closed instead. TakeUp returns nil when another process was first, or the turn was
// closed.
func (k *Keeper) TakeUp(ctx context.Context, seen continuo.Turn, starts int) (*Takeover, error) {
	turn, err := k.store.TakeTurn(ctx, seen, k.options.Owner, k.options.Lease)
	if errors.Is(err, continuo.ErrLeaseLost) || errors.Is(err, continuo.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take up turn %s: %w", seen.ID, err)
	}
	partial, err := k.readPartialTurn(ctx, turn)
	if err == nil && partial.starts >= starts {
		return nil, k.close(ctx, turn)
	}
	if err != nil {
		return nil, fmt.Errorf("take up turn %s: %w", seen.ID, err)
	}
	j := k.resumeJournal(ctx, turn)
	if partial.started {
		j.used = partial.usage
		err = j.interrupted(partial)
	}
	if err != nil {
		k.end(j, err)
		return nil, fmt.Errorf("take up turn %s: %w", seen.ID, err)
	}
	k.options.Meter.TurnRecovered()
	return &Takeover{Journal: j, Started: partial.started}, nil
}

// resumeJournal creates the journal of a turn that this process took over.
func (k *Keeper) resumeJournal(ctx context.Context, turn continuo.Turn) *Journal {
	turn.LastEvent += idLeap
	j := newJournal(ctx, k, turn)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.journals[turn.ID] = j
	return j
}

// interrupted appends the unfinished answer that a turn's process left behind, and results of its open calls.
func (j *Journal) interrupted(partial *partialTurn) error {
	entries := partial.behindOpen(j.turn, nil)
	if partial.round != nil {
		entries = partial.entries(j.turn)
	}
	if len(entries) == 0 {
		return nil
	}
	eventsOf := func(stored []continuo.Entry) (emitted []Event) {
		for i := range stored {
			kind := Answered
			if stored[i].Role == continuo.Tool {
				kind = ToolDone
			}
			emitted = append(emitted, Event{Kind: kind, Entry: &stored[i]})
		}
		return emitted
	}
	_, err := j.append(entries, eventsOf, nil, 0)
	var rule *continuo.RuleError
	if errors.As(err, &rule) {
		_, err = j.append(partial.atLeast(j.turn), eventsOf, nil, 0)
	}
	return err
}

// keepRunning makes an update release the lease and leave the turn running, for another process to take over.
func keepRunning(update *continuo.TurnUpdate) { update.Lease = -1 }

// isLeftToOtherProcess reports whether the turn is left to another process because this one ends.
func (c *toolLoop) isLeftToOtherProcess(answer *continuo.Entry) bool {
	return c.in.Leave && answer.Error != nil && answer.Error.Reason == continuo.ReasonInterrupted && errors.Is(context.Cause(c.ctx), ErrInterrupted)
}
