package engine_test

import (
	"cmp"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/memory"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/window"
	"github.com/jackc/pgx/v5"
)

// noted is a model that repeats nothing of what it is sent.
type noted struct{}

func (noted) Info() model.Info {
	return model.Info{Name: "noted", Provider: "test", Protocol: model.ProtocolOpenAIChat}
}

func (noted) Stream(context.Context, []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) { yield(model.Delta{Text: "Noted."}, nil) }
}

// removals is an engine under random operations, with what must not be in its store any more.
type removals struct {
	*recalling
	random *rand.Rand
	dump   func(withIndex bool) string      // all rows of all tables
	saidIn map[string]continuo.Conversation // words by the conversation that they were written in
	seqs   map[string]int64
	gone   []string
	// deleted are the words of deleted conversations.
	deleted []string
	// known are the words of facts, by the user whose memory has them.
	known    map[string]string
	open     []continuo.Conversation
	objects  continuo.ObjectStore
	archives maintenance.Archivist
	next     int
	// recalled is how many turns recalled something of another conversation, or a fact.
	recalled int
	// shown counts the requests with a profile.
	shown int
	// exports are memories as they were, by user; derived and imported count the patterns and the facts that were added.
	exports           map[string][][]byte
	derived, imported int
}

// TestNothingThatWasRemovedIsInAnyTable says, forks, redacts, deletes, gives away, archives, remembers, derives, exports, imports,
// forgets one fact and forgets all at random, with recall from all conversations of the user. What was removed is in no row of any
// table, in no byte of SQLite's file and in no archive, no block has words of another user, and every request of the past is the
// one that was sent, unless something of it was removed.
func TestNothingThatWasRemovedIsInAnyTable(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "log.db")
		store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		w := testRemovals(t, store, store, func(withIndex bool) string { return dumpSQLite(t, path, withIndex) })
		w.lacks(w.fileOf(path, store), w.gone)
	})
	t.Run("postgres", func(t *testing.T) {
		url := pgtest.Start(t, pgtest.Options{}).Database(t)
		store, err := postgres.Open(t.Context(), url, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		testRemovals(t, store, store, func(bool) string { return dumpPostgres(t, url) })
	})
}

func testRemovals(t *testing.T, store maintenance.Store, words index.Store, dump func(withIndex bool) string) *removals {
	t.Helper()
	objects := storetest.NewObjects()
	r := newScopedWith(t, store, continuo.LogOptions{Objects: objects, Archives: maintenance.Archivist{Store: store, Objects: objects}}, words, lookup.User, 1_000)
	r.Catalog.Options.Models["demo"] = engine.Upstream{Model: noted{}}
	w := &removals{recalling: r, random: rand.New(rand.NewPCG(7, 3)), dump: dump, saidIn: map[string]continuo.Conversation{}, seqs: map[string]int64{}, known: map[string]string{}, objects: objects, exports: map[string][][]byte{}}
	w.archives = maintenance.Archivist{Store: store, Objects: objects}
	operations := []func(){w.tell, w.tell, w.tell, w.tell, w.tell, w.tell, w.tell, w.tell, w.redact, w.fork, w.giveAway, w.archive, w.archive, w.delete, w.remember, w.remember, w.remember, w.forget, w.forgetAll, w.derive, w.export, w.export, w.importExport}
	count := 150
	if os.Getenv("CONTINUO_LONG") != "" {
		count = 400
	}
	for range count {
		operations[w.random.IntN(len(operations))]()
	}
	for _, c := range w.open {
		w.restore(c)
		for _, block := range w.blocks(w.now(c)) {
			w.checkUser(c, &block)
		}
		for _, body := range w.replayed(w.now(c)) {
			w.lacks(string(body), w.gone)
			w.lacks(string(body), w.deleted)
		}
		w.checkProfiles(w.now(c))
	}
	if w.recalled < 3 || len(w.gone) < 5 || w.shown < 3 || w.derived == 0 || w.imported == 0 {
		t.Errorf("only %d recalls, %d removals, %d requests with profiles, %d patterns and %d imported facts", w.recalled, len(w.gone), w.shown, w.derived, w.imported)
	}
	return w
}

// fileOf reads a database that is closed.
func (w *removals) fileOf(path string, store maintenance.Store) string {
	w.t.Helper()
	w.check(w.Close(w.t.Context()))
	w.check(store.Close())
	data, err := os.ReadFile(path)
	w.check(err)
	if !strings.Contains(string(data), "hilltop") {
		w.t.Error("the file has nothing of what was said: this shows nothing")
	}
	return string(data)
}

func (w *removals) derive() {
	added, err := w.Memories.Derive(w.t.Context(), continuo.Scope{ProjectID: "default"}, memories.Owner{UserID: w.user()})
	w.check(err)
	w.derived += len(added)
}

func (w *removals) export() {
	user := w.user()
	export, err := w.Memories.Export(w.t.Context(), continuo.Scope{ProjectID: "default"}, memories.Owner{UserID: user})
	w.check(err)
	data, err := json.Marshal(export)
	w.check(err)
	w.exports[user] = append(w.exports[user], data)
}

// importExport takes an earlier state of a memory in, which has what was removed since, or a fact that is known elsewhere.
func (w *removals) importExport() {
	user := w.user()
	var data []byte
	if known := w.exports[user]; len(known) > 0 && w.random.IntN(2) == 0 {
		data = known[w.random.IntN(len(known))]
	} else {
		data = w.laptop(user)
	}
	file, err := memories.ReadFile(data)
	w.check(err)
	done, err := w.Memories.Import(w.t.Context(), continuo.Scope{ProjectID: "default"}, memories.Owner{UserID: user}, file, false)
	w.check(err)
	w.imported += done.Added
	w.holds()
}

// laptop is the export of another store's memory, with one fact.
func (w *removals) laptop(user string) []byte {
	word := w.word()
	text := fmt.Sprintf("I keep %s at place%d by riverside%d.", word, w.next, w.next)
	data, err := json.Marshal(memories.Export{
		ExportHead: memories.ExportHead{Continuo: "memory", Version: 1, ProjectID: "laptop", UserID: user},
		Facts: []memories.Fact{{
			ID: 1, Text: text, Kind: continuo.FactInstruction, ValidFrom: w.Log.Now(), Confidence: 1, By: memory.ByPerson,
			Sources: []memories.Source{{ConversationID: "conv_laptop", Seq: int64(w.next), Quote: text}},
		}},
	})
	w.check(err)
	w.known[word] = user
	return data
}

func (w *removals) now(c continuo.Conversation) continuo.Conversation {
	found, err := w.Log.Conversation(w.t.Context(), c.ID)
	w.check(err)
	return found
}

func (w *removals) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *removals) user() string { return []string{"anna", "bo"}[w.random.IntN(2)] }

// word is a new word. It is so long that no id has its bytes or their hexadecimal digits by chance.
func (w *removals) word() string {
	w.next++
	return fmt.Sprintf("zqword%dxqz", w.next)
}

// tell runs a turn with a new word, which asks about an earlier place.
func (w *removals) tell() {
	session, user := "", w.user()
	if len(w.open) > 0 && w.random.IntN(3) > 0 {
		c := w.restore(w.open[w.random.IntN(len(w.open))])
		session, user = c.ID, c.UserID
	}
	if w.random.IntN(2) == 0 {
		w.indexAll()
	}
	word := w.word()
	older := 1 + w.random.IntN(w.next)
	about := fmt.Sprintf("I live in %s at place%d by riverside%d and hilltop%d. What of place%d, riverside%d and hilltop%d?", word, w.next, w.next, w.next, older, older, older)
	if session == "" {
		session = fmt.Sprint("session", w.next)
	}
	if w.random.IntN(6) == 0 {
		about += " My zither needs " + word + " strings." // a topic
	}
	chat, err := w.Turns.Chat(w.t.Context(), engine.ChatRequest{Scope: continuo.Scope{ProjectID: "default", UserID: user}, SessionID: session, Message: continuo.Text(about)})
	w.check(err)
	lastOf(w.t, chat)
	c := w.now(chat.Conversation)
	if blocks := w.blocks(c); len(blocks) > 0 && blocks[len(blocks)-1].Seq == c.LastSeq-2 && blocks[len(blocks)-1].Recall.UserID != "" {
		w.recalled++
	}
	if !slices.ContainsFunc(w.open, func(known continuo.Conversation) bool { return known.ID == c.ID }) {
		w.open = append(w.open, c)
	}
	w.saidIn[word], w.seqs[word] = c, c.LastSeq-1
	w.checkProfile(c, c.LastSeq)
}

func (w *removals) one() (continuo.Conversation, bool) {
	if len(w.open) == 0 {
		return continuo.Conversation{}, false
	}
	c := w.now(w.open[w.random.IntN(len(w.open))])
	return c, c.LastSeq > 0
}

func (w *removals) redact() {
	c, ok := w.one()
	if !ok {
		return
	}
	seq := 1 + w.random.Int64N(c.LastSeq)
	redacted, err := w.Log.Redact(w.t.Context(), c, seq, seq, "")
	w.check(err)
	for _, entry := range redacted {
		w.remove(entry.ConversationID, entry.Seq)
	}
	w.holds()
}

// remove notes the words of an entry as gone.
func (w *removals) remove(conversation string, seq int64) {
	for word, c := range w.saidIn {
		if c.ID == conversation && w.seqs[word] == seq {
			delete(w.saidIn, word)
			w.gone = append(w.gone, word)
		}
	}
}

func (w *removals) fork() {
	if c, ok := w.one(); ok {
		w.restore(c)
		fork, err := w.Log.Fork(w.t.Context(), c.ID, 0, continuo.Conversation{UserID: w.user(), Key: fmt.Sprint("fork", len(w.open), w.next, len(w.gone))})
		w.check(err)
		w.open = append(w.open, fork)
	}
}

func (w *removals) giveAway() {
	if c, ok := w.one(); ok {
		user := w.user()
		_, err := w.Log.Update(w.t.Context(), c.ID, continuo.ConversationChange{UserID: &user})
		w.check(err)
	}
}

// delete deletes a conversation; forks keep its entries.
func (w *removals) delete() {
	c, ok := w.one()
	if !ok {
		return
	}
	hasForks := slices.ContainsFunc(w.open, func(other continuo.Conversation) bool {
		return slices.ContainsFunc(w.now(other).Lineage, func(s continuo.Segment) bool { return s.ConversationID == c.ID })
	})
	w.check(w.Log.Delete(w.t.Context(), c.ID))
	w.open = slices.DeleteFunc(w.open, func(other continuo.Conversation) bool { return other.ID == c.ID })
	for word, in := range w.saidIn {
		if in.ID == c.ID {
			delete(w.saidIn, word)
			if !hasForks {
				w.deleted = append(w.deleted, word)
			}
		}
	}
	w.holds()
}

func (w *removals) remember() {
	user, word := w.user(), w.word()
	_, err := w.Memories.Remember(w.t.Context(), continuo.Scope{ProjectID: "default"}, memories.Statement{
		Owner: memories.Owner{UserID: user}, Text: fmt.Sprintf("I keep %s at place%d by riverside%d.", word, w.next, w.next),
		Kind: []continuo.FactKind{continuo.FactInstruction, continuo.FactOther}[w.random.IntN(2)],
	})
	w.check(err)
	w.known[word] = user
}

// archive archives a conversation; a later removal finds it so.
func (w *removals) archive() {
	if c, ok := w.one(); ok && c.ArchivedAt.IsZero() {
		_, err := w.archives.Archive(w.t.Context(), c.ID)
		w.check(err)
	}
}

// restore restores a conversation.
func (w *removals) restore(c continuo.Conversation) continuo.Conversation {
	restored, err := w.archives.Restore(w.t.Context(), c.ID)
	w.check(err)
	return restored
}

// archiveText reads the archive of an archived conversation.
func archiveText(t *testing.T, objects continuo.ObjectStore, c continuo.Conversation) string {
	t.Helper()
	object, err := objects.ReadObject(t.Context(), continuo.ObjectName(c.ID, maintenance.ArchiveObject(c.ArchivedAt)), 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer object.Close()
	packed, err := gzip.NewReader(object)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// forgetAll removes everything that is known of a user, and sometimes what it was taken from.
func (w *removals) forgetAll() {
	scope, owner := continuo.Scope{ProjectID: "default"}, memories.Owner{UserID: w.user()}
	facts, err := w.Memories.List(w.t.Context(), scope, memories.Query{Owner: owner, All: true})
	w.check(err)
	sources := w.random.IntN(2) == 0
	if err := w.Memories.ForgetAll(w.t.Context(), scope, owner, sources); !errors.Is(err, continuo.ErrNotFound) {
		w.check(err)
	}
	for _, fact := range facts {
		for _, source := range fact.Sources {
			if sources {
				w.remove(source.ConversationID, source.Seq)
			}
		}
	}
	delete(w.exports, owner.UserID) // an import would add what they have
	for word, user := range w.known {
		if user == owner.UserID {
			delete(w.known, word)
			w.gone = append(w.gone, word)
		}
	}
	left, err := w.Memories.Export(w.t.Context(), scope, owner)
	w.check(err)
	if len(left.Facts) > 0 || left.Profile != "" {
		w.t.Fatalf("after everything was forgotten, %+v is known", left)
	}
	w.holds()
}

func (w *removals) forget() {
	scope, owner := continuo.Scope{ProjectID: "default"}, memories.Owner{UserID: w.user()}
	facts, err := w.Memories.List(w.t.Context(), scope, memories.Query{Owner: owner, All: true})
	w.check(err)
	if len(facts) == 0 {
		return
	}
	fact := facts[w.random.IntN(len(facts))]
	w.check(w.Memories.Forget(w.t.Context(), scope, owner, fact.ID, true))
	for _, source := range fact.Sources {
		w.remove(source.ConversationID, source.Seq)
	}
	if fact.By == memory.ByPerson {
		word := strings.Fields(fact.Text)[2]
		delete(w.known, word)
		w.gone = append(w.gone, word)
	}
	w.holds()
}

// holds looks for what was removed in all tables, and in the archives. What the background was appending while it was removed is
// removed by the same goroutine right after, so the tables are read again.
func (w *removals) holds() {
	w.t.Helper()
	found, until := w.inTables(), time.Now().Add(5*time.Minute)
	for found != "" && time.Now().Before(until) {
		found = w.inTables()
	}
	if found != "" {
		w.t.Fatalf("removed, and still there: %s", found)
	}
	for _, c := range w.open {
		if c = w.now(c); !c.ArchivedAt.IsZero() {
			text := archiveText(w.t, w.objects, c)
			w.lacks(text, w.gone)
			w.lacks(text, w.deleted)
		}
	}
}

// inTables finds what was removed in the tables; "" for nothing.
func (w *removals) inTables() string {
	return cmp.Or(first(w.dump(true), w.gone), first(w.dump(false), w.deleted))
}

func (w *removals) lacks(rows string, words []string) {
	w.t.Helper()
	if found := first(rows, words); found != "" {
		w.t.Fatalf("removed, and still there: %s", found)
	}
}

// first is the first of some words that rows have, and what is around it; "" for none.
func first(rows string, words []string) string {
	for _, word := range words {
		at := strings.Index(rows, word)
		if at < 0 {
			at = strings.Index(rows, hex.EncodeToString([]byte(word)))
		}
		if at >= 0 {
			return fmt.Sprintf("%s: …%q…", word, rows[max(0, at-600):min(len(rows), at+200)])
		}
	}
	return ""
}

// checkUser checks that a block of a conversation has words of its user, or of what it was forked from, only.
func (w *removals) checkUser(c continuo.Conversation, block *continuo.Entry) {
	w.t.Helper()
	c = w.now(c)
	text := block.Content.String()
	for word, in := range w.saidIn {
		own := in.ID == c.ID || slices.ContainsFunc(c.Lineage, func(s continuo.Segment) bool { return s.ConversationID == in.ID })
		if !own && w.now(in).UserID != c.UserID && strings.Contains(text, word+" ") {
			w.t.Errorf("a conversation of %s shows %s of %s: %s", c.UserID, word, w.now(in).UserID, text)
		}
	}
}

// checkProfiles checks that the profiles in the requests of a conversation, and in its next one, have words of its user only.
func (w *removals) checkProfiles(c continuo.Conversation) {
	w.t.Helper()
	for _, entry := range w.entries(c) {
		if entry.Round != nil {
			w.checkProfile(c, entry.Seq)
		}
	}
	next, err := w.Contexts.Build(w.t.Context(), c, engine.ContextRequest{Query: "Where do I live?"})
	w.check(err)
	w.checkProfileOf(c, next.Plan)
}

// checkProfile checks the profile in the request of an answer.
func (w *removals) checkProfile(c continuo.Conversation, seq int64) {
	w.t.Helper()
	request, err := w.Contexts.Request(w.t.Context(), c, seq)
	w.check(err)
	w.checkProfileOf(c, request.Plan)
}

func (w *removals) checkProfileOf(c continuo.Conversation, plan *window.Plan) {
	w.t.Helper()
	if plan.Profile == nil || plan.Profile.Entry == nil {
		return
	}
	w.shown++
	text := plan.Profile.Entry.Content.String()
	w.lacks(text, w.gone)
	w.lacks(text, w.deleted)
	for word, in := range w.saidIn {
		if strings.Contains(text, word+" ") && w.now(in).UserID != c.UserID {
			w.t.Errorf("the profile of %s has %s: %s", c.UserID, word, text)
		}
	}
	for word, user := range w.known {
		if user != c.UserID && strings.Contains(text, word+" ") {
			w.t.Errorf("the profile of %s has %s of %s: %s", c.UserID, word, user, text)
		}
	}
}

// dumpSQLite reads all tables, or those besides the index: it erases what was deleted only moments later.
func dumpSQLite(t *testing.T, path string, withIndex bool) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var names []string
	tables, err := db.Query(`SELECT name FROM sqlite_master WHERE type = 'table'`)
	if err != nil {
		t.Fatal(err)
	}
	for tables.Next() {
		var name string
		_ = tables.Scan(&name)
		names = append(names, name)
	}
	if err := errors.Join(tables.Err(), tables.Close()); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		query := `SELECT * FROM "` + name + `"`
		if !withIndex && (name == "documents" || strings.Contains(name, "words")) {
			continue
		}
		rows, err := db.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		columns, _ := rows.Columns()
		for rows.Next() {
			values := make([]sql.RawBytes, len(columns))
			into := make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			all.WriteString("\n" + name + ": ")
			for _, value := range values {
				all.Write(value)
				all.WriteByte(' ')
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

func dumpPostgres(t *testing.T, url string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), `SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		rows, err := conn.Query(t.Context(), `SELECT t::text FROM `+name+` t`)
		if err != nil {
			t.Fatal(err)
		}
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString("\n" + name + ": " + strings.Join(texts, "\n"))
	}
	return all.String()
}
