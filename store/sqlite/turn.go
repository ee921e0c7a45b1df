package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/store/internal/form"
)

const (
	insertTurn = `
INSERT INTO turns (conversation_id, id, state, owner, fence, lease_until, started_at, request, last_event)
VALUES (?, ?, 'running', ?, ?, ?, ?, ?, ?)`

	// Void turns count too.
	highestFence = `SELECT fence, started_at FROM turns WHERE conversation_id = ? ORDER BY fence DESC LIMIT 1`

	switchMode  = `UPDATE conversations SET active_mode = ? WHERE id = ? AND active_mode <> ?`
	switchAgent = `UPDATE conversations SET active_agent = ? WHERE id = ? AND active_agent <> ?`

	// Updates of a turn name the index of its key: otherwise the planner prefers the index of fences.
	takeTurn = `
UPDATE turns INDEXED BY sqlite_autoindex_turns_1 SET owner = ?, fence = fence + 1, lease_until = ?
WHERE conversation_id = ? AND id = ? AND state = 'running' AND fence = ?`

	// The last condition ensures that the first new event follows the existing ones.
	updateTurn = `
UPDATE turns INDEXED BY sqlite_autoindex_turns_1 SET last_event = max(last_event, ?), lease_until = coalesce(?, lease_until)
WHERE conversation_id = ? AND id = ? AND state = 'running' AND fence = ? AND last_event < ?
RETURNING signals`

	endTurn = `
UPDATE turns INDEXED BY sqlite_autoindex_turns_1 SET last_event = max(last_event, ?), lease_until = NULL, state = ?, ended_at = ?, ended = ?
WHERE conversation_id = ? AND id = ? AND state = 'running' AND fence = ? AND last_event < ?
RETURNING signals`

	selectTurn = `
SELECT conversation_id, id, state, owner, fence, coalesce(lease_until, ''), last_event, started_at, coalesce(ended_at, ''), request, ended
FROM turns `

	turnByID = selectTurn + `WHERE conversation_id = ? AND id = ?`

	runningTurn = selectTurn + `INDEXED BY turns_running WHERE conversation_id = ? AND state = 'running'`

	newestTurns = selectTurn + `INDEXED BY turns_by_start
WHERE conversation_id = ? AND state <> 'void'
ORDER BY started_at DESC, id DESC LIMIT +?`

	turnsBefore = selectTurn + `INDEXED BY turns_by_start
WHERE conversation_id = ? AND state <> 'void' AND (started_at, id) < (?, ?)
ORDER BY started_at DESC, id DESC LIMIT +?`

	runningTurns = selectTurn + `INDEXED BY turns_by_lease WHERE state = 'running'
ORDER BY lease_until, conversation_id, id LIMIT +?`
)

// encodeBegin is [form.EncodeBegin] for text that every database can store.
func encodeBegin(batch continuo.Batch) (*form.TurnBegin, error) {
	begin, err := form.EncodeBegin(batch)
	if err != nil || begin == nil {
		return nil, err
	}
	if err := checkText(begin.Turn.ID, begin.Turn.Owner, string(begin.Mode), begin.Agent); err != nil {
		return nil, fmt.Errorf("begin turn %s: %w", begin.Turn.ID, err)
	}
	return begin, nil
}

// insertBegun adds a turn that passed mayBegin. Replaces says that a void turn has its id.
func insertBegun(conn *connection, begin *form.TurnBegin, replaces bool, now time.Time) error {
	turn := &begin.Turn
	fence, started, err := nextTurn(conn, turn.ConversationID, now) // before a void turn is removed
	if err != nil {
		return err
	}
	if replaces {
		if err := removeTurn(conn, turn.ConversationID, turn.ID); err != nil {
			return err
		}
	}
	until := now.Add(begin.Lease)
	_, err = conn.exec(insertTurn, turn.ConversationID, turn.ID, turn.Owner, fence, stamp(until), stamp(started), begin.Request, begin.Last)
	if err == nil && begin.Events != "" {
		_, err = conn.exec(insertTurnEvents, turn.ConversationID, turn.ID, begin.Last, begin.Events)
	}
	if err == nil {
		err = switchConversation(conn, turn.ConversationID, begin.Mode, begin.Agent)
	}
	if err != nil {
		return err
	}
	begin.Begun = continuo.Turn{
		ID: turn.ID, ConversationID: turn.ConversationID, State: continuo.TurnRunning, TurnRequest: turn.TurnRequest, Owner: turn.Owner,
		Fence: fence, LeaseUntil: until.UTC().Round(0), LeaseExpired: begin.Lease <= 0, LastEvent: begin.Last, StartedAt: started.UTC().Round(0),
	}
	return nil
}

// switchConversation sets a conversation's active mode and agent; "" leaves them unchanged.
func switchConversation(conn *connection, conversationID string, mode continuo.Mode, agent string) (err error) {
	if mode != "" {
		_, err = conn.exec(switchMode, string(mode), conversationID, string(mode))
	}
	if err == nil && agent != "" {
		_, err = conn.exec(switchAgent, agent, conversationID, agent)
	}
	return err
}

// nextTurn returns the fence of a conversation's next turn and its start: after that of the previous turn,
// even if the clock was set back, so that the order of turns is the order in which they ran.
func nextTurn(conn *connection, conversationID string, now time.Time) (fence int64, started time.Time, err error) {
	var last string
	err = conn.row(highestFence, []any{conversationID}, &fence, &last)
	if errors.Is(err, sql.ErrNoRows) {
		return 1, now, nil
	}
	before, err := unstamp(last, err)
	if !now.After(before) {
		now = before.Add(time.Nanosecond)
	}
	return fence + 1, now, err
}

// mayBegin checks that a turn of a conversation that can be appended to may begin, and reports whether it replaces a void one.
func mayBegin(conn *connection, turn continuo.Turn, now time.Time) (replaces bool, err error) {
	same, err := readTurns(conn, now, turnByID, turn.ConversationID, turn.ID)
	if err != nil {
		return false, err
	}
	if len(same) > 0 && same[0].State != continuo.TurnVoid {
		return false, fmt.Errorf("%w: turn %s", continuo.ErrExists, turn.ID)
	}
	running, err := readTurns(conn, now, runningTurn, turn.ConversationID)
	if err != nil {
		return false, err
	}
	if len(running) > 0 {
		return false, &continuo.BusyError{Turn: running[0]}
	}
	return len(same) > 0, nil
}

// TakeTurn is part of continuo.TurnStore.
func (s *Store) TakeTurn(ctx context.Context, seen continuo.Turn, owner string, lease time.Duration) (taken continuo.Turn, err error) {
	err = s.write(ctx, func(conn *connection) error {
		now := s.now()
		changed, err := conn.exec(takeTurn, owner, stamp(now.Add(lease)), seen.ConversationID, seen.ID, seen.Fence)
		if err != nil {
			return err
		}
		if changed == 0 {
			return fmt.Errorf("take turn %s: %w", seen.ID, continuo.ErrLeaseLost)
		}
		taken, err = readTurn(conn, now, turnByID, seen.ConversationID, seen.ID)
		return err
	})
	return taken, err
}

// UpdateTurn is part of continuo.TurnStore. It fails with continuo.ErrInvalid when the events do not follow
// the existing ones, or their data are no JSON objects.
func (s *Store) UpdateTurn(ctx context.Context, update continuo.TurnUpdate) (signals []continuo.TurnSignal, err error) {
	row, err := encodeUpdate(update)
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, func(conn *connection) error {
		count, err := applyUpdate(conn, row, s.now())
		if err == nil {
			err = putBlobs(conn, update.Blobs)
		}
		if err != nil || count <= update.SignalsSeen {
			return err
		}
		signals, err = readSignals(conn, update)
		return err
	})
	return signals, err
}

// turnUpdate is an encoded update.
type turnUpdate struct {
	continuo.TurnUpdate
	first, last int64 // ids of its events; without events, values for which first follows any event
	events, end string
}

func encodeUpdate(update continuo.TurnUpdate) (*turnUpdate, error) {
	row := &turnUpdate{TurnUpdate: update, first: math.MaxInt64}
	err := checkText(string(update.Mode), update.Agent)
	switch update.State {
	case "":
	case continuo.TurnFinished, continuo.TurnFailed, continuo.TurnVoid:
		end, endErr := rawjson.Marshal(update.End)
		row.end, err = string(end), errors.Join(err, endErr)
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

func encodeUpdates(batch continuo.Batch) ([]*turnUpdate, error) {
	var rows []*turnUpdate
	for _, update := range batch.Turns {
		if update.ConversationID != batch.ConversationID {
			return nil, fmt.Errorf("%w: an update of a turn of conversation %q in a batch for %q", continuo.ErrInvalid, update.ConversationID, batch.ConversationID)
		}
		row, err := encodeUpdate(update)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// applyUpdate writes an update, unless it is refused, and returns how many signals the turn has.
func applyUpdate(conn *connection, u *turnUpdate, now time.Time) (signals int, err error) {
	key := []any{u.ConversationID, u.TurnID, u.Fence, u.first}
	if u.State != "" {
		err = conn.row(endTurn, append([]any{u.last, string(u.State), stamp(now), u.end}, key...), &signals)
	} else {
		err = conn.row(updateTurn, append([]any{u.last, newLease(u.Lease, now)}, key...), &signals)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return 0, whyNotUpdated(conn, u, now)
	}
	if err == nil && u.events != "" {
		_, err = conn.exec(insertTurnEvents, u.ConversationID, u.TurnID, u.last, u.events)
	}
	if err == nil {
		err = switchConversation(conn, u.ConversationID, u.Mode, u.Agent)
	}
	if err == nil {
		err = u.record(conn)
	}
	return signals, err
}

func newLease(lease time.Duration, now time.Time) any {
	if lease == 0 {
		return nil
	}
	if lease < 0 {
		return "" // released
	}
	return stamp(now.Add(lease))
}

func whyNotUpdated(conn *connection, u *turnUpdate, now time.Time) error {
	have, err := readTurn(conn, now, turnByID, u.ConversationID, u.TurnID)
	if err != nil && !errors.Is(err, continuo.ErrNotFound) {
		return err
	}
	if err == nil && have.State == continuo.TurnRunning && have.Fence == u.Fence {
		return fmt.Errorf("update turn %s: %w: event %d after event %d", u.TurnID, continuo.ErrInvalid, u.first, have.LastEvent)
	}
	return fmt.Errorf("update turn %s: %w", u.TurnID, continuo.ErrLeaseLost)
}

// Turn is part of continuo.TurnStore.
func (s *Store) Turn(ctx context.Context, conversationID, turnID string) (found continuo.Turn, err error) {
	err = s.read(ctx, func(conn *connection) error {
		found, err = readTurn(conn, s.now(), turnByID, conversationID, turnID)
		return err
	})
	return found, err
}

// Turns is part of continuo.TurnStore.
func (s *Store) Turns(ctx context.Context, query continuo.TurnQuery) ([]continuo.Turn, error) {
	if query.Before == (continuo.TurnCursor{}) {
		return s.listTurns(ctx, newestTurns, query.Limit, query.ConversationID)
	}
	return s.listTurns(ctx, turnsBefore, query.Limit, query.ConversationID, stamp(query.Before.StartedAt), query.Before.ID)
}

// RunningTurns is part of continuo.TurnStore.
func (s *Store) RunningTurns(ctx context.Context, limit int) ([]continuo.Turn, error) {
	return s.listTurns(ctx, runningTurns, limit)
}

func (s *Store) listTurns(ctx context.Context, query string, limit int, args ...any) (found []continuo.Turn, err error) {
	if limit < 1 {
		return nil, fmt.Errorf("list turns: %w: limit %d is less than 1", continuo.ErrInvalid, limit)
	}
	err = s.read(ctx, func(conn *connection) error {
		found, err = readTurns(conn, s.now(), query, append(args, limit)...)
		return err
	})
	return found, err
}

func readTurn(conn *connection, now time.Time, query string, args ...any) (continuo.Turn, error) {
	found, err := readTurns(conn, now, query, args...)
	if err != nil {
		return continuo.Turn{}, err
	}
	if len(found) == 0 {
		return continuo.Turn{}, continuo.ErrNotFound
	}
	return found[0], nil
}

func readTurns(conn *connection, now time.Time, query string, args ...any) ([]continuo.Turn, error) {
	var found []continuo.Turn
	err := conn.query(query, args, func(rows *sql.Rows) error {
		var t continuo.Turn
		var leaseUntil, started, ended string
		var request, end []byte
		err := rows.Scan(&t.ConversationID, &t.ID, &t.State, &t.Owner, &t.Fence, &leaseUntil, &t.LastEvent, &started, &ended, &request, &end)
		if err != nil {
			return err
		}
		err = json.Unmarshal(request, &t.TurnRequest)
		t.StartedAt, err = unstamp(started, err)
		t.LeaseUntil, err = unstampOrZero(leaseUntil, err)
		if t.State == continuo.TurnRunning {
			t.LeaseExpired = stamp(now) >= leaseUntil
		} else {
			err = errors.Join(err, json.Unmarshal(end, &t.TurnEnd))
			t.EndedAt, err = unstamp(ended, err)
		}
		if err != nil {
			return fmt.Errorf("turn %s: %w", t.ID, err)
		}
		found = append(found, t)
		return nil
	})
	return found, err
}
