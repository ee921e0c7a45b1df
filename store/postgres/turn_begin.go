package postgres

import (
	"context"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/internal/form"
	"github.com/jackc/pgx/v5"
)

// An append that begins a turn: $21 is the turn's id, $22 the owner, $23 the lease in microseconds, $24 the request, $25 the
// last event, $26 the events, $27 the mode and $28 the agent.
//
// A void turn with the same id is replaced. The turn's start is after that of the previous turn, even if the clock was
// set back, so that the order of turns is the order in which they ran; void turns count too. The lock on the head lets
// one turn begin at a time. A turn that began since the statement did is not visible to its conditions: then a unique
// index, or the division by zero, rolls everything back.
const (
	beginHead = `
WITH head AS (
  UPDATE continuo.conversations SET last_seq = $3, updated_at = coalesce($4, updated_at), active_mode = coalesce($27, active_mode),
    active_agent = coalesce($28, active_agent)
  WHERE id = $1 AND last_seq = $2 AND NOT deleted AND archived_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM continuo.turns WHERE conversation_id = $1 AND state = 'running')
    AND NOT EXISTS (SELECT 1 FROM continuo.turns WHERE conversation_id = $1 AND id = $21 AND state <> 'void')
  RETURNING id, project_id)` + appendParts + beginParts

	// With a new conversation, whose columns from project_id to labels are the arguments from $%d on.
	createHead = `
WITH head AS (
  INSERT INTO continuo.conversations (id, last_seq, fork_seq, indexed_seq, project_id, key, title, active_mode, metadata, parent_id, created_at, updated_at, active_agent, kind, user_id, labels)
  SELECT $1, $3, $2, $2, c.project_id, c.key, c.title, coalesce($27, c.active_mode), c.metadata, c.parent_id, c.created_at, coalesce($4, c.updated_at),
    coalesce($28, c.active_agent), c.kind, c.user_id, c.labels
  FROM (VALUES ($%d::text, $%d::text, $%d::text, $%d::text, $%d::text, $%d::text, $%d::text, $%d::text, $%d::text, $%d::text, $%d::text, $%d::jsonb)) AS c (project_id, key, title, active_mode, metadata, parent_id, created_at, updated_at, active_agent, kind, user_id, labels)
  WHERE NOT EXISTS (SELECT 1 FROM continuo.conversations WHERE id = $1)
    AND NOT EXISTS (SELECT 1 FROM continuo.conversation_keys AS k WHERE k.project_id = c.project_id AND k.key = c.key)
  RETURNING id, project_id, key),
named_by AS (
  INSERT INTO continuo.conversation_keys (project_id, key, conversation_id) SELECT project_id, key, id FROM head WHERE key IS NOT NULL)`

	isTakenBy = `
SELECT EXISTS (SELECT 1 FROM continuo.conversations WHERE id = $1)
  OR EXISTS (SELECT 1 FROM continuo.conversation_keys WHERE project_id = $2 AND key = $3)`

	beginParts = `,
before AS (
  SELECT fence, started_at FROM continuo.turns WHERE conversation_id = $1 ORDER BY fence DESC LIMIT 1),
started AS (
  INSERT INTO continuo.turns AS turn (conversation_id, id, state, owner, fence, lease_until, started_at, request, last_event)
  SELECT $1, $21, 'running', $22, coalesce((SELECT fence FROM before), 0) + 1, clock_timestamp() + $23::bigint * interval '1 microsecond',
    to_char(greatest(clock_timestamp(), (SELECT started_at::timestamptz + interval '1 microsecond' FROM before)) AT TIME ZONE 'UTC', ` + stampFormat + `), $24, $25
  FROM head
  ON CONFLICT (conversation_id, id) DO UPDATE SET state = excluded.state, owner = excluded.owner, fence = excluded.fence,
    lease_until = excluded.lease_until, started_at = excluded.started_at, request = excluded.request,
    last_event = excluded.last_event, signals = 0, ended_at = NULL, ended = NULL
    WHERE turn.state = 'void'
  RETURNING turn.*),
gone AS (
  DELETE FROM continuo.turn_events WHERE conversation_id = $1 AND turn_id = $21 AND last_id <> $25 AND (SELECT count(*) FROM head) = 1),
forgotten AS (
  DELETE FROM continuo.turn_signals WHERE conversation_id = $1 AND turn_id = $21 AND (SELECT count(*) FROM head) = 1),
told AS (
  INSERT INTO continuo.turn_events (conversation_id, turn_id, last_id, body)
  SELECT $1, $21, $25, $26::text FROM head WHERE $26::text IS NOT NULL
  ON CONFLICT (conversation_id, turn_id, last_id) DO UPDATE SET body = excluded.body)`

	ofBegunTurn = `
SELECT ` + turnColumns + `, begun FROM (SELECT 1 / (SELECT count(*) FROM started) AS begun FROM head) AS head LEFT JOIN started ON true`

	beginTurn = beginHead + ofBegunTurn

	beginTurnAndRuns = beginHead + beginRuns +
		`$29::text[], $30::text[], $31::bigint[], $32::text[], $33::text[], $34::text[], $35::text[], $40::text[]` + changeRuns +
		`$36::text[], $37::text[], $38::text[], $39::text[]` + ofThisConversation + ofBegunTurn
)

// turnBegin is the beginning of a turn as this store writes it.
type turnBegin struct{ *form.TurnBegin }

// change makes the change that appends a batch and begins its turn.
func (b *turnBegin) change(batch continuo.Batch, rows *entryRows) *change {
	c := &change{conversationID: batch.ConversationID, key: batch.ConversationID, size: rows.size + len(b.Request) + len(b.Events), races: true}
	args := append(batchArgs(batch, rows), b.Turn.ID, b.Turn.Owner, microseconds(b.Lease), b.Request, b.Last, orNull(b.Events),
		orNull(string(b.Mode)), orNull(b.Agent))
	c.statement, c.args = beginTurn, args
	if len(batch.Runs) > 0 {
		c.statement, c.args = beginTurnAndRuns, append(args, foldRuns(batch.Runs).columns()...)
	}
	if batch.Create != nil {
		c.statement, c.args = withCreate(batch.Create, c.statement, c.args)
	}
	c.statement, c.args = withPrefixes(batch, c.statement, ofBegunTurn, c.args)
	c.statement, c.args = withUsage(continuo.UsageOf(batch.Entries), c.statement, ofBegunTurn, c.args)
	c.statement, c.args = withBlobs(batch.Blobs, "head", c.statement, ofBegunTurn, c.args)
	c.size += sizeOf(batch.Blobs)
	c.scan = func(row pgx.Row) (err error) {
		var begun int
		b.Begun, err = scanTurn(row, &begun)
		return err
	}
	c.why = func(ctx context.Context, q querier) error { return whyNotBegun(ctx, q, batch) }
	c.committed = func(ctx context.Context, q querier) (bool, error) { return b.wasCommitted(ctx, q, batch) }
	return c
}

// withCreate makes a statement that begins with beginHead create the conversation.
func withCreate(conversation *continuo.Conversation, statement string, args []any) (string, []any) {
	row := conversationRow(conversation)[1:] // the id is $1
	places := make([]any, len(row))
	for i := range row {
		places[i] = len(args) + 1 + i
	}
	return fmt.Sprintf(createHead, places...) + appendParts + beginParts + strings.TrimPrefix(statement, beginHead), append(args, row...)
}

func whyNotBegun(ctx context.Context, q querier, batch continuo.Batch) error {
	if batch.Create != nil {
		return whyNotCreated(ctx, q, batch.Create)
	}
	last, err := readHead(ctx, q, batch.ConversationID)
	if err != nil {
		return err
	}
	same, err := readTurn(ctx, q, turnByID, batch.ConversationID, batch.Begin.Turn.ID)
	if err == nil && same.State != continuo.TurnVoid {
		return fmt.Errorf("%w: turn %s", continuo.ErrExists, same.ID)
	}
	if unlessNotFound(err) != nil {
		return err
	}
	running, err := readTurn(ctx, q, runningTurn, batch.ConversationID)
	switch {
	case err == nil:
		return &continuo.BusyError{Turn: running}
	case unlessNotFound(err) != nil:
		return err
	case last != batch.After:
		return &continuo.ConflictError{Want: batch.After + 1, Have: last + 1}
	}
	return nil
}

func whyNotCreated(ctx context.Context, q querier, conversation *continuo.Conversation) error {
	var taken bool
	err := q.QueryRow(ctx, isTakenBy, conversation.ID, conversation.ProjectID, conversation.Key).Scan(&taken)
	if err == nil && taken {
		err = errTaken(conversation)
	}
	return err
}

// wasCommitted reports whether a batch was appended and its turn begun, and reads the turn.
func (b *turnBegin) wasCommitted(ctx context.Context, q querier, batch continuo.Batch) (committed bool, err error) {
	b.Begun, err = readTurn(ctx, q, turnByID, batch.ConversationID, b.Turn.ID)
	if err != nil {
		return false, unlessNotFound(err)
	}
	committed = b.Begun.State == continuo.TurnRunning && b.Begun.Owner == b.Turn.Owner && b.Begun.LastEvent == b.Last
	if committed || len(batch.Entries) == 0 {
		return committed, nil
	}
	err = q.QueryRow(ctx, isAppended, batch.ConversationID, batch.Entries[0].Seq, batch.Entries[0].ID).Scan(&committed)
	if err == nil && committed {
		err = fmt.Errorf("begin turn %s: %w", b.Turn.ID, continuo.ErrLeaseLost) // another process has taken it meanwhile
	}
	return false, err
}
