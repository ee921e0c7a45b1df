package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/jackc/pgx/v5"
)

const (
	// Of two prefixes of a batch with one key the later one counts: DO UPDATE would refuse both.
	insertPrefixes = `,
prefixed AS (
  INSERT INTO continuo.prefixes (hash, conversation_id, seq, ids, system, session)
  SELECT DISTINCT ON (p.hash, p.seq) p.hash, $1, p.seq, p.ids, p.system, p.session
  FROM head, unnest($%d::bytea[], $%d::bigint[], $%d::bigint[], $%d::bigint[], $%d::bigint[]) WITH ORDINALITY AS p (hash, seq, ids, system, session, place)
  ORDER BY p.hash, p.seq, p.place DESC
  ON CONFLICT (hash, conversation_id, seq) DO UPDATE SET ids = excluded.ids, system = excluded.system, session = excluded.session)`

	putPrefix = `
INSERT INTO continuo.prefixes (hash, conversation_id, seq, ids, system, session) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (hash, conversation_id, seq) DO UPDATE SET ids = excluded.ids, system = excluded.system, session = excluded.session`

	prefixColumns = `p.conversation_id, p.seq, p.hash, p.ids, p.system, p.session`

	// The first row of a conversation has its columns, the others do not: then they are NULL.
	selectPrefixes = `
WITH found AS (
  SELECT wanted.place, p.* FROM unnest($1::bytea[]) WITH ORDINALITY AS wanted (hash, place) CROSS JOIN LATERAL (
    SELECT p.* FROM continuo.prefixes AS p
    WHERE p.hash = wanted.hash AND ($3 = 0::bigint OR p.session = $3) AND EXISTS (
      SELECT 1 FROM continuo.conversations AS c WHERE c.id = p.conversation_id AND c.project_id = $2 AND NOT c.deleted AND c.archived_at IS NULL)
    ORDER BY p.conversation_id DESC, p.seq DESC LIMIT $4) AS p)
SELECT c.*, ` + prefixColumns + ` FROM (
  SELECT *, row_number() OVER (PARTITION BY conversation_id ORDER BY place, seq DESC) AS number FROM found) AS p
LEFT JOIN LATERAL (SELECT ` + conversationColumns + ` FROM continuo.conversations WHERE id = p.conversation_id AND p.number = 1) AS c ON true
ORDER BY p.place, p.conversation_id DESC, p.seq DESC`

	prefixRecords = `
SELECT ` + prefixColumns + ` FROM continuo.prefixes AS p
WHERE p.conversation_id = $1 AND (p.seq, p.hash) > ($2, $3) ORDER BY p.seq, p.hash LIMIT $4`

	deletePrefixes = `DELETE FROM continuo.prefixes WHERE conversation_id = $1`

	deletePrefixesFrom = `DELETE FROM continuo.prefixes WHERE conversation_id = $1 AND seq >= $2`

	deletePrefixesOfForks = `
DELETE FROM continuo.prefixes
WHERE conversation_id IN (SELECT conversation_id FROM continuo.lineage WHERE ancestor_id = $1 AND through >= $2)`
)

// withPrefixes adds the batch's prefixes to a statement whose last part is end.
func withPrefixes(batch continuo.Batch, statement, end string, args []any) (string, []any) {
	if len(batch.Prefixes) == 0 {
		return statement, args
	}
	var hashes [][]byte
	var seqs, ids, systems, sessions []int64
	for i := range batch.Prefixes {
		p := &batch.Prefixes[i]
		hashes, seqs, ids = append(hashes, p.Hash[:]), append(seqs, p.Seq), append(ids, p.IDs)
		systems, sessions = append(systems, p.System), append(sessions, p.Session)
	}
	n := len(args)
	insert := fmt.Sprintf(insertPrefixes, n+1, n+2, n+3, n+4, n+5)
	return strings.TrimSuffix(statement, end) + insert + end, append(args, hashes, seqs, ids, systems, sessions)
}

func checkPrefixes(batch continuo.Batch) error {
	for _, p := range batch.Prefixes {
		if p.ConversationID != batch.ConversationID {
			return fmt.Errorf("%w: a prefix of conversation %q", continuo.ErrInvalid, p.ConversationID)
		}
	}
	return nil
}

// dropPrefixes removes the prefixes that have one of some entries of a conversation, in its forks too.
func dropPrefixes(ctx context.Context, tx pgx.Tx, conversationID string, entries []continuo.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	first := entries[0].Seq
	for i := range entries {
		first = min(first, entries[i].Seq)
	}
	if _, err := tx.Exec(ctx, deletePrefixesFrom, conversationID, first); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, deletePrefixesOfForks, conversationID, first)
	return err
}

// Prefixes is part of continuo.PrefixStore.
func (s *Store) Prefixes(ctx context.Context, query continuo.PrefixQuery) (found []continuo.Prefix, of []continuo.Conversation, err error) {
	if query.Limit < 1 {
		return nil, nil, fmt.Errorf("find prefixes: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	hashes := make([][]byte, len(query.Hashes))
	for i := range query.Hashes {
		hashes[i] = query.Hashes[i][:]
	}
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, err := q.Query(ctx, selectPrefixes, hashes, query.ProjectID, query.Session, query.Limit)
		if err != nil {
			return err
		}
		found, of = nil, nil
		seen := map[string]bool{}
		prefix, err := continuo.Prefix{}, error(nil)
		for rows.Next() && err == nil {
			var hash []byte
			columns := []any{&prefix.ConversationID, &prefix.Seq, &hash, &prefix.IDs, &prefix.System, &prefix.Session}
			if id := string(rows.RawValues()[conversationWidth]); seen[id] {
				err = rows.Scan(append(make([]any, conversationWidth), columns...)...)
			} else {
				var conversation continuo.Conversation
				conversation, err = scanConversation(rows, columns...)
				seen[id], of = true, append(of, conversation)
			}
			copy(prefix.Hash[:], hash)
			found = append(found, prefix)
		}
		rows.Close()
		return errors.Join(err, rows.Err())
	})
	if err != nil {
		return nil, nil, err
	}
	return found, of, nil
}

func (p *recordPage) readPrefixes(ctx context.Context, q querier) error {
	var hash continuo.PrefixHash
	above, seq := []byte{}, p.after.Seq // an empty hash is below every other
	if p.after.Key != "" {
		if hash.UnmarshalText([]byte(p.after.Key)) == nil {
			above = hash[:]
		} else {
			seq++ // the end of a kind
		}
	}
	rows, _ := q.Query(ctx, prefixRecords, p.conversationID, seq, above, p.rows)
	return p.collect(rows, func() error {
		prefix := &continuo.Prefix{}
		var hash []byte
		err := rows.Scan(&prefix.ConversationID, &prefix.Seq, &hash, &prefix.IDs, &prefix.System, &prefix.Session)
		copy(prefix.Hash[:], hash)
		p.add(maintenance.Record{Prefix: prefix}, 0)
		return err
	})
}
