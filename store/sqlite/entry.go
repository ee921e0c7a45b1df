package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/store/internal/form"
)

// An append adds entries and leaves the row of the conversation as it is, so that it changes few pages. The row
// is brought up to date by every other change, and by an append where an index over conversations needs it:
// when the second of the newest entry's time is another one, and when the index of words had everything.
const (
	// The places of a conversation's entries after those that its row knows of.
	placesAfter = `place > number << 32 | last_seq AND place <= number << 32 | 4294967295`

	newestSeq  = `coalesce((SELECT max(place) & 4294967295 FROM entries WHERE ` + placesAfter + `), last_seq)`
	newestTime = `coalesce((SELECT entries.created_at FROM entries WHERE ` + placesAfter + ` ORDER BY place DESC LIMIT 1), updated_at)`

	selectHead = `
SELECT number, ` + newestSeq + `, updated_second, behind, archived_at IS NOT NULL FROM conversations WHERE id = ? AND deleted = 0`

	// After other changes of entries.
	syncHead = `UPDATE conversations SET updated_at = ` + newestTime + `, last_seq = ` + newestSeq + ` WHERE id = ?`

	moveHead = `UPDATE conversations SET last_seq = ?, updated_at = ?, behind = 1 WHERE id = ?`

	numberOf     = `SELECT number FROM conversations INDEXED BY conversations_by_id WHERE id = `
	selectNumber = numberOf + `?`

	insertEntry = `
INSERT INTO entries (id, role, hidden, created_at, output_ref, chars, tokens, redacted, body, checksum, place)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? << 32 | ?)`

	insertObject = `INSERT INTO entry_objects (conversation_id, object_id, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`

	// For an archived conversation, up to the last entry that a fork begins with.
	selectKept = `
SELECT last_seq, max(fork_seq, (SELECT coalesce(max(through), 0) FROM lineage WHERE ancestor_id = ?1))
FROM conversations WHERE id = ?1 AND archived_at IS NOT NULL`
)

// The queries name their index: without it they fail instead of reading every row. A body of more than ?1
// bytes is not read; octet_length looks at the row's header only.
const (
	// The first place of a conversation, whose entry does not exist: seqs begin at 1. It is found by an index, so
	// that entries can be read even if the row of their conversation cannot.
	placeOf = `(SELECT number << 32 FROM conversations INDEXED BY conversations_by_id WHERE id = `

	selectBodies = `SELECT seq, octet_length(body), CASE WHEN octet_length(body) <= ?1 THEN body END FROM entries `

	between = `WHERE place BETWEEN ` + placeOf + `?2) | ?3 AND ` + placeOf + `?2) | ?4 `

	entriesAll   = selectBodies + `NOT INDEXED ` + between
	entriesUsers = selectBodies + `INDEXED BY entries_of_users ` + between + `AND role = 'user' AND hidden = 0 `
	entriesRef   = selectBodies + `INDEXED BY entries_by_output_ref
` + between + `AND conversation = (` + numberOf + `?2) AND output_ref = ?6 `
	entriesUsersRef = entriesRef + `AND role = 'user' AND hidden = 0 `

	// Places are a JSON array of arrays [conversation, seq], and are looked up in its order.
	entriesAt = `
SELECT at.key, octet_length(body), CASE WHEN octet_length(body) <= ?1 THEN body END
FROM json_each(?2) AS at
  CROSS JOIN conversations AS owner INDEXED BY conversations_by_id ON owner.id = at.value ->> 0
  CROSS JOIN entries NOT INDEXED ON entries.place = owner.number << 32 | at.value ->> 1`

	selectRevision = `SELECT revision, archived_at IS NOT NULL FROM conversations WHERE id = ? AND deleted = 0`

	sumSizes = `
SELECT count(*), coalesce(sum(chars), 0), coalesce(sum(tokens), 0)
FROM entries NOT INDEXED WHERE place BETWEEN ` + placeOf + `?1) | ?2 AND ` + placeOf + `?1) | ?3`

	ascending  = `ORDER BY place LIMIT +?5`
	descending = `ORDER BY place DESC LIMIT +?5`
)

// maxSeq is above the highest seq for which a place has room.
const maxSeq = 1<<32 - 1

// seqRange returns a range of seqs within those that exist.
func seqRange(from, to int64) (first, last int64) {
	return min(max(from, 0), maxSeq), min(max(to, 0), maxSeq)
}

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
	if entry.Seq < 1 || entry.Seq >= maxSeq {
		return entryRow{}, fmt.Errorf("%w: seq %d is not between 1 and %d", continuo.ErrInvalid, entry.Seq, maxSeq-1)
	}
	if err := checkText(entry.ID, string(entry.Role), entry.OutputRef); err != nil {
		return entryRow{}, fmt.Errorf("entry %d: %w", entry.Seq, err)
	}
	body, err := entry.MarshalJSON()
	if err != nil {
		return entryRow{}, fmt.Errorf("%w: entry %d cannot be written as JSON: %w", continuo.ErrInvalid, entry.Seq, err)
	}
	return entryRow{entry, string(body), form.Mark(form.Checksum(body), damaged)}, nil
}

// columns returns the columns of the row from id to checksum, and then its place in a conversation with a number.
func (r *entryRow) columns(number int64) []any {
	e := r.entry
	return []any{
		e.ID, string(e.Role), e.Hidden, stamp(e.CreatedAt), orNull(e.OutputRef), e.Chars, e.Tokens, e.Redacted != nil, r.body,
		r.checksum, number, e.Seq,
	}
}

// readNumber returns the number that places a conversation's entries.
func readNumber(conn *connection, conversationID string) (number int64, err error) {
	err = conn.row(selectNumber, []any{conversationID}, &number)
	return number, orNotFound(err)
}

func insertEntries(conn *connection, number int64, rows []entryRow) error {
	for _, row := range rows {
		if _, err := conn.exec(insertEntry, row.columns(number)...); err != nil {
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

// encodedBatch is a batch, ready to be written.
type encodedBatch struct {
	continuo.Batch
	rows    []entryRow
	turns   []*turnUpdate
	begin   *form.TurnBegin // nil for none
	created []any           // the columns of the conversation that it creates; nil for none
}

// Append is part of continuo.EntryStore. It fails with continuo.ErrInvalid when the entries do not
// follow Batch.After without a gap.
func (s *Store) Append(ctx context.Context, batch continuo.Batch) error {
	b, err := encodeBatch(batch)
	if err != nil {
		return err
	}
	return s.write(ctx, func(conn *connection) error {
		work := func() error { return b.append(conn, s.now()) }
		if len(b.turns) > 1 {
			return conn.inSavepoint(work)
		}
		return work()
	})
}

func encodeBatch(batch continuo.Batch) (*encodedBatch, error) {
	b := &encodedBatch{Batch: batch}
	var err error
	if b.rows, err = encodeEntries(batch.ConversationID, batch.After, batch.Entries); err != nil {
		return nil, err
	}
	if err := errors.Join(checkReceipts(batch.Receipts), checkPrefixes(batch), checkRuns(batch.Runs), form.CheckCreate(batch)); err != nil {
		return nil, err
	}
	if b.turns, err = encodeUpdates(batch); err != nil {
		return nil, err
	}
	if b.begin, err = encodeBegin(batch); err != nil || batch.Create == nil {
		return b, err
	}
	created := *batch.Create
	if n := len(batch.Entries); n > 0 {
		created.LastSeq, created.UpdatedAt = batch.Entries[n-1].Seq, batch.Entries[n-1].CreatedAt
	}
	b.created, err = encodeConversation(created)
	return b, err
}

// append may return a verdict after it has written, but only where a second turn's update is refused after the first was made.
func (b *encodedBatch) append(conn *connection, now time.Time) error {
	number, replaces, err := b.reserve(conn, now)
	if err != nil {
		return err
	}
	if err := insertEntries(conn, number, b.rows); err != nil {
		return err
	}
	if err := insertReceipts(conn, b.ConversationID, b.Receipts); err != nil {
		return err
	}
	if err := putPrefixes(conn, b.Prefixes); err != nil {
		return err
	}
	if err := putBlobs(conn, b.Blobs); err != nil {
		return err
	}
	if err := addUsage(conn, b.ConversationID, b.Entries); err != nil {
		return err
	}
	if err := changeRuns(conn, b.ConversationID, b.Runs); err != nil || b.begin == nil {
		return err
	}
	return insertBegun(conn, b.begin, replaces, now)
}

// reserve checks that the batch may be appended, applies its updates of turns, and moves the head of the conversation,
// or creates it. It returns the conversation's number, and whether the turn that begins replaces a void one.
func (b *encodedBatch) reserve(conn *connection, now time.Time) (number int64, replaces bool, err error) {
	if b.created != nil {
		if err := insertRow(conn, b.Create, b.created); err != nil {
			return 0, false, err
		}
		number, err = readNumber(conn, b.ConversationID)
		return number, false, err
	}
	head, err := readHead(conn, b.ConversationID)
	if err != nil {
		return 0, false, err
	}
	if b.begin != nil {
		if replaces, err = mayBegin(conn, b.begin.Turn, now); err != nil {
			return 0, false, err
		}
	}
	if head.last != b.After {
		return 0, false, &continuo.ConflictError{Want: b.After + 1, Have: head.last + 1}
	}
	for _, turn := range b.turns {
		if _, err := applyUpdate(conn, turn, now); err != nil {
			return 0, false, err
		}
	}
	return head.number, replaces, head.move(conn, b.ConversationID, b.rows)
}

// head is the end of a conversation that can be appended to.
type head struct {
	number, last int64
	second       string // of the row; see moveHead
	behind       bool
}

func readHead(conn *connection, conversationID string) (h head, err error) {
	var archived bool
	err = conn.row(selectHead, []any{conversationID}, &h.number, &h.last, &h.second, &h.behind, &archived)
	if err == nil && archived {
		return h, fmt.Errorf("conversation %s: %w", conversationID, continuo.ErrArchived)
	}
	return h, orNotFound(err)
}

// move brings the row of the conversation up to date where an index needs it; see moveHead.
func (h *head) move(conn *connection, conversationID string, rows []entryRow) error {
	if len(rows) == 0 {
		return nil
	}
	newest := rows[len(rows)-1].entry
	updated := stamp(newest.CreatedAt)
	if h.behind && strings.HasPrefix(updated, h.second) {
		return nil
	}
	_, err := conn.exec(moveHead, newest.Seq, updated, conversationID)
	return err
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

// EntriesAt is part of continuo.EntryStore.
func (s *Store) EntriesAt(ctx context.Context, places []continuo.EntryPlace, maxBytes int64) ([]continuo.Entry, error) {
	rows := make([][2]any, len(places))
	for i, place := range places {
		seq, _ := seqRange(place.Seq, 0)
		rows[i] = [2]any{place.ConversationID, seq}
	}
	found, end := make([]continuo.Entry, len(places)), len(places)
	err := s.read(ctx, func(conn *connection) error {
		left := maxBytes
		err := conn.query(entriesAt, []any{left, string(rawjson.MustMarshal(rows))}, func(rows *sql.Rows) error {
			var at int
			var size int64
			var body sql.NullString
			if err := rows.Scan(&at, &size, &body); err != nil {
				return err
			}
			if left -= size; left < 0 {
				end = at
				return errEnough
			}
			return found[at].Decode(body.String)
		})
		if errors.Is(err, errEnough) {
			err = nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return found[:end], nil
}

// Revision is part of continuo.EntryStore.
func (s *Store) Revision(ctx context.Context, conversationID string) (revision int64, err error) {
	var archived bool
	err = s.read(ctx, func(conn *connection) error {
		return orNotFound(conn.row(selectRevision, []any{conversationID}, &revision, &archived))
	})
	if err == nil && archived {
		err = fmt.Errorf("conversation %s: %w", conversationID, continuo.ErrArchived)
	}
	return revision, err
}

// EntrySizes is part of continuo.EntryStore.
func (s *Store) EntrySizes(ctx context.Context, conversationID string, from, to int64) (sum continuo.Size, err error) {
	first, last := seqRange(from, to)
	err = s.read(ctx, func(conn *connection) error {
		return conn.row(sumSizes, []any{conversationID, first, last}, &sum.Messages, &sum.Chars, &sum.Tokens)
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
	first, last := seqRange(query.From, query.To)
	statement, args := entriesAll, []any{maxBytes, conversationID, first, last, query.Limit}
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
