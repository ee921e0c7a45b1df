package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/continuo-log/continuo/internal/pgtest"
)

// TestMain lets this binary be the program: called as continuo it is one.
func TestMain(m *testing.M) {
	testscript.Main(withDatabases{m}, map[string]func(){"continuo": func() { os.Exit(runProcess()) }})
}

// withDatabases ends the PostgreSQL server of the tests, if any, when they are over.
type withDatabases struct{ m *testing.M }

func (w withDatabases) Run() int { return pgtest.Main(w.m) }

// TestScripts runs testdata/script: each script has a home folder and a store of its own, and an upstream
// that speaks chat completions at $UPSTREAM.
func TestScripts(t *testing.T) {
	upstream := newUpstream(t)
	testscript.Run(t, scriptParams("script", upstream.URL))
}

// scriptParams says how the scripts of a folder in testdata are run.
func scriptParams(folder, upstream string) testscript.Params {
	return testscript.Params{
		Dir: filepath.Join("testdata", folder),
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("CONTINUO_STORE_PATH", filepath.Join(env.WorkDir, "continuo.db"))
			env.Setenv("UPSTREAM", upstream)
			env.Setenv("TZ", "UTC")
			return os.MkdirAll(home, 0o700)
		},
		Condition: func(name string) (bool, error) {
			if name == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": exitsWith,
			"json":   holdsJSON,
			"sql":    runSQL,
			"fill":   fillFile,
		},
		RequireExplicitExec: true,
	}
}

// exitsWith is the command "status CODE PROGRAM ARGS…": the program ends with that code.
func exitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if failed, ok := err.(interface{ ExitCode() int }); ok {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s ended with %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// holdsJSON is the command "json FILE PATH VALUE": the JSON in the file has the value, written as JSON, at
// the path, such as data.0.key; len counts the elements of a list.
func holdsJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH VALUE")
	}
	var value any
	decoder := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	decoder.UseNumber()
	ts.Check(decoder.Decode(&value))
	for step := range strings.SplitSeq(args[1], ".") {
		switch at := value.(type) {
		case map[string]any:
			value = at[step]
		case []any:
			if step == "len" {
				value = len(at)
				continue
			}
			index, err := strconv.Atoi(step)
			ts.Check(err)
			if index >= len(at) {
				ts.Fatalf("%s: there are only %d elements", args[1], len(at))
			}
			value = at[index]
		default:
			ts.Fatalf("%s: nothing is at %s", args[1], step)
		}
	}
	var got bytes.Buffer
	encoder := json.NewEncoder(&got)
	encoder.SetEscapeHTML(false)
	ts.Check(encoder.Encode(value))
	if same := strings.TrimSpace(got.String()) == args[2]; same == neg {
		ts.Fatalf("%s is %s, want %s (negated: %v)", args[1], strings.TrimSpace(got.String()), args[2], neg)
	}
}

// runSQL is the command "sql FILE STATEMENT".
func runSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql FILE STATEMENT")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	_, err = db.ExecContext(context.Background(), args[1])
	ts.Check(err)
}

// fillFile is the command "fill FILE TEXT N": the file holds the text N times.
func fillFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: fill FILE TEXT N")
	}
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(args[1], n)), 0o600))
}
