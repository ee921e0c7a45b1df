package properties

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
	"github.com/jackc/pgx/v5"
)

// shown is the number of messages that the benchmarks of windows show.
const shown = 80

// BenchmarkWindow80 builds a window of 80 messages, from the conversation's row to the plan, as a turn does. In each
// round it does so with a log that has read nothing yet (cold), with one that has built the window before (used), and
// reads the same rows with the driver alone (bare), so that all three see the same machine. Its figures are the medians
// and their ratios to bare (-x); x_1000 is cold over cold with 1 000 entries, whose windows are built in the same
// rounds. ns/op is that of all of them together.
func BenchmarkWindow80(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) {
		file := filepath.Join(b.TempDir(), "bench.db")
		store, err := sqlite.Open(b.Context(), file, sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { store.Close() })
		bare := openBare(b, file)
		windows80(b, store, bare.read)
	})
	b.Run("postgresql", func(b *testing.B) {
		server := pgtest.Start(b, pgtest.Options{})
		url := server.Database(b)
		store, err := postgres.Open(b.Context(), url, postgres.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { store.Close() })
		conn, err := pgx.Connect(b.Context(), url)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close(context.Background()) })
		windows80(b, store, barePostgres{conn}.read)
	})
}

func windows80(b *testing.B, store continuo.Store, bare func(id string, last int64) error) {
	view := preset(b, window.Codex, nil).(window.View)
	view.Limits = window.Limits{Messages: shown}
	first := ""
	for _, size := range []int{1000, 100_000} {
		id := toolConversation(b, store, view, size)
		first = cmp.Or(first, id)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			used := continuo.NewLog(store, continuo.LogOptions{})
			cold := func(id string) func() error {
				return func() error { return buildWindow(b, continuo.NewLog(store, continuo.LogOptions{}), id, view) }
			}
			b.ReportAllocs()
			medians(b, map[string]func() error{
				"cold": cold(id),
				"1000": cold(first),
				"used": func() error { return buildWindow(b, used, id, view) },
				"bare": func() error { return bare(id, int64(size)) },
			})
		})
	}
}

// medians runs all ways in each round and reports the median time of each.
func medians(b *testing.B, ways map[string]func() error) {
	spent := map[string][]time.Duration{}
	for b.Loop() {
		for name, way := range ways {
			begin := time.Now()
			if err := way(); err != nil {
				b.Fatal(err)
			}
			spent[name] = append(spent[name], time.Since(begin))
		}
	}
	median := func(name string) float64 {
		slices.Sort(spent[name])
		return float64(spent[name][len(spent[name])/2].Nanoseconds()) / 1000
	}
	for _, name := range []string{"cold", "used"} {
		b.ReportMetric(median(name)/median("bare"), name+"-x")
	}
	for _, name := range []string{"cold", "used", "bare"} {
		b.ReportMetric(median(name), name+"-us")
	}
	b.ReportMetric(median("cold")/median("1000"), "x_1000")
}

func buildWindow(b *testing.B, log *continuo.Log, id string, view window.View) error {
	ctx := context.Background()
	snapshot, err := log.Latest(ctx, id, shown+4)
	if err != nil {
		return err
	}
	conversation := snapshot.Conversation
	plan, err := view.Build(turn.Source{Context: ctx, Log: log, Conversation: conversation, Snapshot: snapshot}, window.Input{At: conversation.LastSeq})
	if err == nil && (plan.Totals.Kept < shown-1 || plan.Moved) {
		b.Fatalf("the window shows %d messages; moved: %v", plan.Totals.Kept, plan.Moved)
	}
	return err
}

// toolConversation stores a conversation of about 700 bytes a message: a question, two rounds of tool calls with
// their results, an answer. Each answer of the model records its request, as those of turns do; the newest windows
// show 80 messages.
func toolConversation(b *testing.B, store continuo.Store, view window.View, size int) string {
	b.Helper()
	text := strings.Repeat("The committee put the proposal off to its next meeting. ", 10)
	output := strings.Repeat("internal/report.go:17:\tfigures := read(\"figures.csv\")\n", 16)
	entries := make([]continuo.Entry, size)
	for i := range entries {
		seq := int64(i + 1)
		start := max(seq-shown, 1)
		if seq > int64(size)-40 {
			start = int64(size) - shown + 1
		}
		round := &continuo.Round{
			View: view.Name, ViewHash: view.Hash(), At: seq - 1, Window: continuo.Window{Epoch: seq, Start: start, Limit: "messages"},
			Provider: "openai", Protocol: "openai-chat", Model: "gpt-4o", ContextWindow: 128_000,
			Envelope: strings.Repeat("3f", 32), RequestSHA256: strings.Repeat("a0", 32), RequestBytes: 61_234, EstimatedTokens: 15_120,
			Usage: &continuo.Usage{InputTokens: 15_011, OutputTokens: 212, CachedTokens: 14_720}, FinishReason: "stop", LatencyMS: 2120,
		}
		switch i % 6 {
		case 0:
			entries[i] = continuo.Entry{Role: continuo.User, Content: continuo.Text(text)}
		case 1, 3:
			call := fmt.Sprintf("call_%d", seq)
			entries[i] = continuo.Entry{
				Role: continuo.Assistant, Content: continuo.Null(), Round: round,
				ToolCalls: []continuo.ToolCall{continuo.FunctionCall(call, "fs.search", `{"pattern":"figures","path":"@project/internal"}`)},
			}
		case 2, 4:
			entries[i] = continuo.Entry{Role: continuo.Tool, Content: continuo.Text(output), ToolCallID: fmt.Sprintf("call_%d", seq-1), ToolName: "fs.search", DurationMS: 12}
		default:
			entries[i] = continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(text), Round: round}
		}
	}
	conversation, err := continuo.NewLog(store, continuo.LogOptions{}).Import(context.Background(), continuo.Conversation{}, entries)
	if err != nil {
		b.Fatal(err)
	}
	return conversation.ID
}

// bareDriver is database/sql over the same driver and file, with two statements and one connection.
type bareDriver struct{ conversation, entries *sql.Stmt }

func openBare(b *testing.B, file string) *bareDriver {
	b.Helper()
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	bare := &bareDriver{}
	for text, into := range map[string]**sql.Stmt{
		`SELECT number << 32 FROM conversations WHERE id = ?`:                              &bare.conversation,
		`SELECT body FROM entries WHERE place > ? - 80 AND place <= ? ORDER BY place DESC`: &bare.entries,
	} {
		if *into, err = db.PrepareContext(b.Context(), text); err != nil {
			b.Fatal(err)
		}
	}
	return bare
}

// read reads the conversation's row and its newest 80 entries.
func (d *bareDriver) read(id string, last int64) error {
	ctx := context.Background()
	var first int64
	if err := d.conversation.QueryRowContext(ctx, id).Scan(&first); err != nil {
		return err
	}
	rows, err := d.entries.QueryContext(ctx, first+last, first+last)
	if err != nil {
		return err
	}
	defer rows.Close()
	found := 0
	for ; rows.Next(); found++ {
		var body string
		if err := rows.Scan(&body); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil || found == shown {
		return err
	}
	return fmt.Errorf("the driver read %d rows", found)
}

// barePostgres is one connection of the driver.
type barePostgres struct{ conn *pgx.Conn }

// read reads the conversation's row and its newest 80 entries.
func (p barePostgres) read(id string, last int64) error {
	ctx := context.Background()
	var newest int64
	if err := p.conn.QueryRow(ctx, `SELECT last_seq FROM continuo.conversations WHERE id = $1`, id).Scan(&newest); err != nil {
		return err
	}
	rows, err := p.conn.Query(ctx, `SELECT body FROM continuo.entries WHERE conversation_id = $1 AND seq > $2 - 80 AND seq <= $2 ORDER BY seq DESC`, id, last)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(found) == shown {
		return err
	}
	return fmt.Errorf("the driver read %d rows", len(found))
}
