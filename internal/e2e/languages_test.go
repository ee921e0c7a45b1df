package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
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
)

// What the examples of the clients print, in the form of each language.
const clientOutput = `conversation: true
finished: stop true
it knows: true
1 user
2 assistant
3 user
4 assistant
found: true
refused: 404 not_found
`

// The examples of the TypeScript and the Python client, against the program, and through connections that break in the
// middle of every stream: they lose no event and get none twice.
func TestClientsOfOtherLanguages(t *testing.T) {
	t.Parallel()
	clients, err := filepath.Abs(filepath.Join("..", "..", "clients"))
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string]func(*testing.T, string) *exec.Cmd{"typescript": typescriptExample, "python": pythonExample} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := command(t, filepath.Join(clients, name))
			t.Run("direct", func(t *testing.T) { wantExample(t, command, serve(t, "").url) })
			t.Run("broken connections", func(t *testing.T) {
				proxy, cuts := cuttingProxy(t, serve(t, "").url)
				wantExample(t, command, proxy)
				if cuts.Load() < 2 {
					t.Errorf("%d streams were cut: the test tests nothing", cuts.Load())
				}
			})
		})
	}
}

func wantExample(t *testing.T, example *exec.Cmd, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, example.Path, example.Args[1:]...)
	command.Dir = example.Dir
	command.Env = append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "CONTINUO_BASE_URL=" + url}, example.Env...)
	output, err := command.CombinedOutput()
	text := strings.NewReplacer("True", "true", "False", "false", "\r", "").Replace(string(output))
	if err != nil || text != clientOutput {
		t.Errorf("%v:\n%s\nwant:\n%s", err, text, clientOutput)
	}
}

// typescriptExample compiles the client and its example, as a project that depends on it would.
func typescriptExample(t *testing.T, client string) *exec.Cmd {
	t.Helper()
	modules := filepath.Join(client, "node_modules")
	compiler := filepath.Join(modules, "typescript", "bin", "tsc")
	if _, err := os.Stat(compiler); err != nil {
		t.Skip("SKIPPED: the TypeScript compiler is not installed: run make npm")
	}
	dir := t.TempDir()
	installed := filepath.Join(dir, "node_modules", "continuo-client")
	if err := os.MkdirAll(installed, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(modules, "@types"), filepath.Join(dir, "node_modules", "@types")); err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(client, "package.json"))
	if err == nil {
		err = os.WriteFile(filepath.Join(installed, "package.json"), manifest, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type": "module"}`), 0o600)
	}
	if err == nil {
		err = os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(client, "examples")))
	}
	if err != nil {
		t.Fatal(err)
	}
	compile := func(arguments ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), node(t), append([]string{compiler, "--skipLibCheck"}, arguments...)...)
		command.Dir = dir
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("tsc: %v\n%s", err, output)
		}
	}
	compile("-p", client, "--outDir", filepath.Join(installed, "dist"))
	compile("--strict", "--target", "es2023", "--module", "nodenext", "--types", "node", "--outDir", "out", "--rootDir", "examples", "examples/chat.ts")
	command := exec.CommandContext(t.Context(), node(t), filepath.Join("out", "chat.js"))
	command.Dir = dir
	return command
}

func pythonExample(t *testing.T, client string) *exec.Cmd {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.CommandContext(t.Context(), python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))").Run()
	}
	if err != nil {
		t.Skip("SKIPPED: there is no python3 in PATH, or it is older than 3.11")
	}
	command := exec.CommandContext(t.Context(), python, "-B", "-W", "error", filepath.Join(client, "examples", "chat.py"))
	command.Env = []string{"PYTHONPATH=" + filepath.Join(client, "src"), "PYTHONIOENCODING=utf-8"}
	return command
}

// cuttingProxy is a proxy that breaks the connection of every stream after some of it; it counts that.
func cuttingProxy(t *testing.T, target string) (string, *atomic.Int64) {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	cuts := &atomic.Int64{}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			if r.Header.Get("Content-Type") == "text/event-stream" {
				const enough = 1000 // for the largest event, so that each connection gets further
				r.Body = &cutBody{ReadCloser: r.Body, left: enough, cuts: cuts}
			}
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if cause := recover(); cause != nil { // the proxy's way of breaking a connection
				panic(http.ErrAbortHandler)
			}
		}()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, cuts
}

// A stream whose end is that of its connection, as through an old proxy, may break off within a character: the Python
// client continues it.
func TestAStreamThatBreaksOffWithinACharacter(t *testing.T) {
	t.Parallel()
	const event = "id: %d\nevent: %s\ndata: %s\n\n"
	turn := fmt.Sprintf(event, 1, "turn", `{"conversation_id":"conv_1","turn_id":"turn_1"}`)
	delta := fmt.Sprintf(event, 2, "delta", `{"text":"żółć"}`)
	done := fmt.Sprintf(event, 3, "done", `{"response":"żółć"}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer connection.Close()
		_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
		if r.Method == http.MethodPost {
			_, _ = io.WriteString(connection, turn+delta[:strings.Index(delta, "ż")+1])
			return
		}
		_, _ = io.WriteString(connection, delta+done)
	}))
	t.Cleanup(server.Close)
	client, err := filepath.Abs(filepath.Join("..", "..", "clients", "python"))
	if err != nil {
		t.Fatal(err)
	}
	command := pythonExample(t, client)
	const script = `import sys; from continuo_client import Continuo
print(*(event["event"] for event in Continuo(sys.argv[1]).chat_stream({"message": "hello"})))`
	command.Args = []string{command.Path, "-B", "-W", "error", "-c", script, server.URL}
	command.Env = append(command.Env, "PATH="+os.Getenv("PATH"))
	if output, err := command.CombinedOutput(); err != nil || strings.TrimSpace(string(output)) != "turn delta done" {
		t.Errorf("%v\n%s", err, output)
	}
}

var errCut = errors.New("cut by the test")

// cutBody fails once so many bytes were read.
type cutBody struct {
	io.ReadCloser
	left int
	cuts *atomic.Int64
}

// Read reads what may be read.
func (b *cutBody) Read(into []byte) (int, error) {
	if b.left == 0 {
		b.cuts.Add(1)
		return 0, errCut
	}
	n, err := b.ReadCloser.Read(into[:min(len(into), b.left)])
	b.left -= n
	return n, err
}
