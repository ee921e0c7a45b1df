package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/internal/form"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// The statements that append move the head of the conversation ($1) if it still is the one that the batch was
// made for ($2), and do everything else only if the head was moved. They differ in the parts that a batch may
// have.
const (
	entryColumns = `conversation_id, seq, id, role, hidden, created_at, output_ref, chars, tokens, body, checksum`

	// One entry and nothing else; $3 is its seq and $4 the time at which it was made.
	appendOne = `
WITH head AS (
  UPDATE continuo.conversations SET last_seq = $3, updated_at = $4
  WHERE id = $1 AND last_seq = $2 AND NOT deleted AND archived_at IS NULL
  RETURNING id)
INSERT INTO continuo.entries (` + entryColumns + `)
SELECT $1, $3, $5, $6, $7, $4, $8, $9, $10, $11, $12 FROM head`

	// The same for several conversations at once, given in the order of their ids: one row of each array is one of
	// appendOne. It returns the conversations whose head was moved.
	appendEach = `
WITH given AS (
  SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::boolean[], $8::text[], $9::bigint[], $10::bigint[], $11::text[], $12::bigint[])
    AS g (conversation_id, after, seq, created_at, id, role, hidden, output_ref, chars, tokens, body, checksum)),
head AS (
  UPDATE continuo.conversations AS c SET last_seq = g.seq, updated_at = g.created_at FROM given AS g
  WHERE c.id = g.conversation_id AND c.last_seq = g.after AND NOT c.deleted AND c.archived_at IS NULL
  RETURNING g.*)
INSERT INTO continuo.entries (` + entryColumns + `)
SELECT conversation_id, seq, id, role, hidden, created_at, nullif(output_ref, ''), chars, tokens, body, checksum FROM head
RETURNING conversation_id`

	// $5 to $14 are the columns of the entries, $15 and $16 of the objects that they need, $17 to $20 of receipts.
	appendParts = `,
written AS (
  INSERT INTO continuo.entries (` + entryColumns + `)
  SELECT $1, e.seq, e.id, e.role, e.hidden, e.created_at, nullif(e.output_ref, ''), e.chars, e.tokens, e.body, e.checksum
  FROM head, unnest($5::bigint[], $6::text[], $7::text[], $8::boolean[], $9::text[], $10::text[], $11::bigint[], $12::bigint[], $13::text[], $14::bigint[])
    AS e (seq, id, role, hidden, created_at, output_ref, chars, tokens, body, checksum)),
named AS (
  INSERT INTO continuo.entry_objects (conversation_id, seq, object_id)
  SELECT $1, o.seq, o.object_id FROM head, unnest($15::bigint[], $16::text[]) AS o (seq, object_id)),
kept AS (
  INSERT INTO continuo.receipts (conversation_id, key, fingerprint, first_seq, last_seq)
  SELECT $1, r.key, r.fingerprint, r.first_seq, r.last_seq
  FROM head, unnest($17::text[], $18::text[], $19::bigint[], $20::bigint[]) AS r (key, fingerprint, first_seq, last_seq))`

	someHead = `
WITH head AS (
  UPDATE continuo.conversations SET last_seq = $3, updated_at = coalesce($4, updated_at)
  WHERE id = $1 AND last_seq = $2 AND NOT deleted AND archived_at IS NULL
  RETURNING id, project_id)` + appendParts

	ofHead = `
SELECT 1 FROM head`

	appendSome = someHead + ofHead

	// With runs; see beginRuns.
	appendSomeAndRuns = someHead + beginRuns +
		`$21::text[], $22::text[], $23::bigint[], $24::text[], $25::text[], $26::text[], $27::text[], $32::text[]` + changeRuns +
		`$28::text[], $29::text[], $30::text[], $31::text[]` + ofThisConversation + ofHead

	// With an update of a turn: $21 its id, $22 the fence, $23 and $24 the first and the last event, $25 the
	// events, $26 the lease in microseconds, $27 the state and $28 the end, $29 the mode and $30 the agent.
	// If the turn changes between its check and its update, a division by zero rolls everything back.
	turnHead = `
WITH head AS (
  UPDATE continuo.conversations SET last_seq = $3, updated_at = coalesce($4, updated_at), active_mode = coalesce($29, active_mode),
    active_agent = coalesce($30, active_agent)
  WHERE id = $1 AND last_seq = $2 AND NOT deleted AND archived_at IS NULL AND EXISTS (
    SELECT 1 FROM continuo.turns
    WHERE conversation_id = $1 AND id = $21 AND state = 'running' AND fence = $22 AND last_event < $23)
  RETURNING id, project_id)` + appendParts + `,
turn AS (
  UPDATE continuo.turns SET last_event = greatest(last_event, $24), state = coalesce($27, state), ended = coalesce($28, ended),
    ended_at = CASE WHEN $27::text IS NULL THEN ended_at ELSE greatest(started_at, ` + nowStamp + `) END,
    lease_until = CASE WHEN $27::text IS NOT NULL THEN NULL WHEN $26::bigint = 0 THEN lease_until WHEN $26::bigint < 0 THEN '-infinity'
      ELSE clock_timestamp() + $26::bigint * interval '1 microsecond' END
  WHERE conversation_id = $1 AND id = $21 AND state = 'running' AND fence = $22 AND last_event < $23 AND (SELECT count(*) FROM head) = 1
  RETURNING id, ended_at),
told AS (
  INSERT INTO continuo.turn_events (conversation_id, turn_id, last_id, body)
  SELECT $1, $21, $24, $25::text FROM turn WHERE $25::text IS NOT NULL)`

	ofTurnAndHead = `
SELECT 1 / (SELECT count(*) FROM turn) FROM head`

	appendWithTurn = turnHead + ofTurnAndHead

	appendWithTurnAndRuns = turnHead + beginRuns +
		`$31::text[], $32::text[], $33::bigint[], $34::text[], $35::text[], $36::text[], $37::text[], $42::text[]` + changeRuns +
		`$38::text[], $39::text[], $40::text[], $41::text[]` + ofThisConversation + ofTurnAndHead

	// Inserts entries and their objects without checking the head; the caller has checked it.
	insertEntries = `
INSERT INTO continuo.entries (` + entryColumns + `)
SELECT $1, e.seq, e.id, e.role, e.hidden, e.created_at, nullif(e.output_ref, ''), e.chars, e.tokens, e.body, e.checksum
FROM unnest($2::bigint[], $3::text[], $4::text[], $5::boolean[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::text[], $11::bigint[])
  AS e (seq, id, role, hidden, created_at, output_ref, chars, tokens, body, checksum)`

	insertEntryObjects = `
INSERT INTO continuo.entry_objects (conversation_id, seq, object_id)
SELECT $1, o.seq, o.object_id FROM unnest($2::bigint[], $3::text[]) AS o (seq, object_id)`

	selectHead = `SELECT last_seq, archived_at IS NOT NULL FROM continuo.conversations WHERE id = $1 AND NOT deleted`

	isAppended = `SELECT EXISTS (SELECT 1 FROM continuo.entries WHERE conversation_id = $1 AND seq = $2 AND id = $3)`

	isReceived = `SELECT EXISTS (SELECT 1 FROM continuo.receipts WHERE conversation_id = $1 AND key = $2 AND fingerprint = $3 AND first_seq = $4 AND last_seq = $5)`
)

// The queries of entries, with the conversation and the range of seqs as $1 to $3. Each result also says
// whether requested entries are archived, so that both are read from one snapshot.
const (
	archived = `(
SELECT archived_at IS NOT NULL AND $2 <= least($3, last_seq)
  AND least($3, last_seq) > greatest(fork_seq, (SELECT max(through) FROM continuo.lineage WHERE ancestor_id = $1))
FROM continuo.conversations WHERE id = $1)`

	entriesAll      = ` FROM continuo.entries WHERE conversation_id = $1 AND seq BETWEEN $2 AND $3`
	entriesUsers    = entriesAll + ` AND role = 'user' AND NOT hidden`
	entriesRef      = entriesAll + ` AND output_ref = $4`
	entriesUsersRef = entriesRef + ` AND role = 'user' AND NOT hidden`

	// Of the entry that exceeds the limit of bytes, the server sends only the size. With OFFSET 0 each place is looked up by the
	// index: the planner would rather read all entries of a table that is not very large.
	entriesAt = `
SELECT n - 1, CASE WHEN total <= $3 THEN body END FROM (
  SELECT n, body, octet_length(body) AS size, sum(octet_length(body)) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) AS total
  FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS at (conversation_id, seq, n) CROSS JOIN LATERAL (
    SELECT body FROM continuo.entries WHERE conversation_id = at.conversation_id AND seq = at.seq OFFSET 0) AS entry) AS found
WHERE total - size <= $3 ORDER BY n`

	selectRevision = `SELECT revision, archived_at IS NOT NULL FROM continuo.conversations WHERE id = $1 AND NOT deleted`

	sumSizes = `SELECT count(*), coalesce(sum(chars), 0)::bigint, coalesce(sum(tokens), 0)::bigint` + entriesAll

	// Run when no entries were found.
	selectNone = `SELECT coalesce(` + archived + `, false), EXISTS (SELECT 1`
)

// entryRows are entries in columns, ready to be inserted.
type entryRows struct {
	seqs                                    []int64
	ids, roles, created, outputRefs, bodies []string
	hidden                                  []bool
	chars, tokens, checksums                []int64
	objectSeqs                              []int64
	objects                                 []string
	size                                    int // bytes of the bodies
}

// encodeEntries returns the stored form of the entries that follow the seq after.
func encodeEntries(conversationID string, after int64, entries []continuo.Entry) (*entryRows, error) {
	rows := &entryRows{}
	for i := range entries {
		entry := &entries[i]
		if want := after + 1 + int64(i); entry.Seq != want || entry.ConversationID != conversationID {
			return nil, fmt.Errorf("%w: entry %d is seq %d of conversation %q, but must be seq %d of %q",
				continuo.ErrInvalid, i, entry.Seq, entry.ConversationID, want, conversationID)
		}
		if err := rows.add(entry); err != nil {
			return nil, fmt.Errorf("%w: entry %d cannot be written as JSON: %w", continuo.ErrInvalid, i, err)
		}
	}
	return rows, nil
}

func (r *entryRows) add(e *continuo.Entry) error {
	body, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	r.seqs, r.ids, r.roles = append(r.seqs, e.Seq), append(r.ids, e.ID), append(r.roles, string(e.Role))
	r.hidden, r.created = append(r.hidden, e.Hidden), append(r.created, stamp(e.CreatedAt))
	r.outputRefs = append(r.outputRefs, e.OutputRef)
	r.chars, r.tokens = append(r.chars, int64(e.Chars)), append(r.tokens, int64(e.Tokens))
	r.bodies, r.size = append(r.bodies, string(body)), r.size+len(body)
	r.checksums = append(r.checksums, form.Checksum(body))
	for _, object := range e.Objects() {
		r.objectSeqs, r.objects = append(r.objectSeqs, e.Seq), append(r.objects, object)
	}
	return nil
}

// appendTogether adds the statement that makes appends of one entry each, changes with the statement appendOne, at once.
func appendTogether(batch *pgx.Batch, appends []*queued) {
	var r entryRows
	var ids []string
	var afters []int64
	for _, q := range appends {
		args := q.args
		ids, afters, r.seqs, r.created = append(ids, args[0].(string)), append(afters, args[1].(int64)), append(r.seqs, args[2].(int64)), append(r.created, args[3].(string))
		r.ids, r.roles, r.hidden = append(r.ids, args[4].(string)), append(r.roles, args[5].(string)), append(r.hidden, args[6].(bool))
		ref, _ := args[7].(string)
		r.outputRefs = append(r.outputRefs, ref)
		r.chars, r.tokens = append(r.chars, args[8].(int64)), append(r.tokens, args[9].(int64))
		r.bodies, r.checksums = append(r.bodies, args[10].(string)), append(r.checksums, args[11].(int64))
	}
	batch.Queue(appendEach, ids, afters, r.seqs, r.created, r.ids, r.roles, r.hidden, r.outputRefs, r.chars, r.tokens, r.bodies, r.checksums)
}

// updated returns the new value of UpdatedAt: the time of the newest entry, NULL when there is none.
func (r *entryRows) updated() any {
	if len(r.created) == 0 {
		return nil
	}
	return r.created[len(r.created)-1]
}

func (r *entryRows) columns() []any {
	return []any{r.seqs, r.ids, r.roles, r.hidden, r.created, r.outputRefs, r.chars, r.tokens, r.bodies, r.checksums}
}

func (r *entryRows) insert(ctx context.Context, tx pgx.Tx, conversationID string) error {
	if len(r.seqs) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, insertEntries, append([]any{conversationID}, r.columns()...)...)
	if err == nil && len(r.objects) > 0 {
		_, err = tx.Exec(ctx, insertEntryObjects, conversationID, r.objectSeqs, r.objects)
	}
	return err
}

// Append is part of continuo.EntryStore. It fails with continuo.ErrInvalid when the entries do not
// follow Batch.After without a gap.
func (s *Store) Append(ctx context.Context, batch continuo.Batch) error {
	rows, err := encodeEntries(batch.ConversationID, batch.After, batch.Entries)
	if err != nil {
		return err
	}
	if err := errors.Join(checkPrefixes(batch), form.CheckCreate(batch)); err != nil {
		return err
	}
	begin, err := form.EncodeBegin(batch)
	if err != nil {
		return err
	}
	if begin != nil {
		return s.write(ctx, (&turnBegin{begin}).change(batch, rows))
	}
	turn, refused, err := foldUpdates(batch)
	if err != nil {
		return err
	}
	why := func(ctx context.Context, q querier) error {
		if err := whyNotAppended(ctx, q, batch, turn); err != nil {
			return err
		}
		return refused
	}
	if refused != nil {
		return s.read(ctx, why)
	}
	c := &change{conversationID: batch.ConversationID, key: batch.ConversationID, size: rows.size + sizeOf(batch.Blobs), why: why}
	c.statement, c.args = appendStatement(batch, rows, turn, s.writers.number(c.key))
	c.committed = func(ctx context.Context, q querier) (bool, error) { return hasAppended(ctx, q, batch, turn) }
	return s.write(ctx, c)
}

// appendStatement chooses the statement with only the parts that the batch needs.
func appendStatement(batch continuo.Batch, rows *entryRows, turn *turnUpdate, writer int64) (string, []any) {
	args, used := batchArgs(batch, rows), continuo.UsageOf(batch.Entries)
	if len(rows.seqs) == 1 && len(rows.objects) == 0 && len(used)+len(batch.Receipts)+len(batch.Prefixes)+len(batch.Runs)+len(batch.Blobs) == 0 && turn == nil {
		return appendOne, append(args[:4], rows.ids[0], rows.roles[0], rows.hidden[0], orNull(rows.outputRefs[0]), rows.chars[0], rows.tokens[0], rows.bodies[0], rows.checksums[0])
	}
	statement, withRuns, end := appendSome, appendSomeAndRuns, ofHead
	if turn != nil {
		statement, withRuns, end = appendWithTurn, appendWithTurnAndRuns, ofTurnAndHead
		args = append(args, turn.TurnID, turn.Fence, turn.first, turn.last, orNull(turn.events),
			microseconds(turn.Lease), orNull(string(turn.State)), orNull(turn.end), orNull(string(turn.Mode)), orNull(turn.Agent))
	}
	if len(batch.Runs) > 0 {
		statement, args = withRuns, append(args, foldRuns(batch.Runs).columns()...)
	}
	statement, args = withPrefixes(batch, statement, end, args)
	statement, args = withUsage(used, statement, end, args)
	if turn != nil {
		statement, args = turn.withCharges(writer, statement, end, args, [3]int{21, 27, 28})
	}
	return withBlobs(batch.Blobs, "head", statement, end, args)
}

// batchArgs returns the first 20 arguments of the statements that append several entries.
func batchArgs(batch continuo.Batch, rows *entryRows) []any {
	args := []any{batch.ConversationID, batch.After, batch.After + int64(len(rows.seqs)), rows.updated()}
	args = append(append(args, rows.columns()...), rows.objectSeqs, rows.objects)
	return append(args, receiptColumns(batch.Receipts)...)
}

func whyNotAppended(ctx context.Context, q querier, batch continuo.Batch, turn *turnUpdate) error {
	last, err := readHead(ctx, q, batch.ConversationID)
	if err != nil {
		return err
	}
	if last != batch.After {
		return &continuo.ConflictError{Want: batch.After + 1, Have: last + 1}
	}
	if turn == nil {
		return nil
	}
	return whyNotUpdated(ctx, q, turn)
}

// readHead returns the last seq of a conversation that can be appended to.
func readHead(ctx context.Context, q querier, conversationID string) (last int64, err error) {
	var archived bool
	if err := q.QueryRow(ctx, selectHead, conversationID).Scan(&last, &archived); err != nil {
		return 0, orNotFound(err)
	}
	if archived {
		return 0, fmt.Errorf("conversation %s: %w", conversationID, continuo.ErrArchived)
	}
	return last, nil
}

// hasAppended reports whether a batch was appended, by looking for the first record that it would have
// written. A batch that writes nothing can be appended twice.
func hasAppended(ctx context.Context, q querier, batch continuo.Batch, turn *turnUpdate) (committed bool, err error) {
	switch {
	case len(batch.Entries) > 0:
		err = q.QueryRow(ctx, isAppended, batch.ConversationID, batch.Entries[0].Seq, batch.Entries[0].ID).Scan(&committed)
	case len(batch.Receipts) > 0:
		r := &batch.Receipts[0]
		err = q.QueryRow(ctx, isReceived, batch.ConversationID, r.Key, r.Fingerprint, r.First, r.Last).Scan(&committed)
	case turn != nil:
		return turn.wasCommitted(ctx, q)
	}
	return committed, err
}

// Entries is part of continuo.EntryStore.
func (s *Store) Entries(ctx context.Context, conversationID string, query continuo.EntryQuery) (found []continuo.Entry, err error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("read entries: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	which, args := entryQuery(conversationID, query)
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		for {
			var aside, again bool
			var large *continuo.LargeEntryError
			if found, large, aside, err = readEntries(ctx, q, which, query, args); err != nil {
				return err
			}
			if len(found) == 0 && large == nil {
				if err := q.QueryRow(ctx, selectNone+which+`)`, args...).Scan(&aside, &again); err != nil {
					return err
				}
			}
			if aside && (query.Backward || len(found) < query.Limit && large == nil) {
				return fmt.Errorf("read entries of conversation %s: %w", conversationID, continuo.ErrArchived)
			}
			if len(found) == 0 && large != nil {
				return large
			}
			if !again { // otherwise some were appended meanwhile
				return nil
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// EntriesAt is part of continuo.EntryStore.
func (s *Store) EntriesAt(ctx context.Context, places []continuo.EntryPlace, maxBytes int64) (found []continuo.Entry, err error) {
	ids, seqs := make([]string, len(places)), make([]int64, len(places))
	for i, place := range places {
		ids[i], seqs[i] = place.ConversationID, place.Seq
	}
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		end := len(places)
		found = make([]continuo.Entry, end)
		rows, err := q.Query(ctx, entriesAt, ids, seqs, maxBytes)
		if err != nil {
			return err
		}
		var at int
		var body pgtype.DriverBytes // in the connection's buffer, valid until the next row
		_, err = pgx.ForEachRow(rows, []any{&at, &body}, func() error {
			if body == nil {
				end = min(end, at)
				return nil
			}
			return found[at].UnmarshalJSON(body) // json.Unmarshal would read the body twice
		})
		found = found[:end]
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Revision is part of continuo.EntryStore.
func (s *Store) Revision(ctx context.Context, conversationID string) (revision int64, err error) {
	var archived bool
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		return orNotFound(q.QueryRow(ctx, selectRevision, conversationID).Scan(&revision, &archived))
	})
	if err == nil && archived {
		err = fmt.Errorf("conversation %s: %w", conversationID, continuo.ErrArchived)
	}
	return revision, err
}

// EntrySizes is part of continuo.EntryStore.
func (s *Store) EntrySizes(ctx context.Context, conversationID string, from, to int64) (sum continuo.Size, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, sumSizes, conversationID, from, to).Scan(&sum.Messages, &sum.Chars, &sum.Tokens)
	})
	return sum, err
}

// entryQuery chooses the condition on entries, and thereby the index.
func entryQuery(conversationID string, query continuo.EntryQuery) (which string, args []any) {
	args = []any{conversationID, query.From, query.To}
	switch {
	case query.OutputRef != "" && query.UsersOnly:
		return entriesUsersRef, append(args, query.OutputRef)
	case query.OutputRef != "":
		return entriesRef, append(args, query.OutputRef)
	case query.UsersOnly:
		return entriesUsers, args
	}
	return entriesAll, args
}

// selectPage returns the statement that reads a page of entries; args is the number of arguments before the
// limits of rows and of bytes. The server adds up the sizes and sends no more than a page. Of the entry that
// exceeds it, the server sends only the size.
func selectPage(which, order string, args int) string {
	limit, most := "$"+strconv.Itoa(args+1), "$"+strconv.Itoa(args+2)
	return `
SELECT seq, size, CASE WHEN total <= ` + most + ` THEN body END, aside FROM (
  SELECT seq, body, octet_length(body) AS size, coalesce(` + archived + `, false) AS aside,
    sum(octet_length(body)) OVER (ORDER BY seq` + order + ` ROWS UNBOUNDED PRECEDING) AS total` + which + `
  ORDER BY seq` + order + ` LIMIT ` + limit + `) AS page
WHERE total - size <= ` + most + ` ORDER BY seq` + order
}

// maxCapacity bounds for how many entries a page has room before it is read.
const maxCapacity = 128

// readEntries returns a page, and the entry that would have made the page too large; nil for none.
func readEntries(ctx context.Context, q querier, which string, query continuo.EntryQuery, args []any) (
	found []continuo.Entry, large *continuo.LargeEntryError, aside bool, err error,
) {
	order := ""
	if query.Backward {
		order = " DESC"
	}
	most := cmp.Or(query.MaxBytes, math.MaxInt64)
	rows, err := q.Query(ctx, selectPage(which, order, len(args)), append(args, query.Limit, most)...)
	if err != nil {
		return nil, nil, false, err
	}
	var seq, size int64
	var body pgtype.DriverBytes // in the connection's buffer, valid until the next row
	found = make([]continuo.Entry, 0, min(query.Limit, maxCapacity))
	_, err = pgx.ForEachRow(rows, []any{&seq, &size, &body, &aside}, func() error {
		if body == nil {
			large = &continuo.LargeEntryError{Seq: seq, Bytes: size}
			return nil
		}
		found = append(found, continuo.Entry{})
		return found[len(found)-1].UnmarshalJSON(body) // json.Unmarshal would read the body twice
	})
	return found, large, aside, err
}
