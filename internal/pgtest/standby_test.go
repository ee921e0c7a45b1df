package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// pair starts a primary with a table and a standby, both reached by TCP.
func pair(t *testing.T) (primary, standby *Server) {
	t.Helper()
	primary = Start(t, Options{Replication: true, ListenTCP: true})
	execute(t, primary.URL("postgres"), "CREATE TABLE kept (n int)")
	return primary, primary.Standby(t, Options{ListenTCP: true})
}

func TestAStandbyFollowsAndTakesOver(t *testing.T) {
	t.Parallel()
	primary, standby := pair(t)
	execute(t, primary.URL("postgres"), "INSERT INTO kept VALUES (1)")
	standby.CatchUp(t)
	url := standby.URL("postgres")
	expect(t, url, 1, "SELECT count(*) FROM kept")
	if _, err := connect(t, url).Exec(t.Context(), "INSERT INTO kept VALUES (2)"); err == nil {
		t.Error("a standby can be written to")
	}
	both := MultiHostURL(t, "postgres", standby, primary)
	expect(t, both, primary.port, "SELECT inet_server_port()")

	primary.Kill(t)
	standby.Promote(t)
	execute(t, url, "INSERT INTO kept VALUES (2)")
	expect(t, url, 2, "SELECT count(*) FROM kept")
	expect(t, both, standby.port, "SELECT inet_server_port()")
	heir := standby.Standby(t, Options{})
	expect(t, heir.URL("postgres"), 2, "SELECT count(*) FROM kept")
}

func TestCommitsThatWaitForAStandbyAreOnIt(t *testing.T) {
	t.Parallel()
	primary, standby := pair(t)
	primary.CommitsWaitFor(t, standby)
	standby.Stop(t, Immediate)
	connection, done := connect(t, primary.URL("postgres")), make(chan error, 1)
	go func() { done <- insert(t, connection, 1) }()
	eventually(t, primary, "a commit waits for the standby", "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')")
	standby.Restart(t)
	if err := <-done; err != nil {
		t.Errorf("the commit fails when the standby is back: %v", err)
	}

	acknowledged := make(chan int, 1)
	go func() { acknowledged <- fill(t, connection) }()
	eventually(t, primary, "some rows are written", "SELECT count(*) > 50 FROM kept")
	primary.Kill(t)
	standby.Promote(t)
	want := <-acknowledged
	if got := query[int](t, standby.URL("postgres"), "SELECT count(DISTINCT n) FROM kept"); got < want {
		t.Errorf("%d rows were acknowledged, %d are on the standby", want, got)
	}
}

func TestCommitsWaitNoMoreForAStandbyThatLeft(t *testing.T) {
	t.Parallel()
	primary := Start(t, Options{Replication: true})
	t.Run("with it", func(t *testing.T) {
		primary.CommitsWaitFor(t, primary.Standby(t, Options{}))
	})
	execute(t, primary.URL("postgres"), "CREATE TABLE alone ()")
	expect(t, primary.URL("postgres"), 0, "SELECT count(*) FROM pg_replication_slots")
}

func insert(t *testing.T, connection *pgx.Conn, n int) error {
	_, err := connection.Exec(t.Context(), "INSERT INTO kept VALUES ($1)", n)
	return err
}

// fill inserts rows from 1 on until the server is gone, and returns the last that it acknowledged.
func fill(t *testing.T, connection *pgx.Conn) (last int) {
	for insert(t, connection, last+1) == nil {
		last++
	}
	return last
}
