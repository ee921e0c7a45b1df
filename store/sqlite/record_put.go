package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/internal/form"
)

const (
	replaceConversation = `
UPDATE conversations SET id = ?, project_id = ?, user_id = ?, key = ?, kind = ?, title = ?, active_mode = ?, active_agent = ?, metadata = ?, labels = ?,
  parent_id = ?, fork_seq = ?, lineage = ?, created_at = ?, updated_at = ?, last_seq = ?, archived_at = ?, deleted = ?
WHERE id = ?`

	markConversation = `UPDATE conversations SET archived_at = ?, deleted = ? WHERE id = ?`

	replaceReceipt = `UPDATE receipts SET fingerprint = ?, first_seq = ?, last_seq = ? WHERE conversation_id = ? AND key = ?`

	insertTurnRecord = `
INSERT INTO turns (conversation_id, id, state, owner, fence, lease_until, last_event, signals, started_at, ended_at, request, ended)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	selectAnyConversation = selectConversation + `WHERE id = ?`
)

// eventsBytes is about how many bytes of a turn's events are stored in one row.
const eventsBytes = 256 << 10

// PutRecords is part of maintenance.RecordStore. It fails with continuo.ErrInvalid for a record of another
// conversation or of nothing, with ErrNotFound when the conversation or one that it begins with does not
// exist, and with ErrExists when a key, another running turn or the fencing token of a turn is already in
// use.
func (s *Store) PutRecords(ctx context.Context, conversationID string, records []maintenance.Record) error {
	return s.putRecords(ctx, conversationID, records, func(*connection) error { return nil })
}

// PutArchived is part of maintenance.RecordStore.
func (s *Store) PutArchived(ctx context.Context, conversationID string, since time.Time, records []maintenance.Record) error {
	return s.putRecords(ctx, conversationID, records, func(conn *connection) error {
		c, err := readConversation(conn, conversationByID, conversationID)
		if err == nil && !c.ArchivedAt.Equal(since) {
			err = fmt.Errorf("write records of conversation %s: %w: it is not archived since %s", conversationID, continuo.ErrInvalid, stamp(since))
		}
		return err
	})
}

// putRecords writes records if may returns no error.
func (s *Store) putRecords(ctx context.Context, conversationID string, records []maintenance.Record, may func(*connection) error) error {
	var puts []func(*connection) error
	for i := range records {
		put, of, err := encodeRecord(conversationID, &records[i])
		if err == nil && of != conversationID {
			err = fmt.Errorf("%w: a record of conversation %q", continuo.ErrInvalid, of)
		}
		if err != nil {
			return fmt.Errorf("write records of conversation %s: %w", conversationID, err)
		}
		if records[i].Conversation != nil {
			puts = slices.Insert(puts, 0, put)
		} else {
			puts = append(puts, put)
		}
	}
	return s.write(ctx, func(conn *connection) error {
		return conn.inSavepoint(func() error {
			if err := may(conn); err != nil {
				return err
			}
			var archived bool
			if err := conn.row(selectArchived, []any{conversationID}, &archived); err != nil && !slices.ContainsFunc(records, isConversation) {
				return orNotFound(err)
			}
			var last int64
			if err := conn.row(lastEntry, []any{conversationID}, &last); err != nil {
				return err
			}
			for _, put := range puts {
				err := put(conn)
				if isTaken(err) {
					err = fmt.Errorf("write records of conversation %s: %w: %w", conversationID, continuo.ErrExists, err)
				}
				if err != nil {
					return err
				}
			}
			if _, err := conn.exec(syncHead, conversationID); err != nil {
				return err
			}
			if _, err := conn.exec(reviseConversation, conversationID, s.now().UnixNano()); err != nil {
				return err
			}
			return putRuns(conn, conversationID, records, last)
		})
	})
}

func isConversation(r maintenance.Record) bool { return r.Conversation != nil }

// encodeRecord returns a function that writes a record, and the id of the record's conversation.
func encodeRecord(conversationID string, r *maintenance.Record) (put func(*connection) error, of string, err error) {
	switch {
	case r.Conversation != nil:
		row, err := encodeConversation(r.Conversation.Conversation)
		return func(conn *connection) error { return putConversation(conn, r.Conversation, row) }, r.Conversation.ID, err
	case r.Entry != nil:
		row, err := encodeEntry(r.Entry, r.Damaged)
		return func(conn *connection) error {
			return errors.Join(putEntry(conn, row), addUsage(conn, conversationID, []continuo.Entry{*r.Entry}))
		}, r.Entry.ConversationID, err
	case r.Receipt != nil:
		err := checkReceipts([]continuo.Receipt{*r.Receipt})
		return func(conn *connection) error { return putReceipt(conn, conversationID, r.Receipt) }, conversationID, err
	case r.Prefix != nil:
		return func(conn *connection) error { return putPrefix(conn, r.Prefix) }, r.Prefix.ConversationID, nil
	case r.Turn != nil:
		row, err := encodeTurn(r.Turn)
		return row.put, r.Turn.ConversationID, err
	}
	return nil, "", fmt.Errorf("%w: a record of nothing", continuo.ErrInvalid)
}

// putConversation writes a conversation's own record. It empties the conversation's index and keeps its
// objects.
func putConversation(conn *connection, record *maintenance.ConversationRecord, row []any) error {
	for _, segment := range record.Lineage {
		var archived bool
		if err := conn.row(selectArchived, []any{segment.ConversationID}, &archived); err != nil {
			return fmt.Errorf("conversation %s, which %s begins with: %w", segment.ConversationID, record.ID, orNotFound(err))
		}
	}
	before, err := readConversation(conn, selectAnyConversation, record.ID)
	marks := []any{stampOrNull(record.ArchivedAt), record.Deleted, record.ID}
	switch {
	case errors.Is(err, continuo.ErrNotFound):
		if _, err = conn.exec(insertConversation, append(row, record.ForkSeq)...); err == nil {
			_, err = conn.exec(markConversation, marks...)
		}
	case err == nil:
		_, err = conn.exec(replaceConversation, append(row, marks...)...)
	}
	if err != nil {
		return err
	}
	for _, segment := range before.Lineage {
		if _, err := conn.exec(deleteLineage, segment.ConversationID, record.ID); err != nil {
			return err
		}
	}
	if err := insertSegments(conn, record.Conversation); err != nil {
		return err
	}
	if err := forgetIndex(conn, record.ID); err != nil {
		return err
	}
	for _, id := range []string{"", maintenance.ArchiveObject(record.ArchivedAt)} {
		if _, err := conn.exec(deleteDiscard, continuo.ObjectName(record.ID, id)); err != nil {
			return err
		}
	}
	return nil
}

func putEntry(conn *connection, row entryRow) error {
	number, err := readNumber(conn, row.entry.ConversationID)
	if err != nil {
		return err
	}
	replaced, err := conn.exec(replaceEntry, row.columns(number)...)
	if err == nil && replaced == 0 {
		_, err = conn.exec(insertEntry, row.columns(number)...)
	}
	if err == nil {
		_, err = conn.exec(deleteObjectsOf, row.entry.ConversationID, row.entry.Seq)
	}
	if err == nil {
		err = insertObjects(conn, row.entry)
	}
	for _, id := range row.entry.Objects() {
		if err == nil {
			_, err = conn.exec(deleteDiscard, continuo.ObjectName(row.entry.ConversationID, id))
		}
	}
	return err
}

func putReceipt(conn *connection, conversationID string, r *continuo.Receipt) error {
	replaced, err := conn.exec(replaceReceipt, r.Fingerprint, r.First, r.Last, conversationID, r.Key)
	if err == nil && replaced == 0 {
		err = insertReceipts(conn, conversationID, []continuo.Receipt{*r})
	}
	return err
}

// turnRow is a turn, ready to be written.
type turnRow struct {
	record  *maintenance.TurnRecord
	columns []any
	events  []eventsRow
	signals []string
}

// eventsRow is a range of a turn's events.
type eventsRow struct {
	last int64
	body string
}

func encodeTurn(record *maintenance.TurnRecord) (*turnRow, error) {
	row := &turnRow{record: record}
	t := &record.Turn
	if !slices.Contains([]continuo.TurnState{continuo.TurnRunning, continuo.TurnFinished, continuo.TurnFailed, continuo.TurnVoid}, t.State) {
		return row, fmt.Errorf("%w: turn %s has the state %q", continuo.ErrInvalid, t.ID, t.State)
	}
	request, err := rawjson.Marshal(t.TurnRequest)
	if err == nil {
		err = checkText(t.ID, t.Owner)
	}
	if err == nil {
		err = row.encodeEvents()
	}
	if err == nil {
		err = row.encodeSignals()
	}
	end, endErr := rawjson.Marshal(t.TurnEnd)
	if err := errors.Join(err, endErr); err != nil {
		return row, fmt.Errorf("turn %s: %w: %w", t.ID, continuo.ErrInvalid, err)
	}
	lease, endedAt, ended := any(nil), any(stamp(t.EndedAt)), any(string(end))
	if t.State == continuo.TurnRunning {
		lease, endedAt, ended = "", nil, nil
	}
	last := int64(0)
	if n := len(record.Events); n > 0 {
		last = record.Events[n-1].ID
	}
	row.columns = []any{
		t.ConversationID, t.ID, string(t.State), t.Owner, t.Fence, lease, last, len(row.signals), stamp(t.StartedAt), endedAt, string(request), ended,
	}
	return row, nil
}

func (r *turnRow) encodeEvents() error {
	events := r.record.Events
	last := int64(0)
	for len(events) > 0 {
		n, bytes := 0, 0
		for n < len(events) && bytes < eventsBytes {
			bytes += len(events[n].Data)
			n++
		}
		body, err := form.EncodeEvents(events[:n])
		if err == nil && events[0].ID <= last {
			err = fmt.Errorf("event %d after event %d", events[0].ID, last)
		}
		if err != nil {
			return err
		}
		last = events[n-1].ID
		r.events = append(r.events, eventsRow{last, body})
		events = events[n:]
	}
	return nil
}

func (r *turnRow) encodeSignals() error {
	for _, signal := range r.record.Signals {
		body, err := rawjson.Marshal(signal)
		if err != nil {
			return err
		}
		r.signals = append(r.signals, string(body))
	}
	return nil
}

func (r *turnRow) put(conn *connection) error {
	t := &r.record.Turn
	if err := removeTurn(conn, t.ConversationID, t.ID); err != nil {
		return err
	}
	if _, err := conn.exec(insertTurnRecord, r.columns...); err != nil {
		return err
	}
	for _, events := range r.events {
		if _, err := conn.exec(insertTurnEvents, t.ConversationID, t.ID, events.last, events.body); err != nil {
			return err
		}
	}
	for i, body := range r.signals {
		if _, err := conn.exec(insertTurnSignal, t.ConversationID, t.ID, i+1, body); err != nil {
			return err
		}
	}
	return nil
}
