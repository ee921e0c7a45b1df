package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/jackc/pgx/v5"
)

const (
	isUnindexed = `behind AND NOT deleted AND archived_at IS NULL`

	selectUnindexed = `SELECT ` + conversationColumns + `, indexed_seq, indexed_title IS NOT DISTINCT FROM title FROM continuo.conversations WHERE ` + isUnindexed

	unindexedConversation = selectUnindexed + ` AND id = $1 AND ($3 = '' OR project_id = $3) LIMIT $2`
	unindexedOfProject    = selectUnindexed + ` AND project_id = $1 ORDER BY id LIMIT $2`
	unindexedOfAll        = selectUnindexed + ` ORDER BY project_id, id LIMIT $1`

	selectIndexed = `SELECT indexed_seq, last_seq, project_id, archived_at IS NOT NULL FROM continuo.conversations WHERE id = $1 AND NOT deleted`

	insertDocuments = `
INSERT INTO continuo.documents (conversation_id, seq, project_id, added, terms)
SELECT $1::text, seq, $2::text, added, array_to_tsvector(string_to_array(terms, ' ') || ARRAY['` + conversationTerm + `' || $1::text, '` + projectTerm + `' || $2::text])
FROM unnest($3::bigint[], $4::bigint[], $5::text[]) AS document (seq, added, terms)
ON CONFLICT (conversation_id, seq) DO UPDATE SET added = excluded.added, terms = excluded.terms`

	deleteDocuments = `DELETE FROM continuo.documents WHERE conversation_id = $1 AND seq = ANY ($2)`

	moveIndexed = `
UPDATE continuo.conversations SET indexed_seq = $3, indexed_title = coalesce($4, indexed_title)
WHERE id = $1 AND indexed_seq = $2 AND NOT deleted AND archived_at IS NULL`

	// A redaction that was made while the entries were read must not be undone. A redaction locks the
	// conversation, as moveIndexed does: it was either committed before and is seen here, or runs afterwards.
	deleteRedactedDocuments = `
DELETE FROM continuo.documents AS document WHERE conversation_id = $1 AND seq > $2 AND seq <= $3
AND EXISTS (SELECT 1 FROM continuo.entries AS entry WHERE entry.conversation_id = $1 AND entry.seq = document.seq AND entry.redacted)`

	hasIndexed = `SELECT EXISTS (SELECT 1 FROM continuo.conversations WHERE id = $1 AND indexed_seq >= $2)`

	forgetIndexed = `UPDATE continuo.conversations SET indexed_seq = fork_seq, indexed_title = NULL WHERE id = $1 AND NOT deleted`

	deleteAllDocuments = `DELETE FROM continuo.documents WHERE conversation_id = $1`
)

// Unindexed is part of index.Store.
func (s *Store) Unindexed(ctx context.Context, query index.UnindexedQuery) (found []index.Unindexed, err error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list what is not indexed: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	statement, args := unindexedOfAll, []any{query.Limit}
	switch {
	case query.ConversationID != "":
		statement, args = unindexedConversation, []any{query.ConversationID, query.Limit, query.ProjectID}
	case query.ProjectID != "":
		statement, args = unindexedOfProject, []any{query.ProjectID, query.Limit}
	}
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, _ := q.Query(ctx, statement, args...)
		found, err = pgx.CollectRows(rows, scanUnindexed)
		return err
	})
	return found, err
}

func scanUnindexed(row pgx.CollectableRow) (u index.Unindexed, err error) {
	u.Conversation, err = scanConversation(row, &u.Indexed, &u.Title)
	return u, err
}

// Index is part of index.Store. It locks the conversation as its last step, so that appends hardly
// wait.
func (s *Store) Index(ctx context.Context, batch index.Batch) error {
	if err := checkBatch(batch); err != nil {
		return fmt.Errorf("index conversation %s: %w", batch.ConversationID, err)
	}
	return s.transact(ctx, "index conversation "+batch.ConversationID, func(ctx context.Context, tx pgx.Tx) error {
		projectID, err := checkIndexed(ctx, tx, batch)
		if err != nil {
			return err
		}
		if err := putDocuments(ctx, tx, batch, projectID); err != nil {
			return err
		}
		moved, err := tx.Exec(ctx, moveIndexed, batch.ConversationID, batch.After, batch.Through, batch.Title)
		if err != nil {
			return err
		}
		if moved.RowsAffected() == 0 {
			return whyNotIndexed(ctx, tx, batch)
		}
		_, err = tx.Exec(ctx, deleteRedactedDocuments, batch.ConversationID, batch.After, batch.Through)
		return err
	}, func(ctx context.Context, q querier) (committed bool, err error) {
		if batch.After == batch.Through { // a title: it can be written twice
			return false, nil
		}
		err = q.QueryRow(ctx, hasIndexed, batch.ConversationID, batch.Through).Scan(&committed)
		return committed, err
	})
}

// checkBatch refuses documents that are not of the batch's entries, and invalid terms.
func checkBatch(batch index.Batch) error {
	if batch.Through < batch.After {
		return fmt.Errorf("%w: through %d is before after %d", continuo.ErrInvalid, batch.Through, batch.After)
	}
	seen := make(map[int64]bool, len(batch.Documents))
	for _, document := range batch.Documents {
		isTitle := document.Seq == 0 && batch.Title != nil
		if seen[document.Seq] || !isTitle && (document.Seq <= batch.After || document.Seq > batch.Through) {
			return fmt.Errorf("%w: a document with seq %d in a batch after %d through %d", continuo.ErrInvalid, document.Seq, batch.After, batch.Through)
		}
		seen[document.Seq] = true
		for _, term := range document.Terms {
			if err := checkTerm(term); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkTerm refuses an invalid term. No character beyond ASCII has a special meaning here.
func checkTerm(term string) error {
	wrong := func(r rune) bool { return r < utf8.RuneSelf && (r < '0' || r > '9') && (r < 'a' || r > 'z') }
	if term == "" || len(term) > maxTerm || !utf8.ValidString(term) || strings.ContainsFunc(term, wrong) {
		return fmt.Errorf("%w: %q is no term: it has to be small letters, digits and marks", continuo.ErrInvalid, term)
	}
	return nil
}

// maxTerm is the largest size of a term in bytes.
const maxTerm = 256

// checkIndexed refuses a batch that another process has indexed first, and returns the conversation's
// project.
func checkIndexed(ctx context.Context, tx pgx.Tx, batch index.Batch) (projectID string, err error) {
	var indexed, last int64
	var archived bool
	if err := tx.QueryRow(ctx, selectIndexed, batch.ConversationID).Scan(&indexed, &last, &projectID, &archived); err != nil {
		return "", orNotFound(err)
	}
	if archived {
		return "", continuo.ErrArchived
	}
	if indexed != batch.After {
		return "", &continuo.ConflictError{Want: batch.After + 1, Have: indexed + 1}
	}
	if batch.Through > last {
		return "", fmt.Errorf("index conversation %s: %w: it ends at seq %d, before %d", batch.ConversationID, continuo.ErrInvalid, last, batch.Through)
	}
	return projectID, nil
}

func whyNotIndexed(ctx context.Context, tx pgx.Tx, batch index.Batch) error {
	if _, err := checkIndexed(ctx, tx, batch); err != nil {
		return err
	}
	return &continuo.ConflictError{Want: batch.After + 1, Have: batch.After + 1} // the index was cleared
}

// putDocuments writes the documents of a batch, and replaces those of the same entries.
func putDocuments(ctx context.Context, tx pgx.Tx, batch index.Batch, projectID string) error {
	var seqs, added []int64
	var terms []string
	for _, document := range batch.Documents {
		if len(document.Terms) > 0 {
			seqs, added = append(seqs, document.Seq), append(added, document.Added)
			terms = append(terms, strings.Join(append(slices.Clip(document.Terms), periodsOf(projectID, document.Added)...), " "))
		}
	}
	if batch.Title != nil && !slices.Contains(seqs, 0) { // a title without words has no document
		if _, err := tx.Exec(ctx, deleteDocuments, batch.ConversationID, []int64{0}); err != nil {
			return err
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, insertDocuments, batch.ConversationID, projectID, seqs, added, terms)
	return err
}

// ForgetIndex is part of index.Store.
func (s *Store) ForgetIndex(ctx context.Context, conversationID string) error {
	return s.transact(ctx, "forget the index of conversation "+conversationID, func(ctx context.Context, tx pgx.Tx) error {
		deleted, err := tx.Exec(ctx, forgetIndexed, conversationID)
		if err != nil {
			return err
		}
		if deleted.RowsAffected() == 0 {
			return continuo.ErrNotFound
		}
		for _, statement := range []string{deleteAllDocuments, deleteAllVectors, deleteEmbedded} {
			if _, err := tx.Exec(ctx, statement, conversationID); err != nil {
				return err
			}
		}
		return nil
	}, nil)
}
