package recallbench

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
	"github.com/jackc/pgx/v5"
)

// The shape of a large project: conversations of different lengths, of different users, some of which go on at the same time.
const (
	projectYear         = 365 * 24 * time.Hour // from the first entry to the last
	meanConversation    = 500                  // entries
	conversationsOfUser = 20
	activeConversations = 150
	snippetWords        = 12
	rareWord            = "quaggamire" // in some 20 entries
)

// snippet is some words that follow one another in the data, with its terms by their numbers.
type snippet struct {
	text  string
	terms []int32
}

// vocabulary has the snippets of each conversation of the data.
type vocabulary struct {
	topics [][]snippet
	terms  []string
	known  map[string]int32
}

func newVocabulary(tb testing.TB) *vocabulary {
	v := &vocabulary{known: map[string]int32{}}
	for _, name := range []string{"locomo.jsonl.gz", "beam.jsonl.gz", "multi-agent.jsonl.gz", "multilingual.jsonl.gz"} {
		for _, c := range dataFile(tb, name) {
			var topic []snippet
			for i := range c.Messages {
				words := strings.Fields(strings.ToValidUTF8(c.Messages[i].Text(), ""))
				for len(words) > 0 {
					n := min(snippetWords, len(words))
					topic = append(topic, v.snippet(strings.ReplaceAll(strings.Join(words[:n], " "), "\x00", "")))
					words = words[n:]
				}
			}
			if len(topic) > 0 {
				v.topics = append(v.topics, topic)
			}
		}
	}
	v.number(rareWord)
	return v
}

func (v *vocabulary) snippet(text string) snippet {
	s := snippet{text: text}
	for _, term := range fulltext.Terms(text) {
		s.terms = append(s.terms, v.number(term))
	}
	return s
}

func (v *vocabulary) number(term string) int32 {
	n, known := v.known[term]
	if !known {
		n = int32(len(v.terms))
		v.known[term] = n
		v.terms = append(v.terms, term)
	}
	return n
}

// growing is a conversation while the project is filled.
type growing struct {
	id, user string
	topic    []snippet
	length   int64 // that it will have
	seq      int64
	from, to time.Time
}

// projectFill fills a project with random conversations, in the order of time.
type projectFill struct {
	*vocabulary
	random             *rand.Rand
	size               int64
	done               []*growing
	active             []*growing
	seen               []int64 // by term: the entry that had it last
	entries, documents *copyStream
}

func (p *projectFill) start(at time.Time) *growing {
	number := len(p.done) + len(p.active)
	length := meanConversation * math.Exp(1.2*p.random.NormFloat64()-.72) // a mean of meanConversation
	users := cmp.Or(p.size/meanConversation/conversationsOfUser, 1)
	return &growing{
		id: fmt.Sprintf("conv_%032x", uint64(number)*0x9e3779b97f4a7c15), user: fmt.Sprintf("user-%d", p.random.Int64N(users)),
		topic: p.topics[p.random.IntN(len(p.topics))], length: max(2, int64(length)), from: at,
	}
}

// run writes all entries.
func (p *projectFill) run() error {
	p.seen = make([]int64, len(p.terms))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	step := projectYear / time.Duration(p.size)
	for n := int64(1); n <= p.size; {
		for len(p.active) < activeConversations {
			p.active = append(p.active, p.start(at))
		}
		i := p.random.IntN(len(p.active))
		c := p.active[i]
		for burst := 2 + p.random.IntN(7); burst > 0 && c.seq < c.length && n <= p.size; burst-- {
			at = at.Add(step)
			if err := p.entry(c, n, at); err != nil {
				return err
			}
			n++
		}
		if c.seq == c.length {
			p.done = append(p.done, c)
			p.active[i] = p.active[len(p.active)-1]
			p.active = p.active[:len(p.active)-1]
		}
	}
	p.done = append(p.done, p.active...)
	return errors.Join(p.entries.end(), p.documents.end())
}

// entry writes the next entry of a conversation.
func (p *projectFill) entry(c *growing, number int64, at time.Time) error {
	c.seq++
	c.to = at
	var text strings.Builder
	var terms []int32
	add := func(s snippet) {
		text.WriteString(s.text)
		text.WriteByte(' ')
		for _, term := range s.terms {
			if p.seen[term] != number {
				p.seen[term] = number
				terms = append(terms, term)
			}
		}
	}
	for range 1 + p.random.IntN(5) {
		topic := c.topic
		if p.random.IntN(4) == 0 {
			topic = p.topics[p.random.IntN(len(p.topics))]
		}
		add(topic[p.random.IntN(len(topic))])
	}
	if number%max(p.size/20, 1) == 7 {
		add(snippet{rareWord, []int32{p.known[rareWord]}})
	}
	entry := continuo.Entry{
		ID: fmt.Sprintf("entry_%x", number), ConversationID: c.id, Seq: c.seq, CreatedAt: at, Content: continuo.Text(text.String()),
		Role: []continuo.Role{continuo.User, continuo.Assistant}[c.seq%2], Chars: text.Len(), Tokens: text.Len() / 4,
	}
	return errors.Join(p.putEntry(&entry), p.putDocument(c, at, terms))
}

func (p *projectFill) putEntry(entry *continuo.Entry) error {
	body, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	row := p.entries
	row.begin(11)
	row.text(entry.ConversationID)
	row.number(entry.Seq)
	row.text(entry.ID)
	row.text(string(entry.Role))
	row.field([]byte{0})
	row.text(entry.CreatedAt.Format(stampLayout))
	row.null()
	row.number(int64(entry.Chars))
	row.number(int64(entry.Tokens))
	row.field(body)
	row.number(int64(crc32.Checksum(body, castagnoli)))
	return row.err
}

func (p *projectFill) putDocument(c *growing, at time.Time, terms []int32) error {
	added := at.UnixNano()
	lexemes := []string{":c" + c.id, ":p" + continuo.DefaultProject} // and those of package postgres for periods
	for level, shift := range []int{43, 48} {
		lexemes = append(lexemes, fmt.Sprintf(":%d%s:%s", level, strconv.FormatInt(added>>shift, 36), continuo.DefaultProject))
	}
	vector := binary.BigEndian.AppendUint32(nil, uint32(len(lexemes)+len(terms)))
	for _, lexeme := range lexemes {
		vector = append(append(vector, lexeme...), 0, 0, 0)
	}
	for _, term := range terms {
		vector = append(append(vector, p.terms[term]...), 0, 0, 0)
	}
	row := p.documents
	row.begin(5)
	row.text(c.id)
	row.number(c.seq)
	row.text(continuo.DefaultProject)
	row.number(added)
	row.field(vector)
	return row.err
}

const stampLayout = "2006-01-02T15:04:05.000000000Z"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// copyStream writes rows in the binary form of COPY.
type copyStream struct {
	to      *bufio.Writer
	pipe    *io.PipeWriter
	err     error
	done    chan error
	scratch [8]byte
}

// copyTo copies rows into an empty table without indexes.
func copyTo(ctx context.Context, url, table, columns string) *copyStream {
	reader, writer := io.Pipe()
	s := &copyStream{to: bufio.NewWriterSize(writer, 1<<20), pipe: writer, done: make(chan error, 1)}
	go func() {
		err := onServer(ctx, url, func(conn *pgx.Conn) error {
			return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "TRUNCATE "+table); err != nil { // in the transaction of the copy: it is written frozen
					return err
				}
				_, err := conn.PgConn().CopyFrom(ctx, reader, "COPY "+table+" ("+columns+") FROM STDIN (FORMAT binary, FREEZE)")
				return err
			})
		})
		reader.CloseWithError(cmp.Or(err, io.ErrClosedPipe))
		s.done <- err
	}()
	s.write([]byte("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	return s
}

func (s *copyStream) write(data []byte) {
	if s.err == nil {
		_, s.err = s.to.Write(data)
	}
}

func (s *copyStream) begin(columns uint16) {
	s.write(binary.BigEndian.AppendUint16(s.scratch[:0], columns))
}

func (s *copyStream) field(data []byte) {
	s.write(binary.BigEndian.AppendUint32(s.scratch[:0], uint32(len(data))))
	s.write(data)
}

func (s *copyStream) text(text string) { s.field([]byte(text)) }

func (s *copyStream) number(n int64) { s.field(binary.BigEndian.AppendUint64(nil, uint64(n))) }

func (s *copyStream) null() { s.write([]byte{0xff, 0xff, 0xff, 0xff}) }

func (s *copyStream) end() error {
	s.write([]byte{0xff, 0xff})
	if s.err == nil {
		s.err = s.to.Flush()
	}
	return errors.Join(s.err, s.pipe.CloseWithError(s.err), <-s.done)
}

func onServer(ctx context.Context, url string, work func(conn *pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SET maintenance_work_mem = '2GB'; SET synchronous_commit = off; SET max_parallel_maintenance_workers = 1"); err != nil {
		return err
	}
	return work(conn)
}

// bulkTable is a table that is filled without its indexes.
type bulkTable struct {
	url, name string
	indexes   []string // statements that make them again
}

const (
	primaryKey = `SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = $1::regclass AND contype = 'p'`
	indexes    = `
SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = $1::regclass AND NOT indisprimary`
)

// drop drops the indexes.
func (t *bulkTable) drop(ctx context.Context) error {
	return onServer(ctx, t.url, func(conn *pgx.Conn) error {
		var name, definition string
		if err := conn.QueryRow(ctx, primaryKey, t.name).Scan(&name, &definition); err != nil {
			return err
		}
		drops := []string{"ALTER TABLE " + t.name + " DROP CONSTRAINT " + name}
		t.indexes = []string{"ALTER TABLE " + t.name + " ADD CONSTRAINT " + name + " " + definition}
		rows, _ := conn.Query(ctx, indexes, t.name)
		if _, err := pgx.ForEachRow(rows, []any{&name, &definition}, func() error {
			drops, t.indexes = append(drops, "DROP INDEX "+name), append(t.indexes, definition)
			return nil
		}); err != nil {
			return err
		}
		for _, drop := range drops {
			if _, err := conn.Exec(ctx, drop); err != nil {
				return err
			}
		}
		return nil
	})
}

// index makes the indexes again.
func (t *bulkTable) index(ctx context.Context) error {
	return onServer(ctx, t.url, func(conn *pgx.Conn) error {
		for _, statement := range append(t.indexes, "ANALYZE "+t.name) {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}

const putConversations = `
INSERT INTO continuo.conversations (id, project_id, user_id, title, active_mode, fork_seq, created_at, updated_at, last_seq, indexed_seq, indexed_title)
SELECT id, $1, user_id, '', 'chat', 0, created_at, updated_at, last_seq, last_seq, '' FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
  AS c (id, user_id, created_at, updated_at, last_seq)`

// fillProject fills an empty database.
func fillProject(ctx context.Context, url string, words *vocabulary, size int64) error {
	tables := []*bulkTable{{url: url, name: "continuo.documents"}, {url: url, name: "continuo.entries"}}
	for _, table := range tables {
		if err := table.drop(ctx); err != nil {
			return err
		}
	}
	fill := projectFill{
		vocabulary: words, random: rand.New(rand.NewPCG(1, 2)), size: size,
		entries:   copyTo(ctx, url, "continuo.entries", "conversation_id, seq, id, role, hidden, created_at, output_ref, chars, tokens, body, checksum"),
		documents: copyTo(ctx, url, "continuo.documents", "conversation_id, seq, project_id, added, terms"),
	}
	if err := fill.run(); err != nil {
		return err
	}
	indexed := make(chan error)
	for _, table := range tables {
		go func() { indexed <- table.index(ctx) }()
	}
	err := onServer(ctx, url, func(conn *pgx.Conn) error { return fill.putConversations(ctx, conn) })
	for range tables {
		err = errors.Join(err, <-indexed)
	}
	return err
}

func (p *projectFill) putConversations(ctx context.Context, conn *pgx.Conn) error {
	var ids, users, created, updated []string
	var last []int64
	for _, c := range p.done {
		ids, users, last = append(ids, c.id), append(users, c.user), append(last, c.seq)
		created, updated = append(created, c.from.Format(stampLayout)), append(updated, c.to.Format(stampLayout))
	}
	if _, err := conn.Exec(ctx, putConversations, continuo.DefaultProject, ids, users, created, updated, last); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, "ANALYZE continuo.conversations")
	return err
}
