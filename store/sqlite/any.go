package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-log/continuo/fulltext/index"
)

// The documents of one term in one conversation are looked for among all documents that have the term, page by page: few
// documents have most terms, and to skip those of other conversations the index would read two lists in parallel, that of
// the term and that of the conversation. Where most of a page is of other conversations, the rest is looked for so.
const (
	// A page is one row: each row of a result takes as long as finding the hit.
	selectHitPage = `
SELECT group_concat(CASE WHEN conversation_id = ? AND seq BETWEEN ? AND ? THEN seq || ' ' || place END, ' '), count(*), coalesce(min(place), 0)
FROM (
  SELECT documents.conversation_id, documents.seq, documents.place
  FROM words CROSS JOIN documents INDEXED BY documents_by_place ON documents.place = words.rowid
  WHERE words MATCH ? AND words.rowid >= ? AND words.rowid <= ? ORDER BY words.rowid DESC LIMIT +?)`

	firstPage = 128
	nextPages = 8 // times as large as the page before
	ownShare  = 2 // of a page half must be of the conversation
)

// AnyHits is part of index.Store.
func (s *Store) AnyHits(ctx context.Context, query index.HitQuery) ([][]index.Hit, error) {
	if err := checkHitQuery(query); err != nil {
		return nil, fmt.Errorf("find places of any term: %w", err)
	}
	first, last := max(query.From, 0), int64(math.MaxInt64)
	if query.To > 0 {
		last = query.To
	}
	found := make([][]index.Hit, len(query.Terms))
	err := s.read(ctx, func(conn *connection) error {
		lowest, highest, err := reachOf(conn, query.ConversationID, first, last)
		if err != nil {
			return err
		}
		for i, term := range query.Terms {
			one := query
			one.Terms = []index.Term{term}
			if query.ConversationID == "" || query.UserID != "" || len(query.Labels) > 0 {
				found[i], err = matching(conn, one, first, last, lowest, highest)
			} else {
				found[i], err = inPages(conn, one, first, last, lowest, highest)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// inPages finds the documents of a conversation that have the only term of a query, the newest first.
func inPages(conn *connection, query index.HitQuery, first, last, lowest, highest int64) (found []index.Hit, err error) {
	match, err := matchTerm(conn, query.Terms[0])
	if err != nil {
		return nil, err
	}
	for limit := firstPage; ; limit *= nextPages {
		limit = min(limit, query.Limit-len(found))
		var own sql.NullString
		var read int
		var end int64
		args := []any{query.ConversationID, first, last, match, lowest, highest, limit}
		if err := conn.row(selectHitPage, args, &own, &read, &end); err != nil {
			return nil, err
		}
		before := len(found)
		if found, err = appendHits(found, query.ConversationID, own.String); err != nil {
			return nil, err
		}
		highest = end - 1
		if read < limit || len(found) == query.Limit {
			return found, nil
		}
		if (len(found)-before)*ownShare < read {
			break
		}
	}
	query.Limit -= len(found)
	rest, err := matching(conn, query, first, last, lowest, highest)
	return append(found, rest...), err
}

// appendHits reads pairs of a seq and a place.
func appendHits(hits []index.Hit, conversationID, pairs string) ([]index.Hit, error) {
	hits = slices.Grow(hits, strings.Count(pairs, " ")/2+1)
	for pairs != "" {
		var seq, place string
		seq, pairs, _ = strings.Cut(pairs, " ")
		place, pairs, _ = strings.Cut(pairs, " ")
		hit := index.Hit{ConversationID: conversationID}
		var err error
		if hit.Seq, err = strconv.ParseInt(seq, 10, 64); err == nil {
			hit.Order, err = strconv.ParseInt(place, 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("read places: %w", err)
		}
		hits = append(hits, hit)
	}
	return hits, nil
}
