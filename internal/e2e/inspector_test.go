package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/continuo-log/continuo/internal/pgtest"
)

// The inspector in a real browser, before a server with a file and before one with a database, before one that nothing
// is configured for and before one with keys: every question of the page is walked as a person would (web/tests). Console
// errors, failed requests, requests to another host and serious findings of axe fail a check.
//
// INSPECTOR_SHOTS names a folder for pictures of the pages. With it, and with CONTINUO_LONG, axe looks at every page in each
// size and scheme, and not at what differs between them only. INSPECTOR_ENTRIES is the length of the longest log, INSPECTOR_ONLY an expression for the names of the
// checks to run.
func TestInspectorInABrowser(t *testing.T) {
	t.Parallel()
	npmFile(t, "playwright-core", "package.json")
	npmFile(t, "axe-core", "package.json")
	browser := chromium(t)
	t.Run("a file", func(t *testing.T) {
		// The page of health shows the file's path, which has to fit a phone whatever its length.
		store := "store:\n  path: " + strings.Repeat("x", 80) + ".db\n"
		if os.Getenv("INSPECTOR_SHOTS") != "" { // where it would be the first thing that one sees
			store = "store:\n  path: continuo.db\n"
		}
		runInspector(t, browser, store, "")
	})
	t.Run("a database", func(t *testing.T) {
		if os.Getenv("CONTINUO_LONG") == "" {
			t.Skip("SKIPPED: the same walks on PostgreSQL need CONTINUO_LONG=1, as in .ci/run")
		}
		database := pgtest.Start(t, pgtest.Options{}).Database(t)
		runInspector(t, browser, "store:\n  url: "+database+"\n", "^(?!every page)")
	})
}

// BenchmarkInspector says what a person waits for in the browser with INSPECTOR_ENTRIES entries, 100 000 by default: the
// first paint, a jump, a search, the frames while scrolling and while an answer streams. See make bench-page.
func BenchmarkInspector(b *testing.B) {
	npmFile(b, "playwright-core", "package.json")
	browser := chromium(b)
	url := serve(b, inspectorSettings(b)).url
	for b.Loop() {
		runScript(b, "measure.mjs", "INSPECTOR_URL="+url, "CHROMIUM="+browser, "INSPECTOR_ENTRIES="+cmp.Or(os.Getenv("INSPECTOR_ENTRIES"), "100000"))
	}
}

// chromium is the browser's program.
func chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CONTINUO_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("SKIPPED: there is no chromium in PATH: run make chromium, install it, or name it in CONTINUO_CHROMIUM")
	return ""
}

// inspectorSettings are those of a server with every kind of thing that the page shows.
func inspectorSettings(t testing.TB) string {
	t.Helper()
	workflows, err := filepath.Abs(filepath.Join("..", "..", "examples", "workflows"))
	if err != nil {
		t.Fatal(err)
	}
	return `model: demo
models:
  sonnet:
    protocol: openai-chat
    base_url: ` + newInspectorUpstream(t) + `
    model: mock-sonnet
    api_key_env: ""
    context_window: 48000
tools:
  ask: [conversation.search]
agents:
  coder:
    name: Coder
    persona: You work on a Go program. Read a file whole before you change it.
  reader: {persona: You read.}
  skeptic: {persona: You doubt.}
  writer: {persona: You write.}
workflows: {dir: ` + workflows + `}
`
}

// recordedSettings has the requests of the recorded agents go to an upstream that answers them as they were answered, and
// gives the folder of the recordings; "" where there are none.
func recordedSettings(t testing.TB) (settings, folder string) {
	t.Helper()
	folder, err := filepath.Abs(cmp.Or(os.Getenv("CONTINUO_DATA"), filepath.Join("..", "..", "..", "shared", "data")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "agent-traffic")); err != nil {
		t.Logf("SKIPPED: no recorded conversations: %v; set CONTINUO_DATA to their folder", err)
		return "", ""
	}
	upstream := newRecordedUpstream(t, folder, "subagent", "claude-code", "codex")
	return fmt.Sprintf(`upstreams:
  claude: {protocol: anthropic-messages, base_url: %q, models: ["claude-*"], api_key_env: ""}
  codex: {protocol: openai-responses, base_url: %q, models: ["gpt-*"], api_key_env: ""}
`, upstream, upstream+"/v1"), folder
}

// serveWithKeys starts a server, and makes a key in each of two projects before.
func serveWithKeys(t testing.TB) (url string, keys []string) {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, project := range []string{"ours", "theirs"} {
		command := exec.CommandContext(t.Context(), path, "keys", "create", "--project", project)
		command.Dir = dir
		command.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
		key, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, strings.TrimSpace(string(key)))
	}
	return serveIn(t, dir, path, "").url, keys
}

// runInspector runs all checks, but for those that only leaves out, before a server with a store and two others.
func runInspector(t *testing.T, browser, store, only string) {
	t.Helper()
	recorded, folder := recordedSettings(t)
	keysURL, keys := serveWithKeys(t)
	shots := os.Getenv("INSPECTOR_SHOTS")
	if shots != "" {
		var err error
		if shots, err = filepath.Abs(shots); err != nil {
			t.Fatal(err)
		}
	}
	runScript(t, "inspector.mjs",
		"INSPECTOR_URL="+serve(t, inspectorSettings(t)+recorded+store).url, "INSPECTOR_NEW_URL="+serve(t, "").url,
		"INSPECTOR_KEYS_URL="+keysURL, "INSPECTOR_KEYS="+strings.Join(keys, " "), "INSPECTOR_DATA="+folder,
		"CHROMIUM="+browser, "INSPECTOR_SHOTS="+shots, "INSPECTOR_ONLY="+cmp.Or(os.Getenv("INSPECTOR_ONLY"), only),
		"INSPECTOR_ENTRIES="+cmp.Or(os.Getenv("INSPECTOR_ENTRIES"), "5000"), "CONTINUO_LONG="+os.Getenv("CONTINUO_LONG"))
}

// runScript runs a script of web/tests, which ends with 0 where no check failed, and logs its figures.
func runScript(t testing.TB, script string, env ...string) {
	t.Helper()
	dir := t.TempDir() // modules are found beside the scripts
	scripts, err := filepath.Abs(filepath.Join("..", "..", "web", "tests"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(scripts)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(npmPath(t), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, node(t), filepath.Join(dir, script))
	command.Dir = dir
	command.Env = append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1", "INSPECTOR_PATIENCE=" + os.Getenv("INSPECTOR_PATIENCE")}, env...)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", script, err, output)
		return
	}
	figures := `(?m)^# .*$`
	if testing.Verbose() {
		figures = `(?m)^(#|ok) .*$`
	}
	for _, figure := range regexp.MustCompile(figures).FindAllString(string(output), -1) {
		t.Log(figure)
	}
}
