package pgtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// sessionTimeout bounds the work of one connection of this package.
	sessionTimeout = 5 * time.Minute
	// closeTimeout bounds the wait until connections to a template are closed.
	closeTimeout = 2 * time.Minute
)

// counter numbers from 1.
type counter struct{ last atomic.Int64 }

func (c *counter) next() string { return strconv.FormatInt(c.last.Add(1), 10) }

// templates are the databases that others are cloned from, by the names that tests gave them.
type templates struct {
	mu    sync.Mutex
	named map[string]*template
}

type template struct {
	mu       sync.Mutex // held while it is prepared
	prepared bool
}

// Database makes an empty database for one test and returns its URL. It is dropped at the end of the test, even if it
// still has connections.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return s.clone(t, "template1")
}

// Template makes a database and calls prepare for it, unless the server has one of that name already; tests that run in
// parallel wait for the one that does. prepare must close its connections before it returns.
func (s *Server) Template(t testing.TB, name string, prepare func(url string) error) {
	t.Helper()
	template := s.template(name)
	template.mu.Lock()
	defer template.mu.Unlock()
	if template.prepared {
		return
	}
	if err := s.makeTemplate(templateDatabase(name), prepare); err != nil {
		t.Fatalf("prepare the template %s: %v", name, err)
	}
	template.prepared = true
}

// DatabaseFrom makes a database for one test as a copy of a template and returns its URL. It is dropped at the end of
// the test, even if it still has connections.
func (s *Server) DatabaseFrom(t testing.TB, template string) string {
	t.Helper()
	return s.clone(t, templateDatabase(template))
}

func (s *Server) clone(t testing.TB, template string) string {
	t.Helper()
	name := s.databases.next() + "_" + identifier(t.Name())
	if err := s.exec("CREATE DATABASE " + pgx.Identifier{name}.Sanitize() + " TEMPLATE " + pgx.Identifier{template}.Sanitize()); err != nil {
		t.Fatalf("make a database: %v", err)
	}
	t.Cleanup(func() {
		if !s.runs() {
			return
		}
		if err := s.drop(name); err != nil {
			t.Errorf("drop a test's database: %v", err)
		}
	})
	return s.URL(name)
}

func (s *Server) template(name string) *template {
	s.templates.mu.Lock()
	defer s.templates.mu.Unlock()
	if s.templates.named == nil {
		s.templates.named = map[string]*template{}
	}
	found := s.templates.named[name]
	if found == nil {
		found = &template{}
		s.templates.named[name] = found
	}
	return found
}

func (s *Server) makeTemplate(name string, prepare func(url string) error) error {
	quoted := pgx.Identifier{name}.Sanitize()
	if err := s.drop(name); err != nil { // left by an attempt that was interrupted
		return err
	}
	if err := s.exec("CREATE DATABASE " + quoted); err != nil {
		return err
	}
	if err := prepare(s.URL(name)); err != nil {
		return err
	}
	if err := s.awaitNoConnections(name, closeTimeout); err != nil {
		return err
	}
	return s.exec("ALTER DATABASE " + quoted + " ALLOW_CONNECTIONS false")
}

// awaitNoConnections waits until a database has no connections: otherwise it could not be cloned.
func (s *Server) awaitNoConnections(name string, timeout time.Duration) error {
	return s.await(timeout, "all connections to it are closed", "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend')", name)
}

func templateDatabase(name string) string { return "template_" + name }

// identifier returns a part of a database's name that identifies the test for a person.
func identifier(text string) string {
	const longest = 40
	text = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '_'
		}
	}, text)
	return text[:min(len(text), longest)]
}

// drop removes a database, if it exists. Its connections are terminated first: FORCE would do that too, but waits a
// tenth of a second for each try.
func (s *Server) drop(name string) error {
	return s.session(func(ctx context.Context, connection *pgx.Conn) error {
		const end = "SELECT count(pg_terminate_backend(pid)) = 0 FROM pg_stat_activity WHERE datname = $1"
		_ = awaitAnswer(connection, time.Second, "nobody is connected", end, name) // FORCE tries harder
		_, err := connection.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
		return err
	})
}

// exec runs one statement.
func (s *Server) exec(statement string) error {
	return s.session(func(ctx context.Context, connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, statement)
		return err
	})
}

// ask runs a query for one value.
func (s *Server) ask(question string, value any) error {
	return s.session(func(ctx context.Context, connection *pgx.Conn) error {
		return connection.QueryRow(ctx, question).Scan(value)
	})
}

// await repeats a query for one boolean until the result is true.
func (s *Server) await(timeout time.Duration, what, question string, args ...any) error {
	return s.session(func(_ context.Context, connection *pgx.Conn) error {
		return awaitAnswer(connection, timeout, what, question, args...)
	})
}

func awaitAnswer(connection *pgx.Conn, timeout time.Duration, what, question string, args ...any) error {
	return await(timeout, what, func(ctx context.Context) (yes bool, err error) {
		err = connection.QueryRow(ctx, question, args...).Scan(&yes)
		return yes, err
	})
}

// session calls work with a connection of its own.
func (s *Server) session(work func(ctx context.Context, connection *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), sessionTimeout)
	defer cancel()
	connection, err := s.connect(ctx)
	if err != nil {
		return err
	}
	return errors.Join(work(ctx, connection), connection.Close(ctx))
}

// connect opens a connection whose commits wait for no standby: a missing standby must not keep a test from ending.
func (s *Server) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(s.socketURL("postgres"))
	if err != nil {
		return nil, fmt.Errorf("connect to the PostgreSQL server: %w", err)
	}
	config.RuntimeParams["synchronous_commit"] = "local"
	return pgx.ConnectConfig(ctx, config)
}
