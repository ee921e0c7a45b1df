package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

const (
	insertTurnEvents = `INSERT INTO turn_events (conversation_id, turn_id, last_id, body) VALUES (?, ?, ?, ?)`

	selectTurnEvents = `
SELECT body FROM turn_events WHERE conversation_id = ? AND turn_id = ? AND last_id > ?
ORDER BY last_id LIMIT ?`

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
ORDER BY ended_at LIMIT ?`

	forgetTurnEvents = `UPDATE turns SET last_event = 0, signals = 0 WHERE conversation_id = ? AND id = ?`
)

// encodeEvents writes events as one JSON list of ids and data in turn: [1, {…}, 2, {…}].
func encodeEvents(events []continuo.TurnEvent) (string, error) {
	body, last := []byte{'['}, int64(0)
	for i, event := range events {
		if event.ID <= last {
			return "", fmt.Errorf("event %d after event %d", event.ID, last)
		}
		last = event.ID
		// What stands around the object would be lost.
		if data := event.Data; !json.Valid(data) || data[0] != '{' || data[len(data)-1] != '}' {
			return "", fmt.Errorf("the data of event %d is not a JSON object", event.ID)
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(strconv.AppendInt(body, event.ID, 10), ',')
		body = append(body, event.Data...)
	}
	body = append(body, ']')
	if !json.Valid(body) { // encoding/json bounds the depth, and the list adds to it
		return "", errors.New("the data of an event is nested too deeply")
	}
	return string(body), nil
}

// decodeEvents adds the events with ids above after of what encodeEvents wrote.
func decodeEvents(events []continuo.TurnEvent, body []byte, after int64) ([]continuo.TurnEvent, error) {
	var parts []json.RawMessage
	if err := json.Unmarshal(body, &parts); err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(parts); i += 2 {
		id, err := strconv.ParseInt(string(parts[i]), 10, 64)
		if err != nil {
			return nil, err
		}
		if id > after {
			events = append(events, continuo.TurnEvent{ID: id, Data: parts[i+1]})
		}
	}
	return events, nil
}

// errEnough ends a query.
var errEnough = errors.New("enough was read")

// TurnEvents is part of continuo.TurnStore. The events of an unknown turn are an empty list.
func (s *Store) TurnEvents(ctx context.Context, conversationID, turnID string, after int64, limit int) (found []continuo.TurnEvent, err error) {
	if limit < 1 {
		return nil, fmt.Errorf("read events of turn %s: %w: limit %d is less than 1", turnID, continuo.ErrInvalid, limit)
	}
	err = s.read(ctx, func(conn *connection) error {
		err := conn.query(selectTurnEvents, []any{conversationID, turnID, after, limit}, func(rows *sql.Rows) error {
			var body sql.RawBytes
			if err := rows.Scan(&body); err != nil {
				return err
			}
			if found, err = decodeEvents(found, body, after); err == nil && len(found) >= limit {
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
