package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/jackc/pgx/v5"
)

const (
	turnColumns = `conversation_id, id, state, owner, fence, state = 'running' AND lease_until <= clock_timestamp(), nullif(lease_until, '-infinity'), last_event, started_at, coalesce(ended_at, ''), request, ended`

	takeTurn = `
UPDATE continuo.turns SET owner = $4, fence = fence + 1, lease_until = clock_timestamp() + $5::bigint * interval '1 microsecond'
WHERE conversation_id = $1 AND id = $2 AND state = 'running' AND fence = $3
RETURNING ` + turnColumns

	selectTurn = `SELECT ` + turnColumns + ` FROM continuo.turns `

	turnByID = selectTurn + `WHERE conversation_id = $1 AND id = $2`

	runningTurn = selectTurn + `WHERE conversation_id = $1 AND state = 'running'`

	newestTurns = selectTurn + `
WHERE conversation_id = $1 AND state <> 'void'
ORDER BY started_at DESC, id DESC LIMIT $2`

	turnsBefore = selectTurn + `
WHERE conversation_id = $1 AND state <> 'void' AND (started_at, id) < ($3, $4)
ORDER BY started_at DESC, id DESC LIMIT $2`

	runningTurns = selectTurn + `
WHERE state = 'running'
ORDER BY lease_until, conversation_id, id LIMIT $1`
)

// TakeTurn is part of continuo.TurnStore.
func (s *Store) TakeTurn(ctx context.Context, seen continuo.Turn, owner string, lease time.Duration) (taken continuo.Turn, err error) {
	err = s.write(ctx, &change{
		conversationID: seen.ConversationID, key: seen.ConversationID,
		statement: takeTurn, args: []any{seen.ConversationID, seen.ID, seen.Fence, owner, microseconds(lease)},
		scan: func(row pgx.Row) error {
			taken, err = scanTurn(row)
			return err
		},
		why: func(context.Context, querier) error {
			return fmt.Errorf("take turn %s: %w", seen.ID, continuo.ErrLeaseLost)
		},
		committed: func(ctx context.Context, q querier) (bool, error) {
			taken, err = readTurn(ctx, q, turnByID, seen.ConversationID, seen.ID)
			return taken.Owner == owner && taken.Fence == seen.Fence+1, unlessNotFound(err)
		},
	})
	return orNone(taken, err)
}

// orNone returns the zero turn with an error.
func orNone(turn continuo.Turn, err error) (continuo.Turn, error) {
	if err != nil {
		return continuo.Turn{}, err
	}
	return turn, nil
}

// Turn is part of continuo.TurnStore.
func (s *Store) Turn(ctx context.Context, conversationID, turnID string) (found continuo.Turn, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		found, err = readTurn(ctx, q, turnByID, conversationID, turnID)
		return err
	})
	return found, err
}

// Turns is part of continuo.TurnStore.
func (s *Store) Turns(ctx context.Context, query continuo.TurnQuery) ([]continuo.Turn, error) {
	if query.Before == (continuo.TurnCursor{}) {
		return s.listTurns(ctx, newestTurns, query.Limit, query.ConversationID, query.Limit)
	}
	return s.listTurns(ctx, turnsBefore, query.Limit, query.ConversationID, query.Limit, stamp(query.Before.StartedAt), query.Before.ID)
}

// RunningTurns is part of continuo.TurnStore.
func (s *Store) RunningTurns(ctx context.Context, limit int) ([]continuo.Turn, error) {
	return s.listTurns(ctx, runningTurns, limit, limit)
}

func (s *Store) listTurns(ctx context.Context, query string, limit int, args ...any) (found []continuo.Turn, err error) {
	if limit < 1 {
		return nil, fmt.Errorf("list turns: %w: limit %d is less than 1", continuo.ErrInvalid, limit)
	}
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		found, err = readTurns(ctx, q, query, args...)
		return err
	})
	return found, err
}

func readTurns(ctx context.Context, q querier, query string, args ...any) ([]continuo.Turn, error) {
	rows, _ := q.Query(ctx, query, args...)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (continuo.Turn, error) { return scanTurn(row) })
}

func readTurn(ctx context.Context, q querier, query string, args ...any) (continuo.Turn, error) {
	found, err := scanTurn(q.QueryRow(ctx, query, args...))
	return found, orNotFound(err)
}

// scanTurn reads turnColumns and then the columns for more.
func scanTurn(row pgx.Row, more ...any) (t continuo.Turn, err error) {
	var started, ended string
	var until *time.Time
	var request, end []byte
	err = row.Scan(append([]any{
		&t.ConversationID, &t.ID, &t.State, &t.Owner, &t.Fence, &t.LeaseExpired, &until, &t.LastEvent, &started, &ended, &request, &end,
	}, more...)...)
	if err != nil {
		return t, err
	}
	if until != nil {
		t.LeaseUntil = until.UTC()
	}
	err = json.Unmarshal(request, &t.TurnRequest)
	t.StartedAt, err = unstamp(started, err)
	if ended != "" {
		t.EndedAt, err = unstamp(ended, err)
	}
	if end != nil && err == nil {
		err = json.Unmarshal(end, &t.TurnEnd)
	}
	if err != nil {
		return t, fmt.Errorf("turn %s: %w", t.ID, err)
	}
	return t, nil
}
