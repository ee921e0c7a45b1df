package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/store/internal/form"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestPartitionDividesTheTablesThatSayByWhat(t *testing.T) {
	const text = `CREATE TABLE continuo.things (
  -- Things.
  id   text PRIMARY KEY,
  size bigint NOT NULL -- by hand
); -- by id

CREATE INDEX things_by_size ON continuo.things (size);

CREATE TABLE continuo.words (
  word text PRIMARY KEY
);
`
	const want = `CREATE TABLE continuo.things (
  -- Things.
  id   text PRIMARY KEY,
  size bigint NOT NULL -- by hand
) PARTITION BY HASH (id);

CREATE TABLE continuo.things_p0 PARTITION OF continuo.things FOR VALUES WITH (MODULUS 2, REMAINDER 0);

CREATE TABLE continuo.things_p1 PARTITION OF continuo.things FOR VALUES WITH (MODULUS 2, REMAINDER 1);

CREATE INDEX things_by_size ON continuo.things (size);

CREATE TABLE continuo.words (
  word text PRIMARY KEY
);
`
	if got := partition(text, 2); got != want {
		t.Errorf("divided:\n%s\nwant:\n%s", got, want)
	}
	if got := partition(text, 0); got != text {
		t.Errorf("undivided:\n%s", got)
	}
}

func TestEveryTableOfAConversationIsDivided(t *testing.T) {
	all, err := form.Migrations(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	divided := partition(strings.Join(all, "\n"), 1)
	for _, table := range []string{
		"conversations", "conversation_keys", "lineage", "entries", "entry_objects", "receipts",
		"blobs", "turns", "turn_events", "turn_signals", "runs", "documents",
	} {
		if !strings.Contains(divided, "CREATE TABLE continuo."+table+"_p0 PARTITION OF continuo."+table+" ") {
			t.Errorf("the table %s is not divided", table)
		}
	}
}

// A statement that looks into every partition costs more the more there are, locks included.
func TestHotStatementsTouchOnePartition(t *testing.T) {
	const partitions = 16
	url := newDatabase(t, partitions)
	store := openAt(t, url, Options{})
	defer store.Close()
	seen := recordStatements(t, store, url)
	doWhatTurnsDo(t, store)
	doWhatRunsDo(t, store)
	statements := seen.statements()
	if len(statements) < 15 {
		t.Fatalf("only %d statements were seen", len(statements))
	}
	for _, of := range []string{appendSomeAndRuns, appendWithTurnAndRuns, updateTurnAndMode} {
		beginning := of[:strings.LastIndex(of, "\nSELECT")] // parts for usage and ended turns may follow it
		if !slices.ContainsFunc(statements, func(s statement) bool { return strings.HasPrefix(s.sql, beginning) }) {
			t.Errorf("not seen: %s", of)
		}
	}
	for _, s := range statements {
		t.Run(s.name(), func(t *testing.T) {
			for mode, plan := range map[string]string{"custom": s.explain(t, url, false), "generic": s.explain(t, url, true)} {
				for table, touched := range partitionsTouched(t, plan) {
					if len(touched) != 1 {
						t.Errorf("a %s plan touches %d partitions of %s: %s\n%s", mode, len(touched), table, touched, s.sql)
					}
				}
			}
		})
	}
}

// statement is what was sent to the server.
type statement struct {
	sql  string
	args []any
}

func (s statement) name() string {
	words := strings.Fields(s.sql)
	return strings.Join(words[:min(6, len(words))], " ")
}

// explain returns the plan for the arguments, or, as it is carried out with them, the plan for any arguments;
// "" for one that cannot be carried out a second time.
func (s statement) explain(t *testing.T, url string, generic bool) (plan string) {
	t.Helper()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, url)
	must(t, err)
	defer func() { must(t, conn.Close(context.WithoutCancel(ctx))) }()
	if !generic {
		must(t, conn.QueryRow(ctx, "EXPLAIN (COSTS OFF, FORMAT JSON) "+s.sql, s.args...).Scan(&plan))
		return plan
	}
	tx, err := conn.Begin(ctx)
	must(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	_, err = tx.Exec(ctx, "SET LOCAL plan_cache_mode = force_generic_plan")
	must(t, err)
	// The protocol's own statements have no plan that could be shown; those of SQL do.
	_, err = tx.Exec(ctx, "PREPARE explained AS "+s.sql, pgx.QueryExecModeSimpleProtocol)
	must(t, err)
	args := append([]any{pgx.QueryExecModeSimpleProtocol}, s.args...)
	err = tx.QueryRow(ctx, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) EXECUTE explained"+s.places(), args...).Scan(&plan)
	if isTaken(err) {
		return ""
	}
	must(t, err)
	return plan
}

// places is ($1, $2, …).
func (s statement) places() string {
	if len(s.args) == 0 {
		return ""
	}
	var all []string
	for i := range s.args {
		all = append(all, fmt.Sprintf("$%d", i+1))
	}
	return "(" + strings.Join(all, ", ") + ")"
}

var partitionName = regexp.MustCompile(`^(.*)_p[0-9]+$`)

// partitionsTouched lists the partitions, by table, of the parts of a plan that are carried out, as far as it
// is known.
func partitionsTouched(t *testing.T, plan string) map[string][]string {
	t.Helper()
	if plan == "" {
		return nil
	}
	var root any
	if err := json.Unmarshal([]byte(plan), &root); err != nil {
		t.Fatal(err)
	}
	touched := map[string][]string{}
	var walk func(node any)
	walk = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, child := range node {
				walk(child)
			}
		case map[string]any:
			name, _ := node["Relation Name"].(string)
			loops, analyzed := node["Actual Loops"].(float64)
			parts := partitionName.FindStringSubmatch(name)
			if parts != nil && (!analyzed || loops > 0) && !slices.Contains(touched[parts[1]], name) {
				touched[parts[1]] = append(touched[parts[1]], name)
			}
			for _, key := range slices.Sorted(maps.Keys(node)) {
				if key != "Triggers" && key != "Target Tables" {
					walk(node[key])
				}
			}
		}
	}
	walk(root)
	return touched
}

// recorder keeps what is sent.
type recorder struct {
	mu   sync.Mutex
	sent map[string]statement // the first of each text
}

func (r *recorder) keep(sql string, args []any) {
	for len(args) > 0 {
		switch first := args[0].(type) {
		case pgx.QueryExecMode:
			args = args[1:]
			continue
		case pgx.QueryRewriter:
			sql, args, _ = first.RewriteQuery(context.Background(), nil, sql, args[1:])
		}
		break
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	verb, _, _ := strings.Cut(strings.TrimSpace(sql), " ")
	if _, ok := r.sent[sql]; !ok && strings.Contains(sql, "continuo.") && slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}, strings.ToUpper(verb)) {
		r.sent[sql] = statement{sql, slices.Clone(args)}
	}
}

func (r *recorder) statements() []statement {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []statement
	for _, sql := range slices.Sorted(maps.Keys(r.sent)) {
		all = append(all, r.sent[sql])
	}
	return all
}

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	r.keep(data.SQL, data.Args)
	return ctx
}

func (r *recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (r *recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (r *recorder) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	r.keep(data.SQL, data.Args)
}

func (r *recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// recordStatements gives a store connections whose statements are kept.
func recordStatements(t *testing.T, s *Store, url string) *recorder {
	t.Helper()
	r := &recorder{sent: map[string]statement{}}
	config, err := configure(url, s.options)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.Tracer = r
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	s.writers.close()
	s.hints.close()
	s.pool.Close()
	s.pool, s.hints, s.writers = pool, newHints(pool), newWriters(config, s.options)
	return r
}

// doWhatTurnsDo does everything that a server does for each turn, in one conversation, twice.
func doWhatTurnsDo(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	createAt(t, s, "a")
	for i := range int64(2) {
		begun, err := storetest.BeginTurn(ctx, s, continuo.Turn{ID: fmt.Sprint("turn", i), ConversationID: "a", Owner: "one"}, time.Minute)
		must(t, err)
		appendAt(t, s, "a", 5*i+1)
		taken, err := s.TakeTurn(ctx, begun, "two", time.Minute)
		must(t, err)
		must(t, s.SignalTurn(ctx, "a", taken.ID, continuo.TurnSignal{Kind: continuo.SignalCancel}))
		update := continuo.TurnUpdate{ConversationID: "a", TurnID: taken.ID, Fence: taken.Fence, Lease: time.Minute}
		update.Events = []continuo.TurnEvent{{ID: 1, Data: []byte(`{}`)}}
		_, err = s.UpdateTurn(ctx, update)
		must(t, err)
		entries := []continuo.Entry{
			{ID: "x", ConversationID: "a", Seq: 5*i + 2, Role: continuo.Assistant, CreatedAt: sometime, Content: continuo.Text("word")},
			{ID: "y", ConversationID: "a", Seq: 5*i + 3, Role: continuo.Tool, CreatedAt: sometime, OutputRef: "ref", Output: &continuo.Output{ID: "out"}},
		}
		receipts := []continuo.Receipt{{Key: fmt.Sprint("key", i), Fingerprint: "f", First: 5*i + 2, Last: 5*i + 3}}
		must(t, s.Append(ctx, continuo.Batch{ConversationID: "a", After: 5*i + 1, Entries: entries, Receipts: receipts}))
		update.Events, update.State = []continuo.TurnEvent{{ID: 2, Data: []byte(`{}`)}}, continuo.TurnFinished
		last := []continuo.Entry{{ID: "z", ConversationID: "a", Seq: 5*i + 4, Role: continuo.Assistant, CreatedAt: sometime}, {ID: "z2", ConversationID: "a", Seq: 5*i + 5, Role: continuo.Assistant, CreatedAt: sometime}}
		must(t, s.Append(ctx, continuo.Batch{ConversationID: "a", After: 5*i + 3, Entries: last, Turns: []continuo.TurnUpdate{update}}))
		must(t, s.PutBlob(ctx, fmt.Sprint("hash", i), []byte("data")))
		lookAtIt(t, s, taken.ID)
		documents := []index.Document{{Seq: 5*i + 1, Added: 1, Terms: []string{"word"}}}
		title := ""
		must(t, s.Index(ctx, index.Batch{ConversationID: "a", After: 5 * i, Through: 5*i + 5, Title: &title, Documents: documents}))
	}
}

// doWhatRunsDo begins a run and carries out a step of it.
func doWhatRunsDo(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	createAt(t, s, "b")
	entry := func(seq int64, kind continuo.RunEventKind) []continuo.Entry {
		return []continuo.Entry{{ID: fmt.Sprint("run", seq), ConversationID: "b", Seq: seq, Role: continuo.System, CreatedAt: sometime, RunID: "r", WorkflowID: "w", RunEvent: &continuo.RunEvent{Kind: kind}}}
	}
	began, finished := entry(1, continuo.RunBegan), entry(2, continuo.RunNodeFinished)
	must(t, s.Append(ctx, continuo.Batch{ConversationID: "b", Entries: began, Runs: continuo.RunChanges(began)}))
	turn, err := storetest.BeginTurn(ctx, s, continuo.Turn{ID: "step", ConversationID: "b"}, time.Minute)
	must(t, err)
	update := continuo.TurnUpdate{ConversationID: "b", TurnID: "step", Fence: turn.Fence, Mode: continuo.ModeAgent, Agent: "writer"}
	_, err = s.UpdateTurn(ctx, update)
	must(t, err)
	update.State = continuo.TurnFinished
	must(t, s.Append(ctx, continuo.Batch{ConversationID: "b", After: 1, Entries: finished, Runs: continuo.RunChanges(finished), Turns: []continuo.TurnUpdate{update}}))
	for _, query := range []continuo.RunQuery{
		{ProjectID: "p", ConversationID: "b", Limit: 9},
		{ProjectID: "p", ConversationID: "b", WorkflowID: "w", State: continuo.RunRunning, Limit: 9, Before: continuo.RunCursor{StartedAt: sometime, ID: "s"}},
	} {
		found, err := s.Runs(ctx, query)
		must(t, err)
		if len(found) != 1 {
			t.Errorf("%d runs: %+v", len(found), found)
		}
	}
}

// lookAtIt reads as clients do.
func lookAtIt(t *testing.T, s *Store, turnID string) {
	t.Helper()
	ctx := t.Context()
	conversation, err := s.Conversation(ctx, "a")
	must(t, err)
	_, err = s.Receipt(ctx, "a", "key0")
	must(t, err)
	_, err = s.Blob(ctx, "hash0")
	must(t, err)
	for _, query := range []continuo.EntryQuery{
		{From: 1, To: conversation.LastSeq, Limit: 9},
		{From: 1, To: conversation.LastSeq, Limit: 9, Backward: true},
		{From: 1, To: conversation.LastSeq, Limit: 9, UsersOnly: true, Backward: true},
		{From: 1, To: conversation.LastSeq, Limit: 9, OutputRef: "ref"},
		{From: 99, To: 100, Limit: 9},
	} {
		_, err = s.Entries(ctx, "a", query)
		must(t, err)
	}
	_, err = s.Turn(ctx, "a", turnID)
	must(t, err)
	for _, before := range []continuo.TurnCursor{{}, {StartedAt: sometime, ID: "t"}} {
		_, err = s.Turns(ctx, continuo.TurnQuery{ConversationID: "a", Limit: 5, Before: before})
		must(t, err)
	}
	_, err = s.TurnEvents(ctx, "a", turnID, 0, 5)
	must(t, err)
	_, err = s.Unindexed(ctx, index.UnindexedQuery{ConversationID: "a", Limit: 1})
	must(t, err)
	_, err = s.Hits(ctx, index.HitQuery{ConversationID: "a", Terms: []index.Term{{Text: "word"}}, Limit: 5})
	must(t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestPlacesAreLookedUpByTheIndex: for some hundred places in a table of some thousand entries, the planner would rather read
// all entries and join them.
func TestPlacesAreLookedUpByTheIndex(t *testing.T) {
	url := newDatabase(t, 0)
	store := openAt(t, url, Options{})
	defer store.Close()
	log := continuo.NewLog(store, continuo.LogOptions{})
	entries := make([]continuo.Entry, 4000)
	for i := range entries {
		entries[i] = continuo.Entry{Role: continuo.User, Content: continuo.Text("text")}
	}
	c, err := log.Import(t.Context(), continuo.Conversation{}, entries)
	must(t, err)
	var ids []string
	var seqs []int64
	for seq := int64(1); seq < c.LastSeq; seq += 10 {
		ids, seqs = append(ids, c.ID), append(seqs, seq)
	}
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	_, err = conn.Exec(t.Context(), "ANALYZE continuo.entries")
	must(t, errors.Join(err, conn.Close(t.Context())))
	for _, generic := range []bool{false, true} {
		plan := statement{entriesAt, []any{ids, seqs, int64(1 << 20)}}.explain(t, url, generic)
		if strings.Contains(plan, "Seq Scan") || !strings.Contains(plan, "Index Scan") {
			t.Errorf("generic %v: %s", generic, plan)
		}
	}
}
