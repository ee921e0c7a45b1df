package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/interchange"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/token"
	"github.com/jackc/pgx/v5/pgxpool"
)

// BenchmarkBytes says what conversations take in PostgreSQL: entries of those at CONTINUO_DATA, each appended on its
// own, their index of words, and streamed turns of the program. The figures of docs/scale.md are made from it.
func BenchmarkBytes(b *testing.B) {
	server := pgtest.Start(b, pgtest.Options{Durable: true, Settings: map[string]string{"synchronous_commit": "off", "max_wal_size": "4GB", "checkpoint_timeout": "5min"}})
	b.Run("entries", func(b *testing.B) { entryBytes(b, server.Database(b)) })
	b.Run("turns", func(b *testing.B) { turnBytes(b, server.Database(b)) })
}

// entryBytes appends the shared conversations.
func entryBytes(b *testing.B, url string) {
	pool := newMeter(b, url)
	store := openPostgres(b, url)
	log := continuo.NewLog(store, continuo.LogOptions{Counter: token.O200k()})
	documents := sharedConversations(b)
	for b.Loop() {
		entries := 0
		before := pool.position(b)
		for _, document := range documents {
			entries += appendEach(b, log, document)
		}
		appended := pool.position(b)
		if _, err := (index.Indexer{Log: log, Store: store}).Run(b.Context(), index.Scope{}, time.Time{}); err != nil {
			b.Fatal(err)
		}
		indexed := pool.position(b)
		pool.exec(b, "VACUUM")
		per := func(name string, bytes float64) { b.ReportMetric(bytes/float64(entries), name) }
		b.ReportMetric(float64(entries)/float64(len(documents)), "entries/conversation")
		per("wal-B/entry-appended", appended-before)
		per("wal-B/entry-indexed", indexed-appended)
		pool.report(b, per)
	}
	b.ReportMetric(0, "ns/op")
}

// appendEach appends the entries of a conversation, as an import repairs them, one by one, up to
// one that only an import may have.
func appendEach(b *testing.B, log *continuo.Log, document interchange.Document) (appended int) {
	b.Helper()
	repairs := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	made, err := repairs.Import(b.Context(), document.Conversation, slices.Clone(document.Entries))
	if err != nil {
		b.Fatal(err)
	}
	repaired := make([]continuo.Entry, 0, made.LastSeq)
	for entry, err := range repairs.Read(b.Context(), made, continuo.Range{From: 1}) {
		if err != nil {
			b.Fatal(err)
		}
		entry.ID, entry.ConversationID, entry.Seq, entry.Repairs = "", "", 0, nil
		repaired = append(repaired, entry)
	}
	again, err := log.Create(b.Context(), continuo.Conversation{Title: document.Conversation.Title})
	if err != nil {
		b.Fatal(err)
	}
	for i := range repaired {
		_, err := log.Append(b.Context(), again.ID, repaired[i:i+1], continuo.AppendOptions{})
		var rule *continuo.RuleError
		if errors.As(err, &rule) {
			return i
		}
		if err != nil {
			b.Fatalf("entry %d: %v", i+1, err)
		}
	}
	return len(repaired)
}

// sharedConversations are those of every file, without the largest.
func sharedConversations(b *testing.B) (documents []interchange.Document) {
	b.Helper()
	paths, err := filepath.Glob(filepath.Join(os.Getenv("CONTINUO_DATA"), "*.jsonl.gz"))
	if os.Getenv("CONTINUO_DATA") == "" || err != nil || len(paths) == 0 {
		b.Skipf("SKIPPED: set CONTINUO_DATA to a folder with conversations (%v)", err)
	}
	for _, path := range paths {
		packed, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		for document, err := range interchange.Read(path, bytes.NewReader(packed), interchange.Options{}) {
			if n := len(document.Entries); err == nil && n > 0 && n <= 500 {
				documents = append(documents, document)
			}
		}
	}
	return documents
}

// turnBytes runs turns that stream 200 tokens in five seconds, 64 at a time.
func turnBytes(b *testing.B, url string) {
	const atOnce = 64
	pool := newMeter(b, url)
	upstream := metronome{tokens: overheadTokens, pace: 25 * time.Millisecond}.start(b)
	s := serve(b, fmt.Sprintf("store: {url: %q}\nlog: {level: warn}\nmodel: m\nmodels:\n%s", url, modelSettings("m", "chat", upstream.URL)))
	turn := func(ctx context.Context, _ int) error {
		_, _, err := through(s.url, "m").listen(ctx, http.DefaultClient, nil)
		return err
	}
	during(b, 1, time.Nanosecond, turn)
	for b.Loop() {
		before, began, idle := pool.position(b), pool.commits(b), s.usage(b).cpu
		ran := during(b, atOnce, 6*time.Second, turn) // two each
		per := func(name string, bytes float64) { b.ReportMetric(bytes/float64(len(ran.each)), name) }
		per("wal-B/turn", pool.position(b)-before)
		per("commits/turn", pool.commits(b)-began)
		per("cpu-ms/turn", 1000*(s.usage(b).cpu-idle)) // of the program
		pool.exec(b, "VACUUM")
		pool.report(b, per)
	}
	b.ReportMetric(0, "ns/op")
}

// meter looks at a database.
type meter struct{ pool *pgxpool.Pool }

func newMeter(b *testing.B, url string) meter {
	b.Helper()
	pool, err := pgxpool.New(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return meter{pool}
}

func (m meter) exec(b *testing.B, statement string) {
	b.Helper()
	if _, err := m.pool.Exec(b.Context(), statement); err != nil {
		b.Fatal(err)
	}
}

func (m meter) number(b *testing.B, question string, args ...any) (answer float64) {
	b.Helper()
	if err := m.pool.QueryRow(b.Context(), question, args...).Scan(&answer); err != nil {
		b.Fatal(err)
	}
	return answer
}

// position is how far the server's log has come.
func (m meter) position(b *testing.B) float64 {
	b.Helper()
	return m.number(b, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8")
}

// commits are those that the server has counted, which it does with a delay of a second.
func (m meter) commits(b *testing.B) float64 {
	b.Helper()
	return m.number(b, "SELECT xact_commit::float8 FROM pg_stat_database WHERE datname = current_database()")
}

// report reports the sizes of the tables.
func (m meter) report(b *testing.B, per func(name string, bytes float64)) {
	b.Helper()
	for _, table := range []string{"conversations", "entries", "documents", "turns", "turn_events", "blobs"} {
		per(table+"-B", m.number(b, "SELECT pg_table_size($1::regclass)::float8", "continuo."+table))
		per(table+"-indexes-B", m.number(b, "SELECT pg_indexes_size($1::regclass)::float8", "continuo."+table))
	}
}
