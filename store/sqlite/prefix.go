package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

const (
	insertPrefix = `
INSERT OR REPLACE INTO prefixes (hash, conversation_id, seq, ids, system, session) VALUES (?, ?, ?, ?, ?, ?)`

	// In the project ?1 with the session ?2, at most ?3.
	prefixesOfHash = `
SELECT p.conversation_id, p.seq, p.hash, p.ids, p.system, p.session FROM prefixes AS p CROSS JOIN conversations AS c ON c.id = p.conversation_id
WHERE p.hash = ?4 AND c.project_id = ?1 AND c.deleted = 0 AND c.archived_at IS NULL AND (?2 = 0 OR p.session = ?2)
ORDER BY p.conversation_id DESC, p.seq DESC LIMIT +?3`

	prefixesAbove = `
SELECT conversation_id, seq, hash, ids, system, session FROM prefixes
WHERE conversation_id = ?1 AND (seq, hash) > (?2, ?3) ORDER BY seq, hash LIMIT +?4`

	deletePrefixes = `DELETE FROM prefixes WHERE conversation_id = ?`

	deletePrefixesFrom = `DELETE FROM prefixes WHERE conversation_id = ? AND seq >= ?`

	deletePrefixesOfForks = `
DELETE FROM prefixes WHERE conversation_id IN (SELECT conversation_id FROM lineage WHERE ancestor_id = ? AND through >= ?)`
)

// prefixesAtOnce is how many hashes a statement looks up.
const prefixesAtOnce = 8

// selectPrefixes finds the prefixes of several hashes, from ?4 on; one that is NULL has none.
var selectPrefixes = func() string {
	var each []string
	for i := range prefixesAtOnce {
		one := strings.Replace(prefixesOfHash, "?4", fmt.Sprintf("?%d", 4+i), 1)
		each = append(each, fmt.Sprintf("SELECT %d AS number, * FROM (%s)", i, one))
	}
	return `SELECT conversation_id, seq, hash, ids, system, session FROM (` + strings.Join(each, " UNION ALL ") + `
) ORDER BY number, conversation_id DESC, seq DESC`
}()

func checkPrefixes(batch continuo.Batch) error {
	for _, p := range batch.Prefixes {
		if p.ConversationID != batch.ConversationID {
			return fmt.Errorf("%w: a prefix of conversation %q", continuo.ErrInvalid, p.ConversationID)
		}
	}
	return nil
}

func putPrefix(conn *connection, p *continuo.Prefix) error {
	_, err := conn.exec(insertPrefix, p.Hash[:], p.ConversationID, p.Seq, p.IDs, p.System, p.Session)
	return err
}

func putPrefixes(conn *connection, prefixes []continuo.Prefix) error {
	for i := range prefixes {
		if err := putPrefix(conn, &prefixes[i]); err != nil {
			return err
		}
	}
	return nil
}

// dropPrefixes removes the prefixes that have one of some entries of a conversation, in its forks too.
func dropPrefixes(conn *connection, conversationID string, entries []continuo.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	first := entries[0].Seq
	for i := range entries {
		first = min(first, entries[i].Seq)
	}
	if _, err := conn.exec(deletePrefixesFrom, conversationID, first); err != nil {
		return err
	}
	_, err := conn.exec(deletePrefixesOfForks, conversationID, first)
	return err
}

// Prefixes is part of continuo.PrefixStore.
func (s *Store) Prefixes(ctx context.Context, query continuo.PrefixQuery) (found []continuo.Prefix, of []continuo.Conversation, err error) {
	if query.Limit < 1 {
		return nil, nil, fmt.Errorf("find prefixes: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	err = s.read(ctx, func(conn *connection) error {
		return conn.snapshot(func() error {
			for hashes := range slices.Chunk(query.Hashes, prefixesAtOnce) {
				args := make([]any, 3+prefixesAtOnce)
				args[0], args[1], args[2] = query.ProjectID, query.Session, query.Limit
				for i := range hashes {
					args[3+i] = hashes[i][:]
				}
				err := conn.query(selectPrefixes, args, func(rows *sql.Rows) error {
					p, err := scanPrefix(rows)
					found = append(found, p)
					return err
				})
				if err != nil {
					return err
				}
			}
			seen := map[string]bool{}
			for i := range found {
				if id := found[i].ConversationID; !seen[id] {
					seen[id] = true
					conversation, err := readConversation(conn, conversationByID, id)
					if err != nil {
						return err
					}
					of = append(of, conversation)
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, nil, err
	}
	return found, of, nil
}

func scanPrefix(rows *sql.Rows) (p continuo.Prefix, err error) {
	var hash sql.RawBytes
	err = rows.Scan(&p.ConversationID, &p.Seq, &hash, &p.IDs, &p.System, &p.Session)
	copy(p.Hash[:], hash)
	return p, err
}

func (p *recordPage) readPrefixes(after maintenance.RecordPosition) error {
	var hash continuo.PrefixHash
	above := []byte{} // below every hash
	if after.Key != "" {
		if hash.UnmarshalText([]byte(after.Key)) == nil {
			above = hash[:]
		} else {
			after.Seq++ // the end of a kind
		}
	}
	return p.conn.query(prefixesAbove, []any{p.conversationID, after.Seq, above, p.limit}, func(rows *sql.Rows) error {
		prefix, err := scanPrefix(rows)
		if err != nil {
			return err
		}
		return p.add(maintenance.Record{Prefix: &prefix}, len(prefix.ConversationID))
	})
}
