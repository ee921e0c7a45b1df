package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
)

const (
	unindexedColumns = conversationColumns + `, indexed_seq, indexed_title IS title `

	isUnindexed = `behind = 1 AND deleted = 0 AND archived_at IS NULL `

	unindexedOfAll     = unindexedColumns + `FROM conversations INDEXED BY conversations_unindexed WHERE ` + isUnindexed + `LIMIT +?`
	unindexedOfProject = unindexedColumns + `FROM conversations INDEXED BY conversations_unindexed WHERE ` + isUnindexed + `AND project_id = ? LIMIT +?`
	unindexedOne       = unindexedColumns + `FROM conversations WHERE id = ? AND ` + isUnindexed + `LIMIT +?`

	selectIndexed = `SELECT project_id, ` + newestSeq + `, indexed_seq, archived_at IS NOT NULL FROM conversations WHERE id = ? AND deleted = 0`

	moveIndex = `
UPDATE conversations SET indexed_seq = ?1, indexed_title = coalesce(?2, indexed_title),
  behind = ?1 < ` + newestSeq + ` OR coalesce(?2, indexed_title) IS NOT title
WHERE id = ?3`

	emptyIndex = `UPDATE conversations SET indexed_seq = fork_seq, indexed_title = NULL, behind = 1 WHERE id = ?`

	redactedEntries = `
SELECT seq FROM entries INDEXED BY entries_redacted
WHERE place BETWEEN ` + placeOf + `?1) | ?2 AND ` + placeOf + `?1) | ?3 AND redacted = 1`

	rowTaken = `SELECT EXISTS (SELECT 1 FROM documents WHERE place = ?)`

	insertDocument = `INSERT INTO documents (place, conversation_id, seq, terms) VALUES (?, ?, ?, ?)`

	insertTerms = `INSERT INTO words (rowid, terms) VALUES (?, ?)`

	// A hidden document is no longer found. Its terms are removed from the index later; see purgeWords.
	hideOne = `UPDATE documents SET conversation_id = NULL WHERE conversation_id = ? AND seq = ?`

	hideAll = `UPDATE documents SET conversation_id = NULL WHERE conversation_id = ?`
)

// Unindexed is part of index.Store.
func (s *Store) Unindexed(ctx context.Context, query index.UnindexedQuery) (found []index.Unindexed, err error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list what is not indexed: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	statement, args := unindexedOfAll, []any{query.Limit}
	switch {
	case query.ConversationID != "":
		statement, args = unindexedOne, []any{query.ConversationID, query.Limit}
	case query.ProjectID != "":
		statement, args = unindexedOfProject, []any{query.ProjectID, query.Limit}
	}
	err = s.read(ctx, func(conn *connection) error {
		return conn.query(statement, args, func(rows *sql.Rows) (err error) {
			var u index.Unindexed
			if u.Conversation, err = scanConversation(rows, &u.Indexed, &u.Title); err != nil {
				return err
			}
			if query.ProjectID == "" || query.ProjectID == u.Conversation.ProjectID {
				found = append(found, u)
			}
			return nil
		})
	})
	return found, err
}

// Index is part of index.Store.
func (s *Store) Index(ctx context.Context, batch index.Batch) error {
	if err := checkBatch(batch); err != nil {
		return fmt.Errorf("index conversation %s: %w", batch.ConversationID, err)
	}
	return s.write(ctx, func(conn *connection) error {
		project, err := mayIndex(conn, batch)
		if err != nil {
			return err
		}
		if _, err := conn.exec(moveIndex, batch.Through, valueOrNull(batch.Title), batch.ConversationID); err != nil {
			return err
		}
		if batch.Title != nil {
			if err := hideDocument(conn, batch.ConversationID, 0); err != nil {
				return err
			}
		}
		return insertDocuments(conn, project, batch)
	})
}

// mayIndex checks that a batch continues the index, and returns the conversation's project.
func mayIndex(conn *connection, batch index.Batch) (project string, err error) {
	var last, indexed int64
	var archived bool
	err = conn.row(selectIndexed, []any{batch.ConversationID}, &project, &last, &indexed, &archived)
	switch {
	case err != nil:
		return "", orNotFound(err)
	case archived:
		return "", fmt.Errorf("index conversation %s: %w", batch.ConversationID, continuo.ErrArchived)
	case indexed != batch.After:
		return "", &continuo.ConflictError{Want: batch.After + 1, Have: indexed + 1}
	case batch.Through > last:
		return "", fmt.Errorf("index conversation %s: %w: it ends at seq %d, before %d", batch.ConversationID, continuo.ErrInvalid, last, batch.Through)
	}
	return project, nil
}

func checkBatch(batch index.Batch) error {
	if batch.Through < batch.After {
		return fmt.Errorf("%w: through %d is before after %d", continuo.ErrInvalid, batch.Through, batch.After)
	}
	if err := checkText(stringOf(batch.Title)); err != nil {
		return err
	}
	seen := make(map[int64]bool, len(batch.Documents))
	for _, d := range batch.Documents {
		isTitle := d.Seq == 0 && batch.Title != nil
		if seen[d.Seq] || !isTitle && (d.Seq <= batch.After || d.Seq > batch.Through) {
			return fmt.Errorf("%w: a document with seq %d in a batch after %d through %d", continuo.ErrInvalid, d.Seq, batch.After, batch.Through)
		}
		seen[d.Seq] = true
		for _, term := range d.Terms {
			if err := checkTerm(term); err != nil {
				return err
			}
		}
	}
	return nil
}

// insertDocuments adds the documents of a batch, except those of entries that were redacted after the caller
// had read them.
func insertDocuments(conn *connection, project string, batch index.Batch) error {
	redacted, err := readRedacted(conn, batch.ConversationID, batch.After+1, batch.Through)
	if err != nil {
		return err
	}
	scopes := " " + scopeTerm(conversationScope, batch.ConversationID) + " " + scopeTerm(projectScope, project)
	added, row := int64(math.MinInt64), int64(0)
	for _, d := range batch.Documents {
		if redacted[d.Seq] || len(d.Terms) == 0 {
			continue
		}
		from := d.Added
		if d.Added == added { // after the one before, which has the same time
			from = row + 1
		}
		if row, err = freeRow(conn, from); err != nil {
			return err
		}
		added = d.Added
		terms := strings.Join(d.Terms, " ") + scopes
		if _, err := conn.exec(insertDocument, row, batch.ConversationID, d.Seq, terms); err != nil {
			return err
		}
		if _, err := conn.exec(insertTerms, row, terms); err != nil {
			return err
		}
	}
	return nil
}

// readRedacted returns which entries of a range are redacted.
func readRedacted(conn *connection, conversationID string, from, to int64) (map[int64]bool, error) {
	redacted := map[int64]bool{}
	err := conn.query(redactedEntries, []any{conversationID, from, to}, func(rows *sql.Rows) error {
		var seq int64
		err := rows.Scan(&seq)
		redacted[seq] = true
		return err
	})
	return redacted, err
}

// freeRow finds a free row id at or shortly above first. It doubles its steps until it finds a free one,
// and then bisects back to the last taken one: many documents with the same time cost little.
func freeRow(conn *connection, first int64) (int64, error) {
	isTaken := func(row int64) (taken bool, err error) {
		err = conn.row(rowTaken, []any{row}, &taken)
		return taken, err
	}
	below, free := first-1, first // below may be taken or not
	for step := int64(1); ; step *= 2 {
		taken, err := isTaken(free)
		if err != nil {
			return 0, err
		}
		if !taken {
			break
		}
		below, free = free, free+step
	}
	for free-below > 1 {
		middle := below + (free-below)/2
		taken, err := isTaken(middle)
		if err != nil {
			return 0, err
		}
		if taken {
			below = middle
		} else {
			free = middle
		}
	}
	return free, nil
}

// ForgetIndex is part of index.Store.
func (s *Store) ForgetIndex(ctx context.Context, conversationID string) error {
	return s.write(ctx, func(conn *connection) error {
		if _, err := readConversation(conn, conversationByID, conversationID); err != nil {
			return err
		}
		return forgetIndex(conn, conversationID)
	})
}

func forgetIndex(conn *connection, conversationID string) error {
	removed, err := conn.exec(hideAll, conversationID)
	conn.indexDirty = conn.indexDirty || removed > 0
	if err != nil {
		return err
	}
	if err := forgetVectors(conn, conversationID); err != nil {
		return err
	}
	_, err = conn.exec(emptyIndex, conversationID)
	return err
}

func hideDocument(conn *connection, conversationID string, seq int64) error {
	removed, err := conn.exec(hideOne, conversationID, seq)
	conn.indexDirty = conn.indexDirty || removed > 0
	return err
}
