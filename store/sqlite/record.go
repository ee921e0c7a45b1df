package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/internal/form"
)

const (
	conversationIDs = `SELECT id FROM conversations WHERE id > ? ORDER BY id LIMIT +?`

	blobHashes = `SELECT hash FROM blobs WHERE hash > ? ORDER BY hash LIMIT +?`

	conversationRecord = conversationColumns + `, deleted FROM conversations WHERE id = ?`

	entriesAbove = `
SELECT body, checksum FROM entries NOT INDEXED
WHERE place > ` + placeOf + `?1) | ?2 AND place <= ` + placeOf + `?1) | 4294967295 ORDER BY place LIMIT +?3`

	receiptsAbove = `
SELECT key, fingerprint, first_seq, last_seq FROM receipts WHERE conversation_id = ? AND key > ? ORDER BY key LIMIT +?`

	turnsAbove = selectTurn + `INDEXED BY sqlite_autoindex_turns_1 WHERE conversation_id = ? AND id > ? ORDER BY id LIMIT +?`
)

// pageBytes is about how much is read at once.
const pageBytes = 4 << 20

// ConversationIDs is part of maintenance.RecordStore.
func (s *Store) ConversationIDs(ctx context.Context, after string, limit int) ([]string, error) {
	return s.listTexts(ctx, conversationIDs, after, limit)
}

// BlobHashes is part of maintenance.RecordStore.
func (s *Store) BlobHashes(ctx context.Context, after string, limit int) ([]string, error) {
	return s.listTexts(ctx, blobHashes, after, limit)
}

func (s *Store) listTexts(ctx context.Context, query, after string, limit int) (found []string, err error) {
	if limit < 1 {
		return nil, fmt.Errorf("list: %w: limit %d is less than 1", continuo.ErrInvalid, limit)
	}
	err = s.read(ctx, func(conn *connection) error {
		found, err = readTexts(conn, query, after, limit)
		return err
	})
	return found, err
}

// Records is part of maintenance.RecordStore. A page without its last record has about 4 MiB at most.
func (s *Store) Records(ctx context.Context, conversationID string, after maintenance.RecordPosition, limit int) ([]maintenance.Record, error) {
	if limit < 1 {
		return nil, fmt.Errorf("read records: %w: limit %d is less than 1", continuo.ErrInvalid, limit)
	}
	page := recordPage{conversationID: conversationID, limit: limit, now: s.now()}
	err := s.read(ctx, func(conn *connection) error {
		page.conn = conn
		return conn.snapshot(func() error { return page.read(after) })
	})
	if err != nil {
		return nil, err
	}
	return page.records, nil
}

// recordPage is a page of records that is being filled.
type recordPage struct {
	conn           *connection
	conversationID string
	limit          int
	now            time.Time
	records        []maintenance.Record
	bytes          int
}

func (p *recordPage) read(after maintenance.RecordPosition) error {
	if after.Kind < maintenance.RecordConversation {
		if err := p.readConversation(); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		kind maintenance.RecordKind
		read func(after maintenance.RecordPosition) error
	}{{maintenance.RecordEntry, p.readEntries}, {maintenance.RecordReceipt, p.readReceipts}, {maintenance.RecordTurn, p.readTurns}, {maintenance.RecordPrefix, p.readPrefixes}} {
		if after.Kind > part.kind || p.isFull() {
			continue
		}
		from := maintenance.RecordPosition{}
		if after.Kind == part.kind {
			from = after
		}
		if err := part.read(from); err != nil && !errors.Is(err, errEnough) {
			return err
		}
	}
	return nil
}

func (p *recordPage) isFull() bool { return len(p.records) >= p.limit || p.bytes >= pageBytes }

// add adds a record of so many bytes, and returns errEnough when the page is full.
func (p *recordPage) add(record maintenance.Record, bytes int) error {
	p.records = append(p.records, record)
	p.bytes += bytes
	if p.isFull() {
		return errEnough
	}
	return nil
}

func (p *recordPage) readConversation() error {
	err := p.conn.query(conversationRecord, []any{p.conversationID}, func(rows *sql.Rows) (err error) {
		var own maintenance.ConversationRecord
		if own.Conversation, err = scanConversation(rows, &own.Deleted); err != nil {
			return err
		}
		own.Revision = 0
		return p.add(maintenance.Record{Conversation: &own}, len(own.Metadata))
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func (p *recordPage) readEntries(after maintenance.RecordPosition) error {
	return p.conn.query(entriesAbove, []any{p.conversationID, min(after.Seq, maxSeq), p.limit}, func(rows *sql.Rows) error {
		var body sql.RawBytes
		var checksum int64
		if err := rows.Scan(&body, &checksum); err != nil {
			return err
		}
		var entry continuo.Entry
		if err := entry.UnmarshalJSON(body); err != nil {
			return err
		}
		return p.add(maintenance.Record{Entry: &entry, Damaged: form.Checksum(body) != checksum}, len(body))
	})
}

func (p *recordPage) readReceipts(after maintenance.RecordPosition) error {
	return p.conn.query(receiptsAbove, []any{p.conversationID, after.Key, p.limit}, func(rows *sql.Rows) error {
		var r continuo.Receipt
		if err := rows.Scan(&r.Key, &r.Fingerprint, &r.First, &r.Last); err != nil {
			return err
		}
		return p.add(maintenance.Record{Receipt: &r}, len(r.Key)+len(r.Fingerprint))
	})
}

func (p *recordPage) readTurns(after maintenance.RecordPosition) error {
	turns, err := readTurns(p.conn, p.now, turnsAbove, p.conversationID, after.Key, p.limit)
	if err != nil {
		return err
	}
	for _, t := range turns {
		record, bytes := maintenance.TurnRecord{Turn: t}, 0
		err := p.conn.query(selectTurnEvents, []any{t.ConversationID, t.ID, 0, math.MaxInt64}, func(rows *sql.Rows) error {
			var body sql.RawBytes
			if err := rows.Scan(&body); err != nil {
				return err
			}
			bytes += len(body)
			record.Events, err = form.DecodeEvents(record.Events, body, 0)
			return err
		})
		if err == nil {
			record.Signals, err = readSignals(p.conn, continuo.TurnUpdate{ConversationID: t.ConversationID, TurnID: t.ID})
		}
		if err != nil {
			return err
		}
		if err := p.add(maintenance.Record{Turn: &record}, bytes); err != nil {
			return err
		}
	}
	return nil
}
