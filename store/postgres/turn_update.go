package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/store/internal/form"
	"github.com/jackc/pgx/v5"
)

const (
	// An update that changes nothing only reads the turn, and so leaves no dead row behind for a vacuum.
	lookAtTurn = `SELECT signals FROM continuo.turns WHERE conversation_id = $1 AND id = $2 AND state = 'running' AND fence = $3`

	renewLease = `
UPDATE continuo.turns SET lease_until = CASE WHEN $4::bigint < 0 THEN '-infinity' ELSE clock_timestamp() + $4::bigint * interval '1 microsecond' END
WHERE conversation_id = $1 AND id = $2 AND state = 'running' AND fence = $3
RETURNING signals`

	// The condition on last_event ensures that the first new event follows the existing ones.
	changeTurn = `
WITH turn AS (
  UPDATE continuo.turns SET last_event = greatest(last_event, $5), state = coalesce($8, state), ended = coalesce($9, ended),
    ended_at = CASE WHEN $8::text IS NULL THEN ended_at ELSE greatest(started_at, ` + nowStamp + `) END,
    lease_until = CASE WHEN $8::text IS NOT NULL THEN NULL WHEN $7::bigint = 0 THEN lease_until WHEN $7::bigint < 0 THEN '-infinity'
      ELSE clock_timestamp() + $7::bigint * interval '1 microsecond' END
  WHERE conversation_id = $1 AND id = $2 AND state = 'running' AND fence = $3 AND last_event < $4
  RETURNING signals, ended_at),
told AS (
  INSERT INTO continuo.turn_events (conversation_id, turn_id, last_id, body)
  SELECT $1, $2, $5, $6::text FROM turn WHERE $6::text IS NOT NULL)`

	ofTurn = `
SELECT signals FROM turn`

	updateTurn = changeTurn + ofTurn

	updateTurnAndMode = changeTurn + `,
head AS (
  UPDATE continuo.conversations SET active_mode = coalesce($10, active_mode), active_agent = coalesce($11, active_agent)
  WHERE id = $1 AND (active_mode <> $10 OR active_agent <> $11) AND (SELECT count(*) FROM turn) = 1)` + ofTurn

	hasEvents = `SELECT EXISTS (SELECT 1 FROM continuo.turn_events WHERE conversation_id = $1 AND turn_id = $2 AND last_id = $3 AND body = $4)`

	isEnded = `SELECT EXISTS (SELECT 1 FROM continuo.turns WHERE conversation_id = $1 AND id = $2 AND fence = $3 AND state = $4 AND ended = $5)`
)

// turnUpdate is an encoded update.
type turnUpdate struct {
	continuo.TurnUpdate
	first, last int64 // ids of its events; without events, values for which first follows any event
	events, end string
}

func encodeUpdate(update continuo.TurnUpdate) (*turnUpdate, error) {
	row := &turnUpdate{TurnUpdate: update, first: math.MaxInt64}
	var err error
	switch update.State {
	case "":
	case continuo.TurnFinished, continuo.TurnFailed, continuo.TurnVoid:
		var end []byte
		end, err = rawjson.Marshal(update.End)
		row.end = string(end)
	default:
		err = fmt.Errorf("state %q ends no turn", update.State)
	}
	if n := len(update.Events); err == nil && n > 0 {
		row.first, row.last = update.Events[0].ID, update.Events[n-1].ID
		row.events, err = form.EncodeEvents(update.Events)
	}
	if err != nil {
		return nil, fmt.Errorf("update turn %s: %w: %w", update.TurnID, continuo.ErrInvalid, err)
	}
	return row, nil
}

// foldUpdates combines a batch's updates into one: only the running turn can be updated, and each update
// follows the one before. It returns nil when there is none. Refused says why one of the updates cannot be
// made; the returned update then combines those before it.
func foldUpdates(batch continuo.Batch) (folded *turnUpdate, refused, err error) {
	for _, update := range batch.Turns {
		if update.ConversationID != batch.ConversationID {
			return nil, nil, fmt.Errorf("%w: an update of a turn of conversation %q in a batch for %q", continuo.ErrInvalid, update.ConversationID, batch.ConversationID)
		}
		next, err := encodeUpdate(update)
		switch {
		case err != nil:
			return nil, nil, err
		case folded == nil:
			folded = next
		case refused == nil:
			refused = folded.add(next)
		}
	}
	return folded, refused, nil
}

// add combines the update with the next one.
func (u *turnUpdate) add(next *turnUpdate) error {
	if next.TurnID != u.TurnID || next.Fence != u.Fence || u.State != "" {
		return fmt.Errorf("update turn %s: %w", next.TurnID, continuo.ErrLeaseLost)
	}
	if next.first <= u.last {
		return fmt.Errorf("update turn %s: %w: event %d after event %d", u.TurnID, continuo.ErrInvalid, next.first, u.last)
	}
	switch {
	case next.events == "":
	case u.events == "":
		u.first, u.last, u.events = next.first, next.last, next.events
	default:
		u.last, u.events = next.last, u.events[:len(u.events)-1]+","+next.events[1:]
	}
	if next.Lease != 0 {
		u.Lease = next.Lease
	}
	if next.Mode != "" {
		u.Mode = next.Mode
	}
	if next.Agent != "" {
		u.Agent = next.Agent
	}
	u.State, u.End, u.end = next.State, next.End, next.end
	u.Charges = append(slices.Clip(u.Charges), next.Charges...)
	return nil
}

// UpdateTurn is part of continuo.TurnStore. It fails with continuo.ErrInvalid when the events do not follow
// the existing ones, or their data are no JSON objects.
func (s *Store) UpdateTurn(ctx context.Context, update continuo.TurnUpdate) (signals []continuo.TurnSignal, err error) {
	u, err := encodeUpdate(update)
	if err != nil {
		return nil, err
	}
	count, err := s.updateTurn(ctx, u)
	if err != nil || count <= update.SignalsSeen {
		return nil, err
	}
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		signals, err = readSignals(ctx, q, update)
		return err
	})
	return signals, err
}

// updateTurn applies an update and returns an upper bound of the turn's signals.
func (s *Store) updateTurn(ctx context.Context, u *turnUpdate) (signals int, err error) {
	why := func(ctx context.Context, q querier) error { return whyNotUpdated(ctx, q, u) }
	scan := func(row pgx.Row) error { return row.Scan(&signals) }
	statement, args := u.statement(s.writers.number(u.ConversationID))
	if statement == lookAtTurn {
		err = s.read(ctx, func(ctx context.Context, q querier) error {
			if err := orNotFound(scan(q.QueryRow(ctx, statement, args...))); unlessNotFound(err) != nil || err == nil {
				return err
			}
			return why(ctx, q)
		})
		return signals, err
	}
	signals = math.MaxInt // only the end of the turn was read
	err = s.write(ctx, &change{
		conversationID: u.ConversationID, key: u.ConversationID, size: len(u.events) + sizeOf(u.Blobs),
		statement: statement, args: args, scan: scan, why: why, committed: u.wasCommitted,
	})
	return signals, err
}

// statement chooses the statement with only the parts that the update needs.
func (u *turnUpdate) statement(writer int64) (string, []any) {
	args := []any{u.ConversationID, u.TurnID, u.Fence}
	switches := u.Mode != "" || u.Agent != ""
	if u.events == "" && u.State == "" && !switches && len(u.Blobs)+len(u.Charges) == 0 {
		if u.Lease == 0 {
			return lookAtTurn, args
		}
		return renewLease, append(args, microseconds(u.Lease))
	}
	args = append(args, u.first, u.last, orNull(u.events), microseconds(u.Lease), orNull(string(u.State)), orNull(u.end))
	statement := updateTurn
	if switches {
		statement, args = updateTurnAndMode, append(args, orNull(string(u.Mode)), orNull(u.Agent))
	}
	statement, args = u.withCharges(writer, statement, ofTurn, args, [3]int{2, 8, 9})
	return withBlobs(u.Blobs, "turn", statement, ofTurn, args)
}

// wasCommitted reports whether an update was committed, by looking for the rows that it would have written.
// An update that writes nothing can be made twice.
func (u *turnUpdate) wasCommitted(ctx context.Context, q querier) (committed bool, err error) {
	switch {
	case u.events != "":
		err = q.QueryRow(ctx, hasEvents, u.ConversationID, u.TurnID, u.last, u.events).Scan(&committed)
	case u.State != "":
		err = q.QueryRow(ctx, isEnded, u.ConversationID, u.TurnID, u.Fence, string(u.State), u.end).Scan(&committed)
	}
	return committed, err
}

// whyNotUpdated returns the reason of a refusal, nil when an update should not be refused.
func whyNotUpdated(ctx context.Context, q querier, u *turnUpdate) error {
	have, err := readTurn(ctx, q, turnByID, u.ConversationID, u.TurnID)
	if unlessNotFound(err) != nil {
		return err
	}
	if err != nil || have.State != continuo.TurnRunning || have.Fence != u.Fence {
		return fmt.Errorf("update turn %s: %w", u.TurnID, continuo.ErrLeaseLost)
	}
	if u.first <= have.LastEvent {
		return fmt.Errorf("update turn %s: %w: event %d after event %d", u.TurnID, continuo.ErrInvalid, u.first, have.LastEvent)
	}
	return nil
}
