package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/internal/form"
	"github.com/jackc/pgx/v5"
)

const (
	conversationIDs = `SELECT id FROM continuo.conversations WHERE id > $1 ORDER BY id LIMIT $2`

	blobHashes = `SELECT hash FROM continuo.blobs WHERE hash > $1 ORDER BY hash LIMIT $2`

	conversationRecord = `SELECT ` + conversationColumns + `, deleted FROM continuo.conversations WHERE id = $1`

	// The server adds up the sizes, so that it sends no more than a page. It knows sizes without reading the
	// values.
	entryRecords = `
SELECT body, checksum, octet_length(body) FROM (
  SELECT seq, body, checksum, sum(octet_length(body)) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - octet_length(body) AS before
  FROM continuo.entries WHERE conversation_id = $1 AND seq > $2
  ORDER BY seq LIMIT $3) AS page
WHERE before < $4 ORDER BY seq`

	receiptRecords = `
SELECT key, fingerprint, first_seq, last_seq FROM continuo.receipts WHERE conversation_id = $1 AND key > $2
ORDER BY key LIMIT $3`

	turnRecords = `
WITH sized AS MATERIALIZED (
  SELECT id, (SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM continuo.turn_events WHERE conversation_id = $1 AND turn_id = turn.id) AS size
  FROM continuo.turns AS turn WHERE conversation_id = $1 AND id > $2
  ORDER BY id LIMIT $3),
page AS MATERIALIZED (SELECT id, size, sum(size) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - size AS before FROM sized)
SELECT ` + turnColumns + `, page.size,
  ARRAY(SELECT body FROM continuo.turn_signals AS signal WHERE signal.conversation_id = $1 AND signal.turn_id = page.id ORDER BY number),
  ARRAY(SELECT body FROM continuo.turn_events AS event WHERE event.conversation_id = $1 AND event.turn_id = page.id ORDER BY last_id)
FROM page JOIN continuo.turns USING (id) WHERE conversation_id = $1 AND before < $4
ORDER BY id`
)

// maxPageBytes is about how much Records reads at once.
const maxPageBytes = 4 << 20

// ConversationIDs is part of maintenance.RecordStore.
func (s *Store) ConversationIDs(ctx context.Context, after string, limit int) ([]string, error) {
	return s.listKeys(ctx, "list conversations", conversationIDs, after, limit)
}

// BlobHashes is part of maintenance.RecordStore.
func (s *Store) BlobHashes(ctx context.Context, after string, limit int) ([]string, error) {
	return s.listKeys(ctx, "list blobs", blobHashes, after, limit)
}

func (s *Store) listKeys(ctx context.Context, what, statement, after string, limit int) (found []string, err error) {
	if limit < 1 {
		return nil, fmt.Errorf("%s: %w: limit %d is less than 1", what, continuo.ErrInvalid, limit)
	}
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, _ := q.Query(ctx, statement, after, limit)
		found, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return found, err
}

// Records is part of maintenance.RecordStore.
func (s *Store) Records(ctx context.Context, conversationID string, after maintenance.RecordPosition, limit int) ([]maintenance.Record, error) {
	if limit < 1 {
		return nil, fmt.Errorf("read records of conversation %s: %w: limit %d is less than 1", conversationID, continuo.ErrInvalid, limit)
	}
	var page *recordPage
	err := s.read(ctx, func(ctx context.Context, q querier) error {
		page = &recordPage{conversationID: conversationID, after: after, rows: limit, bytes: maxPageBytes}
		return page.read(ctx, q)
	})
	if err != nil {
		return nil, err
	}
	return page.found, nil
}

// recordPage is a page of records that grows kind by kind.
type recordPage struct {
	conversationID string
	after          maintenance.RecordPosition
	rows, bytes    int // what is left of the page; it is full when either is used up
	found          []maintenance.Record
}

func (p *recordPage) read(ctx context.Context, q querier) error {
	kinds := []struct {
		kind maintenance.RecordKind
		read func(context.Context, querier) error
	}{
		{maintenance.RecordConversation, p.readConversation},
		{maintenance.RecordEntry, p.readEntries},
		{maintenance.RecordReceipt, p.readReceipts},
		{maintenance.RecordTurn, p.readTurns},
		{maintenance.RecordPrefix, p.readPrefixes},
	}
	for _, k := range kinds {
		if p.after.Kind > k.kind || p.rows <= 0 || p.bytes <= 0 {
			continue
		}
		if p.after.Kind < k.kind {
			p.after = maintenance.RecordPosition{}
		}
		if err := k.read(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

func (p *recordPage) add(record maintenance.Record, size int) {
	p.found = append(p.found, record)
	p.rows--
	p.bytes -= size
}

func (p *recordPage) readConversation(ctx context.Context, q querier) error {
	if p.after.Kind == maintenance.RecordConversation {
		return nil
	}
	rows, _ := q.Query(ctx, conversationRecord, p.conversationID)
	return p.collect(rows, func() error {
		var record maintenance.ConversationRecord
		var err error
		record.Conversation, err = scanConversation(rows, &record.Deleted)
		record.Revision = 0
		p.add(maintenance.Record{Conversation: &record}, len(record.Title)+len(record.Metadata))
		return err
	})
}

func (p *recordPage) readEntries(ctx context.Context, q querier) error {
	rows, _ := q.Query(ctx, entryRecords, p.conversationID, p.after.Seq, p.rows, p.bytes)
	return p.collect(rows, func() error {
		var body []byte
		var checksum int64
		var size int
		if err := rows.Scan(&body, &checksum, &size); err != nil {
			return err
		}
		entry := &continuo.Entry{}
		p.add(maintenance.Record{Entry: entry, Damaged: form.Checksum(body) != checksum}, size)
		return entry.UnmarshalJSON(body)
	})
}

func (p *recordPage) readReceipts(ctx context.Context, q querier) error {
	rows, _ := q.Query(ctx, receiptRecords, p.conversationID, p.after.Key, p.rows)
	return p.collect(rows, func() error {
		receipt := &continuo.Receipt{}
		p.add(maintenance.Record{Receipt: receipt}, 0)
		return rows.Scan(&receipt.Key, &receipt.Fingerprint, &receipt.First, &receipt.Last)
	})
}

func (p *recordPage) readTurns(ctx context.Context, q querier) error {
	rows, _ := q.Query(ctx, turnRecords, p.conversationID, p.after.Key, p.rows, p.bytes)
	return p.collect(rows, func() error {
		var record maintenance.TurnRecord
		var size int
		var signals, events []string
		var err error
		if record.Turn, err = scanTurn(rows, &size, &signals, &events); err != nil {
			return err
		}
		for _, body := range events {
			if record.Events, err = form.DecodeEvents(record.Events, []byte(body), 0); err != nil {
				return fmt.Errorf("events of turn %s: %w", record.ID, err)
			}
		}
		for _, body := range signals {
			var signal continuo.TurnSignal
			if err := json.Unmarshal([]byte(body), &signal); err != nil {
				return fmt.Errorf("signals of turn %s: %w", record.ID, err)
			}
			record.Signals = append(record.Signals, signal)
		}
		p.add(maintenance.Record{Turn: &record}, size)
		return nil
	})
}

// collect calls each for every row.
func (p *recordPage) collect(rows pgx.Rows, each func() error) error {
	defer rows.Close()
	for rows.Next() {
		if err := each(); err != nil {
			return fmt.Errorf("records of conversation %s: %w", p.conversationID, err)
		}
	}
	return rows.Err()
}
