// Package storetest is the test suite that every store engine passes, and a reference store in memory that it
// compares them with. An engine's test is one call of Run; to write a new engine, start there.
//
// The suite's requirements beyond the comments of maintenance.Store: entries of an unknown conversation are an
// empty list; a Limit below 1 is continuo.ErrInvalid; times come back in UTC with their nanoseconds; a closed
// store returns continuo.ErrClosed; Create fails with continuo.ErrNotFound when a conversation of the Lineage
// no longer exists; and a receipt whose key is taken refuses its whole batch. Of turns: Turn finds void ones
// too; a batch that begins a turn returns continuo.ErrExists for an id in use, even while another turn runs; a lease of no
// time or less has ended when it begins; events of an unknown turn are an empty list; and an update whose
// events do not follow those before, whose data are no JSON objects, or whose State ends no turn is
// continuo.ErrInvalid.
//
// Of texts: an id, a key, a title, metadata, a name or a receipt that is not UTF-8 or has a NUL character is
// continuo.ErrInvalid; an entry's content may have any character.
//
// Of redactions: the turns are those that the entries named until then; entries of a deleted conversation can
// be redacted as long as forks begin with them; LastSeq and UpdatedAt stay.
//
// Of objects: each name is listed once, also when it is discarded again; when the last of a conversation is
// removed, its name with the slash is listed, whether it had objects or not, and names of single ones that
// are listed already may stay. PutRecords takes a conversation's name, and the objects that its entries need,
// off the list.
//
// Of archives: Entries answers what it can from the entries that forks begin with, which are the first; it is
// continuo.ErrArchived when any other entry would have to be read, even if a narrow query would not have
// matched it. Entries that the last fork needed are removed with it. An operation on an archived conversation
// fails with ErrArchived rather than with a conflict. The index is empty afterwards, and Index is
// ErrArchived. Objects that its entries need are discarded when it is deleted, as if the entries still
// existed. While PutRecords brings entries back, in order, Entries may answer from those that are there
// already.
//
// Of records: a page ends with the record with which it reaches 4 MiB, or soon after. The first call of
// PutRecords for a conversation that does not exist must contain its own record, otherwise it is
// continuo.ErrNotFound, as it is when a conversation that it begins with does not exist. A record of another
// conversation or an empty one is ErrInvalid, and a key or fencing token in use or a second running turn
// ErrExists: then nothing is written. LastEvent is that of the events. A conversation's own record empties
// its index; other records do not change it.
//
// Of runs: Append applies Batch.Runs, and never reads the entries for it; PutRecords and Restore derive runs
// from the entries that exist then, in the order of their seqs. An existing run that begins again stays
// unchanged; the changes after it count. EndedAt is when the first of the changes came that ended it; those
// after that move its UpdatedAt only. Create begins no runs. A run's id or workflow that is not UTF-8 or has
// a NUL character is ErrInvalid.
//
// Of the index: a batch whose Through is before After or behind LastSeq, or whose documents are not between
// them, each once, is ErrInvalid; a document without terms is not added. A title that was never indexed is
// missing, also an empty one. The document of an entry that was redacted meanwhile is left out: the indexer
// may have read it before. With a ConversationID, a query's ProjectID is ignored by Hits, and applied by
// Unindexed. Documents that were added within a millisecond of each other may be found in any order, but
// always in the same. Terms are what package fulltext makes: a term that is empty, longer than 256 bytes, not
// UTF-8, or has ASCII characters other than small letters and digits is ErrInvalid, in a document and in a
// query.
package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// Opener opens a store on one database: first on an empty one, later after a Close to check durability, and
// beside a store that is still open, as another process would.
type Opener func(t *testing.T) maintenance.Store

// Run runs the suite. newDatabase makes an empty database and is called once or more for each test; it
// cleans up with t.Cleanup. The suite closes the stores.
func Run(t *testing.T, newDatabase func(t *testing.T) Opener) {
	for _, test := range slices.Concat(logTests(), turnTests(), runTests(), careTests(), indexTests()) {
		t.Run(test.name, func(t *testing.T) { test.run(t, newDatabase(t)) })
	}
}

type test struct {
	name string
	run  func(*testing.T, Opener)
}

// logTests are the tests of conversations, entries, outputs and blobs, and of random operations on
// everything.
func logTests() []test {
	return []test{
		{"a conversation is found as it was created", testCreate},
		{"ids and keys are taken once", testExists},
		{"what is not there is not found", testNotFound},
		{"conversations are listed page by page", testList},
		{"conversations are listed by creation, tokens and cost", testSortedList},
		{"a change leaves the rest alone", testUpdate},
		{"a key is set, changed and removed", testKeyChange},
		{"a conversation is a user's", testUsers},
		{"conversations are listed by user and label", testFilteredLists},
		{"runs and places are found by user and label", testFilteredFinds},
		{"a deleted conversation is gone", testDelete},
		{"entries are read exactly as asked", testEntries},
		{"users and outputs are found", testNarrowQueries},
		{"a page of entries is bounded by bytes", testEntryBytes},
		{"single entries of several conversations are read", testEntriesAt},
		{"sizes of entries are added up", testEntrySizes},
		{"an append that lost the race is refused", testConflict},
		{"a batch is appended whole or not at all", testAllOrNothing},
		{"content comes back as it came", testFidelity},
		{"receipts are kept", testReceipts},
		{"a receipt only advances", testAdvanceReceipt},
		{"conversations are found by their beginnings", testPrefixes},
		{"prefixes go with what they say", testPrefixesRemoved},
		{"blobs are kept", testBlobs},
		{"forks share and outlive their parents", testForks},
		{"a fork of what is gone is refused", testForkOfDeleted},
		{"what was acknowledged is durable", testDurable},
		{"a closed store says so", testClosed},
		{"64 writers leave no gap in one conversation", testOneConversation},
		{"64 writers leave no gap in many conversations", testManyConversations},
		{"64 changes at once do not harm each other", testMixedGroup},
		{"two stores on one database leave no gap", testTwoStores},
		{"a stale seq is refused", testStaleSeq},
		{"a key appends once", testKeys},
		{"a log reads through forks of forks", testLogForks},
		{"any operations do what the reference does", testModel},
	}
}

// careTests are the tests of later operations on conversations: redactions, copies, archives, and removals in
// other stores; and of keys and leases.
func careTests() []test {
	return []test{
		{"a sound store passes its own check", testIntegrity},
		{"a damaged entry keeps its mark", testDamaged},
		{"a redacted entry keeps its place", testRedact},
		{"what may not be redacted is not", testRedactRefused},
		{"a revision stays as long as stored entries do", testRevisions},
		{"a redaction erases the events of its turn", testRedactTurns},
		{"objects are discarded with the last entry that needs them", testDiscards},
		{"an archived conversation is left alone and comes back whole", testArchive},
		{"what may not be archived is not", testArchiveRefused},
		{"an archived conversation keeps what forks begin with", testArchiveForks},
		{"an archived conversation can be deleted", testArchiveDeleted},
		{"what was redacted meanwhile is not archived", testArchiveOfRedacted},
		{"records written elsewhere are the same records", testRecords},
		{"records are read page by page", testRecordPages},
		{"large records are read and written", testLargeRecords},
		{"records that do not fit are refused", testPutRecordsRefused},
		{"records that come back need their objects", testRecordsAndDiscards},
		{"the index of runs is rebuilt from the entries", testRemadeRuns},
		{"projects are kept", testProjects},
		{"keys are kept", testAPIKeys},
		{"sessions are kept", testSessions},
		{"usage is counted", testUsage},
		{"what was spent is added up", testSpending},
		{"what was spent stays", testSpendingStays},
		{"turns that ended are listed", testFinishedTurns},
		{"positions in the feed are kept", testFeedPositions},
		{"old turns leave the feed, and readers behind them are told", testPrunedFeed},
		{"a reader misses no turn that ends", testFinishedAtOnce},
		{"the audit log is kept, found and pruned", testAudit},
		{"a reader of the audit log misses nothing", testAuditAtOnce},
		{"conversations are listed by activity", testActivities},
		{"a lease has one owner at a time", testNamedLeases},
		{"of many at once one gets a lease", testOneHoldsALease},
		{"texts and times come back as they came, or not at all", testTexts},
	}
}

// indexTests are the tests of the index.
func indexTests() []test {
	return []test{
		{"documents are found, the newest first", testHits},
		{"documents of one moment are all found", testManyHits},
		{"the documents of each term are found by themselves", testAnyHits},
		{"the documents of a term are found among those of other conversations", testAnyHitsAmongOthers},
		{"documents are read with their terms", testDocuments},
		{"vectors are kept with the index", testVectors},
		{"the index says what is missing", testUnindexed},
		{"terms are kept as they are, or refused", testTerms},
		{"places of deleted, redacted and archived entries are gone", testHitsGone},
		{"of many that index one is first", testIndexRaces},
	}
}

// open opens a store and closes it with the test.
func open(t *testing.T, opener Opener) maintenance.Store {
	t.Helper()
	store := opener(t)
	t.Cleanup(func() { closeStore(t, store) })
	return store
}

func closeStore(t *testing.T, store maintenance.Store) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// day is the date of everything in the suite; nanoseconds must be kept.
var day = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

func at(second int) time.Time { return day.Add(time.Duration(second) * time.Second) }

func conversation(id string) continuo.Conversation {
	return continuo.Conversation{
		ID: id, ProjectID: "p", Title: "title of " + id, ActiveMode: continuo.ModeChat, CreatedAt: day, UpdatedAt: day,
	}
}

// entry returns a valid user, assistant or tool entry, alternating by seq.
func entry(conversationID string, seq int64) continuo.Entry {
	e := continuo.Entry{
		ID: fmt.Sprintf("ent_%s_%d", conversationID, seq), ConversationID: conversationID, Seq: seq, CreatedAt: at(int(seq)),
		Content: continuo.Text(fmt.Sprintf("entry %d of %s", seq, conversationID)), Chars: 12, Tokens: 3, Tokenizer: "test",
	}
	switch seq % 3 {
	case 1:
		e.Role = continuo.User
	case 2:
		e.Role, e.ToolCalls = continuo.Assistant, []continuo.ToolCall{continuo.FunctionCall(fmt.Sprintf("call_%d", seq), "f", `{"a": 1}`)}
	default:
		e.Role, e.ToolCallID, e.ToolName = continuo.Tool, fmt.Sprintf("call_%d", seq-1), "f"
		e.OutputRef = outputRef(seq)
	}
	return e
}

func outputRef(seq int64) string {
	return fmt.Sprintf("@state/logs/tool-results/call_%d.json", seq-1)
}

// entries makes the entries from first to last.
func entries(conversationID string, first, last int64) []continuo.Entry {
	var made []continuo.Entry
	for seq := first; seq <= last; seq++ {
		made = append(made, entry(conversationID, seq))
	}
	return made
}

// create adds a conversation with entries 1 to last.
func create(t *testing.T, store maintenance.Store, id string, last int64) continuo.Conversation {
	t.Helper()
	c := conversation(id)
	c.LastSeq = last
	noError(t, store.Create(t.Context(), c, entries(id, 1, last)))
	return c
}

func appendEntries(t *testing.T, store maintenance.Store, id string, first, last int64) {
	t.Helper()
	noError(t, store.Append(t.Context(), continuo.Batch{ConversationID: id, After: first - 1, Entries: entries(id, first, last)}))
}

func read(t *testing.T, store maintenance.Store, id string, query continuo.EntryQuery) []continuo.Entry {
	t.Helper()
	found, err := store.Entries(t.Context(), id, query)
	noError(t, err)
	return found
}

func readAll(t *testing.T, store maintenance.Store, id string) []continuo.Entry {
	t.Helper()
	return read(t, store, id, continuo.EntryQuery{From: 1, To: 1 << 40, Limit: 1 << 20})
}

// same compares a result with the original, including nil and absent values.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got\n\t%+v\nwant\n\t%+v", what, got, want)
	}
}

func sameEntries(t *testing.T, what string, got, want []continuo.Entry) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %d entries, want %d", what, len(got), len(want))
		return
	}
	for i := range want {
		same(t, fmt.Sprintf("%s: entry %d", what, i), got[i], want[i])
	}
}

// withObject makes an entry need an object.
func withObject(e continuo.Entry, id string) continuo.Entry {
	e.Output = &continuo.Output{ID: id, Bytes: 6, Chars: 6, Lines: 1, SHA256: "s", Head: 1}
	return e
}
