package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// bareTable has the shape and the indexes of the table entries, and nothing else has to be kept up to date.
const bareTable = `
CREATE TABLE bare (LIKE continuo.entries INCLUDING ALL);
CREATE SEQUENCE bare_seq CACHE 1000`

const insertBare = `
INSERT INTO bare (` + entryColumns + `)
VALUES ($1, nextval('bare_seq'), 'ent_0199c5f0d1a27000b8f7c2a94f1e6d3a', 'user', false, '2026-03-01T12:00:00.123456789Z', NULL, 700, 175, $2, 0)`

// BenchmarkAppend appends messages of 700 characters, durably, one at a time for each writer. In turns with it, on
// the same server, it measures the driver by itself, and then pgbench, each with as many connections as there are
// writers and a commit for each insert into a table of the same shape: no checks, no JSON to be made, no
// conversation to be kept up to date.
func BenchmarkAppend(b *testing.B) {
	text := strings.Repeat("message ", 700/8)
	for _, partitions := range []int{0, 16} {
		for _, writers := range []int{1, 64} {
			b.Run(fmt.Sprintf("partitions=%d/writers=%d", partitions, writers), func(b *testing.B) {
				server := pgtest.Start(b, pgtest.Options{Durable: true, Settings: map[string]string{"max_connections": "200"}})
				url := server.Database(b)
				store := openAt(b, url, Options{Partitions: partitions})
				defer store.Close()
				ids, last := make([]string, writers), make([]int64, writers)
				for i := range ids {
					ids[i] = fmt.Sprintf("conv_%032d", i)
					newConversation(b, store, ids[i], 0)
				}
				ours := func(w int) error {
					batch := continuo.Batch{ConversationID: ids[w], After: last[w], Entries: someEntries(ids[w], last[w]+1, last[w]+1, text)}
					last[w]++
					return store.Append(context.Background(), batch)
				}
				timed(b, writers, 32, ours) // until all connections have their plans
				theirs := bareAppend(b, url, writers, someEntries(ids[0], 1, 1, text)[0])
				timed(b, writers, 32, theirs)
				us, them := alternate(b, writers, ours, theirs)
				us.report(b, "append")
				b.ReportMetric(us.rate()/them.rate(), "x_bare")
				if bench := pgbenchRate(b, server, url, writers, someEntries(ids[0], 1, 1, text)[0]); bench > 0 {
					b.ReportMetric(us.rate()/bench, "x_pgbench")
				}
			})
		}
	}
}

// bareAppend inserts by the driver alone.
func bareAppend(b *testing.B, url string, conns int, entry continuo.Entry) func(writer int) error {
	b.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = int32(conns)
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	conn, err := pool.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Conn().PgConn().Exec(b.Context(), bareTable).ReadAll(); err != nil {
		b.Fatal(err)
	}
	body, err := entry.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	return func(writer int) error {
		_, err := pool.Exec(context.Background(), insertBare, fmt.Sprintf("conv_%032d", writer), string(body))
		return err
	}
}

// pgbenchRate is how many inserts a second PostgreSQL's own load generator makes; 0 where there is none.
func pgbenchRate(b *testing.B, server *pgtest.Server, url string, conns int, entry continuo.Entry) float64 {
	b.Helper()
	body, err := entry.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	statement := strings.NewReplacer("$1", "'conv_' || lpad(:client_id::text, 32, '0')", "$2", "'"+string(body)+"'", "\n", " ").Replace(insertBare)
	folder, err := os.MkdirTemp("", "continuo-pgbench-")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(folder)
	script := filepath.Join(folder, "insert.sql") // for the server's account, which a test's own folder is closed to
	if err := errors.Join(os.Chmod(folder, 0o755), os.WriteFile(script, []byte(statement+";\n"), 0o644)); err != nil {
		b.Fatal(err)
	}
	output := server.Pgbench(b, url, "-n", "-M", "prepared", "-c", strconv.Itoa(conns), "-j", strconv.Itoa(min(2, conns)), "-T", "5", "-f", script)
	found := regexp.MustCompile(`(?m)^tps = ([0-9.]+)`).FindStringSubmatch(output)
	if found == nil {
		b.Fatalf("pgbench says no rate:\n%s", output)
	}
	rate, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return rate
}

// alternate runs b.N operations, and as many of the bare driver's, in turns of a few for each writer, so that other load
// on the machine meets both. It returns the median turn of each.
func alternate(b *testing.B, writers int, ours, theirs func(writer int) error) (us, them run) {
	b.Helper()
	const turn = 16 // operations of each writer
	var all [2][]run
	b.ResetTimer()
	for done := 0; done < b.N || len(all[0]) < 3; done += turn * writers {
		all[0] = append(all[0], timed(b, writers, turn, ours))
		b.StopTimer()
		all[1] = append(all[1], timed(b, writers, turn, theirs))
		b.StartTimer()
	}
	b.StopTimer()
	for _, turns := range all {
		slices.SortFunc(turns, func(a, b run) int { return cmp.Compare(a.took, b.took) })
	}
	return all[0][len(all[0])/2], all[1][len(all[1])/2]
}

// run is what a number of operations took.
type run struct {
	took time.Duration
	each []time.Duration // sorted
}

// timed runs count operations on each of the writers at once.
func timed(b *testing.B, writers, count int, operation func(writer int) error) run {
	b.Helper()
	each := make([]time.Duration, writers*count)
	start := time.Now()
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for i := range count {
				began := time.Now()
				if err := operation(w); err != nil {
					b.Error(err)
					return
				}
				each[w*count+i] = time.Since(began)
			}
		})
	}
	running.Wait()
	took := time.Since(start)
	slices.Sort(each)
	return run{took, each}
}

func (r run) rate() float64 { return float64(len(r.each)) / r.took.Seconds() }

func (r run) report(b *testing.B, what string) {
	b.ReportMetric(r.rate(), what+"s/s")
	b.ReportMetric(float64(r.each[len(r.each)/2].Microseconds()), "p50_µs")
	b.ReportMetric(float64(r.each[len(r.each)*99/100].Microseconds()), "p99_µs")
	b.ReportMetric(float64(r.took.Nanoseconds())/float64(len(r.each)), "ns/op")
}
