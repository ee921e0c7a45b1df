package sqlite

import (
	"database/sql"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/internal/form"
)

var update = flag.Bool("update", false, "rewrite docs/schema.sql")

// TestTheSchemaIsDocumented compares docs/schema.sql with a new database.
func TestTheSchemaIsDocumented(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{})
	defer store.Close()
	all, err := form.Migrations(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "-- The schema of a Continuo database (SQLite), version %d: what all of store/sqlite/migrations comes to.\n", len(all))
	text.WriteString("-- Made from a new database by the tests of store/sqlite; rewrite it with: go test ./store/sqlite -run Schema -update\n\n")
	fmt.Fprintf(&text, "PRAGMA application_id = %d;\nPRAGMA user_version = %d;\n", applicationID, len(all))
	err = store.read(t.Context(), func(conn *connection) error {
		return conn.query(`SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND tbl_name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow') ORDER BY rowid`, nil, func(rows *sql.Rows) error {
			var statement string
			err := rows.Scan(&statement)
			text.WriteString("\n" + statement + ";\n")
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "..", "docs", "schema.sql")
	if *update {
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != text.String() {
		t.Errorf("docs/schema.sql is not today's schema (%v): run go test ./store/sqlite -run Schema -update", err)
	}
}

// statementsOf returns the SQL of this package by its file: every string constant that
// looks like SQL, and the migrations.
func statementsOf(t *testing.T) map[string][]string {
	t.Helper()
	statements := map[string][]string{}
	all, err := form.Migrations(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range all {
		statements[fmt.Sprint("migration ", i+1)] = []string{text}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					statements[name] = append(statements[name], text)
				}
			}
			return true
		})
	}
	return statements
}

// rewrites finds what changes or removes rows of a table that is only added to.
var rewrites = regexp.MustCompile(`(?is)\b(?:(?:UPDATE(?:\s+OR\s+\w+)?|DELETE\s+FROM|REPLACE\s+INTO|INSERT\s+OR\s+\w+\s+INTO|DROP\s+TABLE(?:\s+IF\s+EXISTS)?|ALTER\s+TABLE)\s+["'\x60\[]?(?:main\.)?(entries|receipts|blobs)\b|ON\s+CONFLICT\b.*\bDO\s+UPDATE)`)

func TestTheLogIsOnlyAddedTo(t *testing.T) {
	allowed := []string{
		"activity.go: ON CONFLICT (conversation_id, day, model) DO UPDATE", // counts of usage, which the log does not have as rows
		"delete.go: DELETE FROM entries", "delete.go: DELETE FROM receipts",
		"open.go: UPDATE blobs", // of no row: it finds out whether the file can be written
		"receipt.go: ON CONFLICT (conversation_id, key) DO UPDATE", // a mark that moves on
		"record_put.go: UPDATE receipts",                           // a copy that is put back
		"redact.go: UPDATE entries",
		"spending.go: ON CONFLICT (name) DO UPDATE",                                              // a position that moves on
		"spending.go: ON CONFLICT (project_id, key_id, day, user_id, provider, model) DO UPDATE", // sums of what was spent
		"spending.go: ON CONFLICT (project_id, user_id) DO UPDATE",                               // how far the feed was pruned
		"vector.go: ON CONFLICT (conversation_id) DO UPDATE",                                     // how far the index of vectors is
	}
	var found []string
	inserts := 0
	for file, texts := range statementsOf(t) {
		for _, text := range texts {
			inserts += strings.Count(text, "INSERT INTO entries")
			for _, match := range rewrites.FindAllString(text, -1) {
				found = append(found, file+": "+strings.Join(strings.Fields(match), " "))
			}
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, allowed) {
		t.Errorf("statements that change what is only added to:\n\t%s\nallowed are:\n\t%s", strings.Join(found, "\n\t"), strings.Join(allowed, "\n\t"))
	}
	if inserts != 1 {
		t.Errorf("the scan sees %d statements that insert entries, want 1: does it still look at the SQL?", inserts)
	}
	for _, forbidden := range []string{"UPDATE entries SET body = ''", "delete from\n entries", "INSERT OR REPLACE INTO entries", "replace into `entries`", "INSERT INTO entries VALUES (1) ON CONFLICT (seq) DO UPDATE SET body = ''"} {
		if !rewrites.MatchString(forbidden) {
			t.Errorf("the scan would miss %q", forbidden)
		}
	}
}

func TestStatementsArePlannedOnce(t *testing.T) {
	limit := regexp.MustCompile(`LIMIT \(*[?:@$]`)
	for file, texts := range statementsOf(t) {
		for _, text := range texts {
			if limit.MatchString(text) {
				t.Errorf("%s: SQLite plans this statement again at each execution; use LIMIT +? instead of LIMIT ?:\n%s", file, text)
			}
		}
	}
}

// TestQueriesReadOnlyWhatTheyReturn looks at the plans of the hot statements: each finds its rows by an
// index that its conversation leads, in the order in which they are wanted.
func TestQueriesReadOnlyWhatTheyReturn(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{})
	defer store.Close()
	queries := map[string]string{
		selectHead:                          "(id=?)",
		conversationByID:                    "(id=?)",
		conversationByKey:                   "conversations_by_key (project_id=? AND key=?)",
		unarchived + newest:                 "conversations_by_change (project_id=? AND kind=?)",
		unarchived + before + newest:        "conversations_by_change (project_id=? AND kind=? AND updated_second<?)",
		ofUser + isOfUser + newest:          "conversations_of_user (project_id=? AND user_id=? AND kind=?)",
		ofUser + isOfUser + before + newest: "conversations_of_user (project_id=? AND user_id=? AND kind=? AND updated_second<?)",
		selectReceipt:                       "(conversation_id=? AND key=?)",
		selectBlob:                          "(hash=?)",
		archived + newest:                   "conversations_archived (project_id=? AND kind=?)",
		archived + before + newest:          "conversations_archived (project_id=? AND kind=? AND updated_second<?)",
		moveHead:                            "(id=?)",
		syncHead:                            "(id=?)",
		selectNumber:                        "COVERING INDEX conversations_by_id (id=?)",
		entriesAbove:                        "(rowid>? AND rowid<?)",
		entryOwners:                         "COVERING INDEX conversations_by_id (id>?)",
		countForks:                          "(ancestor_id=?)",
		deleteEntries:                       "(rowid>? AND rowid<?)",
		deleteReceipts:                      "(conversation_id=?)",
		deleteArchivedReceipts:              "(conversation_id=?)",
		selectAncestor:                      "(ancestor_id=?)",
		selectKept:                          "(ancestor_id=?)",
		selectReleased:                      "(id=?)",
		selectArchived:                      "(id=?)",
		selectEntry:                         "(rowid=?)",
		replaceEntry:                        "(rowid=?)",
		countOwnEntries:                     "(rowid>? AND rowid<?)",
		objectsAbove:                        "(conversation_id=?)",
		deleteObjectsAbove:                  "(conversation_id=?)",
		objectsOf:                           "(conversation_id=?)",
		countNeeds:                          "(conversation_id=? AND object_id=?)",
		deleteDiscard:                       "(name=?)",

		unindexedOfProject: "conversations_unindexed (project_id=?)",
		unindexedOne:       "(id=?)",
		selectIndexed:      "(id=?)",
		redactedEntries:    "entries_redacted (place>? AND place<?)",
		rowTaken:           "(rowid=?)",
		hideOne:            "(conversation_id=? AND seq=?)",
		hideAll:            "(conversation_id=?)",
		selectReach:        "COVERING INDEX sqlite_autoindex_documents_1 (conversation_id=? AND seq>? AND seq<?)",
		selectDocuments:    "(conversation_id=? AND seq>? AND seq<?)",
		anyRemoved:         "(conversation_id=?)",
		removedDocuments:   "(conversation_id=?)",
		oneDocument:        "(conversation_id=? AND seq=?)",

		selectSession:  "(id=?)",
		deleteSession:  "(id=?)",
		deleteSessions: "sessions_by_end (expires_at<?)",

		keyByID:         "(id=?)",
		keysOfProject:   "api_keys_by_age (project_id=?)",
		conversationIDs: "(id>?)",
		blobHashes:      "(hash>?)",
		receiptsAbove:   "(conversation_id=? AND key>?)",
		prefixesAbove:   "prefixes_of_conversation (conversation_id=? AND (seq,hash)>(?,?))",

		prefixesOfHash:        "(hash=?)", // selectPrefixes consists of it
		deletePrefixes:        "prefixes_of_conversation (conversation_id=?)",
		deletePrefixesFrom:    "prefixes_of_conversation (conversation_id=? AND seq>?)",
		deletePrefixesOfForks: "prefixes_of_conversation (conversation_id=?)",
		turnsAbove:            "(conversation_id=? AND id>?)",

		turnByID:             "(conversation_id=? AND id=?)",
		runningTurn:          "turns_running (conversation_id=?)",
		highestFence:         "turns_by_fence (conversation_id=?)",
		newestTurns:          "turns_by_start (conversation_id=?)",
		turnsBefore:          "turns_by_start (conversation_id=? AND (started_at,id)<(?,?))",
		takeTurn:             "(conversation_id=? AND id=?)",
		updateTurn:           "(conversation_id=? AND id=?)",
		endTurn:              "(conversation_id=? AND id=?)",
		countSignal:          "(conversation_id=? AND id=?)",
		selectTurnEvents:     "(conversation_id=? AND turn_id=? AND last_id>?)",
		selectTurnSignals:    "(conversation_id=? AND turn_id=? AND number>?)",
		turnsToPrune:         "turns_to_prune (ended_at<?)",
		deleteTurnEvents:     "(conversation_id=? AND turn_id=?)",
		deleteAllTurnEvents:  "(conversation_id=?)",
		deleteAllTurnSignals: "(conversation_id=?)",
		deleteAllTurns:       "(conversation_id=?)",

		insertRun:      "(id=?)",
		updateRun:      "(conversation_id=? AND id=?)",
		updateRunState: "(conversation_id=? AND id=?)",
		deleteRuns:     "(conversation_id=?)",
		anyRun:         "(conversation_id=?)",
		isLive:         "(id=?)",
		lastEntry:      "(rowid>? AND rowid<?)",
		entriesOfRuns:  "(rowid>? AND rowid<?)",
		runByID:        "runs_by_id (project_id=? AND id=?)",
		runningRuns:    "runs_running (updated_at<?)",
	}
	for index, query := range map[string]continuo.RunQuery{
		"runs_by_start (project_id=?)":                                       {State: "s", WorkflowID: "w"},
		"runs_by_start (project_id=? AND (started_at,id)<(?,?))":             {State: "s", Before: continuo.RunCursor{ID: "r"}},
		"runs_of_conversation (conversation_id=?)":                           {ConversationID: "c"},
		"runs_of_conversation (conversation_id=? AND (started_at,id)<(?,?))": {ConversationID: "c", Before: continuo.RunCursor{ID: "r"}},
	} {
		statement, _ := runQuery(query)
		queries[statement] = index
	}
	queries[sumSizes] = "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"
	for _, backward := range []bool{false, true} {
		for index, query := range map[string]continuo.EntryQuery{
			"INTEGER PRIMARY KEY (rowid>? AND rowid<?)":                                       {},
			"entries_of_users (place>? AND place<?)":                                          {UsersOnly: true},
			"entries_by_output_ref (conversation=? AND output_ref=? AND place>? AND place<?)": {OutputRef: "r"},
		} {
			query.Backward = backward
			statement, _ := entryQuery("c", query, 1)
			queries[statement] = index
		}
	}
	for statement, want := range queries {
		plan := strings.ReplaceAll(planOf(t, store, statement), "SCAN CONSTANT ROW", "")    // what surrounds an EXISTS
		plan = strings.ReplaceAll(plan, "USE TEMP B-TREE FOR LAST 2 TERMS OF ORDER BY", "") // the conversations of one second
		if !strings.Contains(plan, "SEARCH") || !strings.Contains(plan, want) || strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "SCAN") {
			t.Errorf("%s\n\thas the plan\t%s\n\twant\t\t%s", strings.TrimSpace(statement), plan, want)
		}
	}
	// The index of words gives places in their order, and each is looked up.
	if plan := planOf(t, store, selectHits); !strings.HasPrefix(plan, "SCAN words VIRTUAL TABLE INDEX") || !strings.HasSuffix(plan, "; SEARCH documents USING COVERING INDEX documents_by_place (place=? AND conversation_id>?)") {
		t.Errorf("places have the plan %s", plan)
	}
	if plan := planOf(t, store, selectHitPage); !strings.Contains(plan, "SEARCH documents USING COVERING INDEX documents_by_place (place=?)") || strings.Contains(plan, "TEMP B-TREE") {
		t.Errorf("a page of places has the plan %s", plan)
	}
	// All that run are wanted, and the index has no others.
	if plan := planOf(t, store, runningTurns); plan != "SCAN turns USING INDEX turns_by_lease" {
		t.Errorf("running turns have the plan %s", plan)
	}
}

func planOf(t *testing.T, store *Store, statement string) string {
	t.Helper()
	args := make([]any, strings.Count(statement, "?"))
	var steps []string
	err := store.read(t.Context(), func(conn *connection) error {
		return conn.query("EXPLAIN QUERY PLAN "+statement, args, func(rows *sql.Rows) error {
			var id, parent, unused int
			var step string
			err := rows.Scan(&id, &parent, &unused, &step)
			steps = append(steps, step)
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(steps, "; ")
}
