// Package storetest is the one suite that every store engine passes, and a store in memory that it
// compares them with. An engine's test is one call of Run; to write a new engine, start there.
//
// What the suite asks for beyond the comments of continuo.Store: entries of an unknown conversation are
// an empty list; a Limit below 1 is continuo.ErrInvalid; times come back in UTC with their nanoseconds;
// a closed store says continuo.ErrClosed; Create fails with continuo.ErrNotFound when a conversation of
// the Lineage is gone; and a receipt whose key is taken refuses its whole batch. Of turns: Turn finds void
// ones too; BeginTurn says continuo.ErrExists of an id that is taken also while another turn runs; a lease
// of no time or less has ended when it begins; events of an unknown turn are an empty list; and an update
// whose events do not follow those before, whose data are no JSON objects, or whose State ends no turn is
// continuo.ErrInvalid.
package storetest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Opener opens a store on one database: the first time on an empty one, after a Close to see what is
// durable, and beside a store that is still open, as another process would.
type Opener func(t *testing.T) continuo.Store

// Run runs the suite. newDatabase makes an empty database and is called once or more for each test; it
// cleans up with t.Cleanup. The suite closes the stores.
func Run(t *testing.T, newDatabase func(t *testing.T) Opener) {
	for _, test := range append(logTests(), turnTests()...) {
		t.Run(test.name, func(t *testing.T) { test.run(t, newDatabase(t)) })
	}
}

type test struct {
	name string
	run  func(*testing.T, Opener)
}

// logTests is the part of the suite that is about conversations, entries, outputs and blobs, and the random
// operations on everything.
func logTests() []test {
	return []test{
		{"a conversation is found as it was created", testCreate},
		{"ids and keys are taken once", testExists},
		{"what is not there is not found", testNotFound},
		{"conversations are listed page by page", testList},
		{"a change leaves the rest alone", testUpdate},
		{"a deleted conversation is gone", testDelete},
		{"entries are read exactly as asked", testEntries},
		{"users and outputs are found", testNarrowQueries},
		{"an append that lost the race is refused", testConflict},
		{"a batch is appended whole or not at all", testAllOrNothing},
		{"content comes back as it came", testFidelity},
		{"receipts are kept", testReceipts},
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

// open opens a store and closes it with the test.
func open(t *testing.T, opener Opener) continuo.Store {
	t.Helper()
	store := opener(t)
	t.Cleanup(func() { closeStore(t, store) })
	return store
}

func closeStore(t *testing.T, store continuo.Store) {
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

// day is when everything in the suite happens; nanoseconds must survive.
var day = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

func at(second int) time.Time { return day.Add(time.Duration(second) * time.Second) }

func conversation(id string) continuo.Conversation {
	return continuo.Conversation{
		ID: id, ProjectID: "p", Title: "title of " + id, ActiveMode: continuo.ModeChat, CreatedAt: day, UpdatedAt: day,
	}
}

// entry makes a valid user, assistant or tool entry, in turn.
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
func create(t *testing.T, store continuo.Store, id string, last int64) continuo.Conversation {
	t.Helper()
	c := conversation(id)
	c.LastSeq = last
	noError(t, store.Create(t.Context(), c, entries(id, 1, last)))
	return c
}

func appendEntries(t *testing.T, store continuo.Store, id string, first, last int64) {
	t.Helper()
	noError(t, store.Append(t.Context(), continuo.Batch{ConversationID: id, After: first - 1, Entries: entries(id, first, last)}))
}

func read(t *testing.T, store continuo.Store, id string, query continuo.EntryQuery) []continuo.Entry {
	t.Helper()
	found, err := store.Entries(t.Context(), id, query)
	noError(t, err)
	return found
}

func readAll(t *testing.T, store continuo.Store, id string) []continuo.Entry {
	t.Helper()
	return read(t, store, id, continuo.EntryQuery{From: 1, To: 1 << 40, Limit: 1 << 20})
}

// same compares what came back with what was given, down to nil and absent.
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
