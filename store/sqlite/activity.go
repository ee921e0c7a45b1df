package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
)

const (
	// Entries that are put again, or in another order, do not count twice.
	putUsage = `
INSERT INTO usage (conversation_id, day, model, requests, input_tokens, cached_tokens, cache_write_tokens, output_tokens, last_seq, shares, cost_nano, priced)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12 FROM conversations WHERE id = ?1 AND deleted = 0
ON CONFLICT (conversation_id, day, model) DO UPDATE SET requests = requests + excluded.requests,
  input_tokens = input_tokens + excluded.input_tokens, cached_tokens = cached_tokens + excluded.cached_tokens,
  cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens, output_tokens = output_tokens + excluded.output_tokens,
  last_seq = excluded.last_seq, shares = substr(shares || excluded.shares, ?13),
  cost_nano = cost_nano + excluded.cost_nano, priced = priced + excluded.priced
WHERE excluded.last_seq > last_seq`

	deleteUsage = `DELETE FROM usage WHERE conversation_id = ?`

	usageOf = `
SELECT day, model, requests, input_tokens, cached_tokens, cache_write_tokens, output_tokens, last_seq, shares, cost_nano, priced
FROM usage WHERE conversation_id = ? ORDER BY last_seq`

	countChildren = `
SELECT (SELECT count(*) FROM conversations AS child INDEXED BY conversations_by_parent WHERE child.parent_id = ?1 AND child.deleted = 0 AND child.kind <> 'branch')
FROM conversations WHERE id = ?1 AND deleted = 0`

	newestRunOf = selectRun + `INDEXED BY runs_of_conversation WHERE conversation_id = ? AND ended_at IS NULL ORDER BY started_at DESC, id DESC LIMIT 1`

	listedConversations = `FROM conversations WHERE project_id = ? AND kind = ? AND deleted = 0 AND archived_at IS NULL `
	archivedOnes        = `FROM conversations WHERE project_id = ? AND kind = ? AND deleted = 0 AND archived_at IS NOT NULL `

	sumUsage = `
SELECT day, model, sum(requests), sum(input_tokens), sum(cached_tokens), sum(cache_write_tokens), sum(output_tokens), 0, '', sum(cost_nano), sum(priced)
FROM usage WHERE conversation_id IN (SELECT id `
	byDayAndModel = `) GROUP BY day, model ORDER BY day, model`

	hasMode    = `AND active_mode = ? `
	hasParent  = `AND parent_id = ? `
	hasModel   = `AND EXISTS (SELECT 1 FROM usage WHERE usage.conversation_id = conversations.id AND usage.model = ?) `
	keyBegins  = `AND substr(coalesce(key, ''), 1, length(?)) = ? `
	hasChanged = `AND updated_second >= ? `

	isActive = `(EXISTS (SELECT 1 FROM turns WHERE turns.conversation_id = conversations.id AND turns.state = 'running')
  OR EXISTS (SELECT 1 FROM runs WHERE runs.conversation_id = conversations.id AND runs.state IN ('running', 'waiting'))) `
	newestFailed = `coalesce((SELECT turns.state FROM turns WHERE turns.conversation_id = conversations.id AND turns.state <> 'void'
  ORDER BY turns.started_at DESC, turns.id DESC LIMIT 1) = 'failed', 0) `
)

// addUsage counts the requests that new entries of a conversation answer.
func addUsage(conn *connection, conversationID string, entries []continuo.Entry) error {
	for _, used := range continuo.UsageOf(entries) {
		if err := checkText(used.Model); err != nil {
			return fmt.Errorf("model of an answer: %w", err)
		}
		if _, err := conn.exec(putUsage, conversationID, used.Day, used.Model, used.Requests, used.InputTokens, used.CachedTokens,
			used.CacheWriteTokens, used.OutputTokens, used.LastSeq, used.Shares, used.CostNano, used.Priced, -continuo.MaxSharesText); err != nil {
			return err
		}
	}
	return nil
}

// activityFilter narrows rows of conversations by what they are and their activity.
func activityFilter(query continuo.ConversationQuery) (condition string, args []any) {
	if query.Mode != "" {
		condition, args = condition+hasMode, append(args, string(query.Mode))
	}
	if query.ParentID != "" {
		condition, args = condition+hasParent, append(args, query.ParentID)
	}
	if query.KeyPrefix != "" {
		condition, args = condition+keyBegins, append(args, query.KeyPrefix, query.KeyPrefix)
	}
	if query.Model != "" {
		condition, args = condition+hasModel, append(args, query.Model)
	}
	if !query.Since.IsZero() {
		condition, args = condition+hasChanged, append(args, second(query.Since))
	}
	switch query.State {
	case continuo.ActivityActive:
		condition += "AND " + isActive
	case continuo.ActivityFailed:
		condition += "AND NOT " + isActive + "AND " + newestFailed
	case continuo.ActivityIdle:
		condition += "AND NOT " + isActive + "AND NOT " + newestFailed
	}
	return condition, args
}

// Activities is part of continuo.ActivityStore.
func (s *Store) Activities(ctx context.Context, ids []string) (found []continuo.Activity, err error) {
	err = s.read(ctx, func(conn *connection) error {
		return conn.snapshot(func() error {
			for _, id := range ids {
				a, err := readActivity(conn, s.now(), id)
				switch {
				case errors.Is(err, sql.ErrNoRows):
				case err != nil:
					return fmt.Errorf("activity of conversation %s: %w", id, err)
				default:
					found = append(found, a)
				}
			}
			return nil
		})
	})
	return found, err
}

func readActivity(conn *connection, now time.Time, id string) (a continuo.Activity, err error) {
	a.ConversationID = id
	if err := conn.row(countChildren, []any{id}, &a.Children); err != nil {
		return a, err
	}
	turns, err := readTurns(conn, now, newestTurns, id, 1)
	if err != nil {
		return a, err
	}
	if len(turns) > 0 {
		a.Turn = turns[0]
	}
	err = conn.query(newestRunOf, []any{id}, func(rows *sql.Rows) (err error) {
		a.Run, err = scanRun(rows)
		return err
	})
	if err != nil {
		return a, err
	}
	a.Usage, err = readUsage(conn, usageOf, id)
	return a, err
}

func readUsage(conn *connection, statement string, args ...any) (counts []continuo.UsageCount, err error) {
	err = conn.query(statement, args, func(rows *sql.Rows) error {
		var c continuo.UsageCount
		err := rows.Scan(&c.Day, &c.Model, &c.Requests, &c.InputTokens, &c.CachedTokens, &c.CacheWriteTokens, &c.OutputTokens, &c.LastSeq, &c.Shares,
			&c.CostNano, &c.Priced)
		counts = append(counts, c)
		return err
	})
	return counts, err
}

// Totals is part of continuo.ActivityStore.
func (s *Store) Totals(ctx context.Context, query continuo.ConversationQuery) (totals continuo.Totals, err error) {
	from, args := listedConversations, []any{query.ProjectID, string(query.Kind)}
	if query.Archived {
		from = archivedOnes
	}
	of, more := conversationFilter(query.UserID, query.Labels)
	in, others := activityFilter(query)
	from, args = from+of+in, append(append(args, more...), others...)
	err = s.read(ctx, func(conn *connection) error {
		return conn.snapshot(func() (err error) {
			if err := conn.row(`SELECT count(*) `+from, args, &totals.Conversations); err != nil {
				return err
			}
			totals.Usage, err = readUsage(conn, sumUsage+from+byDayAndModel, args...)
			return err
		})
	})
	return totals, err
}
