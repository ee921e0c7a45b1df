package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/store/internal/form"
	"github.com/jackc/pgx/v5"
)

const (
	insertConversation = `
INSERT INTO continuo.conversations (id, project_id, key, title, active_mode, metadata, parent_id, created_at, updated_at, active_agent, kind, user_id, labels, fork_seq, lineage, last_seq, indexed_seq)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $14)`

	insertConversationKey = `INSERT INTO continuo.conversation_keys (project_id, key, conversation_id) VALUES ($1, $2, $3)`

	insertLineage = `INSERT INTO continuo.lineage (ancestor_id, conversation_id, through) VALUES ($1, $2, $3)`

	// A deleted ancestor keeps its entries up to last_seq for its forks; an archived one keeps those that its
	// forks begin with. The lock prevents its deletion until the transaction ends, and allows appends.
	lockAncestor = `
SELECT archived_at IS NULL OR $2 <= greatest(fork_seq, (SELECT max(through) FROM continuo.lineage WHERE ancestor_id = $1))
FROM continuo.conversations WHERE id = $1 AND last_seq >= $2 FOR KEY SHARE`

	conversationColumns = `id, project_id, user_id, coalesce(key, ''), kind, title, active_mode, active_agent, metadata, coalesce(parent_id, ''), fork_seq, lineage, created_at, updated_at, coalesce(archived_at, ''), last_seq, revision`

	selectConversation = `SELECT ` + conversationColumns + ` FROM continuo.conversations `

	conversationByID = selectConversation + `WHERE id = $1 AND NOT deleted`

	conversationsByID = selectConversation + `WHERE id = ANY($1) AND NOT deleted`

	conversationByKey = selectConversation + `
WHERE id = (SELECT conversation_id FROM continuo.conversation_keys WHERE project_id = $1 AND key = $2) AND NOT deleted`

	// The index holds times in whole seconds, so that most appends change no index; the rows of one second
	// that a page needs are sorted.
	newestFirst = `
ORDER BY updated_second DESC, updated_at DESC, id DESC LIMIT `

	listed = `
WHERE project_id = $1 AND kind = $2 AND NOT deleted AND archived_at IS `

	sumOfUsage = `::bigint FROM continuo.usage WHERE usage.conversation_id = conversations.id)`

	updateConversation = `
UPDATE continuo.conversations SET title = coalesce($2, title), active_mode = coalesce($3, active_mode), metadata = coalesce($4, metadata), updated_at = $5,
  active_agent = coalesce($6, active_agent), labels = CASE WHEN $4::text IS NULL THEN labels ELSE $7::jsonb END,
  key = CASE WHEN $8::text IS NULL THEN key ELSE nullif($8, '') END,
  user_id = coalesce($9, CASE WHEN user_id = '' THEN $10 END, user_id),
  indexed_title = CASE WHEN $2::text IS NULL OR $2 = title THEN indexed_title END
WHERE id = $1 AND NOT deleted
RETURNING ` + conversationColumns

	// A redaction replaces titles: the words of the old one must not stay in the index.
	deleteOldTitle = `
DELETE FROM continuo.documents WHERE conversation_id = $1 AND seq = 0
AND EXISTS (SELECT 1 FROM continuo.conversations WHERE id = $1 AND indexed_title IS NULL)`

	isCreated = `SELECT EXISTS (SELECT 1 FROM continuo.conversations WHERE id = $1 AND created_at = $2 AND NOT deleted)`
)

// sortedBy are the expressions of the orders that no index has.
var sortedBy = map[continuo.ConversationSort]string{
	continuo.SortCreated: "created_at",
	continuo.SortTokens:  "(SELECT coalesce(sum(input_tokens + output_tokens), 0)" + sumOfUsage,
	continuo.SortCost:    "(SELECT coalesce(sum(cost_nano), 0)" + sumOfUsage,
}

// Create is part of continuo.ConversationStore. It fails with continuo.ErrNotFound when entries that the
// conversation begins with no longer exist because their conversation was deleted meanwhile.
func (s *Store) Create(ctx context.Context, conversation continuo.Conversation, entries []continuo.Entry) error {
	rows, err := encodeEntries(conversation.ID, conversation.LastSeq-int64(len(entries)), entries)
	if err != nil {
		return fmt.Errorf("create conversation %s: %w", conversation.ID, err)
	}
	lineage, err := encodeLineage(conversation.Lineage)
	if err != nil {
		return fmt.Errorf("create conversation %s: %w", conversation.ID, err)
	}
	created := stamp(conversation.CreatedAt)
	err = s.transact(ctx, "create conversation "+conversation.ID, func(ctx context.Context, tx pgx.Tx) error {
		if err := checkAncestors(ctx, tx, conversation.Lineage); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, insertConversation, append(conversationRow(&conversation), conversation.ForkSeq, lineage, conversation.LastSeq)...)
		if err == nil && conversation.Key != "" {
			_, err = tx.Exec(ctx, insertConversationKey, conversation.ProjectID, conversation.Key, conversation.ID)
		}
		if isTaken(err) {
			return errTaken(&conversation)
		}
		if err != nil {
			return err
		}
		for _, segment := range conversation.Lineage {
			if _, err := tx.Exec(ctx, insertLineage, segment.ConversationID, conversation.ID, segment.Through); err != nil {
				return err
			}
		}
		if err := rows.insert(ctx, tx, conversation.ID); err != nil {
			return err
		}
		for _, used := range continuo.UsageOf(entries) {
			if _, err := tx.Exec(ctx, putUsage, usageRow(conversation.ID, used)...); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context, q querier) (committed bool, err error) {
		err = q.QueryRow(ctx, isCreated, conversation.ID, created).Scan(&committed)
		return committed, err
	})
	if err == nil {
		s.changed(conversation.ID)
	}
	return err
}

// errTaken says that the id or the key of a new conversation is another one's.
func errTaken(c *continuo.Conversation) error {
	return fmt.Errorf("%w: a conversation with the key %q or the id %q", continuo.ErrExists, c.Key, c.ID)
}

// conversationRow returns the columns of a new conversation from id to labels.
func conversationRow(c *continuo.Conversation) []any {
	return []any{
		c.ID, c.ProjectID, orNull(c.Key), c.Title, string(c.ActiveMode), textOrNull(c.Metadata), orNull(c.ParentID), stamp(c.CreatedAt),
		stamp(c.UpdatedAt), c.ActiveAgent, string(c.Kind), c.UserID, textOrNull(form.Labels(c.Metadata)),
	}
}

// checkAncestors locks the conversations that a new one begins with, the oldest first.
func checkAncestors(ctx context.Context, tx pgx.Tx, lineage []continuo.Segment) error {
	for _, segment := range lineage {
		var there bool
		err := orNotFound(tx.QueryRow(ctx, lockAncestor, segment.ConversationID, segment.Through).Scan(&there))
		if err == nil && !there {
			err = continuo.ErrArchived
		}
		if err != nil {
			return fmt.Errorf("entries up to %d of conversation %s: %w", segment.Through, segment.ConversationID, err)
		}
	}
	return nil
}

// Conversation is part of continuo.ConversationStore.
func (s *Store) Conversation(ctx context.Context, id string) (continuo.Conversation, error) {
	return s.oneConversation(ctx, conversationByID, id)
}

// ConversationsByID is part of continuo.ConversationStore.
func (s *Store) ConversationsByID(ctx context.Context, ids []string) (found []continuo.Conversation, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, _ := q.Query(ctx, conversationsByID, ids)
		found, err = pgx.CollectRows(rows, rowToConversation)
		return err
	})
	return found, err
}

// ConversationByKey is part of continuo.ConversationStore.
func (s *Store) ConversationByKey(ctx context.Context, projectID, key string) (continuo.Conversation, error) {
	return s.oneConversation(ctx, conversationByKey, projectID, key)
}

func (s *Store) oneConversation(ctx context.Context, query string, args ...any) (found continuo.Conversation, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		found, err = readConversation(ctx, q, query, args...)
		return err
	})
	return found, err
}

func readConversation(ctx context.Context, q querier, query string, args ...any) (continuo.Conversation, error) {
	rows, _ := q.Query(ctx, query, args...)
	found, err := pgx.CollectExactlyOneRow(rows, rowToConversation)
	return found, orNotFound(err)
}

// Conversations is part of continuo.ConversationStore.
func (s *Store) Conversations(ctx context.Context, query continuo.ConversationQuery) (found []continuo.Conversation, err error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list conversations: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	statement, args := listQuery(query)
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, _ := q.Query(ctx, statement, args...)
		found, err = pgx.CollectRows(rows, rowToConversation)
		return err
	})
	return found, err
}

// listQuery writes a statement with only the conditions that the query asks for, so that an index serves each
// of them.
func listQuery(query continuo.ConversationQuery) (statement string, args []any) {
	condition, args := selected(query)
	parameter := parameters(&args)
	if value := sortedBy[query.Sort]; value != "" {
		if query.Before != (continuo.ConversationCursor{}) {
			condition += ` AND (` + value + `, id) < (` + parameter(sortValue(query)) + `, ` + parameter(query.Before.ID) + `)`
		}
		return selectConversation + condition + ` ORDER BY ` + value + ` DESC, id DESC LIMIT ` + parameter(query.Limit), args
	}
	if query.Before != (continuo.ConversationCursor{}) {
		at := parameter(stamp(query.Before.UpdatedAt))
		condition += ` AND updated_second <= left(` + at + `, 19) AND (updated_at, id) < (` + at + `, ` + parameter(query.Before.ID) + `)`
	}
	return selectConversation + condition + newestFirst + parameter(query.Limit), args
}

// sortValue is the value of a cursor, as the statement has it.
func sortValue(query continuo.ConversationQuery) any {
	if query.Sort == continuo.SortCreated {
		return stamp(time.Unix(0, query.Before.Value))
	}
	return query.Before.Value
}

// parameters appends values to the arguments of a statement, and returns how it names them.
func parameters(args *[]any) func(value any) string {
	return func(value any) string {
		*args = append(*args, value)
		return "$" + strconv.Itoa(len(*args))
	}
}

// selected is the condition of the conversations that a query selects, on all of its pages.
func selected(query continuo.ConversationQuery) (condition string, args []any) {
	args = []any{query.ProjectID, string(query.Kind)}
	parameter := parameters(&args)
	condition = listed + "NULL"
	if query.Archived {
		condition = listed + "NOT NULL"
	}
	if query.UserID != "" {
		condition += ` AND user_id <> '' AND user_id = ` + parameter(query.UserID)
	}
	if len(query.Labels) > 0 {
		condition += ` AND labels IS NOT NULL AND labels @> ` + parameter(string(rawjson.MustMarshal(query.Labels))) + `::jsonb`
	}
	return condition + activityFilter(query, parameter), args
}

// conversationWidth is the number of conversationColumns.
const conversationWidth = 17

func rowToConversation(row pgx.CollectableRow) (continuo.Conversation, error) {
	return scanConversation(row)
}

// scanConversation reads conversationColumns and then the columns for more.
func scanConversation(row pgx.CollectableRow, more ...any) (c continuo.Conversation, err error) {
	var metadata, lineage []byte
	var created, updated, archived string
	err = row.Scan(append([]any{
		&c.ID, &c.ProjectID, &c.UserID, &c.Key, &c.Kind, &c.Title, &c.ActiveMode, &c.ActiveAgent, &metadata, &c.ParentID, &c.ForkSeq, &lineage,
		&created, &updated, &archived, &c.LastSeq, &c.Revision,
	}, more...)...)
	if err != nil {
		return c, err
	}
	c.Metadata = metadata
	if lineage != nil {
		err = json.Unmarshal(lineage, &c.Lineage)
	}
	c.CreatedAt, err = unstamp(created, err)
	c.UpdatedAt, err = unstamp(updated, err)
	if archived != "" {
		c.ArchivedAt, err = unstamp(archived, err)
	}
	if err != nil {
		return c, fmt.Errorf("conversation %s: %w", c.ID, err)
	}
	return c, nil
}

// Update is part of continuo.ConversationStore.
func (s *Store) Update(ctx context.Context, id string, change continuo.ConversationChange) (updated continuo.Conversation, err error) {
	err = s.transact(ctx, "update conversation "+id, func(ctx context.Context, tx pgx.Tx) error {
		var before continuo.Conversation
		if change.Key != nil {
			if before, err = readConversation(ctx, tx, lockLiving, id); err != nil {
				return err
			}
		}
		updated, err = readConversation(ctx, tx, updateConversation, id, valueOrNull(change.Title),
			valueOrNull((*string)(change.ActiveMode)), textOrNull(change.Metadata), stamp(change.UpdatedAt), valueOrNull(change.ActiveAgent),
			textOrNull(form.Labels(change.Metadata)), valueOrNull(change.Key), valueOrNull(change.UserID), valueOrNull(change.Claim))
		if err == nil && change.Key != nil {
			err = moveKey(ctx, tx, before, updated)
		}
		if err == nil && change.Title != nil {
			_, err = tx.Exec(ctx, deleteOldTitle, id)
		}
		return err
	}, nil)
	if err != nil {
		return continuo.Conversation{}, err
	}
	s.changed(id)
	return updated, nil
}

// moveKey maps a conversation's current key to it, and removes its previous key.
func moveKey(ctx context.Context, tx pgx.Tx, before, c continuo.Conversation) error {
	if _, err := tx.Exec(ctx, dropKey, before.ProjectID, before.Key, before.ID); err != nil || c.Key == "" {
		return err
	}
	added, err := tx.Exec(ctx, putKey, c.ProjectID, c.Key, c.ID)
	if err == nil && added.RowsAffected() == 0 {
		err = fmt.Errorf("%w: a conversation with the key %q", continuo.ErrExists, c.Key)
	}
	return err
}

func encodeLineage(lineage []continuo.Segment) (any, error) {
	if len(lineage) == 0 {
		return nil, nil
	}
	data, err := rawjson.Marshal(lineage)
	return string(data), err
}
