package postgres

import (
	"context"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/jackc/pgx/v5"
)

const (
	usageColumns = `conversation_id, day, model, requests, input_tokens, cached_tokens, cache_write_tokens, output_tokens, last_seq, shares,
    cost_nano, priced`

	// Entries that are put again, or in another order, do not count twice. 72 is continuo.MaxSharesText.
	addToUsage = `
  ON CONFLICT (conversation_id, day, model) DO UPDATE SET requests = old.requests + excluded.requests,
    input_tokens = old.input_tokens + excluded.input_tokens, cached_tokens = old.cached_tokens + excluded.cached_tokens,
    cache_write_tokens = old.cache_write_tokens + excluded.cache_write_tokens, output_tokens = old.output_tokens + excluded.output_tokens,
    last_seq = excluded.last_seq, shares = right(old.shares || excluded.shares, 72),
    cost_nano = old.cost_nano + excluded.cost_nano, priced = old.priced + excluded.priced
  WHERE excluded.last_seq > old.last_seq`

	insertUsage = `,
used AS (
  INSERT INTO continuo.usage AS old (` + usageColumns + `)
  SELECT $1, u.day, u.model, u.requests, u.input, u.cached, u.written, u.output, u.last_seq, u.shares, u.cost, u.priced
  FROM head, unnest($%d::text[], $%d::text[], $%d::bigint[], $%d::bigint[], $%d::bigint[], $%d::bigint[], $%d::bigint[], $%d::bigint[], $%d::text[],
    $%d::bigint[], $%d::bigint[]) AS u (day, model, requests, input, cached, written, output, last_seq, shares, cost, priced)` + addToUsage + `)`

	putUsage = `
INSERT INTO continuo.usage AS old (` + usageColumns + `)
SELECT $1, $2, $3, $4::bigint, $5::bigint, $6::bigint, $7::bigint, $8::bigint, $9::bigint, $10, $11::bigint, $12::bigint FROM continuo.conversations WHERE id = $1 AND NOT deleted` + addToUsage

	deleteUsage = `DELETE FROM continuo.usage WHERE conversation_id = $1`

	usageOf = `SELECT ` + usageColumns + ` FROM continuo.usage WHERE conversation_id = ANY ($1) ORDER BY conversation_id, last_seq`

	countChildren = `
SELECT id, (SELECT count(*) FROM continuo.conversations AS child WHERE child.parent_id = parent.id AND NOT child.deleted AND child.kind <> 'branch')
FROM continuo.conversations AS parent WHERE id = ANY ($1) AND NOT deleted`

	newestTurnOfEach = `
SELECT turn.* FROM unnest($1::text[]) AS wanted (id) CROSS JOIN LATERAL (
  SELECT ` + turnColumns + ` FROM continuo.turns WHERE conversation_id = wanted.id AND state <> 'void' ORDER BY started_at DESC, id DESC LIMIT 1) AS turn`

	newestRunOfEach = selectRun + `
WHERE conversation_id = ANY ($1) AND ended_at IS NULL ORDER BY started_at, id`

	sumUsage = `
SELECT '', day, model, sum(requests)::bigint, sum(input_tokens)::bigint, sum(cached_tokens)::bigint, sum(cache_write_tokens)::bigint,
  sum(output_tokens)::bigint, 0::bigint, '', sum(cost_nano)::bigint, sum(priced)::bigint
FROM continuo.usage WHERE conversation_id IN (SELECT id FROM continuo.conversations `
	byDayAndModel = `) GROUP BY day, model ORDER BY day, model`

	isActive = `(EXISTS (SELECT 1 FROM continuo.turns WHERE turns.conversation_id = conversations.id AND turns.state = 'running')
  OR EXISTS (SELECT 1 FROM continuo.runs WHERE runs.conversation_id = conversations.id AND runs.state IN ('running', 'waiting')))`
	newestFailed = `coalesce((SELECT turns.state FROM continuo.turns WHERE turns.conversation_id = conversations.id AND turns.state <> 'void'
  ORDER BY turns.started_at DESC, turns.id DESC LIMIT 1) = 'failed', false)`
)

// withUsage adds counts to a statement whose last part is end.
func withUsage(counts []continuo.UsageCount, statement, end string, args []any) (string, []any) {
	if len(counts) == 0 {
		return statement, args
	}
	var days, models, shares []string
	var requests, input, cached, written, output, last, cost, priced []int64
	for _, c := range counts {
		days, models, shares = append(days, c.Day), append(models, c.Model), append(shares, c.Shares)
		requests, input, cached = append(requests, c.Requests), append(input, c.InputTokens), append(cached, c.CachedTokens)
		written, output, last = append(written, c.CacheWriteTokens), append(output, c.OutputTokens), append(last, c.LastSeq)
		cost, priced = append(cost, c.CostNano), append(priced, c.Priced)
	}
	n := len(args)
	insert := fmt.Sprintf(insertUsage, n+1, n+2, n+3, n+4, n+5, n+6, n+7, n+8, n+9, n+10, n+11)
	args = append(args, days, models, requests, input, cached, written, output, last, shares, cost, priced)
	return strings.TrimSuffix(statement, end) + insert + end, args
}

// usageRow are the arguments of putUsage.
func usageRow(conversationID string, c continuo.UsageCount) []any {
	return []any{
		conversationID, c.Day, c.Model, c.Requests, c.InputTokens, c.CachedTokens, c.CacheWriteTokens, c.OutputTokens, c.LastSeq, c.Shares,
		c.CostNano, c.Priced,
	}
}

// activityFilter narrows rows of conversations by what they are and their activity.
func activityFilter(query continuo.ConversationQuery, parameter func(any) string) (condition string) {
	if query.Mode != "" {
		condition += ` AND active_mode = ` + parameter(string(query.Mode))
	}
	if query.ParentID != "" {
		condition += ` AND parent_id = ` + parameter(query.ParentID)
	}
	if query.KeyPrefix != "" {
		begin := parameter(query.KeyPrefix)
		condition += ` AND left(coalesce(key, ''), length(` + begin + `::text)) = ` + begin
	}
	if query.Model != "" {
		condition += ` AND EXISTS (SELECT 1 FROM continuo.usage WHERE usage.conversation_id = conversations.id AND usage.model = ` + parameter(query.Model) + `)`
	}
	if !query.Since.IsZero() {
		condition += ` AND updated_second >= left(` + parameter(stamp(query.Since)) + `, 19)`
	}
	switch query.State {
	case continuo.ActivityActive:
		condition += ` AND ` + isActive
	case continuo.ActivityFailed:
		condition += ` AND NOT ` + isActive + ` AND ` + newestFailed
	case continuo.ActivityIdle:
		condition += ` AND NOT ` + isActive + ` AND NOT ` + newestFailed
	}
	return condition
}

// Activities is part of continuo.ActivityStore.
func (s *Store) Activities(ctx context.Context, ids []string) (found []continuo.Activity, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		found = nil
		rows, _ := q.Query(ctx, countChildren, ids)
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a continuo.Activity, err error) {
			return a, row.Scan(&a.ConversationID, &a.Children)
		})
		if err != nil {
			return err
		}
		of := map[string]*continuo.Activity{}
		for i := range found {
			of[found[i].ConversationID] = &found[i]
		}
		return fillActivities(ctx, q, ids, of)
	})
	return found, err
}

// fillActivities adds turns, runs and usage to the activities that exist.
func fillActivities(ctx context.Context, q querier, ids []string, of map[string]*continuo.Activity) error {
	turns, err := readTurns(ctx, q, newestTurnOfEach, ids)
	if err != nil {
		return err
	}
	for _, turn := range turns {
		if a := of[turn.ConversationID]; a != nil {
			a.Turn = turn
		}
	}
	rows, _ := q.Query(ctx, newestRunOfEach, ids)
	runs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (continuo.Run, error) { return scanRun(row) })
	if err != nil {
		return err
	}
	for _, run := range runs { // the newest of each comes last
		if a := of[run.ConversationID]; a != nil {
			a.Run = run
		}
	}
	_, err = readUsage(ctx, q, func(id string, c continuo.UsageCount) {
		if a := of[id]; a != nil {
			a.Usage = append(a.Usage, c)
		}
	}, usageOf, ids)
	return err
}

// readUsage reads usageColumns.
func readUsage(ctx context.Context, q querier, each func(id string, c continuo.UsageCount), statement string, args ...any) (counts []continuo.UsageCount, err error) {
	rows, _ := q.Query(ctx, statement, args...)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c continuo.UsageCount, err error) {
		var id string
		err = row.Scan(&id, &c.Day, &c.Model, &c.Requests, &c.InputTokens, &c.CachedTokens, &c.CacheWriteTokens, &c.OutputTokens, &c.LastSeq, &c.Shares,
			&c.CostNano, &c.Priced)
		each(id, c)
		return c, err
	})
}

// Totals is part of continuo.ActivityStore.
func (s *Store) Totals(ctx context.Context, query continuo.ConversationQuery) (totals continuo.Totals, err error) {
	condition, args := selected(query)
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		if err := q.QueryRow(ctx, `SELECT count(*) FROM continuo.conversations `+condition, args...).Scan(&totals.Conversations); err != nil {
			return err
		}
		totals.Usage, err = readUsage(ctx, q, func(string, continuo.UsageCount) {}, sumUsage+condition+byDayAndModel, args...)
		return err
	})
	return totals, err
}
