package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Standby starts a standby of this server through a replication slot, and returns when it streams. This server needs
// Options.Replication; the standby has it too, and this server's settings, over which its own take precedence. It ends
// with the test.
func (s *Server) Standby(t testing.TB, options Options) *Server {
	t.Helper()
	if !s.options.Replication {
		t.Fatal("begin a standby: its primary has to be started with Options.Replication")
	}
	options.Replication = true
	options.Settings = merged(s.options.Settings, options.Settings)
	standby, err := newServer(options)
	check(t, err)
	standby.primary, standby.name = s, "standby_"+s.standbys.next()
	if err := standby.follow(); err != nil {
		standby.showLog(t, 0)
		t.Fatal(errors.Join(fmt.Errorf("begin a standby: %w", err), standby.end()))
	}
	standby.endWith(t)
	t.Cleanup(func() { standby.leave(t) })
	return standby
}

// CommitsWaitFor makes this server acknowledge a commit only when each of the standbys has it, too; without arguments
// it waits for none again. It returns when the new rule is in effect.
func (s *Server) CommitsWaitFor(t testing.TB, standbys ...*Server) {
	t.Helper()
	var names []string
	for _, standby := range standbys {
		names = append(names, standby.name)
	}
	if err := s.waitFor(names); err != nil {
		t.Fatalf("make commits wait for %v: %v", names, err)
	}
}

// CatchUp waits until this standby shows all that its primary has committed so far.
func (s *Server) CatchUp(t testing.TB) {
	t.Helper()
	if s.primary == nil {
		t.Fatal("catch up: this server is no standby")
	}
	var position string
	err := s.primary.ask("SELECT pg_current_wal_flush_lsn()::text", &position)
	if err == nil {
		err = s.await(startTimeout, "the standby has replayed the log to "+position, "SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn", position)
	}
	if err != nil {
		t.Fatalf("catch up with the primary: %v", err)
	}
}

// Promote makes this standby a primary and returns when it accepts writes. It does nothing to its former primary: stop
// that one before, or there are two primaries.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	err := s.exec("SELECT pg_promote(false)")
	if err == nil {
		err = s.await(startTimeout, "the standby is a primary", "SELECT NOT pg_is_in_recovery()")
	}
	if err != nil {
		t.Fatalf("promote a standby: %v", err)
	}
}

// MultiHostURL returns a URL with the addresses of several servers, all with Options.ListenTCP: clients take the first
// that accepts writes.
func MultiHostURL(t testing.TB, database string, servers ...*Server) string {
	t.Helper()
	var hosts []string
	for _, server := range servers {
		if !server.options.ListenTCP {
			t.Fatal("make a URL of several hosts: each has to be started with Options.ListenTCP")
		}
		hosts = append(hosts, "127.0.0.1:"+strconv.Itoa(server.port))
	}
	return servers[0].address(database, strings.Join(hosts, ","), url.Values{"target_session_attrs": {"read-write"}})
}

// follow copies the primary's data and starts from there.
func (s *Server) follow() error {
	ctx, cancel := context.WithTimeout(context.Background(), programTimeout)
	defer cancel()
	_, err := s.run(ctx, "pg_basebackup", "--host", s.primary.folder, "--port", strconv.Itoa(s.primary.port), "--username", superuser,
		"--pgdata", s.path(dataName), "--wal-method", "stream", "--checkpoint", "fast", "--no-sync", "--no-password",
		"--write-recovery-conf", "--create-slot", "--slot", s.name)
	if err != nil {
		return err
	}
	if err := errors.Join(s.writeSettings(), s.launch()); err != nil {
		return err
	}
	return s.primary.await(startTimeout, "the standby streams",
		"SELECT EXISTS (SELECT FROM pg_stat_replication WHERE application_name = $1 AND state = 'streaming')", s.name)
}

// leave stops the standby and removes its slot, for which the primary would keep its log permanently. A primary whose
// commits wait for it no longer waits.
func (s *Server) leave(t testing.TB) {
	if !s.primary.runs() {
		return
	}
	if err := s.stop(syscall.SIGQUIT); err != nil {
		t.Error(err)
	}
	if names := s.primary.waits(); slices.Contains(names, s.name) {
		if err := s.primary.waitFor(slices.DeleteFunc(names, func(name string) bool { return name == s.name })); err != nil {
			t.Error(err)
		}
	}
	slot := quoted(s.name)
	err := s.primary.await(startTimeout, "the slot of the standby is free", "SELECT NOT EXISTS (SELECT FROM pg_replication_slots WHERE active AND slot_name = "+slot+")")
	if err == nil {
		err = s.primary.exec("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = " + slot)
	}
	if err != nil {
		t.Errorf("remove the slot of the standby %s: %v", s.name, err)
	}
}

// waitFor writes the standbys that commits wait for into the settings, and waits until these are in effect.
func (s *Server) waitFor(names []string) error {
	if err := s.reload(names); err != nil {
		return err
	}
	err := s.await(startTimeout, "the server has read its settings", "SELECT current_setting('synchronous_standby_names') = $1", standbyNames(names))
	if err != nil {
		return err
	}
	return s.await(startTimeout, "the standbys are synchronous", "SELECT count(*) = $1 FROM pg_stat_replication WHERE sync_state = 'sync'", len(names))
}

func (s *Server) reload(names []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return errors.New("the server does not run")
	}
	s.waitsFor = names
	if err := s.writeSettings(); err != nil {
		return err
	}
	return s.process.process.Signal(syscall.SIGHUP)
}

func (s *Server) waits() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.waitsFor)
}

// standbyNames is the setting that makes commits wait for each.
func standbyNames(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("FIRST %d (%s)", len(names), strings.Join(names, ", "))
}

// merged returns the settings of both; those of the second take precedence.
func merged(first, second map[string]string) map[string]string {
	both := map[string]string{}
	maps.Copy(both, first)
	maps.Copy(both, second)
	return both
}
