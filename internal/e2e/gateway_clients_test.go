package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/continuo-log/continuo/internal/pgtest"
)

// clientScripts are scripts that use the official clients, with the number of checks in each.
var clientScripts = map[string]int{"openai-sdk": 29, "agents-sdk": 9, "ai-sdk": 11, "langchain": 9}

// The official clients of the OpenAI API, unmodified, before one server with a file, and before two replicas with a
// database whose requests alternate: what one began, the other continues.
func TestOfficialClients(t *testing.T) {
	t.Parallel()
	scripts := filepath.Dir(clientsFile(t, "js", "openai-sdk.mjs"))
	for _, name := range []string{"openai", "@openai/agents", "ai", "@ai-sdk/openai", "@langchain/openai", "compatcanary"} {
		npmFile(t, name, "package.json")
	}
	mock := startScriptedMock(t)
	settings := fmt.Sprintf("models:\n  gpt-4o:\n    protocol: openai-chat\n    base_url: %s/v1\n    model: gpt-4o\n    api_key_env: \"\"\n", mock.url)
	t.Run("one server", func(t *testing.T) {
		runClients(t, scripts, serve(t, settings).url)
	})
	t.Run("two replicas", func(t *testing.T) {
		database := pgtest.Start(t, pgtest.Options{}).Database(t)
		settings += "store:\n  url: " + database + "\n"
		runClients(t, scripts, alternating(t, serve(t, settings).url, serve(t, settings).url))
	})
}

// startScriptedMock starts a mock of providers that answers from what it was sent, so that recall proves what a request
// had; without it the test is skipped.
func startScriptedMock(t *testing.T) child {
	t.Helper()
	script := clientsFile(t, "upstream", "aimock-scripted.mjs")
	npmFile(t, "@copilotkit", "aimock", "package.json")
	command := func(port string) *exec.Cmd {
		return exec.Command(newNode(t), keepOpen, script, "--modules", filepath.Dir(npmPath(t)), "--port", port) //nolint:noctx // start ends it
	}
	return startOnPort(t, command, `listening (http://127\.0\.0\.1:\d+)`, "/v1/models")
}

// alternating is a proxy that sends each request to the next of two servers.
func alternating(t *testing.T, urls ...string) string {
	t.Helper()
	var next atomic.Int64
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		target, _ := url.Parse(urls[int(next.Add(1))%len(urls)])
		r.SetURL(target)
	}}
	server := httptest.NewServer(http.Handler(proxy))
	t.Cleanup(server.Close)
	return server.URL
}

// runClients runs the scripts, and a scanner of compatibility, against a server.
func runClients(t *testing.T, scripts, base string) {
	t.Helper()
	dir := t.TempDir() // modules are found beside the scripts
	if err := os.CopyFS(dir, os.DirFS(scripts)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(npmPath(t), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for name, checks := range clientScripts {
		output := runNode(t, dir, base, filepath.Join(dir, name+".mjs"))
		if want := fmt.Sprintf("%d passed, 0 failed", checks); !strings.HasSuffix(strings.TrimSpace(output), want) {
			t.Errorf("%s: want %s\n%s", name, want, output)
		}
	}
	scanner := npmFile(t, "compatcanary", "src", "cli.js")
	if output := runNode(t, dir, base, scanner, "scan", "--base-url", base+"/v1", "--model", "gpt-4o", "--profile", "modern"); !strings.Contains(output, "7 passed, 0 warned, 0 failed") {
		t.Errorf("compatcanary:\n%s", output)
	}
}

// runNode runs a script against a server and returns its output.
func runNode(t *testing.T, dir, base string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, newNode(t), arguments...)
	command.Dir, command.Env = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1", "BASE_URL=" + base + "/v1"}
	output, _ := command.CombinedOutput() // a failed check is in the output
	return string(output)
}
