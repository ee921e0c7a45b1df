package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
)

// The table words holds the terms of documents unchanged: they are letters, digits and marks, and the
// tokenizer splits only at ASCII characters. Each document has two additional terms, for its conversation and
// its project, which begin with an underscore as no other term does. So a search in a conversation is a
// search in all documents with one more term, and its posting lists are read in parallel from the newest on,
// until the page is full.
const (
	conversationScope = "_c"
	projectScope      = "_p"
	scopes            = 2 // the last terms of each document
)

const (
	// The join is in this order, so that no sort is needed.
	selectHits = `
SELECT documents.conversation_id, documents.seq, words.rowid FROM words CROSS JOIN documents INDEXED BY documents_by_place ON documents.place = words.rowid
WHERE words MATCH ? AND words.rowid >= ? AND words.rowid <= ? AND documents.conversation_id IS NOT NULL AND documents.seq BETWEEN ? AND ? `

	newestHits = `ORDER BY words.rowid DESC LIMIT +?`

	// Narrows hits to those of some conversations: one row is looked up for each hit of the terms.
	ofConversations = `AND EXISTS (SELECT 1 FROM conversations WHERE id = documents.conversation_id `

	// Counts the documents of each term by reading them, which takes most of the time.
	selectTerms = `SELECT term FROM terms_of_words WHERE term >= ? AND term < ? LIMIT +?`

	// The newest documents of all, to be compared one by one.
	selectNewest = `
SELECT conversation_id, seq, place, terms FROM documents WHERE place <= ? AND conversation_id IS NOT NULL
ORDER BY place DESC LIMIT +?`

	selectDocuments = `SELECT seq, place, terms FROM documents WHERE conversation_id = ? AND seq BETWEEN ? AND ? ORDER BY seq`

	selectLast = `SELECT ` + newestSeq + ` FROM conversations WHERE id = ?`

	selectReach = `
SELECT coalesce(min(place), 0), coalesce(max(place), -1) FROM documents WHERE conversation_id = ? AND seq BETWEEN ? AND ?`

	anyRemoved = `SELECT EXISTS (SELECT 1 FROM documents WHERE conversation_id IS NULL)`

	removedDocuments = `SELECT place, terms FROM documents WHERE conversation_id IS NULL LIMIT +?`

	oneDocument = `SELECT place, terms FROM documents WHERE conversation_id = ? AND seq = ?`

	deleteTerms = `INSERT INTO words (words, rowid, terms) VALUES ('delete', ?, ?)`

	deleteDocument = `DELETE FROM documents WHERE place = ?`
)

// How many documents' terms are removed from the index at once: each takes some milliseconds when the index
// is large, since no trace may stay, and other writers wait.
const (
	eraseAtOnce    = 64 // by a redaction
	purgeInBetween = 2
)

// Hits is part of index.Store.
func (s *Store) Hits(ctx context.Context, query index.HitQuery) (found []index.Hit, err error) {
	if err := checkHitQuery(query); err != nil {
		return nil, fmt.Errorf("find places: %w", err)
	}
	first, last := max(query.From, 0), int64(math.MaxInt64) // seqs
	if query.To > 0 {
		last = query.To
	}
	err = s.read(ctx, func(conn *connection) error {
		lowest, highest, err := reachOf(conn, query.ConversationID, first, last)
		if err != nil {
			return err
		}
		if query.Before != (index.Hit{}) {
			highest = min(highest, query.Before.Order-1)
		}
		if found, err = amongNewest(conn, query, first, last, lowest, highest); err != nil || len(found) == query.Limit {
			return err
		}
		found, err = matching(conn, query, first, last, lowest, highest)
		return err
	})
	return found, err
}

// matching finds documents in the index of terms, the newest first.
func matching(conn *connection, query index.HitQuery, first, last, lowest, highest int64) (found []index.Hit, err error) {
	match, err := matchOf(conn, query)
	if err != nil {
		return nil, err
	}
	statement, args := selectHits, []any{match, lowest, highest, first, last}
	if query.ConversationID != "" { // its id is not read again for each
		statement = strings.Replace(statement, "documents.conversation_id", "?", 1)
		args = append([]any{""}, args...)
	}
	if filter, more := conversationFilter(query.UserID, query.Labels); filter != "" {
		statement, args = statement+ofConversations+filter+`) `, append(args, more...)
	}
	err = conn.query(statement+newestHits, append(args, query.Limit), func(rows *sql.Rows) error {
		var p index.Hit
		err := rows.Scan(&p.ConversationID, &p.Seq, &p.Order)
		if query.ConversationID != "" {
			p.ConversationID = query.ConversationID
		}
		found = append(found, p)
		return err
	})
	return found, err
}

// reachOf returns the lowest and the highest row id of the documents in a range of a conversation's seqs, so
// that those outside are not read. The look-up is made only if enough documents are outside, since it costs
// time for each document inside.
func reachOf(conn *connection, conversationID string, first, last int64) (lowest, highest int64, err error) {
	lowest, highest = math.MinInt64, math.MaxInt64
	if conversationID == "" || first <= 1 && last == math.MaxInt64 {
		return lowest, highest, nil
	}
	var newest int64
	err = conn.row(selectLast, []any{conversationID}, &newest)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, -1, nil
	}
	inside := min(last, newest) - first + 1
	if err != nil || inside > reachShare*(newest-inside) {
		return lowest, highest, err
	}
	err = conn.row(selectReach, []any{conversationID, first, last}, &lowest, &highest)
	return lowest, highest, err
}

// reachShare is the cost of reading a hit in vain, divided by that of looking up its row id.
const reachShare = 4

func checkHitQuery(query index.HitQuery) error {
	if query.Limit < 1 || len(query.Terms) == 0 {
		return fmt.Errorf("%w: %d terms and a limit of %d; both must be at least 1", continuo.ErrInvalid, len(query.Terms), query.Limit)
	}
	for _, term := range query.Terms {
		if err := checkTerm(term.Text); err != nil {
			return err
		}
		if term.Or != "" {
			if err := checkTerm(term.Or); err != nil {
				return err
			}
		}
	}
	return nil
}

// Documents is part of index.Store.
func (s *Store) Documents(ctx context.Context, conversationID string, from, to int64) (found []index.Document, err error) {
	err = s.read(ctx, func(conn *connection) error {
		found = nil
		return conn.query(selectDocuments, []any{conversationID, max(from, 1), to}, func(rows *sql.Rows) error {
			var d index.Document
			var terms string
			err := rows.Scan(&d.Seq, &d.Added, &terms)
			d.Terms = strings.Fields(terms)
			d.Terms = d.Terms[:len(d.Terms)-scopes]
			found = append(found, d)
			return err
		})
	})
	return found, err
}

// newestDocuments is how many documents are compared one by one before the index is searched for prefixes.
const newestDocuments = 2000

// amongNewest looks for a page among the newest documents when the query has prefixes: to match a prefix, the
// index reads all hits of its terms, while common terms fill a page here.
func amongNewest(conn *connection, query index.HitQuery, first, last, lowest, highest int64) (found []index.Hit, err error) {
	var wanted [][]byte
	var padded []byte // the terms of a row, each between spaces
	prefixes := false
	for _, term := range query.Terms {
		text := " " + term.Text
		if prefixes = prefixes || term.Prefix; !term.Prefix {
			text += " "
		}
		wanted = append(wanted, []byte(text))
	}
	if !prefixes || query.UserID != "" || len(query.Labels) > 0 { // the newest documents may be other users'
		return nil, nil
	}
	wanted = append(wanted, []byte(" "+scopeOf(query)+" "))
	err = conn.query(selectNewest, []any{highest, newestDocuments}, func(rows *sql.Rows) error {
		var id, terms sql.RawBytes
		var p index.Hit
		if err := rows.Scan(&id, &p.Seq, &p.Order, &terms); err != nil {
			return err
		}
		padded = append(append(append(padded[:0], ' '), terms...), ' ')
		if p.Order >= lowest && p.Seq >= first && p.Seq <= last && hasAll(padded, wanted) {
			p.ConversationID = string(id)
			found = append(found, p)
		}
		if len(found) == query.Limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return found, err
}

func hasAll(terms []byte, wanted [][]byte) bool {
	for _, term := range wanted {
		if !bytes.Contains(terms, term) {
			return false
		}
	}
	return true
}

// scopeOf is the term that all documents in the query's scope have.
func scopeOf(query index.HitQuery) string {
	if query.ConversationID != "" {
		return scopeTerm(conversationScope, query.ConversationID)
	}
	return scopeTerm(projectScope, query.ProjectID)
}

// matchOf writes a query in the language of FTS5.
func matchOf(conn *connection, query index.HitQuery) (string, error) {
	match := `"` + scopeOf(query) + `"`
	for _, term := range query.Terms {
		one, err := matchTerm(conn, term)
		if err != nil {
			return "", err
		}
		match += " AND " + one
	}
	return match, nil
}

// matchTerm writes one term of a query.
func matchTerm(conn *connection, term index.Term) (string, error) {
	switch {
	case term.Prefix:
		return anyOf(conn, term.Text)
	case term.Or != "":
		return `("` + term.Text + `" OR "` + term.Or + `")`, nil
	}
	return `"` + term.Text + `"`, nil
}

// maxAlternatives bounds how many terms a prefix is expanded into.
const maxAlternatives = 128

// anyOf matches the terms that begin with a prefix. Few terms are listed in the query: their posting lists
// are read from the newest on, as far as a page needs, while FTS5 builds the whole list of a prefix first.
func anyOf(conn *connection, prefix string) (string, error) {
	var terms []string
	err := conn.query(selectTerms, []any{prefix, prefix + "\U0010FFFF", maxAlternatives + 1}, func(rows *sql.Rows) error {
		var term string
		err := rows.Scan(&term)
		terms = append(terms, `"`+term+`"`)
		return err
	})
	if err != nil || len(terms) == 0 || len(terms) > maxAlternatives {
		return `"` + prefix + `"*`, err
	}
	return "(" + strings.Join(terms, " OR ") + ")", nil
}

// maxTermBytes is above the size of the longest term that package fulltext makes.
const maxTermBytes = 256

// checkTerm refuses a term that the index would split or change.
func checkTerm(term string) error {
	if term == "" || len(term) > maxTermBytes || checkText(term) != nil {
		return fmt.Errorf("%w: %.300q is no term: it is empty, too long, or not UTF-8", continuo.ErrInvalid, term)
	}
	for i := range len(term) {
		if b := term[i]; b < 0x80 && !('a' <= b && b <= 'z' || '0' <= b && b <= '9') {
			return fmt.Errorf("%w: %q is no term: it has to be small letters, digits and marks", continuo.ErrInvalid, term)
		}
	}
	return nil
}

// scopeTerm is the term of an id: small letters and digits as they are, every other byte as an underscore and
// its hex code.
func scopeTerm(scope, id string) string {
	var term strings.Builder
	term.WriteString(scope)
	for i := range len(id) {
		if b := id[i]; 'a' <= b && b <= 'z' || '0' <= b && b <= '9' {
			term.WriteByte(b)
		} else {
			fmt.Fprintf(&term, "_%02x", b)
		}
	}
	return term.String()
}

// purgeTerms removes the terms of removed documents from the index, of a bounded number of documents.
func purgeTerms(conn *connection, limit int) error {
	return eraseDocuments(conn, removedDocuments, limit)
}

// eraseDocument removes a document, if it exists, and leaves no trace of it.
func eraseDocument(conn *connection, conversationID string, seq int64) error {
	return eraseDocuments(conn, oneDocument, conversationID, seq)
}

func eraseDocuments(conn *connection, query string, args ...any) error {
	type removed struct {
		place int64
		terms string
	}
	var documents []removed
	err := conn.query(query, args, func(rows *sql.Rows) error {
		var d removed
		err := rows.Scan(&d.place, &d.terms)
		documents = append(documents, d)
		return err
	})
	if err != nil {
		return err
	}
	for _, d := range documents {
		if _, err := conn.exec(deleteTerms, d.place, d.terms); err != nil {
			return err
		}
		if _, err := conn.exec(deleteDocument, d.place); err != nil {
			return err
		}
	}
	return nil
}
