package pgtest

import (
	"os"
	"testing"
)

// Pgbench runs PostgreSQL's own load generator on the database of a URL, for comparison figures, and returns its
// output. It ends with the test. If it is not installed, the test is skipped as without PostgreSQL.
func (s *Server) Pgbench(t testing.TB, url string, args ...string) string {
	t.Helper()
	if !s.programs.has("pgbench") {
		report := t.Skipf
		if os.Getenv(requiredEnv) == "1" {
			report = t.Fatalf
		}
		report("SKIPPED: there is no pgbench in %s: install it (Debian has it in the server's package, Red Hat in postgresql-contrib)", s.programs)
	}
	output, err := s.run(t.Context(), "pgbench", append(args, url)...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}
