package e2e

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/continuo-log/continuo/internal/pgtest"
)

// The checks in web/tests/inspector.mjs: the walks, and those that look at every page in each size and scheme. Colours
// are the only difference between schemes, so that by default only the widest pages are looked at in both.
const (
	inspectorWalks                = 23
	inspectorSweeps, inspectorAll = 4, 6
	inspectorDefault              = "^(?!every page at (720|390) px, dark)"
)

// The inspector in a real browser, before a server with a file and before one with a database: every question of the page
// is walked as a person would. Console errors, failed requests, requests to another host and serious findings of axe fail
// a check. INSPECTOR_SHOTS names a folder for pictures of the pages, all of which are
// then looked at, as with CONTINUO_LONG, INSPECTOR_ENTRIES the length of the longest log,
// INSPECTOR_ONLY is an expression for the names of the checks to run.
func TestInspectorInABrowser(t *testing.T) {
	t.Parallel()
	npmFile(t, "playwright-core", "package.json")
	npmFile(t, "axe-core", "package.json")
	browser := chromium(t)
	t.Run("a file", func(t *testing.T) {
		// The page of health shows the file's path, which has to fit a phone whatever its length.
		store := "store:\n  path: " + strings.Repeat("x", 80) + ".db\n"
		shots, only, sweeps := os.Getenv("INSPECTOR_SHOTS"), inspectorDefault, inspectorSweeps
		if shots != "" || os.Getenv("CONTINUO_LONG") != "" {
			only, sweeps = "", inspectorAll
		}
		runInspector(t, browser, serveInspector(t, store), shots, only, inspectorWalks+sweeps)
	})
	t.Run("a database", func(t *testing.T) {
		if os.Getenv("CONTINUO_LONG") == "" {
			t.Skip("SKIPPED: the same walks on PostgreSQL need CONTINUO_LONG=1, as in .ci/run")
		}
		database := pgtest.Start(t, pgtest.Options{}).Database(t)
		runInspector(t, browser, serveInspector(t, "store:\n  url: "+database+"\n"), "", "^(?!every page)", inspectorWalks)
	})
}

// chromium is the browser's program.
func chromium(t *testing.T) string {
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

func serveInspector(t *testing.T, store string) string {
	t.Helper()
	workflows, err := filepath.Abs(filepath.Join("..", "..", "examples", "workflows"))
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, `model: demo
models:
  sonnet:
    protocol: openai-chat
    base_url: `+newInspectorUpstream(t)+`
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
workflows: {dir: `+workflows+`}
`+store).url
}

func runInspector(t *testing.T, browser, url, shots, only string, checks int) {
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
	if shots != "" {
		if shots, err = filepath.Abs(shots); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, node(t), filepath.Join(dir, "inspector.mjs"))
	command.Dir = dir
	command.Env = []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1", "INSPECTOR_URL=" + url, "CHROMIUM=" + browser, "INSPECTOR_SHOTS=" + shots,
		"INSPECTOR_ONLY=" + cmp.Or(os.Getenv("INSPECTOR_ONLY"), only), "INSPECTOR_ENTRIES=" + cmp.Or(os.Getenv("INSPECTOR_ENTRIES"), "5000"),
	}
	output, err := command.CombinedOutput()
	said := strings.TrimSpace(string(output))
	for _, figure := range regexp.MustCompile(`(?m)^# .*$`).FindAllString(said, -1) {
		t.Log(figure)
	}
	if lines := regexp.MustCompile(`(?m)^ok `).FindAllString(said, -1); err != nil || len(lines) != checks && os.Getenv("INSPECTOR_ONLY") == "" {
		t.Errorf("%d checks of %d passed (%v)\n%s", len(lines), checks, err, said)
	}
}
