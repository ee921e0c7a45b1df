package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
)

const (
	// The only statement that changes an entry: a redaction by a person, or a copy that PutRecords writes.
	replaceEntry = `
UPDATE entries SET id = ?, role = ?, hidden = ?, created_at = ?, output_ref = ?, chars = ?, tokens = ?, redacted = ?, body = ?,
  checksum = ?
WHERE place = ? << 32 | ?`

	selectEntry = `SELECT body FROM entries WHERE place = ` + placeOf + `?1) | ?2 AND id = ?3`

	touchConversation = `UPDATE conversations SET updated_at = ?, last_seq = ` + newestSeq + ` WHERE id = ?`

	// The time makes the revision differ from those of an earlier conversation with the id.
	reviseConversation = `UPDATE conversations SET revision = max(revision + 1, ?2) WHERE id = ?1`

	selectArchived = `SELECT archived_at IS NOT NULL FROM conversations WHERE id = ?`
)

// Redact is part of continuo.EntryStore. Entries of a deleted conversation can be redacted as long as forks
// begin with them. When it returns, the terms of the first 64 entries are removed from the index; those of
// more entries are removed moments later.
func (s *Store) Redact(ctx context.Context, conversationID string, entries []continuo.Entry) error {
	rows := make([]entryRow, len(entries))
	for i := range entries {
		var err error
		if rows[i], err = encodeEntry(&entries[i], false); err != nil {
			return err
		}
		if entries[i].ConversationID != conversationID {
			return fmt.Errorf("redact: %w: entry %d is of conversation %q, not of %q", continuo.ErrInvalid, i, entries[i].ConversationID, conversationID)
		}
	}
	return s.write(ctx, func(conn *connection) error {
		turns, err := mayRedact(conn, conversationID, entries, s.now())
		if err != nil {
			return err
		}
		conn.residue, conn.removed = true, true
		for i, row := range rows {
			remove := eraseDocument
			if i >= eraseAtOnce {
				remove = hideDocument
			}
			if err := redactEntry(conn, row, remove); err != nil {
				return err
			}
		}
		for _, turn := range turns {
			for _, statement := range []string{deleteTurnEvents, deleteTurnSignals, forgetTurnEvents} {
				if _, err := conn.exec(statement, conversationID, turn); err != nil {
					return err
				}
			}
		}
		if _, err := conn.exec(reviseConversation, conversationID, 0); err != nil {
			return err
		}
		if err := dropPrefixes(conn, conversationID, entries); err != nil {
			return err
		}
		return touch(conn, conversationID, entries)
	})
}

// touch sets UpdatedAt to the time of the latest redaction, and always increases it: so an archiving that
// read the entries before is refused, even if the clocks of two machines differ.
func touch(conn *connection, conversationID string, entries []continuo.Entry) error {
	var latest time.Time
	for i := range entries {
		if by := entries[i].Redacted; by != nil && by.At.After(latest) {
			latest = by.At
		}
	}
	if latest.IsZero() {
		return nil
	}
	before, err := readConversation(conn, selectAnyConversation, conversationID)
	if err != nil {
		return err
	}
	if !latest.After(before.UpdatedAt) {
		latest = before.UpdatedAt.Add(1)
	}
	_, err = conn.exec(touchConversation, stamp(latest), conversationID)
	return err
}

// mayRedact checks that the entries exist and that none of their turns runs. It returns the turns.
func mayRedact(conn *connection, conversationID string, entries []continuo.Entry, now time.Time) (turns []string, err error) {
	var archived bool
	if err := conn.row(selectArchived, []any{conversationID}, &archived); err != nil {
		return nil, orNotFound(err)
	}
	if archived {
		return nil, fmt.Errorf("redact entries of %s: %w", conversationID, continuo.ErrArchived)
	}
	for _, e := range entries {
		var body []byte
		var old continuo.Entry
		err := conn.row(selectEntry, []any{conversationID, e.Seq, e.ID}, &body)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, fmt.Errorf("%w: entry %s at seq %d", continuo.ErrNotFound, e.ID, e.Seq)
		}
		if err == nil {
			err = old.UnmarshalJSON(body)
		}
		if err != nil {
			return nil, err
		}
		if old.TurnID != "" && !slices.Contains(turns, old.TurnID) {
			turns = append(turns, old.TurnID)
		}
	}
	running, err := readTurns(conn, now, runningTurn, conversationID)
	if err == nil && len(running) > 0 && slices.Contains(turns, running[0].ID) {
		err = &continuo.BusyError{Turn: running[0]}
	}
	return turns, err
}

func redactEntry(conn *connection, row entryRow, remove func(*connection, string, int64) error) error {
	number, err := readNumber(conn, row.entry.ConversationID)
	if err != nil {
		return err
	}
	if _, err := conn.exec(replaceEntry, row.columns(number)...); err != nil {
		return err
	}
	if err := discardOf(conn, row.entry); err != nil {
		return err
	}
	if _, err := conn.exec(deleteVector, row.entry.ConversationID, row.entry.Seq); err != nil {
		return err
	}
	return remove(conn, row.entry.ConversationID, row.entry.Seq)
}
