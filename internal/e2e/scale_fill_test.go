package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Words that are in few entries, or in certain ones. No word of the vocabulary is one of them.
const (
	planted      = 10 // in so many entries, or titles
	rareWord     = "zebra"
	rareTitle    = "aardvark"
	rareTitleAt  = 3 // the first conversation whose title has it
	rareChinese  = "长颈鹿"
	uncommonWord = "quagga" // in one entry of 1 000
	oddWord      = "oddly"  // in every second entry
	evenWord     = "evenly" // in all others
	chineseWord  = "数据库"    // in one entry of 50
	chineseText  = "我们把数据库放在另一台机器上"
)

// scaleStart is when the first entry was made; the next follow by the millisecond.
var scaleStart = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// word is a word of the vocabulary: made of syllables, pronounceable, and the more frequent the smaller n.
func word(n int) string {
	const vocabulary = 20_000
	syllables := []string{"ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu", "dan", "fel", "gim", "hor", "jup"}
	var text strings.Builder
	for n = n%vocabulary + len(syllables); n > 0; n /= len(syllables) {
		text.WriteString(syllables[n%len(syllables)])
	}
	return text.String()
}

// writer writes texts whose words are as frequent as those of a language (Zipf's law).
type writer struct{ zipf *rand.Zipf }

func newWriter(seed uint64) writer {
	return writer{rand.NewZipf(rand.New(rand.NewPCG(seed, 7)), 1.1, 2, 19_999)}
}

func (w writer) text(words int) string {
	var text strings.Builder
	for i := range words {
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(word(int(w.zipf.Uint64())))
	}
	return text.String()
}

// entry is the entry number i of so many.
func (w writer) entry(i, size int) continuo.Entry {
	text := w.text(20 + i%21)
	plant := func(every, at int, words string) {
		if i%every == at {
			text += " " + words
		}
	}
	plant(size/planted, 17, rareWord)
	plant(size/planted, 23, rareChinese)
	plant(1000, 500, uncommonWord)
	plant(50, 31, chineseText)
	plant(2, 0, evenWord)
	plant(2, 1, oddWord)
	return continuo.Entry{
		Role: []continuo.Role{continuo.User, continuo.Assistant}[i%2], Content: continuo.Text(text),
		CreatedAt: scaleStart.Add(time.Duration(i) * time.Millisecond),
	}
}

// fill makes the conversations and the index, and says how long that took.
func (p *population) fill(b *testing.B) {
	b.Helper()
	began := time.Now()
	var notes strings.Builder
	lap := func(what string) {
		fmt.Fprintf(&notes, "%s %.1f s; ", what, time.Since(began).Seconds())
		began = time.Now()
	}
	p.raw.prepare(b)
	p.append(b)
	lap("entries")
	if _, err := (index.Indexer{Log: p.log, Store: p.store, MaxDocuments: 2000, MaxBytes: 16 << 20}).Run(b.Context(), index.Scope{ConversationID: p.long.ID}, time.Time{}); err != nil {
		b.Fatal(err)
	}
	lap("entries indexed")
	const batch = 20_000
	for from := 0; from < p.size; from += batch {
		p.raw.crowd(b, from, min(from+batch, p.size), p.size)
	}
	lap("conversations and their index")
	p.raw.finish(b)
	lap("what was left for the end")
	b.Logf("%d: %s%s", p.size, &notes, p.raw.bytes(b))
	p.toPage(b)
	p.check(b)
}

func (p *population) append(b *testing.B) {
	b.Helper()
	var err error
	if p.long, err = p.log.Create(b.Context(), continuo.Conversation{Title: "long", Key: "long"}); err != nil {
		b.Fatal(err)
	}
	w := newWriter(1)
	const batch = 2000
	for from := 0; from < p.size; from += batch {
		entries := make([]continuo.Entry, 0, batch)
		for i := from; i < min(from+batch, p.size); i++ {
			entries = append(entries, w.entry(i, p.size))
		}
		if _, err := p.log.Append(b.Context(), p.long.ID, entries, continuo.AppendOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	if p.long, err = p.log.Conversation(b.Context(), p.long.ID); err != nil {
		b.Fatal(err)
	}
}

// rawStore writes conversations without entries, and the index of their titles, in an engine's own bulk way; the
// rows are those that the store would write.
type rawStore interface {
	prepare(b *testing.B)
	crowd(b *testing.B, from, to, size int)
	finish(b *testing.B)
	bytes(b *testing.B) string
}

func crowdID(i int) string  { return fmt.Sprintf("conv_%032x", i) }
func crowdKey(i int) string { return fmt.Sprintf("key-%d", i) }

func crowdTitle(i, size int) string {
	title := newWriter(uint64(i) + 2).text(5)
	if i%(size/planted) == rareTitleAt {
		title += " " + rareTitle
	}
	return title
}

// crowdTime is when a conversation was made and changed: between two entries.
func crowdTime(i int) time.Time {
	return scaleStart.Add(time.Duration(i)*time.Millisecond + 500*time.Microsecond)
}

const stampLayout = "2006-01-02T15:04:05.000000000Z"

type rawSQLite struct{ db *sql.DB }

func openRawSQLite(b *testing.B, path string) rawSQLite {
	b.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(60000)&_pragma=synchronous(off)&_pragma=cache_size(-200000)")
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	b.Cleanup(func() { _ = db.Close() })
	return rawSQLite{db}
}

func (rawSQLite) prepare(*testing.B) {}

func (r rawSQLite) crowd(b *testing.B, from, to, size int) {
	b.Helper()
	tx, err := r.db.BeginTx(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	insert := func(text string) func(args ...any) {
		statement, err := tx.PrepareContext(b.Context(), text)
		if err != nil {
			b.Fatal(err)
		}
		return func(args ...any) {
			if _, err := statement.ExecContext(context.WithoutCancel(b.Context()), args...); err != nil {
				b.Fatal(err)
			}
		}
	}
	conversation := insert(`INSERT INTO conversations (id, project_id, key, title, active_mode, fork_seq, created_at, updated_at, last_seq, indexed_seq, indexed_title)
VALUES (?1, ?2, ?3, ?4, 'chat', 0, ?5, ?5, 0, 0, ?4)`)
	document := insert(`INSERT INTO documents (place, conversation_id, seq, terms) VALUES (?, ?, 0, ?)`)
	words := insert(`INSERT INTO words (rowid, terms) VALUES (?, ?)`)
	for i := from; i < to; i++ {
		id, title, at := crowdID(i), crowdTitle(i, size), crowdTime(i)
		conversation(id, continuo.DefaultProject, crowdKey(i), title, at.Format(stampLayout))
		terms := strings.Join(fulltext.Terms(title), " ") + " _c" + strings.ReplaceAll(id, "_", "_5f") + " _p" + continuo.DefaultProject
		document(at.UnixNano(), id, terms)
		words(at.UnixNano(), terms)
	}
	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
}

func (r rawSQLite) finish(b *testing.B) {
	b.Helper()
	if _, err := r.db.ExecContext(b.Context(), "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		b.Fatal(err)
	}
}

func (r rawSQLite) bytes(b *testing.B) string {
	b.Helper()
	var size float64
	if err := r.db.QueryRowContext(b.Context(), "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").Scan(&size); err != nil {
		b.Fatal(err)
	}
	return fmt.Sprintf("%.0f MB", size/1e6)
}

type rawPostgres struct{ pool *pgxpool.Pool }

const (
	crowdConversations = `
INSERT INTO continuo.conversations (id, project_id, key, title, active_mode, fork_seq, created_at, updated_at, last_seq, indexed_seq, indexed_title)
SELECT id, $1, key, title, 'chat', 0, at, at, 0, 0, title FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) AS c (id, key, title, at)`

	crowdKeys = `INSERT INTO continuo.conversation_keys (project_id, key, conversation_id) SELECT $1, key, id FROM unnest($2::text[], $3::text[]) AS c (id, key)`

	crowdDocuments = `
INSERT INTO continuo.documents (conversation_id, seq, project_id, added, terms)
SELECT id, 0, $1::text, added, array_to_tsvector(string_to_array(terms, ' ') || ARRAY[':c' || id, ':p' || $1::text]) FROM unnest($2::text[], $3::bigint[], $4::text[]) AS d (id, added, terms)`
)

func openRawPostgres(b *testing.B, url string) rawPostgres {
	b.Helper()
	pool, err := pgxpool.New(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return rawPostgres{pool}
}

// prepare drops the index of terms: it is built again at the end, which takes a tenth of the time.
func (r rawPostgres) prepare(b *testing.B) {
	r.exec(b, "DROP INDEX continuo.documents_by_term")
}

func (r rawPostgres) crowd(b *testing.B, from, to, size int) {
	b.Helper()
	var ids, keys, titles, stamps, terms []string
	var added []int64
	for i := from; i < to; i++ {
		title, at := crowdTitle(i, size), crowdTime(i)
		ids, keys, titles = append(ids, crowdID(i)), append(keys, crowdKey(i)), append(titles, title)
		stamps, added = append(stamps, at.Format(stampLayout)), append(added, at.UnixNano())
		terms = append(terms, strings.Join(append(fulltext.Terms(title), periodTerms(at)...), " "))
	}
	r.exec(b, crowdConversations, continuo.DefaultProject, ids, keys, titles, stamps)
	r.exec(b, crowdKeys, continuo.DefaultProject, ids, keys)
	r.exec(b, crowdDocuments, continuo.DefaultProject, ids, added, terms)
}

// periodTerms are those of package postgres for the periods that a document was added in.
func periodTerms(at time.Time) (terms []string) {
	for level, shift := range []int{43, 48} {
		terms = append(terms, fmt.Sprintf(":%d%s:%s", level, strconv.FormatInt(at.UnixNano()>>shift, 36), continuo.DefaultProject))
	}
	return terms
}

func (r rawPostgres) finish(b *testing.B) {
	b.Helper()
	r.exec(b, "CREATE INDEX documents_by_term ON continuo.documents USING gin (terms)")
	r.exec(b, "VACUUM (ANALYZE)")
}

func (r rawPostgres) exec(b *testing.B, statement string, args ...any) {
	b.Helper()
	if _, err := r.pool.Exec(b.Context(), statement, args...); err != nil {
		b.Fatalf("%s: %v", statement, err)
	}
}

func (r rawPostgres) bytes(b *testing.B) string {
	b.Helper()
	var text string
	err := r.pool.QueryRow(b.Context(), `
SELECT string_agg(format('%s %s MB and %s MB of indexes', relname, pg_table_size(oid) / 1000000, pg_indexes_size(oid) / 1000000), '; ' ORDER BY relname)
FROM pg_class WHERE relnamespace = 'continuo'::regnamespace AND relkind = 'r' AND relname IN ('conversations', 'entries', 'documents', 'conversation_keys')`).Scan(&text)
	if err != nil {
		b.Fatal(err)
	}
	return text
}
