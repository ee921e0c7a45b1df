package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestDatabasesKnowNothingOfEachOther(t *testing.T) {
	t.Parallel()
	server := Shared(t)
	one, other := server.Database(t), server.Database(t)
	execute(t, one, "CREATE TABLE mine ()")
	expect(t, one, false, "SELECT to_regclass('mine') IS NULL")
	expect(t, other, true, "SELECT to_regclass('mine') IS NULL")
}

func TestADatabaseIsDroppedWithItsTest(t *testing.T) {
	t.Parallel()
	parent := t
	server := Shared(t)
	var name string
	t.Run("Its Name: Ünïcode, and longer than what fits into the name of a database", func(t *testing.T) {
		url := server.Database(t)
		name = query[string](t, url, "SELECT current_database()")
		stillOpen, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		parent.Cleanup(func() { _ = stillOpen.Close(context.Background()) })
	})
	expect(t, server.URL("postgres"), 0, "SELECT count(*) FROM pg_database WHERE datname = $1", name)
}

func TestATemplateIsPreparedOnceAndCloned(t *testing.T) {
	t.Parallel()
	server := Shared(t)
	name := rand.Text() // tests may run again in the same process
	var prepared atomic.Int32
	t.Run("tests", func(t *testing.T) {
		for _, test := range []string{"a", "b", "c", "d", "e", "f"} {
			t.Run(test, func(t *testing.T) {
				t.Parallel()
				server.Template(t, name, func(url string) error {
					prepared.Add(1)
					return prepare(t, url, "CREATE TABLE filled AS SELECT 1 AS n")
				})
				url := server.DatabaseFrom(t, name)
				execute(t, url, "INSERT INTO filled VALUES (2)")
				expect(t, url, 2, "SELECT count(*) FROM filled")
			})
		}
	})
	if prepared.Load() != 1 {
		t.Errorf("the template was prepared %d times", prepared.Load())
	}
}

func TestATemplateThatCouldNotBePreparedIsTriedAgain(t *testing.T) {
	t.Parallel()
	server := Shared(t)
	name := rand.Text() // tests may run again in the same process
	broken := errors.New("broken")
	if err := server.makeTemplate(templateDatabase(name), func(string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want what prepare returned", err)
	}
	server.Template(t, name, func(url string) error { return prepare(t, url, "CREATE TABLE filled ()") })
	expect(t, server.DatabaseFrom(t, name), false, "SELECT to_regclass('filled') IS NULL")
}

func TestOpenConnectionsToATemplateAreReported(t *testing.T) {
	t.Parallel()
	server := Shared(t)
	url := server.Database(t)
	name := connect(t, url).Config().Database
	err := server.awaitNoConnections(name, 100*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "connections to it are closed") {
		t.Errorf("the error does not tell of open connections: %v", err)
	}
}

// prepare runs one statement and leaves no connection.
func prepare(t testing.TB, url, statement string) error {
	connection, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return err
	}
	_, err = connection.Exec(t.Context(), statement)
	return errors.Join(err, connection.Close(t.Context()))
}

func BenchmarkDatabaseFrom(b *testing.B) {
	server := Shared(b)
	server.Template(b, "timed", func(url string) error {
		return prepare(b, url, "CREATE TABLE filled AS SELECT n, n::text AS text FROM generate_series(1, 1000) n")
	})
	b.ResetTimer()
	for b.Loop() {
		server.DatabaseFrom(b, "timed")
	}
}

func TestPgbenchRunsOnADatabase(t *testing.T) {
	t.Parallel()
	server := Shared(t)
	url := server.Database(t)
	server.Pgbench(t, url, "--initialize", "--quiet")
	output := server.Pgbench(t, url, "--transactions", "10")
	if !strings.Contains(output, "actually processed: 10/10") {
		t.Errorf("the output does not tell of 10 transactions:\n%s", output)
	}
}
