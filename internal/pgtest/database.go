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
	// statementTimeout bounds one statement of this package.
	statementTimeout = time.Minute
	// closeTimeout bounds the wait until connections to a template are gone.
	closeTimeout = 10 * time.Second
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

// Database makes an empty database for one test and returns its URL. It is dropped with the end of the test,
// whoever still uses it.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return s.clone(t, "template1")
}

// Template makes a database and has it prepared, if the server has none of that name yet; tests that run in
// parallel wait for the one that does. The connections that prepare made must be closed when it returns.
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

// DatabaseFrom makes a database for one test as a copy of a template and returns its URL. It is dropped with the
// end of the test, whoever still uses it.
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
	if err := s.drop(name); err != nil { // one whose making was broken off
		return err
	}
	if err := s.exec("CREATE DATABASE " + quoted); err != nil {
		return err
	}
	if err := prepare(s.URL(name)); err != nil {
		return err
	}
	// What is connected to a template keeps it from being cloned.
	err := s.await(closeTimeout, "all connections to it are closed", "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend')", name)
	if err != nil {
		return err
	}
	return s.exec("ALTER DATABASE " + quoted + " ALLOW_CONNECTIONS false")
}

func templateDatabase(name string) string { return "template_" + name }

// identifier returns a part of a database's name that tells a person which test it belongs to.
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

func (s *Server) drop(name string) error {
	return s.exec("DROP DATABASE IF EXISTS " + pgx.Identifier{name}.Sanitize() + " WITH (FORCE)")
}

// exec runs one statement.
func (s *Server) exec(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	connection, err := s.connect(ctx)
	if err != nil {
		return err
	}
	_, err = connection.Exec(ctx, statement)
	return errors.Join(err, connection.Close(ctx))
}

// await asks a question of one boolean until the answer is true.
func (s *Server) await(timeout time.Duration, what, question string, args ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	connection, err := s.connect(ctx)
	if err != nil {
		return err
	}
	err = await(timeout, what, func(context.Context) (yes bool, err error) {
		err = connection.QueryRow(ctx, question, args...).Scan(&yes)
		return yes, err
	})
	return errors.Join(err, connection.Close(context.WithoutCancel(ctx)))
}

// connect opens a connection of our own, whose commits wait for no standby: one that is gone must not keep a test
// from its end.
func (s *Server) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(s.socketURL("postgres"))
	if err != nil {
		return nil, fmt.Errorf("connect to the PostgreSQL server: %w", err)
	}
	config.RuntimeParams["synchronous_commit"] = "local"
	return pgx.ConnectConfig(ctx, config)
}
