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
)

const (
	insertConversation = `
INSERT INTO conversations (id, project_id, key, title, active_mode, metadata, parent_id, fork_seq, lineage, created_at, updated_at, last_seq)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	insertLineage = `INSERT INTO lineage (ancestor_id, conversation_id, through) VALUES (?, ?, ?)`

	// A deleted ancestor keeps its entries up to last_seq for the forks that it has.
	countAncestor = `SELECT count(*) FROM conversations WHERE id = ? AND last_seq >= ?`

	selectConversation = `
SELECT id, project_id, coalesce(key, ''), title, active_mode, metadata, coalesce(parent_id, ''), fork_seq, lineage, created_at, updated_at, last_seq
FROM conversations `

	conversationByID  = selectConversation + `WHERE id = ? AND deleted = 0`
	conversationByKey = selectConversation + `WHERE project_id = ? AND key = ?`

	newestConversations = selectConversation + `
WHERE project_id = ? AND deleted = 0
ORDER BY updated_at DESC, id DESC LIMIT ?`

	conversationsBefore = selectConversation + `
WHERE project_id = ? AND deleted = 0 AND (updated_at, id) < (?, ?)
ORDER BY updated_at DESC, id DESC LIMIT ?`

	updateConversation = `
UPDATE conversations SET title = coalesce(?, title), active_mode = coalesce(?, active_mode), metadata = coalesce(?, metadata), updated_at = ?
WHERE id = ? AND deleted = 0`
)

// Create is part of continuo.ConversationStore. It fails with continuo.ErrNotFound when entries that the
// conversation is to begin with are gone, because their conversation was deleted meanwhile.
func (s *Store) Create(ctx context.Context, conversation continuo.Conversation, entries []continuo.Entry) error {
	rows, err := encodeEntries(conversation.ID, conversation.LastSeq-int64(len(entries)), entries)
	if err != nil {
		return fmt.Errorf("create conversation %s: %w", conversation.ID, err)
	}
	lineage, err := encodeLineage(conversation.Lineage)
	if err != nil {
		return fmt.Errorf("create conversation %s: %w", conversation.ID, err)
	}
	return s.write(ctx, func(conn *connection) error {
		if err := checkAncestors(conn, conversation.Lineage); err != nil {
			return err
		}
		_, err := conn.exec(insertConversation, conversation.ID, conversation.ProjectID, orNull(conversation.Key),
			conversation.Title, string(conversation.ActiveMode), textOrNull(conversation.Metadata), orNull(conversation.ParentID),
			conversation.ForkSeq, lineage, stamp(conversation.CreatedAt), stamp(conversation.UpdatedAt), conversation.LastSeq)
		if isTaken(err) {
			return fmt.Errorf("%w: a conversation with the id %q or the key %q", continuo.ErrExists, conversation.ID, conversation.Key)
		}
		if err != nil {
			return err
		}
		for _, segment := range conversation.Lineage {
			if _, err := conn.exec(insertLineage, segment.ConversationID, conversation.ID, segment.Through); err != nil {
				return err
			}
		}
		return insertEntries(conn, conversation.ID, rows)
	})
}

func checkAncestors(conn *connection, lineage []continuo.Segment) error {
	for _, segment := range lineage {
		var found int
		if err := conn.row(countAncestor, []any{segment.ConversationID, segment.Through}, &found); err != nil {
			return err
		}
		if found == 0 {
			return fmt.Errorf("%w: entries up to %d of conversation %s", continuo.ErrNotFound, segment.Through, segment.ConversationID)
		}
	}
	return nil
}

// Conversation is part of continuo.ConversationStore.
func (s *Store) Conversation(ctx context.Context, id string) (continuo.Conversation, error) {
	return s.oneConversation(ctx, conversationByID, id)
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
	statement, args := newestConversations, []any{query.ProjectID, query.Limit}
	if query.Before != (continuo.ConversationCursor{}) {
		statement, args = conversationsBefore, []any{query.ProjectID, stamp(query.Before.UpdatedAt), query.Before.ID, query.Limit}
	}
	if query.Limit < 1 {
		return nil, fmt.Errorf("list conversations: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	err = s.read(ctx, func(conn *connection) error {
		found, err = readConversations(conn, statement, args...)
		return err
	})
	return found, err
}

func readConversations(conn *connection, query string, args ...any) ([]continuo.Conversation, error) {
	var found []continuo.Conversation
	err := conn.query(query, args, func(rows *sql.Rows) error {
		var c continuo.Conversation
		var metadata, lineage []byte
		var created, updated string
		err := rows.Scan(&c.ID, &c.ProjectID, &c.Key, &c.Title, &c.ActiveMode, &metadata, &c.ParentID, &c.ForkSeq, &lineage, &created, &updated, &c.LastSeq)
		if err != nil {
			return err
		}
		c.Metadata = metadata
		if lineage != nil {
			err = json.Unmarshal(lineage, &c.Lineage)
		}
		c.CreatedAt, err = unstamp(created, err)
		c.UpdatedAt, err = unstamp(updated, err)
		if err != nil {
			return fmt.Errorf("conversation %s: %w", c.ID, err)
		}
		found = append(found, c)
		return nil
	})
	return found, err
}

// Update is part of continuo.ConversationStore.
func (s *Store) Update(ctx context.Context, id string, change continuo.ConversationChange) (updated continuo.Conversation, err error) {
	err = s.write(ctx, func(conn *connection) error {
		changed, err := conn.exec(updateConversation, valueOrNull(change.Title), valueOrNull((*string)(change.ActiveMode)),
			textOrNull(change.Metadata), stamp(change.UpdatedAt), id)
		if err != nil {
			return err
		}
		if changed == 0 {
			return continuo.ErrNotFound
		}
		updated, err = readConversation(conn, conversationByID, id)
		return err
	})
	return updated, err
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

// unstamp reads what stamp wrote, unless an earlier step failed.
func unstamp(text string, earlier error) (time.Time, error) {
	t, err := time.Parse(stampLayout, text)
	return t, errors.Join(earlier, err)
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
