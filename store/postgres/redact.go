package postgres

import (
	"context"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/jackc/pgx/v5"
)

const (
	// Whole entries, as overwriting.args gives them; $1 is the conversation.
	unnestEntries = `
unnest($2::bigint[], $3::text[], $4::text[], $5::boolean[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::text[], $11::bigint[],
  $12::boolean[]) AS e (seq, id, role, hidden, created_at, output_ref, chars, tokens, body, checksum, redacted)`

	redactEntries = `
UPDATE continuo.entries AS entry SET role = e.role, hidden = e.hidden, created_at = e.created_at, output_ref = nullif(e.output_ref, ''),
  chars = e.chars, tokens = e.tokens, redacted = e.redacted, body = e.body,
  checksum = e.checksum
FROM ` + unnestEntries + `
WHERE entry.conversation_id = $1 AND entry.seq = e.seq AND entry.id = e.id`

	touchConversation = `UPDATE continuo.conversations SET updated_at = $2 WHERE id = $1`

	// The time makes the revision differ from those of an earlier conversation with the id.
	reviseConversation = `UPDATE continuo.conversations SET revision = greatest(revision + 1, $2) WHERE id = $1`

	runningTurnOf = selectTurn + `WHERE conversation_id = $1 AND state = 'running' AND id = ANY ($2)`

	deleteEventsOfTurns  = `DELETE FROM continuo.turn_events WHERE conversation_id = $1 AND turn_id = ANY ($2)`
	deleteSignalsOfTurns = `DELETE FROM continuo.turn_signals WHERE conversation_id = $1 AND turn_id = ANY ($2)`
	forgetEventsOfTurns  = `UPDATE continuo.turns SET last_event = 0, signals = 0 WHERE conversation_id = $1 AND id = ANY ($2)`

	takeObjects = `DELETE FROM continuo.entry_objects WHERE conversation_id = $1 AND seq = ANY ($2) RETURNING object_id`

	// The entries' objects that no entry of the conversation needs any more.
	discardObjects = `
INSERT INTO continuo.discards (name)
SELECT name FROM unnest($2::text[], $3::text[]) AS gone (object_id, name)
WHERE NOT EXISTS (SELECT 1 FROM continuo.entry_objects AS kept WHERE kept.conversation_id = $1 AND kept.object_id = gone.object_id)
ON CONFLICT DO NOTHING`
)

// Redact is part of continuo.EntryStore. The conversation may be a deleted one that forks begin with.
func (s *Store) Redact(ctx context.Context, conversationID string, entries []continuo.Entry) error {
	rows, err := encodeWhole(conversationID, entries)
	if err != nil {
		return fmt.Errorf("redact entries of conversation %s: %w", conversationID, err)
	}
	err = s.transact(ctx, "redact entries of conversation "+conversationID, func(ctx context.Context, tx pgx.Tx) error {
		have, err := lock(ctx, tx, conversationID)
		if err == nil && have.archivedAt != nil {
			err = continuo.ErrArchived
		}
		if err != nil {
			return err
		}
		redacted, err := tx.Exec(ctx, redactEntries, rows.args(conversationID)...)
		if err != nil {
			return err
		}
		if n := redacted.RowsAffected(); n != int64(len(entries)) {
			return fmt.Errorf("%w: %d of %d entries", continuo.ErrNotFound, int64(len(entries))-n, len(entries))
		}
		if err := redactTurns(ctx, tx, conversationID, turnsOf(entries)); err != nil {
			return err
		}
		if err := replaceObjects(ctx, tx, conversationID, rows); err != nil {
			return err
		}
		for _, statement := range []string{deleteDocuments, deleteSomeVectors} {
			if _, err := tx.Exec(ctx, statement, conversationID, rows.seqs); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, reviseConversation, conversationID, 0); err != nil {
			return err
		}
		if err := dropPrefixes(ctx, tx, conversationID, entries); err != nil {
			return err
		}
		return touch(ctx, tx, conversationID, have.updatedAt, entries)
	}, nil)
	if err == nil {
		s.changed(conversationID)
	}
	return err
}

// touch sets UpdatedAt to the time of the latest redaction, and always increases it: so an archiving that
// read the entries before is refused, even if the clocks of two machines differ.
func touch(ctx context.Context, tx pgx.Tx, conversationID, updatedAt string, entries []continuo.Entry) error {
	var latest time.Time
	for i := range entries {
		if by := entries[i].Redacted; by != nil && by.At.After(latest) {
			latest = by.At
		}
	}
	if latest.IsZero() {
		return nil
	}
	before, err := unstamp(updatedAt, nil)
	if err != nil {
		return err
	}
	if !latest.After(before) {
		latest = before.Add(1)
	}
	_, err = tx.Exec(ctx, touchConversation, conversationID, stamp(latest))
	return err
}

// turnsOf lists the turns of entries; a turn may occur several times.
func turnsOf(entries []continuo.Entry) []string {
	var ids []string
	for i := range entries {
		if id := entries[i].TurnID; id != "" && (len(ids) == 0 || ids[len(ids)-1] != id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// redactTurns removes the content of turns' events and signals. It fails while one of the turns runs.
func redactTurns(ctx context.Context, tx pgx.Tx, conversationID string, ids []string) error {
	running, err := readTurns(ctx, tx, runningTurnOf, conversationID, ids)
	if err != nil {
		return err
	}
	if len(running) > 0 {
		return &continuo.BusyError{Turn: running[0]}
	}
	for _, statement := range []string{deleteEventsOfTurns, deleteSignalsOfTurns, forgetEventsOfTurns} {
		if _, err := tx.Exec(ctx, statement, conversationID, ids); err != nil {
			return err
		}
	}
	return nil
}

// replaceObjects records which objects the entries need now, and discards those that are no longer needed.
func replaceObjects(ctx context.Context, tx pgx.Tx, conversationID string, r *wholeEntries) error {
	rows, _ := tx.Query(ctx, takeObjects, conversationID, r.seqs)
	gone, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, insertEntryObjects, conversationID, r.objectSeqs, r.objects); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, discardObjects, conversationID, gone, objectNames(conversationID, gone))
	return err
}

func objectNames(conversationID string, ids []string) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = continuo.ObjectName(conversationID, id)
	}
	return names
}

// wholeEntries are replacements of entries, column by column.
type wholeEntries struct {
	entryRows
	redacted []bool
}

func encodeWhole(conversationID string, entries []continuo.Entry) (*wholeEntries, error) {
	rows := &wholeEntries{}
	for i := range entries {
		entry := &entries[i]
		if entry.ConversationID != conversationID {
			return nil, fmt.Errorf("%w: entry %d is of conversation %q", continuo.ErrInvalid, entry.Seq, entry.ConversationID)
		}
		if err := rows.add(entry); err != nil {
			return nil, fmt.Errorf("%w: entry %d cannot be written as JSON: %w", continuo.ErrInvalid, entry.Seq, err)
		}
		rows.redacted = append(rows.redacted, entry.Redacted != nil)
	}
	return rows, nil
}

func (r *wholeEntries) args(conversationID string) []any {
	return append(append([]any{conversationID}, r.columns()...), r.redacted)
}
