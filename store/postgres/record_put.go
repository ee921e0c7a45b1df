package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/internal/form"
	"github.com/jackc/pgx/v5"
)

const (
	// The conversation's earlier record, whose derived rows have to be removed.
	replacedConversation = `
SELECT project_id, coalesce(key, ''), coalesce(lineage, '[]'), coalesce(archived_at, ''), deleted FROM continuo.conversations WHERE id = $1 FOR UPDATE`

	putConversation = `
INSERT INTO continuo.conversations AS old (id, project_id, key, title, active_mode, metadata, parent_id, fork_seq, lineage,
  created_at, updated_at, last_seq, deleted, archived_at, indexed_seq, active_agent, kind, user_id, labels)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $8, $15, $16, $17, $18)
ON CONFLICT (id) DO UPDATE SET project_id = excluded.project_id, user_id = excluded.user_id, labels = excluded.labels, key = excluded.key, kind = excluded.kind,
  title = excluded.title, active_mode = excluded.active_mode, active_agent = excluded.active_agent, metadata = excluded.metadata, parent_id = excluded.parent_id, fork_seq = excluded.fork_seq,
  lineage = excluded.lineage, created_at = excluded.created_at, updated_at = excluded.updated_at, last_seq = excluded.last_seq,
  deleted = excluded.deleted, archived_at = excluded.archived_at, indexed_seq = excluded.indexed_seq, indexed_title = NULL`

	dropKey = `DELETE FROM continuo.conversation_keys WHERE project_id = $1 AND key = $2 AND conversation_id = $3`
	putKey  = `INSERT INTO continuo.conversation_keys (project_id, key, conversation_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`

	dropLineage = `DELETE FROM continuo.lineage WHERE ancestor_id = ANY ($2) AND conversation_id = $1`
	putLineage  = `
INSERT INTO continuo.lineage (ancestor_id, conversation_id, through)
SELECT id, $2, $3 FROM continuo.conversations WHERE id = $1 FOR KEY SHARE`

	putEntries = `
INSERT INTO continuo.entries (` + entryColumns + `, redacted)
SELECT $1, e.seq, e.id, e.role, e.hidden, e.created_at, nullif(e.output_ref, ''), e.chars, e.tokens, e.body, e.checksum, e.redacted FROM ` + unnestEntries + `
ON CONFLICT (conversation_id, seq) DO UPDATE SET id = excluded.id, role = excluded.role, hidden = excluded.hidden,
  created_at = excluded.created_at, output_ref = excluded.output_ref, chars = excluded.chars, tokens = excluded.tokens, redacted = excluded.redacted, body = excluded.body,
  checksum = excluded.checksum`

	dropObjects = `DELETE FROM continuo.entry_objects WHERE conversation_id = $1 AND seq = ANY ($2)`

	putReceipt = `
INSERT INTO continuo.receipts (conversation_id, key, fingerprint, first_seq, last_seq) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (conversation_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, first_seq = excluded.first_seq, last_seq = excluded.last_seq`

	// The lease of a running turn is released, so that another process closes the turn.
	putTurn = `
INSERT INTO continuo.turns (conversation_id, id, state, owner, fence, lease_until, last_event, signals, started_at, ended_at, request, ended)
VALUES ($1, $2, $3::text, $4, $5, CASE WHEN $3::text = 'running' THEN '-infinity'::timestamptz END, $6, $7, $8, $9, $10, $11)
ON CONFLICT (conversation_id, id) DO UPDATE SET state = excluded.state, owner = excluded.owner, fence = excluded.fence,
  lease_until = excluded.lease_until, last_event = excluded.last_event, signals = excluded.signals, started_at = excluded.started_at,
  ended_at = excluded.ended_at, request = excluded.request, ended = excluded.ended`

	putTurnEvents = `INSERT INTO continuo.turn_events (conversation_id, turn_id, last_id, body) VALUES ($1, $2, $3, $4)`
	putTurnSignal = `INSERT INTO continuo.turn_signals (conversation_id, turn_id, number, body) VALUES ($1, $2, $3, $4)`

	// The objects that are put are needed again: a pending removal of the conversation must not delete them.
	keepObjects = `DELETE FROM continuo.discards WHERE name = ANY ($1)`
)

// PutRecords is part of maintenance.RecordStore. It fails with continuo.ErrInvalid for a record of another
// conversation or of nothing, with ErrNotFound when the conversation or one that it begins with does not
// exist, and with ErrExists when a key, another running turn or the fencing token of a turn is already in
// use.
func (s *Store) PutRecords(ctx context.Context, conversationID string, records []maintenance.Record) error {
	return s.putRecords(ctx, conversationID, "", records)
}

// PutArchived is part of maintenance.RecordStore.
func (s *Store) PutArchived(ctx context.Context, conversationID string, since time.Time, records []maintenance.Record) error {
	return s.putRecords(ctx, conversationID, stamp(since), records)
}

func (s *Store) putRecords(ctx context.Context, conversationID, since string, records []maintenance.Record) error {
	put, err := sortRecords(conversationID, records)
	if err != nil {
		return fmt.Errorf("put records of conversation %s: %w", conversationID, err)
	}
	put.since = since
	err = s.transact(ctx, "put records of conversation "+conversationID, put.execute, nil)
	if err == nil {
		s.changed(conversationID)
	}
	return err
}

// recordsToPut are the encoded records of one call, grouped by kind.
type recordsToPut struct {
	id           string
	since        string                          // required archiving time of the conversation; "": no condition
	conversation *maintenance.ConversationRecord // nil: none
	entries      *wholeEntries
	given        []continuo.Entry // the same entries in the order in which they were given
	damaged      map[int64]bool   // by seq: which of them are marked as damaged
	receipts     []continuo.Receipt
	turns        []turnToPut
	prefixes     []continuo.Prefix
}

type turnToPut struct {
	*maintenance.TurnRecord
	request string
	endedAt any // nil while it runs, as ended is
	ended   any
	events  []events // rows of turn_events
	signals []string
}

type events struct {
	last int64
	body string
}

func sortRecords(id string, records []maintenance.Record) (*recordsToPut, error) {
	put := &recordsToPut{id: id, damaged: map[int64]bool{}}
	for _, record := range records {
		owner := id
		switch {
		case record.Conversation != nil:
			put.conversation, owner = record.Conversation, record.Conversation.ID
		case record.Entry != nil:
			put.given, owner = append(put.given, *record.Entry), record.Entry.ConversationID
			put.damaged[record.Entry.Seq] = record.Damaged
		case record.Receipt != nil:
			put.receipts = append(put.receipts, *record.Receipt)
		case record.Prefix != nil:
			put.prefixes, owner = append(put.prefixes, *record.Prefix), record.Prefix.ConversationID
		case record.Turn != nil:
			turn, err := encodeTurn(record.Turn)
			if err != nil {
				return nil, fmt.Errorf("%w: turn %s: %w", continuo.ErrInvalid, record.Turn.ID, err)
			}
			put.turns, owner = append(put.turns, turn), record.Turn.ConversationID
		default:
			return nil, fmt.Errorf("%w: a record of nothing", continuo.ErrInvalid)
		}
		if owner != id {
			return nil, fmt.Errorf("%w: a record of conversation %q", continuo.ErrInvalid, owner)
		}
	}
	var err error
	if put.entries, err = encodeWhole(id, lastOfEach(put.given)); err != nil {
		return nil, err
	}
	for i, seq := range put.entries.seqs {
		put.entries.checksums[i] = form.Mark(put.entries.checksums[i], put.damaged[seq])
	}
	return put, nil
}

// lastOfEach drops entries that a later one with the same seq replaces.
func lastOfEach(entries []continuo.Entry) []continuo.Entry {
	at := make(map[int64]int, len(entries))
	var last []continuo.Entry
	for _, entry := range entries {
		i, there := at[entry.Seq]
		if there {
			last[i] = entry
			continue
		}
		at[entry.Seq] = len(last)
		last = append(last, entry)
	}
	return last
}

// maxEventRow bounds how many events are put into one row.
const maxEventRow = 100

func encodeTurn(record *maintenance.TurnRecord) (turn turnToPut, err error) {
	turn.TurnRecord = record
	if !slices.Contains([]continuo.TurnState{continuo.TurnRunning, continuo.TurnFinished, continuo.TurnFailed, continuo.TurnVoid}, record.State) {
		return turn, fmt.Errorf("state %q is none", record.State)
	}
	request, err := rawjson.Marshal(record.TurnRequest)
	if err != nil {
		return turn, err
	}
	turn.request = string(request)
	if record.State != continuo.TurnRunning {
		end, err := rawjson.Marshal(record.TurnEnd)
		if err != nil {
			return turn, err
		}
		turn.endedAt, turn.ended = stamp(record.EndedAt), string(end)
	}
	for some := range slices.Chunk(record.Events, maxEventRow) {
		body, err := form.EncodeEvents(some)
		if last := turn.lastEvent(); err == nil && some[0].ID <= last {
			err = fmt.Errorf("event %d after event %d", some[0].ID, last)
		}
		if err != nil {
			return turn, err
		}
		turn.events = append(turn.events, events{some[len(some)-1].ID, body})
	}
	for _, signal := range record.Signals {
		body, err := rawjson.Marshal(signal)
		if err != nil {
			return turn, err
		}
		turn.signals = append(turn.signals, string(body))
	}
	return turn, nil
}

func (put *recordsToPut) execute(ctx context.Context, tx pgx.Tx) error {
	if err := put.putConversation(ctx, tx); err != nil {
		return err
	}
	var last int64
	if err := tx.QueryRow(ctx, lastEntry, put.id).Scan(&last); err != nil {
		return err
	}
	if err := put.putEntries(ctx, tx); err != nil {
		return err
	}
	if err := put.putRuns(ctx, tx, last); err != nil {
		return err
	}
	batch := &pgx.Batch{}
	for _, r := range put.receipts {
		batch.Queue(putReceipt, put.id, r.Key, r.Fingerprint, r.First, r.Last)
	}
	for _, turn := range put.turns {
		turn.queue(batch)
	}
	batch.Queue(reviseConversation, put.id, time.Now().UnixNano())
	for i := range put.prefixes {
		p := &put.prefixes[i]
		batch.Queue(putPrefix, p.Hash[:], put.id, p.Seq, p.IDs, p.System, p.Session)
	}
	for i := range put.given {
		for _, used := range continuo.UsageOf(put.given[i : i+1]) {
			batch.Queue(putUsage, usageRow(put.id, used)...)
		}
	}
	return tx.SendBatch(ctx, batch).Close()
}

// putConversation writes the conversation's own record if there is one, and always locks the conversation.
func (put *recordsToPut) putConversation(ctx context.Context, tx pgx.Tx) error {
	err := put.dropDerived(ctx, tx)
	if put.conversation == nil || err != nil && !errors.Is(err, continuo.ErrNotFound) {
		return err
	}
	c := put.conversation
	lineage, err := encodeLineage(c.Lineage)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, putConversation, c.ID, c.ProjectID, orNull(c.Key), c.Title, string(c.ActiveMode), textOrNull(c.Metadata), orNull(c.ParentID),
		c.ForkSeq, lineage, stamp(c.CreatedAt), stamp(c.UpdatedAt), c.LastSeq, c.Deleted, stampOrNull(c.ArchivedAt), c.ActiveAgent,
		string(c.Kind), c.UserID, textOrNull(form.Labels(c.Metadata)))
	if err != nil {
		return err
	}
	for _, segment := range c.Lineage {
		put, err := tx.Exec(ctx, putLineage, segment.ConversationID, c.ID, segment.Through)
		if err == nil && put.RowsAffected() == 0 {
			err = fmt.Errorf("%w: conversation %s, which %s begins with", continuo.ErrNotFound, segment.ConversationID, c.ID)
		}
		if err != nil {
			return err
		}
	}
	needed := objectNames(c.ID, []string{"", maintenance.ArchiveObject(c.ArchivedAt)})
	if _, err := tx.Exec(ctx, keepObjects, needed); err != nil || c.Key == "" {
		return err
	}
	added, err := tx.Exec(ctx, putKey, c.ProjectID, c.Key, c.ID)
	if err == nil && added.RowsAffected() == 0 {
		err = fmt.Errorf("%w: another conversation with the key %q", continuo.ErrExists, c.Key)
	}
	return err
}

// dropDerived removes what was derived from a conversation's record that is about to be replaced. It fails
// with continuo.ErrNotFound when the conversation does not exist.
func (put *recordsToPut) dropDerived(ctx context.Context, tx pgx.Tx) error {
	var projectID, key, archivedAt string
	var lineage []byte
	var deleted bool
	err := orNotFound(tx.QueryRow(ctx, replacedConversation, put.id).Scan(&projectID, &key, &lineage, &archivedAt, &deleted))
	switch {
	case err != nil:
	case put.since != "" && deleted:
		err = continuo.ErrNotFound
	case put.since != "" && put.since != archivedAt:
		err = fmt.Errorf("put records of conversation %s: %w: it is not archived since %s", put.id, continuo.ErrInvalid, put.since)
	}
	if err != nil || put.conversation == nil {
		return err
	}
	var segments []continuo.Segment
	if err := json.Unmarshal(lineage, &segments); err != nil {
		return fmt.Errorf("lineage of conversation %s: %w", put.id, err)
	}
	ancestors := make([]string, len(segments))
	for i, segment := range segments {
		ancestors[i] = segment.ConversationID
	}
	batch := &pgx.Batch{}
	batch.Queue(dropKey, projectID, key, put.id)
	batch.Queue(dropLineage, put.id, ancestors)
	batch.Queue(deleteAllDocuments, put.id)
	batch.Queue(deleteAllVectors, put.id)
	batch.Queue(deleteEmbedded, put.id)
	return tx.SendBatch(ctx, batch).Close()
}

func (put *recordsToPut) putEntries(ctx context.Context, tx pgx.Tx) error {
	rows := put.entries
	if len(rows.seqs) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	batch.Queue(putEntries, rows.args(put.id)...)
	batch.Queue(dropObjects, put.id, rows.seqs)
	batch.Queue(insertEntryObjects, put.id, rows.objectSeqs, rows.objects)
	batch.Queue(keepObjects, objectNames(put.id, rows.objects))
	return tx.SendBatch(ctx, batch).Close()
}

// lastEvent is the id of the newest event, 0 without events.
func (t *turnToPut) lastEvent() int64 {
	if len(t.events) == 0 {
		return 0
	}
	return t.events[len(t.events)-1].last
}

// queue adds the statements that write a turn.
func (t *turnToPut) queue(batch *pgx.Batch) {
	batch.Queue(putTurn, t.ConversationID, t.ID, string(t.State), t.Owner, t.Fence, t.lastEvent(), len(t.signals),
		stamp(t.StartedAt), t.endedAt, t.request, t.ended)
	batch.Queue(deleteTurnEvents, t.ConversationID, t.ID)
	for _, row := range t.events {
		batch.Queue(putTurnEvents, t.ConversationID, t.ID, row.last, row.body)
	}
	batch.Queue(deleteTurnSignals, t.ConversationID, t.ID)
	for i, body := range t.signals {
		batch.Queue(putTurnSignal, t.ConversationID, t.ID, i+1, body)
	}
}
