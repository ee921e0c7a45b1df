package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// protocols are the wire formats that the mock speaks; the settings of these tests name a model of each.
var protocols = []string{"chat", "messages", "responses", "gemini"}

// modelSettings is the section of one model in a settings file. The upstream's name for it is mock-NAME; the
// header keeps the mock's counts of the models apart.
func modelSettings(name, protocol, url string, more ...string) string {
	kind := map[string]string{
		"chat": "protocol: openai-chat\n    base_url: " + url + "/v1", "messages": "protocol: anthropic-messages\n    base_url: " + url,
		"responses": "protocol: openai-responses\n    base_url: " + url + "/v1", "gemini": "protocol: gemini\n    base_url: " + url,
	}[protocol]
	text := fmt.Sprintf("  %s:\n    %s\n    model: mock-%s\n    api_key_env: \"\"\n    headers: {X-Test-Id: %s}\n", name, kind, name, name)
	for _, line := range more {
		text += "    " + line + "\n"
	}
	return text
}

// bothModels are settings with a model of each protocol at one upstream, and settings of turns.
func bothModels(url string, turn ...string) string {
	return "model: chat\nmodels:\n" + modelsOf("", url) + turnSettings(turn...)
}

// modelsOf is a model of each protocol, with a prefix to its name and more settings of each.
func modelsOf(prefix, url string, more ...string) string {
	text := ""
	for _, protocol := range protocols {
		text += modelSettings(prefix+protocol, protocol, url, more...)
	}
	return text
}

// hasty begins the names of models whose first token must come within a second. Only what never answers is asked of them.
const hasty = "hasty-"

// hastyModels are bothModels, and a hasty one of each protocol.
func hastyModels(url string, turn ...string) string {
	return "model: chat\nmodels:\n" + modelsOf("", url) + modelsOf(hasty, url, "first_token_timeout: 1s") + turnSettings(turn...)
}

func turnSettings(turn ...string) string { return "turn:\n  " + strings.Join(turn, "\n  ") + "\n" }

// mock is aimock, a mock of model providers, with the fixtures of testdata/faults.json.
type mock struct{ child }

// startMock starts the mock, or skips the test, loudly.
func startMock(t *testing.T) mock {
	t.Helper()
	dir := cmp.Or(os.Getenv("CONTINUO_NPM_DIR"), filepath.Join("..", "..", ".npm"))
	script := filepath.Join(dir, "node_modules", "@copilotkit", "aimock", "dist", "cli.js")
	if _, err := os.Stat(script); err != nil {
		t.Skipf("SKIPPED: there is no mock of model providers in %s: run make npm, or set CONTINUO_NPM_DIR to a folder whose node_modules have @copilotkit/aimock", dir)
	}
	command := exec.Command(node(t), keepOpen, script, "--port", "0", "--fixtures", filepath.Join("testdata", "faults.json")) //nolint:noctx // start ends it
	return mock{start(t, command, `listening on (http://127\.0\.0\.1:\d+)`, "/ready")}
}

// node finds Node.js, or skips the test, loudly.
func node(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: there is no node in PATH: install Node.js 20 or newer")
	}
	return path
}

// keepOpen is an argument of Node.js for servers that are asked in turns: they keep connections that rest. Else Node.js
// closes these after six seconds, and a request that is sent over one at that moment is lost; those who send it cannot
// know whether it was received, so that a POST is not sent again.
var keepOpen = "--import=data:text/javascript," + url.PathEscape(`import { Server } from "node:http";
const listen = Server.prototype.listen;
Server.prototype.listen = function (...to) { this.keepAliveTimeout = 0; return listen.apply(this, to); };`)

// A server of Node.js says in each answer after how many seconds it closes a connection, unless it keeps it.
func TestServersOfNodeKeepConnections(t *testing.T) {
	t.Parallel()
	const script = `require("http").createServer((_, answer) => answer.end()).listen(0, "127.0.0.1", function () {
  console.log("http://127.0.0.1:" + this.address().port);
})`
	server := start(t, exec.Command(node(t), keepOpen, "-e", script), `(http://127\.0\.0\.1:\d+)`, "/") //nolint:noctx // start ends it
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if seconds := answer.Header.Get("Keep-Alive"); seconds != "" {
		t.Errorf("it keeps connections for %s", seconds)
	}
}

// asked is a request that the mock got.
type asked struct {
	Timestamp int64           `json:"timestamp"` // Unix time in ms
	Path      string          `json:"path"`
	Body      json.RawMessage `json:"body"`
}

func (a asked) model() string {
	var body struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(a.Body, &body) // a body without a model is of the model ""
	if name, ok := strings.CutPrefix(a.Path, "/v1beta/models/"); ok {
		name, _, _ = strings.Cut(name, ":")
		return name
	}
	return body.Model
}

// requests returns the requests that hold a text, in the order in which they came.
func (m mock) requests(t *testing.T, text string) []asked {
	t.Helper()
	var all, found []asked
	getJSON(t, m.url+"/__aimock/journal", &all)
	for _, request := range all {
		if strings.Contains(string(request.Body), text) {
			found = append(found, request)
		}
	}
	return found
}

// clientsFile returns the absolute path of a program that is not written by this project, or skips the test, loudly.
func clientsFile(t testing.TB, path ...string) string {
	t.Helper()
	folder := cmp.Or(os.Getenv("CONTINUO_CLIENTS"), filepath.Join("..", "..", "..", "shared", "clients"))
	file, err := filepath.Abs(filepath.Join(folder, filepath.Join(path...)))
	if err == nil {
		_, err = os.Stat(file)
	}
	if err != nil {
		t.Skipf("SKIPPED: there is no %s: set CONTINUO_CLIENTS to the folder that has %s", file, filepath.Join(path...))
	}
	return file
}

// startFaulty starts the program that breaks streams of the chat protocol, or skips the test, loudly.
func startFaulty(t *testing.T) child {
	t.Helper()
	script := clientsFile(t, "upstream", "faulty-sse.mjs")
	command := func(port string) *exec.Cmd { return exec.Command(node(t), keepOpen, script, "--port", port) } //nolint:noctx // start ends it
	return startOnPort(t, command, `listening (http://127\.0\.0\.1:\d+)`, "/v1/models")
}

// freePort finds a port without a listener, below those that the kernel assigns: few others can get it before the
// program that it is for has begun; see startOnPort.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(20_000 + rand.IntN(12_000))
		listener, err := net.Listen("tcp", "127.0.0.1:"+port) //nolint:noctx // ends at once
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("no port from 20000 to 32000 is free")
	return ""
}

// between returns the time between two requests.
func between(a, b asked) time.Duration {
	return time.Duration(b.Timestamp-a.Timestamp) * time.Millisecond
}
