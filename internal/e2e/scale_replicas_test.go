package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/token"
)

const (
	scaleClients       = 64
	scaleConversations = 256          // that are appended to
	scaleShown         = scaleClients // that are built from, with scaleEntries each
	scaleEntries       = 200
	scaleSpell         = 3 * time.Second // of each measurement in a round
)

// scaleText is a message of about 700 bytes.
var scaleText = strings.Repeat("a message of some length ", 28)

// BenchmarkReplicas measures what 1, 2 and 4 replicas of the program append and build on one durable PostgreSQL,
// and beside them, on the same server, pgbench, which inserts rows of the same shape, and the log alone, without
// HTTP, in as many stores; of these also the writing of turns' events. Each size has a database of its own, which rests while the others are measured. One
// iteration is a round in which all are measured in turn; run several (-benchtime 5x) and the medians are
// reported. Programs, clients and the server share the machine, so that the ratios say more than the rates.
func BenchmarkReplicas(b *testing.B) {
	server := pgtest.Start(b, pgtest.Options{Durable: true, Settings: map[string]string{"max_connections": "500", "max_wal_size": "4GB"}})
	bench := newInsertBench(b, server)
	var contenders []*contender
	for _, size := range []int{1, 2, 4} {
		contenders = append(contenders, newReplicas(b, server, size), newStores(b, server, size))
	}
	for _, c := range contenders { // connections, plans, caches
		c.append(b)
		c.build(b)
		c.settle(b)
	}
	found := figures{}
	b.ResetTimer()
	for turn := 0; b.Loop(); turn++ {
		inserts := bench.rate(b)
		found.add("pgbench_inserts/s", inserts)
		for i := range contenders {
			c := contenders[(turn+i)%len(contenders)]
			c.measure(b, found, inserts)
		}
	}
	b.ReportMetric(0, "ns/op") // all of it together: of no use
	found.against(b, contenders)
	found.report(b)
}

// contender is something that appends and builds, on a database of its own.
type contender struct {
	name, first   string // first: the smallest of its kind
	do            func(ctx context.Context, client, number int, conversation string) error
	show          func(ctx context.Context, client, number int, conversation string) error
	events        func(ctx context.Context, client, number int, conversation string) error // nil: programs do so by themselves
	meter         meter
	conversations []string // ids that are appended to
	shown         []string // ids that are built from
	numbers       [scaleClients]int
}

// newReplicas starts programs. A client takes another one for each request, as behind a load balancer.
func newReplicas(b *testing.B, server *pgtest.Server, size int) *contender {
	b.Helper()
	url := server.Database(b)
	c := newContender(b, url, fmt.Sprintf("replicas=%d", size), "replicas=1")
	var urls []string
	for range size {
		urls = append(urls, serve(b, "store: {url: "+strconv.Quote(url)+"}\nlog: {level: warn}\n").url)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: scaleClients}}
	b.Cleanup(client.CloseIdleConnections)
	body := map[string]any{"entries": []any{map[string]string{"role": "user", "content": scaleText}}}
	request := func(ctx context.Context, number int, method, path string, body any) error {
		k := &killable{url: urls[number%size], http: client}
		return k.discard(ctx, method, "/api/conversations/"+path, body)
	}
	c.do = func(ctx context.Context, client, number int, conversation string) error {
		return request(ctx, client+number, http.MethodPost, conversation+"/entries", body)
	}
	c.show = func(ctx context.Context, client, number int, conversation string) error {
		return request(ctx, client+number, http.MethodGet, conversation+"/context?view=codex", nil)
	}
	return c
}

// newStores opens the database several times in this process.
func newStores(b *testing.B, server *pgtest.Server, size int) *contender {
	b.Helper()
	url := server.Database(b)
	c := newContender(b, url, fmt.Sprintf("stores=%d", size), "stores=1")
	var stores []*postgres.Store
	var logs []*continuo.Log
	for range size {
		stores = append(stores, openPostgres(b, url))
		logs = append(logs, continuo.NewLog(stores[len(stores)-1], continuo.LogOptions{Counter: token.O200k()}))
	}
	c.do = func(ctx context.Context, client, number int, conversation string) error {
		_, err := logs[(client+number)%size].Append(ctx, conversation, []continuo.Entry{{Role: continuo.User, Content: continuo.Text(scaleText)}}, continuo.AppendOptions{})
		return err
	}
	c.show = func(ctx context.Context, client, number int, conversation string) error {
		return buildTail(ctx, logs[(client+number)%size], conversation)
	}
	c.events = beginEventWriters(b, stores, c.conversations)
	return c
}

// beginEventWriters begins a turn in each conversation and returns what adds events to it: as many as a stream brings in the
// time after which they are written.
func beginEventWriters(b *testing.B, stores []*postgres.Store, conversations []string) func(context.Context, int, int, string) error {
	b.Helper()
	begun := map[string]*continuo.Turn{}
	for _, id := range conversations {
		turn, err := storetest.BeginTurn(b.Context(), stores[0], continuo.Turn{ConversationID: id, ID: "turn_" + id}, time.Hour)
		if err != nil {
			b.Fatal(err)
		}
		begun[id] = &turn
	}
	data := []byte(`{"text":"` + strings.Repeat("x", 100) + `"}`)
	return func(ctx context.Context, client, number int, conversation string) error {
		turn := begun[conversation] // which no other client has
		update := continuo.TurnUpdate{ConversationID: conversation, TurnID: turn.ID, Fence: turn.Fence}
		for range 3 {
			turn.LastEvent++
			update.Events = append(update.Events, continuo.TurnEvent{ID: turn.LastEvent, Data: data})
		}
		_, err := stores[(client+number)%len(stores)].UpdateTurn(ctx, update)
		return err
	}
}

// newContender fills a database.
func newContender(b *testing.B, url, name, first string) *contender {
	b.Helper()
	log := continuo.NewLog(openPostgres(b, url), continuo.LogOptions{Counter: token.O200k()})
	c := &contender{name: name, first: first}
	begin := func(entries int) string {
		made, err := log.Import(b.Context(), continuo.Conversation{Title: "scale"}, someMessages(entries))
		if err != nil {
			b.Fatal(err)
		}
		return made.ID
	}
	for range scaleConversations {
		c.conversations = append(c.conversations, begin(0))
	}
	for range scaleShown {
		c.shown = append(c.shown, begin(scaleEntries))
	}
	c.meter = newMeter(b, url)
	return c
}

func openPostgres(b *testing.B, url string) *postgres.Store {
	b.Helper()
	store, err := postgres.Open(b.Context(), url, postgres.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	return store
}

func someMessages(count int) []continuo.Entry {
	entries := make([]continuo.Entry, count)
	for i := range entries {
		entries[i] = continuo.Entry{Role: []continuo.Role{continuo.User, continuo.Assistant}[i%2], Content: continuo.Text(scaleText)}
	}
	return entries
}

// append appends for a spell; each client has conversations of its own.
func (c *contender) append(b *testing.B) spell {
	return c.run(b, c.do, c.conversations)
}

func (c *contender) build(b *testing.B) spell {
	return c.run(b, c.show, c.shown)
}

func (c *contender) run(b *testing.B, do func(context.Context, int, int, string) error, conversations []string) spell {
	b.Helper()
	return during(b, scaleClients, scaleSpell, func(ctx context.Context, client int) error {
		c.numbers[client]++
		number := c.numbers[client]
		own := len(conversations) / scaleClients
		return do(ctx, client, number, conversations[client*own+number%own])
	})
}

// settle waits until the programs have indexed what was appended, so that the next spell is another one's. The
// stores do not do it by themselves.
func (c *contender) settle(b *testing.B) {
	b.Helper()
	if c.first != "replicas=1" {
		return
	}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for range again.C {
		if c.meter.number(b, "SELECT count(*)::float8 FROM continuo.conversations WHERE behind") == 0 {
			return
		}
	}
}

func (c *contender) measure(b *testing.B, found figures, inserts float64) {
	b.Helper()
	before := c.meter.position(b)
	appends := c.append(b)
	written := c.meter.position(b) - before
	c.settle(b)
	builds := c.build(b)
	found.add("appends/s/"+c.name, appends.rate())
	found.add("append-p50-ms/"+c.name, millis(appends.quantile(0.5)))
	found.add("append-p99-ms/"+c.name, millis(appends.quantile(0.99)))
	found.add("append-x-pgbench/"+c.name, appends.rate()/inserts)
	found.add("append-wal-B/"+c.name, written/float64(len(appends.each)))
	found.add("builds/s/"+c.name, builds.rate())
	found.add("build-p50-ms/"+c.name, millis(builds.quantile(0.5)))
	found.add("build-p99-ms/"+c.name, millis(builds.quantile(0.99)))
	if c.events != nil {
		before := c.meter.position(b)
		updates := c.run(b, c.events, c.conversations)
		found.add("updates/s/"+c.name, updates.rate())
		found.add("update-wal-B/"+c.name, (c.meter.position(b)-before)/float64(len(updates.each)))
	}
}

// discard sends a request and reads its answer, which must be a good one.
func (k *killable) discard(ctx context.Context, method, path string, body any) error {
	response, err := k.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// insertBench is pgbench with rows of the shape of entries, under the same indexes.
type insertBench struct {
	server *pgtest.Server
	url    string
	script string
}

func newInsertBench(b *testing.B, server *pgtest.Server) *insertBench {
	b.Helper()
	url := server.Database(b)
	openPostgres(b, url) // for its schema
	entry := someMessages(1)[0]
	entry.ID, entry.ConversationID, entry.Seq, entry.CreatedAt = "ent_0199c5f0d1a27000b8f7c2a94f1e6d3a", "conv_0199c5f0d1a27000b8f7c2a94f1e6d3a", 1, time.Now()
	body, err := entry.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	meter := newMeter(b, url)
	meter.exec(b, "CREATE TABLE bare (LIKE continuo.entries INCLUDING ALL)")
	meter.exec(b, "CREATE SEQUENCE bare_seq CACHE 1000")
	folder, err := os.MkdirTemp("", "continuo-pgbench-") // for the server's account, which a test's own folder is closed to
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(folder) })
	script := filepath.Join(folder, "insert.sql")
	statement := "\\set n random(0, 3)\nINSERT INTO bare (conversation_id, seq, id, role, hidden, created_at, output_ref, chars, tokens, body) VALUES " +
		"('conv_' || lpad((:client_id * 4 + :n)::text, 32, '0'), nextval('bare_seq'), 'ent_0199c5f0d1a27000b8f7c2a94f1e6d3a', 'user', false, " +
		"'2026-03-01T12:00:00.123456789Z', NULL, 700, 175, '" + string(body) + "');\n"
	if err := errors.Join(os.Chmod(folder, 0o755), os.WriteFile(script, []byte(statement), 0o644)); err != nil {
		b.Fatal(err)
	}
	return &insertBench{server, url, script}
}

var pgbenchRate = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)

func (i *insertBench) rate(b *testing.B) float64 {
	b.Helper()
	output := i.server.Pgbench(b, i.url, "-n", "-M", "prepared", "-c", strconv.Itoa(scaleClients), "-j", "2", "-T", strconv.Itoa(int(scaleSpell.Seconds())), "-f", i.script)
	found := pgbenchRate.FindStringSubmatch(output)
	if found == nil {
		b.Fatalf("pgbench says no rate:\n%s", output)
	}
	rate, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return rate
}
