package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestHealth(t *testing.T) {
	dir := t.TempDir()
	p, address := startServer(t, dir)
	if out, code := runIn(t, dir, "health", "--url", address); code != 0 || out != "ready\n" {
		t.Errorf("a server that is ready: %d %q", code, out)
	}
	listen := strings.TrimPrefix(address, "http://127.0.0.1:")
	if out, code := runIn(t, dir, "health", "--set", "listen=0.0.0.0:"+listen); code != 0 {
		t.Errorf("a server on all addresses: %d %q", code, out)
	}
	p.signal(syscall.SIGTERM)
	p.end()
	if out, code := runIn(t, dir, "health", "--url", "http://127.0.0.1:1"); code != 1 || !strings.Contains(out, "refused") { // its port may be another's by now
		t.Errorf("no server: %d %q", code, out)
	}
	unready := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprint(w, "the store does not answer")
	}))
	defer unready.Close()
	if out, code := runIn(t, dir, "health", "--url", unready.URL); code != 1 || !strings.Contains(out, "503: the store does not answer") {
		t.Errorf("a server without its store: %d %q", code, out)
	}
}

// runIn runs the program to its end, and returns what it wrote and its exit code.
func runIn(t *testing.T, dir string, args ...string) (output string, code int) {
	t.Helper()
	p := start(t, dir, nil, args...)
	code = p.end()
	return p.stdout.String() + p.stderr.String(), code
}

// groff finds nothing to warn of in any page, and each has what its command's help has.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	if out, code := runIn(t, dir, "man", "pages"); code != 0 {
		t.Fatal(out)
	}
	serve, err := os.ReadFile(filepath.Join(dir, "pages", "continuo-serve.1")) //nolint:gosec // a test's own
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"continuo serve [flags]", `\-\-listen=ADDR`, ".EX"} {
		if !strings.Contains(string(serve), want) {
			t.Errorf("no %s in\n%s", want, serve)
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("SKIPPED: there is no groff")
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "pages", "*.1"))
	if len(pages) < 50 {
		t.Errorf("%d pages", len(pages))
	}
	out, err := exec.CommandContext(t.Context(), groff, append([]string{"-Kutf8", "-man", "-ww", "-z", "-Tutf8"}, pages...)...).CombinedOutput() //nolint:gosec // a test
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
