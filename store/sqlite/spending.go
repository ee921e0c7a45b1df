package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/internal/form"
)

const (
	addSpending = `
INSERT INTO spending (project_id, key_id, day, user_id, provider, model,
  requests, input_tokens, cached_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost_nano, priced)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (project_id, key_id, day, user_id, provider, model) DO UPDATE SET requests = requests + excluded.requests,
  input_tokens = input_tokens + excluded.input_tokens, cached_tokens = cached_tokens + excluded.cached_tokens,
  cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens, output_tokens = output_tokens + excluded.output_tokens,
  reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens, cost_nano = cost_nano + excluded.cost_nano,
  priced = priced + excluded.priced`

	sumSpending = `sum(requests), sum(input_tokens), sum(cached_tokens), sum(cache_write_tokens), sum(output_tokens),
  sum(reasoning_tokens), sum(cost_nano), sum(priced) FROM spending `

	// The turn has just been ended.
	insertFinished = `
INSERT INTO finished_turns (project_id, conversation_id, turn_id, user_id, key_id, state, ended_at, ended)
SELECT c.project_id, c.id, t.id, c.user_id, coalesce(t.request ->> '$.key_id', ''), t.state, t.ended_at, t.ended
FROM turns AS t INDEXED BY sqlite_autoindex_turns_1, conversations AS c
WHERE t.conversation_id = ?1 AND t.id = ?2 AND c.id = ?1`

	selectFinished = `
SELECT position, project_id, conversation_id, turn_id, user_id, key_id, state, ended_at, ended FROM finished_turns `

	selectPosition = `SELECT position FROM feed_positions WHERE name = ?`
	putPosition    = `INSERT INTO feed_positions (name, position) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET position = excluded.position`

	lastFinished = `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'finished_turns'), 0)`

	prunedThrough = `
SELECT coalesce(max(position), 0) FROM feed_pruned WHERE (?1 = '' OR project_id = ?1) AND (?2 = '' OR user_id = ?2)`

	oldestFinished = `SELECT position, ended_at FROM finished_turns WHERE position <= ? ORDER BY position LIMIT +?`

	markPruned = `
INSERT INTO feed_pruned (project_id, user_id, position)
SELECT project_id, user_id, max(position) FROM finished_turns WHERE position <= ? GROUP BY project_id, user_id
ON CONFLICT (project_id, user_id) DO UPDATE SET position = excluded.position`

	deleteFinished = `DELETE FROM finished_turns WHERE position <= ?`
)

// spend adds what requests used.
func spend(conn *connection, charges []continuo.Spending) error {
	for _, c := range continuo.SumSpending(charges) {
		if err := checkText(c.ProjectID, c.KeyID, c.Day, c.UserID, c.Provider, c.Model); err != nil {
			return fmt.Errorf("charge a request: %w", err)
		}
		if _, err := conn.exec(addSpending, c.ProjectID, c.KeyID, c.Day, c.UserID, c.Provider, c.Model, c.Requests, c.InputTokens,
			c.CachedTokens, c.CacheWriteTokens, c.OutputTokens, c.ReasoningTokens, c.CostNano, c.Priced); err != nil {
			return err
		}
	}
	return nil
}

// record adds what the requests of an update used, and the turn if the update ends it.
func (u *turnUpdate) record(conn *connection) error {
	if err := spend(conn, u.Charges); err != nil {
		return err
	}
	if u.State != continuo.TurnFinished && u.State != continuo.TurnFailed {
		return nil
	}
	_, err := conn.exec(insertFinished, u.ConversationID, u.TurnID)
	return err
}

// Charge is part of continuo.LedgerStore.
func (s *Store) Charge(ctx context.Context, charges []continuo.Spending) error {
	return s.write(ctx, func(conn *connection) error { return spend(conn, charges) })
}

// Spent is part of continuo.LedgerStore.
func (s *Store) Spent(ctx context.Context, query continuo.SpendingQuery) (found []continuo.Spending, err error) {
	statement, args := form.SelectSpending(query, sumSpending, func(int) string { return "?" })
	err = s.read(ctx, func(conn *connection) error {
		found = nil
		return conn.query(statement, args, func(rows *sql.Rows) error {
			var r continuo.Spending
			err := rows.Scan(&r.ProjectID, &r.KeyID, &r.Day, &r.UserID, &r.Provider, &r.Model, &r.Requests, &r.InputTokens, &r.CachedTokens,
				&r.CacheWriteTokens, &r.OutputTokens, &r.ReasoningTokens, &r.CostNano, &r.Priced)
			found = append(found, r)
			return err
		})
	})
	return found, err
}

// FinishedTurns is part of continuo.LedgerStore.
func (s *Store) FinishedTurns(ctx context.Context, query continuo.FeedQuery) (found []continuo.FinishedTurn, err error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list finished turns: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	statement, args := selectFinished+"WHERE position > ? ", []any{query.After}
	if query.ProjectID != "" {
		statement, args = statement+"AND project_id = ? ", append(args, query.ProjectID)
	}
	if query.UserID != "" {
		statement, args = statement+"AND user_id = ? ", append(args, query.UserID)
	}
	statement, args = statement+"ORDER BY position LIMIT +?", append(args, query.Limit)
	err = s.read(ctx, func(conn *connection) error {
		found = nil
		return conn.query(statement, args, func(rows *sql.Rows) error {
			turn, err := scanFinished(rows)
			found = append(found, turn)
			return err
		})
	})
	if err == nil && query.After >= 0 { // after the turns were read: what was removed before is known here
		err = s.read(ctx, func(conn *connection) error { return checkPruned(conn, query) })
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// checkPruned refuses a query whose turns were removed.
func checkPruned(conn *connection, query continuo.FeedQuery) error {
	var through int64
	if err := conn.row(prunedThrough, []any{query.ProjectID, query.UserID}, &through); err != nil || through <= query.After {
		return err
	}
	return continuo.ErrFeedPruned
}

// PruneFinished is part of continuo.LedgerStore.
func (s *Store) PruneFinished(ctx context.Context, before time.Time, through int64, limit int) (removed int, err error) {
	err = s.write(ctx, func(conn *connection) error {
		removed = 0
		last, other := int64(0), false
		err := conn.query(oldestFinished, []any{through, limit}, func(rows *sql.Rows) error {
			var position int64
			var endedAt string
			if err := rows.Scan(&position, &endedAt); err != nil {
				return err
			}
			if other = other || endedAt >= stamp(before); !other {
				last, removed = position, removed+1
			}
			return nil
		})
		if err != nil || removed == 0 {
			return err
		}
		if _, err := conn.exec(markPruned, last); err != nil {
			return err
		}
		_, err = conn.exec(deleteFinished, last)
		return err
	})
	return removed, err
}

func scanFinished(rows *sql.Rows) (t continuo.FinishedTurn, err error) {
	var at, ended string
	err = rows.Scan(&t.Position, &t.ProjectID, &t.ConversationID, &t.TurnID, &t.UserID, &t.KeyID, &t.State, &at, &ended)
	if err != nil {
		return t, err
	}
	var endedAt time.Time
	if endedAt, err = unstamp(at, nil); err != nil {
		return t, err
	}
	t.EndedAt = endedAt
	if err := json.Unmarshal([]byte(ended), &t.TurnEnd); err != nil {
		return t, fmt.Errorf("end of turn %s: %w", t.TurnID, err)
	}
	return t, nil
}

// LastFinished is part of continuo.LedgerStore.
func (s *Store) LastFinished(ctx context.Context) (last int64, err error) {
	err = s.read(ctx, func(conn *connection) error { return conn.row(lastFinished, nil, &last) })
	return last, err
}

// FeedPosition is part of continuo.LedgerStore.
func (s *Store) FeedPosition(ctx context.Context, name string) (position int64, err error) {
	err = s.read(ctx, func(conn *connection) error { return orNotFound(conn.row(selectPosition, []any{name}, &position)) })
	return position, err
}

// SetFeedPosition is part of continuo.LedgerStore.
func (s *Store) SetFeedPosition(ctx context.Context, name string, position int64) error {
	if err := checkText(name); err != nil {
		return err
	}
	return s.write(ctx, func(conn *connection) error {
		_, err := conn.exec(putPosition, name, position)
		return err
	})
}
