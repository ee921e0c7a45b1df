package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/store/internal/form"
)

const (
	insertConversation = `
INSERT INTO conversations (id, project_id, user_id, key, kind, title, active_mode, active_agent, metadata, labels, parent_id, fork_seq, lineage, created_at, updated_at, last_seq, indexed_seq, number)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(number), 0) + 1 FROM conversations))`

	insertLineage = `INSERT INTO lineage (ancestor_id, conversation_id, through) VALUES (?, ?, ?)`

	// A deleted ancestor keeps its entries up to last_seq for its forks. For an archived one, this is the seq
	// of its last remaining entry.
	selectAncestor = `
SELECT iif(archived_at IS NULL, ` + newestSeq + `, max(fork_seq, (SELECT coalesce(max(through), 0) FROM lineage WHERE ancestor_id = ?1)))
FROM conversations WHERE id = ?1 AND ` + newestSeq + ` >= ?2`

	conversationColumns = `
SELECT id, project_id, user_id, coalesce(key, ''), kind, title, active_mode, active_agent, metadata, coalesce(parent_id, ''), fork_seq, lineage, created_at, ` + newestTime + ` AS updated, ` + newestSeq + `,
  coalesce(archived_at, ''), revision`

	selectConversation = conversationColumns + ` FROM conversations `

	conversationByID  = selectConversation + `WHERE id = ? AND deleted = 0`
	conversationsByID = selectConversation + `WHERE id IN (SELECT value FROM json_each(?)) AND deleted = 0`
	conversationByKey = selectConversation + `WHERE project_id = ? AND key = ?`

	unarchived = selectConversation + `INDEXED BY conversations_by_change WHERE deleted = 0 AND archived_at IS NULL AND project_id = ? AND kind = ? `
	ofUser     = selectConversation + `INDEXED BY conversations_of_user WHERE deleted = 0 AND archived_at IS NULL AND user_id <> '' AND project_id = ? AND kind = ? `
	archived   = selectConversation + `INDEXED BY conversations_archived WHERE deleted = 0 AND archived_at IS NOT NULL AND project_id = ? AND kind = ? `

	// The rows of one second that a page needs are sorted.
	before = `AND updated_second <= ? AND (updated, id) < (?, ?) `
	newest = `ORDER BY updated_second DESC, updated DESC, id DESC LIMIT +?`

	sumOfUsage = ` FROM usage WHERE usage.conversation_id = conversations.id)`

	isOfUser = `AND user_id = ? `
	hasLabel = `AND EXISTS (SELECT 1 FROM json_each(labels) AS label WHERE label.key = ? AND label.value = ?) `

	updateConversation = `
UPDATE conversations SET title = coalesce(?2, title), active_mode = coalesce(?3, active_mode), active_agent = coalesce(?4, active_agent),
  metadata = coalesce(?5, metadata), labels = iif(?5 IS NULL, labels, ?6), key = iif(?7 IS NULL, key, nullif(?7, '')),
  user_id = coalesce(?8, iif(user_id = '', ?9, NULL), user_id), updated_at = ?10, last_seq = ` + newestSeq + `,
  behind = behind OR indexed_title IS NOT coalesce(?2, title), indexed_title = iif(?2 <> title, NULL, indexed_title)
WHERE id = ?1 AND deleted = 0`

	hasIndexedTitle = `SELECT indexed_title IS NOT NULL FROM conversations WHERE id = ?1`
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
	row, err := encodeConversation(conversation)
	if err != nil {
		return fmt.Errorf("create conversation %s: %w", conversation.ID, err)
	}
	return s.write(ctx, func(conn *connection) error {
		if err := checkAncestors(conn, conversation.Lineage); err != nil {
			return err
		}
		if err := insertRow(conn, &conversation, row); err != nil {
			return err
		}
		if err := insertSegments(conn, conversation); err != nil {
			return err
		}
		number, err := readNumber(conn, conversation.ID)
		if err != nil {
			return err
		}
		return insertEntries(conn, number, rows)
	})
}

// insertRow adds the row of a new conversation, with the columns of encodeConversation.
func insertRow(conn *connection, conversation *continuo.Conversation, row []any) error {
	_, err := conn.exec(insertConversation, append(slices.Clip(row), conversation.ForkSeq)...)
	if isTaken(err) {
		return fmt.Errorf("%w: a conversation with the key %q or the id %q", continuo.ErrExists, conversation.Key, conversation.ID)
	}
	return err
}

// encodeConversation writes the columns of a conversation from id to last_seq.
func encodeConversation(c continuo.Conversation) ([]any, error) {
	if err := checkText(c.ID, c.ProjectID, c.UserID, c.Key, string(c.Kind), c.Title, string(c.ActiveMode), c.ActiveAgent, string(c.Metadata), c.ParentID); err != nil {
		return nil, err
	}
	lineage, err := encodeLineage(c.Lineage)
	return []any{
		c.ID, c.ProjectID, c.UserID, orNull(c.Key), string(c.Kind), c.Title, string(c.ActiveMode), c.ActiveAgent, textOrNull(c.Metadata),
		textOrNull(form.Labels(c.Metadata)), orNull(c.ParentID), c.ForkSeq, lineage, stamp(c.CreatedAt), stamp(c.UpdatedAt), c.LastSeq,
	}, err
}

func insertSegments(conn *connection, c continuo.Conversation) error {
	for _, segment := range c.Lineage {
		if _, err := conn.exec(insertLineage, segment.ConversationID, c.ID, segment.Through); err != nil {
			return err
		}
	}
	return nil
}

func checkAncestors(conn *connection, lineage []continuo.Segment) error {
	for _, segment := range lineage {
		var kept int64
		err := conn.row(selectAncestor, []any{segment.ConversationID, segment.Through}, &kept)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return fmt.Errorf("%w: entries up to %d of conversation %s", continuo.ErrNotFound, segment.Through, segment.ConversationID)
		case err != nil:
			return err
		case kept < segment.Through:
			return fmt.Errorf("conversation %s: %w", segment.ConversationID, continuo.ErrArchived)
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
	err = s.read(ctx, func(conn *connection) error {
		found, err = readConversations(conn, conversationsByID, string(rawjson.MustMarshal(ids)))
		return err
	})
	return found, err
}

// ConversationByKey is part of continuo.ConversationStore.
func (s *Store) ConversationByKey(ctx context.Context, projectID, key string) (continuo.Conversation, error) {
	return s.oneConversation(ctx, conversationByKey, projectID, key)
}

func (s *Store) oneConversation(ctx context.Context, query string, args ...any) (found continuo.Conversation, err error) {
	err = s.read(ctx, func(conn *connection) error {
		found, err = readConversation(conn, query, args...)
		return err
	})
	return found, err
}

func readConversation(conn *connection, query string, args ...any) (continuo.Conversation, error) {
	found, err := readConversations(conn, query, args...)
	if err != nil {
		return continuo.Conversation{}, err
	}
	if len(found) == 0 {
		return continuo.Conversation{}, continuo.ErrNotFound
	}
	return found[0], nil
}

// Conversations is part of continuo.ConversationStore.
func (s *Store) Conversations(ctx context.Context, query continuo.ConversationQuery) (found []continuo.Conversation, err error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list conversations: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	statement, args := listQuery(query)
	err = s.read(ctx, func(conn *connection) error {
		found, err = readConversations(conn, statement, args...)
		return err
	})
	return found, err
}

// listQuery chooses the statement of a list, and thereby the index.
func listQuery(query continuo.ConversationQuery) (statement string, args []any) {
	args = []any{query.ProjectID, string(query.Kind)}
	switch {
	case query.Archived:
		statement = archived
	case query.UserID != "":
		statement = ofUser
	default:
		statement = unarchived
	}
	filter, more := conversationFilter(query.UserID, query.Labels)
	statement, args = statement+filter, append(args, more...)
	filter, more = activityFilter(query)
	statement, args = statement+filter, append(args, more...)
	if value := sortedBy[query.Sort]; value != "" {
		if query.Before != (continuo.ConversationCursor{}) {
			statement, args = statement+"AND ("+value+", id) < (?, ?) ", append(args, sortValue(query), query.Before.ID)
		}
		return statement + "ORDER BY " + value + " DESC, id DESC LIMIT +?", append(args, query.Limit)
	}
	if query.Before != (continuo.ConversationCursor{}) {
		statement, args = statement+before, append(args, second(query.Before.UpdatedAt), stamp(query.Before.UpdatedAt), query.Before.ID)
	}
	return statement + newest, append(args, query.Limit)
}

// sortValue is the value of a cursor, as the statement has it.
func sortValue(query continuo.ConversationQuery) any {
	if query.Sort == continuo.SortCreated {
		return stamp(time.Unix(0, query.Before.Value))
	}
	return query.Before.Value
}

// conversationFilter narrows rows of conversations to a user's, and to those with labels.
func conversationFilter(userID string, labels map[string]string) (condition string, args []any) {
	if userID != "" {
		condition, args = isOfUser, append(args, userID)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		condition, args = condition+hasLabel, append(args, name, labels[name])
	}
	return condition, args
}

func readConversations(conn *connection, query string, args ...any) ([]continuo.Conversation, error) {
	var found []continuo.Conversation
	err := conn.query(query, args, func(rows *sql.Rows) error {
		c, err := scanConversation(rows)
		found = append(found, c)
		return err
	})
	return found, err
}

// scanConversation reads the conversationColumns and then the columns for more.
func scanConversation(rows *sql.Rows, more ...any) (c continuo.Conversation, err error) {
	var metadata, lineage []byte
	var created, updated, archived string
	columns := []any{
		&c.ID, &c.ProjectID, &c.UserID, &c.Key, &c.Kind, &c.Title, &c.ActiveMode, &c.ActiveAgent, &metadata, &c.ParentID, &c.ForkSeq, &lineage,
		&created, &updated, &c.LastSeq, &archived, &c.Revision,
	}
	if err := rows.Scan(append(columns, more...)...); err != nil {
		return c, err
	}
	c.Metadata = metadata
	if lineage != nil {
		err = json.Unmarshal(lineage, &c.Lineage)
	}
	c.CreatedAt, err = unstamp(created, err)
	c.UpdatedAt, err = unstamp(updated, err)
	c.ArchivedAt, err = unstampOrZero(archived, err)
	if err != nil {
		return c, fmt.Errorf("conversation %s: %w", c.ID, err)
	}
	return c, nil
}

// Update is part of continuo.ConversationStore.
func (s *Store) Update(ctx context.Context, id string, change continuo.ConversationChange) (updated continuo.Conversation, err error) {
	if err := checkText(stringOf(change.Title), stringOf((*string)(change.ActiveMode)), stringOf(change.ActiveAgent), string(change.Metadata),
		stringOf(change.Key), stringOf(change.UserID), stringOf(change.Claim)); err != nil {
		return updated, fmt.Errorf("update conversation %s: %w", id, err)
	}
	err = s.write(ctx, func(conn *connection) error {
		changed, err := conn.exec(updateConversation, id, valueOrNull(change.Title), valueOrNull((*string)(change.ActiveMode)),
			valueOrNull(change.ActiveAgent), textOrNull(change.Metadata), textOrNull(form.Labels(change.Metadata)),
			valueOrNull(change.Key), valueOrNull(change.UserID), valueOrNull(change.Claim), stamp(change.UpdatedAt))
		if isTaken(err) {
			return fmt.Errorf("%w: a conversation with the key %q", continuo.ErrExists, stringOf(change.Key))
		}
		if err != nil {
			return err
		}
		if changed == 0 {
			return continuo.ErrNotFound
		}
		if change.Title != nil {
			if err := eraseOldTitle(conn, id); err != nil {
				return err
			}
		}
		updated, err = readConversation(conn, conversationByID, id)
		return err
	})
	return updated, err
}

// eraseOldTitle removes the document of a title that is not the conversation's any more: a redaction replaces titles.
func eraseOldTitle(conn *connection, id string) error {
	var isIndexed bool
	if err := conn.row(hasIndexedTitle, []any{id}, &isIndexed); err != nil || isIndexed {
		return err
	}
	return eraseDocument(conn, id, 0)
}

func encodeLineage(lineage []continuo.Segment) (any, error) {
	if len(lineage) == 0 {
		return nil, nil
	}
	data, err := rawjson.Marshal(lineage)
	return string(data), err
}

// stampLayout is RFC 3339 with a fixed width, so that texts sort as their times do.
const stampLayout = "2006-01-02T15:04:05.000000000Z"

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

// second is stamp without what is less than a second.
func second(t time.Time) string { return stamp(t)[:len("2006-01-02T15:04:05")] }

// unstamp reads what stamp wrote, or returns the error of an earlier step.
func unstamp(text string, earlier error) (time.Time, error) {
	t, err := time.Parse(stampLayout, text)
	return t, errors.Join(earlier, err)
}

// stampOrNull writes a time that may be zero.
func stampOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stamp(t)
}

// unstampOrZero reads a time that may be NULL or empty.
func unstampOrZero(text string, earlier error) (time.Time, error) {
	if text == "" {
		return time.Time{}, earlier
	}
	return unstamp(text, earlier)
}

// checkText refuses text that some databases cannot store, so that conversations can move between them.
func checkText(texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			return fmt.Errorf("%w: %.100q is not UTF-8 without NUL characters", continuo.ErrInvalid, text)
		}
	}
	return nil
}

func stringOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func textOrNull(data []byte) any {
	if data == nil {
		return nil
	}
	return string(data)
}

func valueOrNull(text *string) any {
	if text == nil {
		return nil
	}
	return *text
}
