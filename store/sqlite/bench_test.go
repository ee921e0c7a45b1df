package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

// bare is the driver by itself: one table that is ordered as entries is, with the same settings, on one connection.
// What Continuo does on top is left out: no checks, no JSON to be made, no index, no conversation.
type bare struct {
	conn   *sql.Conn
	insert *sql.Stmt
	body   string

	mu      sync.Mutex
	waiting []*bareAppend
	wake    chan struct{} // nil: each append is a commit of its own
}

type bareAppend struct {
	place int64
	done  chan error
}

// openBare opens a bare database. With group, appends that wait while another commit is in progress share one.
func openBare(b *testing.B, text string, group bool) *bare {
	b.Helper()
	db, err := sql.Open("sqlite", dataSource(filepath.Join(b.TempDir(), "bare.db"), withDefaults(Options{})))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	x := &bare{}
	if x.conn, err = db.Conn(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, statement := range []string{`PRAGMA journal_mode = wal`, `PRAGMA secure_delete = on`, `CREATE TABLE bare (place INTEGER PRIMARY KEY, body TEXT)`} {
		if _, err := x.conn.ExecContext(b.Context(), statement); err != nil {
			b.Fatal(err)
		}
	}
	body, err := someEntries("conv_0199c5f0d1a27000b8f7c2a94f1e6d3a", 1, 1, text)[0].MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	x.body = string(body)
	if x.insert, err = x.conn.PrepareContext(b.Context(), `INSERT INTO bare VALUES (?, ?)`); err != nil {
		b.Fatal(err)
	}
	if group {
		x.wake = make(chan struct{}, 1)
		go x.run()
		b.Cleanup(func() { close(x.wake) })
	}
	return x
}

func (x *bare) append(conversation, seq int64) error {
	place := conversation<<32 | seq
	if x.wake == nil {
		_, err := x.insert.ExecContext(context.Background(), place, x.body)
		return err
	}
	one := &bareAppend{place, make(chan error, 1)}
	x.mu.Lock()
	x.waiting = append(x.waiting, one)
	x.mu.Unlock()
	select {
	case x.wake <- struct{}{}:
	default:
	}
	return <-one.done
}

func (x *bare) run() {
	for range x.wake {
		x.mu.Lock()
		group := x.waiting
		x.waiting = nil
		x.mu.Unlock()
		if len(group) == 0 {
			continue
		}
		err := x.commit(group)
		for _, one := range group {
			one.done <- err
		}
	}
}

func (x *bare) commit(group []*bareAppend) error {
	if _, err := x.conn.ExecContext(context.Background(), `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	for _, one := range group {
		if _, err := x.insert.ExecContext(context.Background(), one.place, x.body); err != nil {
			return err
		}
	}
	_, err := x.conn.ExecContext(context.Background(), `COMMIT`)
	return err
}

// timed runs count operations on each of the writers at once and returns how long that took.
func timed(b *testing.B, writers, count int, operation func(writer int) error) time.Duration {
	start := time.Now()
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for range count {
				if err := operation(w); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	return time.Since(start)
}

// writtenBytes returns what this process has written in all, 0 where the system does not say.
func writtenBytes() (written int64) {
	data, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), "wchar: ")
	_, _ = fmt.Sscan(rest, &written)
	return written
}

// compare runs b.N operations, and as many of the bare driver's in turns with them, so that both see the
// same machine. From the median turn, which other users of the disk disturb least, it reports how many
// times as fast as the bare driver Continuo is.
func compare(b *testing.B, writers int, ours, theirs func(writer int) error) {
	const turn = 32 // operations of each writer
	var us, them []time.Duration
	var wrote [3]int64 // before and after us, and after them
	written := [2]int64{}
	b.ResetTimer()
	for done := 0; done < b.N; done += turn * writers {
		wrote[0] = writtenBytes()
		us = append(us, timed(b, writers, turn, ours))
		b.StopTimer()
		wrote[1] = writtenBytes()
		them = append(them, timed(b, writers, turn, theirs))
		wrote[2] = writtenBytes()
		written[0], written[1] = written[0]+wrote[1]-wrote[0], written[1]+wrote[2]-wrote[1]
		b.StartTimer()
	}
	b.StopTimer()
	if count := float64(turn * writers * len(us)); written[0] > 0 {
		b.ReportMetric(float64(written[0])/count/1024, "KB/op")
		b.ReportMetric(float64(written[1])/count/1024, "bare_KB/op")
	}
	slices.Sort(us)
	slices.Sort(them)
	median := us[len(us)/2].Seconds()
	b.ReportMetric(them[len(them)/2].Seconds()/median, "x_bare")
	b.ReportMetric(float64(turn*writers)/median, "ops/s")
	b.ReportMetric(median*1e9/float64(turn*writers), "ns/op")
}

// BenchmarkAppend appends messages of 700 characters, durably, beside an insert into one bare table, and beside
// group commits of such inserts where there are several writers.
func BenchmarkAppend(b *testing.B) {
	text := strings.Repeat("message ", 700/8)
	ids := make([]string, 64)
	for i := range ids {
		ids[i] = fmt.Sprintf("conv_%032d", i)
	}
	// With several writers, the bare driver's appends share commits too.
	bareAppend := func(b *testing.B, writers, conversations int) func(int) error {
		x, count := openBare(b, text, writers > 1), make([]int64, writers)
		return func(w int) error {
			count[w]++
			return x.append(int64(w%conversations), count[w]*int64(writers)+int64(w))
		}
	}
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("store/writers=%d", writers), func(b *testing.B) {
			store, last := openAt(b, filepath.Join(b.TempDir(), "a.db"), Options{}), make([]int64, writers)
			defer store.Close()
			for _, id := range ids[:writers] {
				newConversation(b, store, id, 0)
			}
			compare(b, writers, func(w int) error {
				batch := continuo.Batch{ConversationID: ids[w], After: last[w], Entries: someEntries(ids[w], last[w]+1, last[w]+1, text)}
				last[w]++
				return store.Append(context.Background(), batch)
			}, bareAppend(b, writers, writers))
		})
	}
	for _, test := range []struct{ writers, conversations int }{{1, 1}, {64, 64}, {64, 1}} {
		b.Run(fmt.Sprintf("log/writers=%d/conversations=%d", test.writers, test.conversations), func(b *testing.B) {
			store := openAt(b, filepath.Join(b.TempDir(), "a.db"), Options{})
			defer store.Close()
			log := continuo.NewLog(store, continuo.LogOptions{})
			made := make([]string, test.conversations)
			for i := range made {
				c, err := log.Create(b.Context(), continuo.Conversation{})
				if err != nil {
					b.Fatal(err)
				}
				made[i] = c.ID
			}
			compare(b, test.writers, func(w int) error {
				e := continuo.Entry{Role: continuo.User, Content: continuo.Text(text)}
				_, err := log.Append(context.Background(), made[w%len(made)], []continuo.Entry{e}, continuo.AppendOptions{})
				return err
			}, bareAppend(b, test.writers, test.conversations))
		})
	}
}

// BenchmarkLast80 reads the newest 80 of 100 000 entries.
func BenchmarkLast80(b *testing.B) {
	const rows, id = 100_000, "conv_0199c5f0d1a27000b8f7c2a94f1e6d3a"
	text := strings.Repeat("message ", 700/8)
	store := openAt(b, filepath.Join(b.TempDir(), "a.db"), Options{Synchronous: Normal})
	defer store.Close()
	newConversation(b, store, id, 0)
	for after := int64(0); after < rows; after += 1000 {
		if err := store.Append(b.Context(), continuo.Batch{ConversationID: id, After: after, Entries: someEntries(id, after+1, after+1000, text)}); err != nil {
			b.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", dataSource(store.path, withDefaults(Options{})))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	bareLast, err := db.PrepareContext(b.Context(), entriesAll+descending)
	if err != nil {
		b.Fatal(err)
	}
	readBare := func(int) error {
		rows, err := bareLast.QueryContext(context.Background(), int64(math.MaxInt64), id, 1, int64(rows), 80)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var seq, size int64
			var body string
			if err := rows.Scan(&seq, &size, &body); err != nil {
				return err
			}
		}
		return rows.Err()
	}
	compare(b, 1, func(int) error {
		entries, err := store.Entries(context.Background(), id, continuo.EntryQuery{From: 1, To: rows, Backward: true, Limit: 80})
		if err == nil && len(entries) != 80 {
			err = fmt.Errorf("read %d entries", len(entries))
		}
		return err
	}, readBare)
}

// BenchmarkUpdateTurn adds events to turns, durably: each of so many that stream adds four events of 100
// characters at a time.
func BenchmarkUpdateTurn(b *testing.B) {
	data := []byte(`{"text":"` + strings.Repeat("x", 100) + `"}`)
	for _, turns := range []int{1, 1000} {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) {
			store := openAt(b, filepath.Join(b.TempDir(), "a.db"), Options{})
			defer store.Close()
			begun := make([]continuo.Turn, turns)
			for i := range begun {
				id := fmt.Sprintf("conv_%032d", i)
				newConversation(b, store, id, 0)
				var err error
				if begun[i], err = storetest.BeginTurn(b.Context(), store, continuo.Turn{ConversationID: id, ID: fmt.Sprintf("turn_%032d", i)}, time.Hour); err != nil {
					b.Fatal(err)
				}
			}
			each := b.N/turns + 1
			b.ResetTimer()
			took := timed(b, turns, each, func(i int) error {
				turn := &begun[i]
				update := continuo.TurnUpdate{ConversationID: turn.ConversationID, TurnID: turn.ID, Fence: turn.Fence}
				for range 4 {
					turn.LastEvent++
					update.Events = append(update.Events, continuo.TurnEvent{ID: turn.LastEvent, Data: data})
				}
				_, err := store.UpdateTurn(context.Background(), update)
				return err
			})
			b.ReportMetric(float64(each*turns)/took.Seconds(), "updates/s")
		})
	}
}
