package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/internal/form"
)

const (
	// Moves the head of a conversation, if it still is the one that the batch was made for.
	moveHead = `
UPDATE conversations SET last_seq = ?, updated_at = coalesce(?, updated_at)
WHERE id = ? AND last_seq = ? AND deleted = 0 AND archived_at IS NULL`

	selectHead = `SELECT last_seq, archived_at IS NOT NULL FROM conversations WHERE id = ? AND deleted = 0`

	insertEntry = `
INSERT INTO entries (id, role, hidden, created_at, output_ref, chars, tokens, redacted, body, checksum, conversation_id, seq)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	insertObject = `INSERT INTO entry_objects (conversation_id, object_id, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`

	// For an archived conversation, up to the last entry that a fork begins with.
	selectKept = `
SELECT last_seq, max(fork_seq, (SELECT coalesce(max(through), 0) FROM lineage WHERE ancestor_id = ?1))
FROM conversations WHERE id = ?1 AND archived_at IS NOT NULL`
)

// The queries name their index: without it they fail instead of reading every row. A body of more than ?1
// bytes is not read; octet_length looks at the row's header only.
const (
	selectBodies = `SELECT seq, octet_length(body), CASE WHEN octet_length(body) <= ?1 THEN body END FROM entries INDEXED BY `

	entriesAll   = selectBodies + `sqlite_autoindex_entries_1 WHERE conversation_id = ?2 AND seq BETWEEN ?3 AND ?4 `
	entriesUsers = selectBodies + `entries_of_users
WHERE conversation_id = ?2 AND seq BETWEEN ?3 AND ?4 AND role = 'user' AND hidden = 0 `
	entriesRef = selectBodies + `entries_by_output_ref
WHERE conversation_id = ?2 AND seq BETWEEN ?3 AND ?4 AND output_ref = ?6 `
	entriesUsersRef = entriesRef + `AND role = 'user' AND hidden = 0 `

	sumSizes = `
SELECT count(*), coalesce(sum(chars), 0), coalesce(sum(tokens), 0)
FROM entries INDEXED BY sqlite_autoindex_entries_1 WHERE conversation_id = ? AND seq BETWEEN ? AND ?`

	ascending  = `ORDER BY seq LIMIT +?5`
	descending = `ORDER BY seq DESC LIMIT +?5`
)

// entryRow is an entry, ready to be inserted.
type entryRow struct {
	entry    *continuo.Entry
	body     string
	checksum int64
}

// encodeEntries writes the stored form of the entries that follow the seq after.
func encodeEntries(conversationID string, after int64, entries []continuo.Entry) ([]entryRow, error) {
	rows := make([]entryRow, len(entries))
	for i := range entries {
		entry := &entries[i]
		if want := after + 1 + int64(i); entry.Seq != want || entry.ConversationID != conversationID {
			return nil, fmt.Errorf("%w: entry %d is seq %d of conversation %q, but must be seq %d of %q",
				continuo.ErrInvalid, i, entry.Seq, entry.ConversationID, want, conversationID)
		}
		var err error
		if rows[i], err = encodeEntry(entry, false); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// encodeEntry writes the stored form of an entry. The checksum of a damaged one does not match its body.
func encodeEntry(entry *continuo.Entry, damaged bool) (entryRow, error) {
	if err := checkText(entry.ID, string(entry.Role), entry.OutputRef); err != nil {
		return entryRow{}, fmt.Errorf("entry %d: %w", entry.Seq, err)
	}
	body, err := entry.MarshalJSON()
	if err != nil {
		return entryRow{}, fmt.Errorf("%w: entry %d cannot be written as JSON: %w", continuo.ErrInvalid, entry.Seq, err)
	}
	return entryRow{entry, string(body), form.Mark(form.Checksum(body), damaged)}, nil
}

// columns returns the columns of the row from id to checksum, and then its key.
func (r *entryRow) columns() []any {
	e := r.entry
	return []any{
		e.ID, string(e.Role), e.Hidden, stamp(e.CreatedAt), orNull(e.OutputRef), e.Chars, e.Tokens, e.Redacted != nil, r.body,
		r.checksum, e.ConversationID, e.Seq,
	}
}

func insertEntries(conn *connection, rows []entryRow) error {
	for _, row := range rows {
		if _, err := conn.exec(insertEntry, row.columns()...); err != nil {
			return err
		}
		if err := insertObjects(conn, row.entry); err != nil {
			return err
		}
	}
	return nil
}

func insertObjects(conn *connection, entry *continuo.Entry) error {
	for _, id := range entry.Objects() {
		if _, err := conn.exec(insertObject, entry.ConversationID, id, entry.Seq); err != nil {
			return err
		}
	}
	return nil
}

// Append is part of continuo.EntryStore. It fails with continuo.ErrInvalid when the entries do not
// follow Batch.After without a gap.
func (s *Store) Append(ctx context.Context, batch continuo.Batch) error {
	rows, err := encodeEntries(batch.ConversationID, batch.After, batch.Entries)
	if err != nil {
		return err
	}
	if err := errors.Join(checkReceipts(batch.Receipts), checkRuns(batch.Runs)); err != nil {
		return err
	}
	turns, err := encodeUpdates(batch)
	if err != nil {
		return err
	}
	begin, err := encodeBegin(batch)
	if err != nil {
		return err
	}
	return s.write(ctx, func(conn *connection) error {
		work := func() error { return appendBatch(conn, batch, rows, turns, begin, s.now()) }
		if len(turns) > 0 {
			return conn.inSavepoint(work)
		}
		return work()
	})
}

// appendBatch may return a verdict after it has written, but only when there are turns.
func appendBatch(conn *connection, batch continuo.Batch, rows []entryRow, turns []*turnUpdate, begin *form.TurnBegin, now time.Time) error {
	replaces := false
	if begin != nil {
		var err error
		if replaces, err = mayBegin(conn, begin.Turn, now); err != nil {
			return err
		}
	}
	var updated any
	if len(rows) > 0 {
		updated = stamp(rows[len(rows)-1].entry.CreatedAt)
	}
	moved, err := conn.exec(moveHead, batch.After+int64(len(rows)), updated, batch.ConversationID, batch.After)
	if err != nil {
		return err
	}
	if moved == 0 {
		return whyNotMoved(conn, batch)
	}
	for _, turn := range turns {
		if _, err := applyUpdate(conn, turn, now); err != nil {
			return err
		}
	}
	if err := insertEntries(conn, rows); err != nil {
		return err
	}
	if err := insertReceipts(conn, batch.ConversationID, batch.Receipts); err != nil {
		return err
	}
	if err := changeRuns(conn, batch.ConversationID, batch.Runs); err != nil || begin == nil {
		return err
	}
	return insertBegun(conn, begin, replaces, now)
}

func whyNotMoved(conn *connection, batch continuo.Batch) error {
	var last int64
	var archived bool
	if err := conn.row(selectHead, []any{batch.ConversationID}, &last, &archived); err != nil {
		return orNotFound(err)
	}
	if archived {
		return fmt.Errorf("append to %s: %w", batch.ConversationID, continuo.ErrArchived)
	}
	return &continuo.ConflictError{Want: batch.After + 1, Have: last + 1}
}

// Entries is part of continuo.EntryStore.
func (s *Store) Entries(ctx context.Context, conversationID string, query continuo.EntryQuery) ([]continuo.Entry, error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("read entries: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	var page *entryPage
	err := s.read(ctx, func(conn *connection) (err error) {
		if isWide := !query.UsersOnly && query.OutputRef == ""; isWide {
			if page, err = readEntries(conn, conversationID, query); err != nil || page.isWhole(query) {
				return err
			}
		}
		// Both reads use one snapshot, so that missing entries are noticed reliably.
		return conn.snapshot(func() (err error) {
			if page, err = readEntries(conn, conversationID, query); err != nil || page.isWhole(query) {
				return err
			}
			return checkKept(conn, conversationID, query, len(page.entries))
		})
	})
	if err == nil && len(page.entries) == 0 && page.large != nil {
		err = page.large
	}
	if err != nil {
		return nil, err
	}
	return page.entries, nil
}

// EntrySizes is part of continuo.EntryStore.
func (s *Store) EntrySizes(ctx context.Context, conversationID string, from, to int64) (sum continuo.Size, err error) {
	err = s.read(ctx, func(conn *connection) error {
		return conn.row(sumSizes, []any{conversationID, from, to}, &sum.Messages, &sum.Chars, &sum.Tokens)
	})
	return sum, err
}

// entryPage is what a query found.
type entryPage struct {
	entries []continuo.Entry
	large   *continuo.LargeEntryError // the entry that would have made the page too large; nil for none
}

// maxCapacity bounds for how many entries a page has room before it is read.
const maxCapacity = 128

// errEnough stops a query whose page is full.
var errEnough = errors.New("enough was read")

func readEntries(conn *connection, conversationID string, query continuo.EntryQuery) (*entryPage, error) {
	page, left := &entryPage{entries: make([]continuo.Entry, 0, min(query.Limit, maxCapacity))}, cmp.Or(query.MaxBytes, math.MaxInt64)
	statement, args := entryQuery(conversationID, query, left)
	var seq, size int64
	var body sql.NullString // NULL where it is too large; a string of the driver's is not copied again
	err := conn.query(statement, args, func(rows *sql.Rows) error {
		if err := rows.Scan(&seq, &size, &body); err != nil {
			return err
		}
		if left -= size; left < 0 {
			page.large = &continuo.LargeEntryError{Seq: seq, Bytes: size}
			return errEnough
		}
		page.entries = append(page.entries, continuo.Entry{})
		return page.entries[len(page.entries)-1].Decode(body.String)
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return page, err
}

// isWhole reports whether the page has everything that was asked for even if the conversation is archived: an
// archived one keeps its first entries.
func (p *entryPage) isWhole(query continuo.EntryQuery) bool {
	first, last := query.To+1, query.From-1 // of the existing entries
	if n := len(p.entries); n > 0 {
		first, last = p.entries[0].Seq, p.entries[n-1].Seq
	} else if p.large != nil {
		first = p.large.Seq
	}
	if query.Backward {
		return first == query.To || query.To < query.From
	}
	return p.large != nil || len(p.entries) == query.Limit || last == query.To || query.To < query.From
}

// checkKept fails with ErrArchived when the query would also match archived entries.
func checkKept(conn *connection, conversationID string, query continuo.EntryQuery, found int) error {
	var last, kept int64
	err := conn.row(selectKept, []any{conversationID}, &last, &kept)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	last = min(last, query.To)
	if err != nil || last < query.From || last <= kept || !query.Backward && found == query.Limit {
		return err
	}
	return fmt.Errorf("entries %d to %d of conversation %s: %w", query.From, query.To, conversationID, continuo.ErrArchived)
}

// entryQuery chooses the statement, and thereby the index.
func entryQuery(conversationID string, query continuo.EntryQuery, maxBytes int64) (string, []any) {
	statement, args := entriesAll, []any{maxBytes, conversationID, query.From, query.To, query.Limit}
	switch {
	case query.OutputRef != "" && query.UsersOnly:
		statement, args = entriesUsersRef, append(args, query.OutputRef)
	case query.OutputRef != "":
		statement, args = entriesRef, append(args, query.OutputRef)
	case query.UsersOnly:
		statement = entriesUsers
	}
	if query.Backward {
		return statement + descending, args
	}
	return statement + ascending, args
}
