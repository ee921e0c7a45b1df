package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/store/internal/form"
)

const (
	insertTurnEvents = `INSERT INTO turn_events (conversation_id, turn_id, last_id, body) VALUES (?, ?, ?, ?)`

	selectTurnEvents = `
SELECT body FROM turn_events WHERE conversation_id = ? AND turn_id = ? AND last_id > ?
ORDER BY last_id LIMIT +?`

	countSignal = `
UPDATE turns SET signals = signals + 1
WHERE conversation_id = ? AND id = ? AND state = 'running'
RETURNING signals`

	countTurn = `SELECT count(*) FROM turns WHERE conversation_id = ? AND id = ?`

	insertTurnSignal = `INSERT INTO turn_signals (conversation_id, turn_id, number, body) VALUES (?, ?, ?, ?)`

	selectTurnSignals = `
SELECT body FROM turn_signals WHERE conversation_id = ? AND turn_id = ? AND number > ?
ORDER BY number`

	turnsToPrune = `
SELECT conversation_id, id FROM turns INDEXED BY turns_to_prune
WHERE ended_at < ? AND last_event + signals > 0
ORDER BY ended_at LIMIT +?`

	forgetTurnEvents = `UPDATE turns SET last_event = 0, signals = 0 WHERE conversation_id = ? AND id = ?`
)

// TurnEvents is part of continuo.TurnStore. The events of an unknown turn are an empty list.
func (s *Store) TurnEvents(ctx context.Context, conversationID, turnID string, after int64, limit int) (found []continuo.TurnEvent, err error) {
	if limit < 1 {
		return nil, fmt.Errorf("read events of turn %s: %w: limit %d is less than 1", turnID, continuo.ErrInvalid, limit)
	}
	err = s.read(ctx, func(conn *connection) error {
		bytes := 0
		err := conn.query(selectTurnEvents, []any{conversationID, turnID, after, limit}, func(rows *sql.Rows) error {
			var body sql.RawBytes
			if err := rows.Scan(&body); err != nil {
				return err
			}
			bytes += len(body)
			if found, err = form.DecodeEvents(found, body, after); err == nil && (len(found) >= limit || bytes >= form.EventPageBytes) {
				return errEnough
			}
			return err
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	})
	return found, err
}

// SignalTurn is part of continuo.TurnStore.
func (s *Store) SignalTurn(ctx context.Context, conversationID, turnID string, signal continuo.TurnSignal) error {
	body, err := rawjson.Marshal(signal)
	if err != nil {
		return fmt.Errorf("signal turn %s: %w: %w", turnID, continuo.ErrInvalid, err)
	}
	return s.write(ctx, func(conn *connection) error {
		var number int
		err := conn.row(countSignal, []any{conversationID, turnID}, &number)
		if errors.Is(err, sql.ErrNoRows) {
			return whyNotSignalled(conn, conversationID, turnID)
		}
		if err != nil {
			return err
		}
		_, err = conn.exec(insertTurnSignal, conversationID, turnID, number, string(body))
		return err
	})
}

func whyNotSignalled(conn *connection, conversationID, turnID string) error {
	var found int
	if err := conn.row(countTurn, []any{conversationID, turnID}, &found); err != nil {
		return err
	}
	if found == 0 {
		return continuo.ErrNotFound
	}
	return fmt.Errorf("signal turn %s: %w", turnID, continuo.ErrNotRunning)
}

func readSignals(conn *connection, update continuo.TurnUpdate) ([]continuo.TurnSignal, error) {
	var found []continuo.TurnSignal
	err := conn.query(selectTurnSignals, []any{update.ConversationID, update.TurnID, update.SignalsSeen}, func(rows *sql.Rows) error {
		var body sql.RawBytes
		if err := rows.Scan(&body); err != nil {
			return err
		}
		found = append(found, continuo.TurnSignal{})
		return json.Unmarshal(body, &found[len(found)-1])
	})
	return found, err
}

// PruneTurnEvents is part of continuo.TurnStore. It begins with the turns that ended first.
func (s *Store) PruneTurnEvents(ctx context.Context, endedBefore time.Time, limit int) (pruned int, err error) {
	if limit < 1 {
		return 0, fmt.Errorf("prune events of turns: %w: limit %d is less than 1", continuo.ErrInvalid, limit)
	}
	err = s.write(ctx, func(conn *connection) error {
		var keys [][2]string
		err := conn.query(turnsToPrune, []any{stamp(endedBefore), limit}, func(rows *sql.Rows) error {
			keys = append(keys, [2]string{})
			key := &keys[len(keys)-1]
			return rows.Scan(&key[0], &key[1])
		})
		if err != nil {
			return err
		}
		for _, key := range keys {
			for _, statement := range []string{deleteTurnEvents, deleteTurnSignals, forgetTurnEvents} {
				if _, err := conn.exec(statement, key[0], key[1]); err != nil {
					return err
				}
			}
		}
		pruned = len(keys)
		return nil
	})
	return pruned, err
}
