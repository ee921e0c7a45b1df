package mcptool

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
)

// patience bounds every wait of a test; none is ever this long unless something is broken.
const patience = 3 * time.Minute

// child options start the test binary in a mode.
func childOptions(t *testing.T, mode string) Options {
	t.Helper()
	return Options{
		Name: "srv", Command: []string{os.Args[0]}, Env: []string{modeEnv + "=" + mode, fileEnv + "=" + t.TempDir() + "/marker"},
		RestartWait: time.Millisecond, RestartMaxWait: 10 * time.Millisecond, Grace: 300 * time.Millisecond, CallWait: patience,
	}
}

func connect(t *testing.T, options Options) *Source {
	t.Helper()
	leaks(t)
	source, err := Connect(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	return source
}

// leaks checks, after the test has closed its sources, that no goroutine of this package or the SDK is left.
func leaks(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		deadline := time.Now().Add(patience)
		for {
			left := own()
			if len(left) == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
				return
			}
			runtime.Gosched()
		}
	})
}

// ours leaves out goroutines of the SDK that have been told to end but cannot be waited for.
func ours() []string {
	return slices.DeleteFunc(own(), func(stack string) bool { return strings.Contains(stack, "go-sdk") })
}

func own() []string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var left []string
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		frames, _, _ := strings.Cut(stack, "\ncreated by ") // a goroutine whose function has returned is about to end
		if !strings.Contains(stack, "_test.go") && !strings.Contains(stack, "mcp.(*streamableServer") && (strings.Contains(frames, "mcptool.") || strings.Contains(stack, "go-sdk")) {
			left = append(left, stack)
		}
	}
	return left
}

func find(t *testing.T, source *Source, name string) tool.Tool {
	t.Helper()
	found, ok := source.Tools(t.Context()).Find("srv." + name)
	if !ok {
		t.Fatalf("there is no tool srv.%s in %v (%v)", name, names(source.Tools(t.Context())), source.Err())
	}
	return found
}

func run(t *testing.T, found tool.Tool, arguments string) tool.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return found.Run(ctx, tool.Call{Conversation: continuo.Conversation{}, ID: "c1", Arguments: arguments})
}

func call(t *testing.T, source *Source, name, text string) tool.Result {
	t.Helper()
	return run(t, find(t, source, name), fmt.Sprintf(`{"text":%q}`, text))
}

func wantResult(t *testing.T, result tool.Result, failed bool, parts ...string) {
	t.Helper()
	if result.Failed != failed {
		t.Errorf("failed is %v: %.300s", result.Failed, result.Content)
	}
	for _, part := range parts {
		if !strings.Contains(result.Content, part) {
			t.Errorf("the result lacks %q: %.500s", part, result.Content)
		}
	}
}

func names(tools tool.Set) []string {
	var all []string
	for _, spec := range tools.Specs() {
		all = append(all, spec.Name)
	}
	return all
}

// events listens for what servers tell.
type events struct {
	address string
	lines   chan string
	ends    chan string // the first line of a connection that ended
}

func listen(t *testing.T, options *Options) *events {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	e := &events{address: listener.Addr().String(), lines: make(chan string, 100), ends: make(chan string, 100)}
	options.Env = append(options.Env, eventsEnv+"="+e.address)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go e.read(conn)
		}
	}()
	return e
}

func (e *events) read(conn net.Conn) {
	defer conn.Close()
	first := ""
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		first = lines.Text()
		e.lines <- first
	}
	e.ends <- first
}

func await(t *testing.T, from <-chan string, want string) {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case got := <-from:
			if got == want {
				return
			}
		case <-limit:
			t.Fatalf("%q did not come", want)
		}
	}
}

// journal keeps what is logged, and lets a test wait for it.
type journal struct {
	mu      sync.Mutex
	lines   []string
	changed chan struct{}
}

func newJournal() *journal { return &journal{changed: make(chan struct{}, 1)} }

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	j.lines = append(j.lines, string(line))
	j.mu.Unlock()
	select {
	case j.changed <- struct{}{}:
	default:
	}
	return len(line), nil
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "")
}

func (j *journal) await(t *testing.T, part string) {
	t.Helper()
	limit := time.After(patience)
	for !strings.Contains(j.text(), part) {
		select {
		case <-j.changed:
		case <-limit:
			t.Fatalf("the log lacks %q:\n%s", part, j.text())
		}
	}
}
