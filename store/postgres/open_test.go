package postgres

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/store/internal/form"
	"github.com/jackc/pgx/v5"
)

// execute runs a statement beside the stores.
func execute(t testing.TB, url, statement string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// TestManyOpenAtOnce has replicas find an empty database at the same time.
func TestManyOpenAtOnce(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	var openers sync.WaitGroup
	for range 6 {
		openers.Go(func() {
			store, err := Open(t.Context(), url, Options{MaxConns: 4, Partitions: 2})
			if err != nil {
				t.Error(err)
				return
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	openers.Wait()
	store := openAt(t, url, Options{})
	defer store.Close()
	newConversation(t, store, "a", 2)
}

func TestWhatCannotBeOpened(t *testing.T) {
	made := newDatabase(t, 0)
	newer := newDatabase(t, 0)
	execute(t, newer, `UPDATE continuo.schema_version SET version = version + 1`)
	divided := newDatabase(t, 16)
	for what, test := range map[string]struct {
		url     string
		options Options
		want    error
		message string
	}{
		"a newer schema":             {newer, Options{}, continuo.ErrNewerSchema, "install a newer continuo"},
		"partitions of a plain one":  {made, Options{Partitions: 16}, continuo.ErrInvalid, "0 partitions"},
		"other partitions":           {divided, Options{Partitions: 8}, continuo.ErrInvalid, "16 partitions"},
		"too many partitions":        {made, Options{Partitions: maxPartitions + 1}, continuo.ErrInvalid, "choose"},
		"too few connections":        {made, Options{MaxConns: 3}, continuo.ErrInvalid, "at least 4 connections"},
		"no server":                  {"postgres://u:secret@127.0.0.1:1/d", Options{Patience: 50 * time.Millisecond}, continuo.ErrUnavailable, "store.url"},
		"no server, without waiting": {"postgres://u:secret@127.0.0.1:1/d", Options{Patience: -1}, continuo.ErrUnavailable, "store.url"},
		"no such database":           {strings.Replace(made, "testwhatcannot", "nosuch", 1), Options{}, nil, "no such database"},
	} {
		store, err := Open(t.Context(), test.url, test.options)
		if err == nil {
			t.Errorf("%s: it was opened; %v", what, store.Close())
			continue
		}
		if test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.message) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v; want %v and that it says %q", what, err, test.want, test.message)
		}
	}
	store := openAt(t, divided, Options{Partitions: 16})
	defer store.Close()
}

// TestTheStoreIsOpenedWhileTheServerStarts opens it before there is a server.
func TestTheStoreIsOpenedWhileTheServerStarts(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	server.Stop(t, pgtest.Fast)
	opened := make(chan error, 1)
	go func() {
		store, err := Open(t.Context(), server.URL("postgres"), Options{Patience: 5 * time.Minute})
		if err == nil {
			err = store.Close()
		}
		opened <- err
	}()
	server.Restart(t)
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

func TestPasswordsAreNotShown(t *testing.T) {
	const secret = "s3cr:t/@%zz"
	good := "postgres://u:" + url.QueryEscape(secret) + "@127.0.0.1:1/d"
	for _, text := range []string{
		good, good + "?sslmode=nonsense", good + "?connect_timeout=x", "postgres://u:" + secret + "@127.0.0.1:1/d",
		"postgres://u:" + secret + ":1/d", "host=127.0.0.1 port=x user=u password=" + secret, "host=127.0.0.1 port=1 user=u password=" + secret + " sslmode=nonsense",
		"postgres://u:s3cr\x7f@h/d", "postgres://127.0.0.1:s3cr/d", "",
	} {
		_, err := Open(t.Context(), text, Options{Patience: -1})
		if err == nil {
			t.Errorf("%q was opened", text)
		} else if shown := err.Error(); strings.Contains(shown, "s3cr") || strings.Contains(shown, url.QueryEscape(secret)) {
			t.Errorf("the error shows the password: %s", shown)
		}
	}
}

func TestAStandbyIsRefused(t *testing.T) {
	primary := pgtest.Start(t, pgtest.Options{Replication: true, ListenTCP: true})
	store := openAt(t, primary.URL("postgres"), Options{})
	newConversation(t, store, "a", 1)
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	standby := primary.Standby(t, pgtest.Options{ListenTCP: true})
	standby.CatchUp(t)
	_, err := Open(t.Context(), standby.URL("postgres"), Options{Patience: 50 * time.Millisecond})
	if !errors.Is(err, continuo.ErrReadOnly) || !strings.Contains(err.Error(), "target_session_attrs") {
		t.Errorf("a standby: %v", err)
	}
	both := openAt(t, pgtest.MultiHostURL(t, "postgres", standby, primary), Options{})
	defer both.Close()
	if err := both.PutBlob(t.Context(), "h", nil); err != nil {
		t.Error(err)
	}
}

// TestReadsAreNotSentToAStandby names several servers and lets the first, which can be written to, go away: what a
// standby shows may be long out of date.
func TestReadsAreNotSentToAStandby(t *testing.T) {
	primary := pgtest.Start(t, pgtest.Options{Replication: true, ListenTCP: true})
	standby := primary.Standby(t, pgtest.Options{ListenTCP: true})
	several := strings.Replace(pgtest.MultiHostURL(t, "postgres", primary, standby), "target_session_attrs=read-write", "", 1)
	store := openAt(t, several, Options{Patience: 50 * time.Millisecond})
	defer store.Close()
	newConversation(t, store, "a", 1)
	standby.CatchUp(t)
	primary.Stop(t, pgtest.Fast)
	if found, err := store.Conversation(t.Context(), "a"); !errors.Is(err, continuo.ErrUnavailable) {
		t.Errorf("a standby showed %+v (%v)", found, err)
	}
	primary.Restart(t)
	if _, err := store.Conversation(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

// TestTooLongValuesAreInvalid has keys that no index takes.
func TestTooLongValuesAreInvalid(t *testing.T) {
	store := openAt(t, newDatabase(t, 0), Options{})
	defer store.Close()
	newConversation(t, store, "a", 0)
	var long strings.Builder
	for i := range 10_000 { // what can be packed fits
		fmt.Fprintf(&long, "%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
	}
	batch := continuo.Batch{ConversationID: "a", Entries: someEntries("a", 1, 1, "text"), Receipts: []continuo.Receipt{{Key: long.String(), First: 1, Last: 1}}}
	if err := store.Append(t.Context(), batch); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("a receipt's key: %v", err)
	}
	if err := store.Create(t.Context(), continuo.Conversation{ID: "b", Key: long.String()}, nil); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("a conversation's key: %v", err)
	}
}

// TestMigrationsAreAllOrNothing runs made-up migrations after today's.
func TestMigrationsAreAllOrNothing(t *testing.T) {
	store := openAt(t, newDatabase(t, 0), Options{})
	defer store.Close()
	today, err := form.Migrations(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := store.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	good := "CREATE TABLE continuo.new1 (a int); INSERT INTO continuo.new1 VALUES (1)"
	expect := func(want schemaVersion, tables int) {
		t.Helper()
		have, err := readVersion(t.Context(), conn)
		if err != nil || have != want {
			t.Errorf("the version is %+v (%v), want %+v", have, err, want)
		}
		var found int
		err = conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = 'continuo' AND tablename LIKE 'new%'`).Scan(&found)
		if err != nil || found != tables {
			t.Errorf("%d new tables are there (%v), want %d", found, err, tables)
		}
	}
	if err := migrate(t.Context(), conn, append(today, good, "CREATE TABLE continuo.new2 (a int); no SQL"), Options{}); err == nil || !strings.Contains(err.Error(), fmt.Sprint("migration ", len(today)+2)) {
		t.Errorf("a broken migration: %v", err)
	}
	expect(schemaVersion{made: true, version: len(today)}, 0)
	for range 2 { // the second time there is nothing to do
		if err := migrate(t.Context(), conn, append(today, good), Options{}); err != nil {
			t.Error(err)
		}
		expect(schemaVersion{made: true, version: len(today) + 1}, 1)
	}
}
