package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/pgtest"
)

// TestStoreScripts runs testdata/store over each engine: the store is the one of the settings, $STORE as flags
// name it, $OTHER is an empty store of the other engine where there is one, and $THIRD another empty one.
func TestStoreScripts(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		runStoreScripts(t, func(env *testscript.Env) error {
			env.Setenv("ENGINE", "sqlite")
			env.Setenv("STORE", filepath.Join(env.WorkDir, "continuo.db"))
			env.Setenv("OTHER", filepath.Join(env.WorkDir, "other.db"))
			env.Setenv("THIRD", filepath.Join(env.WorkDir, "third.db"))
			return nil
		})
	})
	t.Run("postgres", func(t *testing.T) {
		server := pgtest.Shared(t)
		runStoreScripts(t, func(env *testscript.Env) error {
			database, ok := env.T().(testing.TB)
			if !ok {
				return fmt.Errorf("testscript runs with %T, which can make no database", env.T())
			}
			url := server.Database(database)
			env.Setenv("ENGINE", "postgres")
			env.Setenv("STORE", url)
			env.Setenv("CONTINUO_STORE_URL", url)
			env.Setenv("OTHER", filepath.Join(env.WorkDir, "other.db"))
			env.Setenv("THIRD", server.Database(database))
			return nil
		})
	})
}

func runStoreScripts(t *testing.T, engine func(*testscript.Env) error) {
	params := scriptParams("store", "")
	setup := params.Setup
	params.Setup = func(env *testscript.Env) error {
		if err := setup(env); err != nil {
			return err
		}
		return engine(env)
	}
	testscript.Run(t, params)
}

func TestSeqsAreReadAndWritten(t *testing.T) {
	for text, want := range map[string][2]int64{"7": {7, 7}, "3-5": {3, 5}, "3-3": {3, 3}, "4-": {4, 0}} {
		if from, to, err := parseSeqs(text); err != nil || from != want[0] || to != want[1] {
			t.Errorf("%s: %d to %d, %v", text, from, to, err)
		}
	}
	for _, text := range []string{"", "-", "-3", "0", "0-1", "5-3", "x", "1-x", "1-2-3", "1.5"} {
		if from, to, err := parseSeqs(text); exitCode(err) != 2 {
			t.Errorf("%q: %d to %d, %v", text, from, to, err)
		}
	}
	if words := seqRangesText([]int64{1, 3, 4, 5, 9, 10}); words != "1, 3–5, 9–10" {
		t.Errorf("seqs are written as %s", words)
	}
}

func TestOneStoreUnderTwoNames(t *testing.T) {
	placed := func(where string) config.StoreConfig { return storeAt(config.StoreConfig{}, where) }
	for _, same := range [][2]string{
		{"a.db", "./a.db"},
		{"postgres://h/d", "postgresql://me:pw@h:5432/d?sslmode=disable"},
		{"postgres:///d?host=/run/p", "postgres://u@/d?host=/run/p"},
	} {
		if !sameStore(placed(same[0]), placed(same[1])) {
			t.Errorf("%s and %s count as two stores", same[0], same[1])
		}
	}
	for _, different := range [][2]string{
		{"a.db", "b.db"}, {"postgres://h/d", "postgres://h/e"}, {"postgres://h/d", "postgres://h:5433/d"}, {"postgres://h/d", "d"},
	} {
		if sameStore(placed(different[0]), placed(different[1])) {
			t.Errorf("%s and %s count as one store", different[0], different[1])
		}
	}
}

// What is not a store is not taken for the name of a file, and not repeated.
func TestInvalidStores(t *testing.T) {
	for _, where := range []string{"", "a.db", "/a b/c=d.db", "postgres://me:p%23w@h/d", "postgres:///d?host=/run/p", "postgresql://a,b/d"} {
		if err := checkWhere("--to", where); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	for _, where := range []string{
		"Postgres://me:pass1@h/d", "mysql://me:pass1@h/d", "host=h password=pass1", "password = pass1", "postgres://me:pass1 x@h/d",
		"postgres://me:1#pass1@h/d", "postgres://me:1/pass1@h/d", "postgres://me:1?pass1@h/d",
	} {
		if err := checkWhere("--to", where); exitCode(err) != 2 || strings.Contains(err.Error(), "pass1") {
			t.Errorf("%s: %v", where, err)
		}
	}
}
