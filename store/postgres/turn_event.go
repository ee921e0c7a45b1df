package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/store/internal/form"
	"github.com/jackc/pgx/v5"
)

const (
	// The server adds up the sizes, so that it sends no more than a page; $5 is the size of a page in bytes.
	selectTurnEvents = `
SELECT body FROM (
  SELECT last_id, body, sum(octet_length(body)) OVER (ORDER BY last_id ROWS UNBOUNDED PRECEDING) - octet_length(body) AS before
  FROM continuo.turn_events WHERE conversation_id = $1 AND turn_id = $2 AND last_id > $3
  ORDER BY last_id LIMIT $4) AS page
WHERE before < $5 ORDER BY last_id`

	signalTurn = `
WITH turn AS (
  UPDATE continuo.turns SET signals = signals + 1
  WHERE conversation_id = $1 AND id = $2 AND state = 'running'
  RETURNING signals)
INSERT INTO continuo.turn_signals (conversation_id, turn_id, number, body)
SELECT $1, $2, signals, $3 FROM turn
RETURNING number`

	isSignalled = `SELECT EXISTS (SELECT 1 FROM continuo.turn_signals WHERE conversation_id = $1 AND turn_id = $2 AND number = $3 AND body = $4)`

	selectTurnSignals = `
SELECT body FROM continuo.turn_signals WHERE conversation_id = $1 AND turn_id = $2 AND number > $3
ORDER BY number`

	// Another process that prunes at the same time takes other turns.
	turnsToPrune = `
SELECT conversation_id, id FROM continuo.turns
WHERE ended_at < $1 AND told
ORDER BY ended_at LIMIT $2
FOR UPDATE SKIP LOCKED`

	forgetTurnEvents = `UPDATE continuo.turns SET last_event = 0, signals = 0 WHERE conversation_id = $1 AND id = $2`

	deleteTurnEvents  = `DELETE FROM continuo.turn_events WHERE conversation_id = $1 AND turn_id = $2`
	deleteTurnSignals = `DELETE FROM continuo.turn_signals WHERE conversation_id = $1 AND turn_id = $2`
)

// TurnEvents is part of continuo.TurnStore. The events of an unknown turn are an empty list.
func (s *Store) TurnEvents(ctx context.Context, conversationID, turnID string, after int64, limit int) (found []continuo.TurnEvent, err error) {
	if limit < 1 {
		return nil, fmt.Errorf("read events of turn %s: %w: limit %d is less than 1", turnID, continuo.ErrInvalid, limit)
	}
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		found, err = readEvents(ctx, q, conversationID, turnID, after, limit)
		return err
	})
	return found, err
}

func readEvents(ctx context.Context, q querier, conversationID, turnID string, after int64, limit int) (found []continuo.TurnEvent, err error) {
	rows, err := q.Query(ctx, selectTurnEvents, conversationID, turnID, after, limit, form.EventPageBytes)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for len(found) < limit && rows.Next() {
		if found, err = form.DecodeEvents(found, rows.RawValues()[0], after); err != nil {
			return nil, err
		}
	}
	rows.Close()
	return found, rows.Err()
}

// SignalTurn is part of continuo.TurnStore.
func (s *Store) SignalTurn(ctx context.Context, conversationID, turnID string, signal continuo.TurnSignal) error {
	body, err := rawjson.Marshal(signal)
	if err != nil {
		return fmt.Errorf("signal turn %s: %w: %w", turnID, continuo.ErrInvalid, err)
	}
	var number int64
	err = s.transact(ctx, "signal turn "+turnID, func(ctx context.Context, tx pgx.Tx) error {
		err := tx.QueryRow(ctx, signalTurn, conversationID, turnID, string(body)).Scan(&number)
		if errors.Is(err, pgx.ErrNoRows) {
			return whyNotSignalled(ctx, tx, conversationID, turnID)
		}
		return err
	}, func(ctx context.Context, q querier) (committed bool, err error) {
		err = q.QueryRow(ctx, isSignalled, conversationID, turnID, number, string(body)).Scan(&committed)
		return committed, err
	})
	if err == nil {
		s.changed(conversationID)
	}
	return err
}

func whyNotSignalled(ctx context.Context, q querier, conversationID, turnID string) error {
	turn, err := readTurn(ctx, q, turnByID, conversationID, turnID)
	if err == nil && turn.State == continuo.TurnRunning {
		return errRetry
	}
	if err == nil {
		err = fmt.Errorf("signal turn %s: %w", turnID, continuo.ErrNotRunning)
	}
	return err
}

func readSignals(ctx context.Context, q querier, update continuo.TurnUpdate) ([]continuo.TurnSignal, error) {
	rows, _ := q.Query(ctx, selectTurnSignals, update.ConversationID, update.TurnID, update.SignalsSeen)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (signal continuo.TurnSignal, err error) {
		return signal, json.Unmarshal(row.RawValues()[0], &signal)
	})
}

// PruneTurnEvents is part of continuo.TurnStore. It begins with the turns that ended first.
func (s *Store) PruneTurnEvents(ctx context.Context, endedBefore time.Time, limit int) (pruned int, err error) {
	if limit < 1 {
		return 0, fmt.Errorf("prune events of turns: %w: limit %d is less than 1", continuo.ErrInvalid, limit)
	}
	err = s.transact(ctx, "prune events of turns", func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, turnsToPrune, stamp(endedBefore), limit)
		keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ ConversationID, TurnID string }])
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		for _, key := range keys {
			for _, statement := range []string{deleteTurnEvents, deleteTurnSignals, forgetTurnEvents} {
				batch.Queue(statement, key.ConversationID, key.TurnID)
			}
		}
		pruned = len(keys)
		return tx.SendBatch(ctx, batch).Close()
	}, nil)
	if err != nil {
		return 0, err
	}
	return pruned, nil
}
