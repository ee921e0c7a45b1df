package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/internal/form"
	"github.com/jackc/pgx/v5"
)

const (
	spendingColumns = `project_id, key_id, day, user_id, provider, model,
    requests, input_tokens, cached_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost_nano, priced`

	// The rows come sorted, so that no two statements wait for each other.
	insertSpending = `
  INSERT INTO continuo.spending AS old (` + spendingColumns + `, writer)
  SELECT s.*, $%d::bigint FROM %sunnest($%d::text[], $%d::text[], $%d::text[], $%d::text[], $%d::text[], $%d::text[],
    $%d::bigint[], $%d::bigint[], $%d::bigint[], $%d::bigint[], $%d::bigint[], $%d::bigint[], $%d::bigint[], $%d::bigint[]) AS s
  ON CONFLICT (project_id, key_id, day, user_id, provider, model, writer) DO UPDATE SET requests = old.requests + excluded.requests,
    input_tokens = old.input_tokens + excluded.input_tokens, cached_tokens = old.cached_tokens + excluded.cached_tokens,
    cache_write_tokens = old.cache_write_tokens + excluded.cache_write_tokens, output_tokens = old.output_tokens + excluded.output_tokens,
    reasoning_tokens = old.reasoning_tokens + excluded.reasoning_tokens, cost_nano = old.cost_nano + excluded.cost_nano,
    priced = old.priced + excluded.priced`

	// $1 is the conversation; %d are the turn's id, its state and its end.
	insertFinished = `,
recorded AS (
  INSERT INTO continuo.finished_turns (project_id, conversation_id, turn_id, user_id, key_id, state, ended_at, ended)
  SELECT c.project_id, c.id, t.id, c.user_id, coalesce(t.request::json ->> 'key_id', ''), $%[2]d::text, turn.ended_at, $%[3]d::text
  FROM turn, continuo.conversations AS c, continuo.turns AS t WHERE c.id = $1 AND t.conversation_id = $1 AND t.id = $%[1]d)`

	sumSpending = `sum(requests)::bigint, sum(input_tokens)::bigint, sum(cached_tokens)::bigint, sum(cache_write_tokens)::bigint,
  sum(output_tokens)::bigint, sum(reasoning_tokens)::bigint, sum(cost_nano)::bigint, sum(priced)::bigint FROM continuo.spending `

	hasNewlyFinished = `SELECT EXISTS (SELECT 1 FROM continuo.finished_turns WHERE position IS NULL)`

	// The lock is held until the positions are committed: who gets it next sees them, and gives higher ones.
	lockPositions = `SELECT last FROM continuo.finished_position FOR UPDATE`

	// A transaction that commits later than another may have lower numbers: positions follow the order in which readers
	// see the rows. The rows of one conversation keep their order.
	givePositions = `
WITH new AS (
  SELECT number, row_number() OVER (ORDER BY number) AS n FROM (
    SELECT number FROM continuo.finished_turns WHERE position IS NULL ORDER BY number LIMIT $2) AS unplaced)
UPDATE continuo.finished_turns AS t SET position = $1 + new.n FROM new WHERE t.number = new.number`

	movePosition = `UPDATE continuo.finished_position SET last = last + $1`

	selectPosition = `SELECT position FROM continuo.feed_positions WHERE name = $1`
	putPosition    = `
INSERT INTO continuo.feed_positions (name, position) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET position = excluded.position`

	prunedThrough = `
SELECT coalesce(max(position), 0) FROM continuo.feed_pruned WHERE ($1 = '' OR project_id = $1) AND ($2 = '' OR user_id = $2)`

	oldestFinished = `
SELECT position, ended_at FROM continuo.finished_turns WHERE position IS NOT NULL AND position <= $1 ORDER BY position LIMIT $2`

	markPruned = `
INSERT INTO continuo.feed_pruned AS old (project_id, user_id, position)
SELECT project_id, user_id, max(position) FROM continuo.finished_turns WHERE position IS NOT NULL AND position <= $1 GROUP BY project_id, user_id
ON CONFLICT (project_id, user_id) DO UPDATE SET position = greatest(old.position, excluded.position)`

	deleteFinished = `DELETE FROM continuo.finished_turns WHERE position IS NOT NULL AND position <= $1`

	lastFinished = `SELECT last FROM continuo.finished_position`

	selectFinished = `
SELECT position, project_id, conversation_id, turn_id, user_id, key_id, state, ended_at, ended FROM continuo.finished_turns
WHERE position > $1 AND position IS NOT NULL AND ($2 = '' OR project_id = $2) AND ($3 = '' OR user_id = $3)
ORDER BY position LIMIT $4`
)

// positionsAtOnce bounds how many turns get their position in one transaction.
const positionsAtOnce = 1000

// withCharges adds to a statement whose last part is end what the requests of an update used, and the turn if the update ends
// it. Numbers are those of the parameters for the turn's id, its state and its end.
func (u *turnUpdate) withCharges(writer int64, statement, end string, args []any, numbers [3]int) (string, []any) {
	if charges := continuo.SumSpending(u.Charges); len(charges) > 0 {
		insert, more := spendingStatement(writer, charges, "turn, ", len(args))
		statement, args = strings.TrimSuffix(statement, end)+",\nspent AS ("+insert+")"+end, append(args, more...)
	}
	if u.State == continuo.TurnFinished || u.State == continuo.TurnFailed {
		statement = strings.TrimSuffix(statement, end) + fmt.Sprintf(insertFinished, numbers[0], numbers[1], numbers[2]) + end
	}
	return statement, args
}

// spendingStatement adds rows, with parameters from the one after given on. Source is what the statement selects from besides.
func spendingStatement(writer int64, rows []continuo.Spending, source string, given int) (string, []any) {
	var texts [6][]string
	var numbers [8][]int64
	for _, r := range rows {
		for i, text := range []string{r.ProjectID, r.KeyID, r.Day, r.UserID, r.Provider, r.Model} {
			texts[i] = append(texts[i], text)
		}
		for i, number := range []int64{r.Requests, r.InputTokens, r.CachedTokens, r.CacheWriteTokens, r.OutputTokens, r.ReasoningTokens, r.CostNano, r.Priced} {
			numbers[i] = append(numbers[i], number)
		}
	}
	args, places := []any{writer}, []any{given + 1, source}
	for _, column := range texts {
		args, places = append(args, column), append(places, given+len(args)+1)
	}
	for _, column := range numbers {
		args, places = append(args, column), append(places, given+len(args)+1)
	}
	return fmt.Sprintf(insertSpending, places...), args
}

// Charge is part of continuo.LedgerStore. Charges whose commit was cut off by a lost connection may be added twice.
func (s *Store) Charge(ctx context.Context, charges []continuo.Spending) error {
	rows := continuo.SumSpending(charges)
	if len(rows) == 0 {
		return nil
	}
	statement, args := spendingStatement(s.writers.number(chargeKey), rows, "", 0)
	return s.write(ctx, &change{
		key: chargeKey, statement: statement, args: args,
		why: func(context.Context, querier) error { return nil },
	})
}

// chargeKey assigns to one writer what belongs to no conversation.
const chargeKey = "charges"

// Spent is part of continuo.LedgerStore.
func (s *Store) Spent(ctx context.Context, query continuo.SpendingQuery) (found []continuo.Spending, err error) {
	statement, args := form.SelectSpending(query, sumSpending, func(n int) string { return "$" + strconv.Itoa(n) })
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, _ := q.Query(ctx, statement, args...)
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r continuo.Spending, err error) {
			err = row.Scan(&r.ProjectID, &r.KeyID, &r.Day, &r.UserID, &r.Provider, &r.Model, &r.Requests, &r.InputTokens, &r.CachedTokens,
				&r.CacheWriteTokens, &r.OutputTokens, &r.ReasoningTokens, &r.CostNano, &r.Priced)
			return r, err
		})
		return err
	})
	return orNil(found), err
}

// orNil is nil for an empty list.
func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// FinishedTurns is part of continuo.LedgerStore. It gives the turns that have ended since a reader looked their positions.
func (s *Store) FinishedTurns(ctx context.Context, query continuo.FeedQuery) (found []continuo.FinishedTurn, err error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list finished turns: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	if err := s.givePositions(ctx); err != nil {
		return nil, err
	}
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, _ := q.Query(ctx, selectFinished, query.After, query.ProjectID, query.UserID, query.Limit)
		found, err = pgx.CollectRows(rows, scanFinished)
		return err
	})
	if err == nil && query.After >= 0 { // after the turns were read: what was removed before is known here
		err = s.checkPruned(ctx, query)
	}
	if err != nil {
		return nil, err
	}
	return orNil(found), nil
}

// checkPruned refuses a query whose turns were removed.
func (s *Store) checkPruned(ctx context.Context, query continuo.FeedQuery) error {
	var through int64
	err := s.read(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, prunedThrough, query.ProjectID, query.UserID).Scan(&through)
	})
	if err != nil || through <= query.After {
		return err
	}
	return continuo.ErrFeedPruned
}

// PruneFinished is part of continuo.LedgerStore.
func (s *Store) PruneFinished(ctx context.Context, before time.Time, through int64, limit int) (removed int, err error) {
	if err := s.givePositions(ctx); err != nil {
		return 0, err
	}
	err = s.transact(ctx, "prune the feed of finished turns", func(ctx context.Context, tx pgx.Tx) error {
		removed = 0
		var position, last int64
		var endedAt string
		other := false
		if _, err := tx.Exec(ctx, lockPositions); err != nil { // one process at a time
			return err
		}
		rows, _ := tx.Query(ctx, oldestFinished, through, limit)
		_, err := pgx.ForEachRow(rows, []any{&position, &endedAt}, func() error {
			if other = other || endedAt >= stamp(before); !other {
				last, removed = position, removed+1
			}
			return nil
		})
		if err != nil || removed == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, markPruned, last); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, deleteFinished, last)
		return err
	}, nil)
	return removed, err
}

// givePositions gives turns without a position theirs.
func (s *Store) givePositions(ctx context.Context) error {
	for {
		var some bool
		err := s.read(ctx, func(ctx context.Context, q querier) error { return q.QueryRow(ctx, hasNewlyFinished).Scan(&some) })
		if err != nil || !some {
			return err
		}
		err = s.transact(ctx, "give finished turns their positions", func(ctx context.Context, tx pgx.Tx) error {
			var last int64
			if err := tx.QueryRow(ctx, lockPositions).Scan(&last); err != nil {
				return err
			}
			given, err := tx.Exec(ctx, givePositions, last, positionsAtOnce) // reads what was committed until now
			if err == nil {
				_, err = tx.Exec(ctx, movePosition, given.RowsAffected())
			}
			return err
		}, nil)
		if err != nil {
			return err
		}
	}
}

func scanFinished(row pgx.CollectableRow) (t continuo.FinishedTurn, err error) {
	var at, ended string
	err = row.Scan(&t.Position, &t.ProjectID, &t.ConversationID, &t.TurnID, &t.UserID, &t.KeyID, &t.State, &at, &ended)
	if err != nil {
		return t, err
	}
	if t.EndedAt, err = unstamp(at, nil); err != nil {
		return t, err
	}
	if err := json.Unmarshal([]byte(ended), &t.TurnEnd); err != nil {
		return t, fmt.Errorf("end of turn %s: %w", t.TurnID, err)
	}
	return t, nil
}

// LastFinished is part of continuo.LedgerStore.
func (s *Store) LastFinished(ctx context.Context) (last int64, err error) {
	if err := s.givePositions(ctx); err != nil {
		return 0, err
	}
	err = s.read(ctx, func(ctx context.Context, q querier) error { return q.QueryRow(ctx, lastFinished).Scan(&last) })
	return last, err
}

// FeedPosition is part of continuo.LedgerStore.
func (s *Store) FeedPosition(ctx context.Context, name string) (position int64, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		return orNotFound(q.QueryRow(ctx, selectPosition, name).Scan(&position))
	})
	return position, err
}

// SetFeedPosition is part of continuo.LedgerStore.
func (s *Store) SetFeedPosition(ctx context.Context, name string, position int64) error {
	return s.transact(ctx, "set a position in the feed", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, putPosition, name, position)
		return err
	}, nil)
}
