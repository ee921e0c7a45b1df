package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if upstream := os.Getenv(proxyOf); upstream != "" {
		serveProxy(upstream)
	}
	_ = flag.Set("test.parallel", "16") // most of the time is spent waiting for others; a flag of the caller wins
	os.Exit(m.Run())
}

// program builds the real program, once for all tests, and returns its path in Go's build cache. It stays there for the
// next run of the tests, and a run that is interrupted leaves nothing behind.
var program = sync.OnceValues(func() (path string, err error) {
	if err := lookAtSources(); err != nil {
		return "", err
	}
	for range 2 { // the run that links the program names a temporary file, the next one the file of the cache
		var complaints bytes.Buffer
		command := exec.Command("go", "run", "-exec", "echo", "github.com/continuo-log/continuo/cmd/continuo") //nolint:noctx // ends by itself
		command.Stderr = &complaints
		out, err := command.Output()
		if err != nil {
			return "", fmt.Errorf("build the program: %w\n%s", err, &complaints)
		}
		path = strings.TrimSpace(string(out))
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find the program in Go's build cache: %w", err)
	}
	return path, nil
})

// lookAtSources opens the folders that the program is made of. The go command takes note of what a test opens:
// without it, a result would count as up to date after a change of the program.
func lookAtSources() error {
	root := filepath.Join("..", "..")
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		return err
	})
}

// child is a program that a test started; it is ended with the test.
type child struct {
	url string
	pid int
}

// start runs a program until it says on standard output or error where it listens, which is the first
// match of pattern's group, and until the path ready answers there.
func start(t testing.TB, command *exec.Cmd, pattern, ready string) child {
	t.Helper()
	started, err := tryStart(t, command, pattern, ready)
	if err != nil {
		t.Fatal(err)
	}
	return started
}

// tryStart is start, with an error where the program ends before it listens.
func tryStart(t testing.TB, command *exec.Cmd, pattern, ready string) (child, error) {
	t.Helper()
	output := &outputWatcher{pattern: regexp.MustCompile(pattern), found: make(chan string, 1)}
	command.Stdout, command.Stderr = output, output
	ended := spawn(t, command)
	end := func() { stop(t, command, ended, output) }
	select {
	case url := <-output.found:
		t.Cleanup(end)
		waitReady(t, url+ready)
		return child{url: url, pid: command.Process.Pid}, nil
	case <-ended:
		return child{}, fmt.Errorf("%s ended before it listened:\n%s", command.Path, output)
	case <-time.After(startTime):
		t.Cleanup(end)
		t.Fatalf("%s does not listen:\n%s", command.Path, output)
	}
	return child{}, nil
}

// startOnPort is start for a program that has to be given its port. Another program may take the port before it does: it
// ends then, and gets another one.
func startOnPort(t *testing.T, command func(port string) *exec.Cmd, pattern, ready string) child {
	t.Helper()
	var failed error
	for range 5 {
		started, err := tryStart(t, command(freePort(t)), pattern, ready)
		if err == nil {
			return started
		}
		failed = err
	}
	t.Fatal(failed)
	return child{}
}

// startTime is how long a program may take until it listens, and until it has ended.
const startTime = 5 * time.Minute

// stop ends a program: by itself with the code 0, or by the signal.
func stop(t testing.TB, command *exec.Cmd, ended <-chan struct{}, output *outputWatcher) {
	_ = command.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-ended:
	case <-time.After(startTime):
		_ = command.Process.Kill()
		<-ended
		t.Errorf("%s did not end when it was told to", command.Path)
	}
	if code := command.ProcessState.ExitCode(); code > 0 {
		t.Errorf("%s ended with %d", command.Path, code)
	}
	if t.Failed() {
		t.Logf("%s said:\n%s", filepath.Base(command.Path), output)
	}
}

// waitReady asks until the answer is 200.
func waitReady(t testing.TB, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		if status, err := get(ctx, url); err == nil && status == http.StatusOK {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("%s does not become ready", url)
		}
	}
}

func get(ctx context.Context, url string) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, errors.Join(err, response.Body.Close())
}

// outputWatcher keeps what a program says and sends the first match of a pattern's group.
type outputWatcher struct {
	pattern *regexp.Regexp
	found   chan string

	mu   sync.Mutex
	text bytes.Buffer
	sent bool
}

func (w *outputWatcher) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(data)
	if w.sent {
		return len(data), nil
	}
	if match := w.pattern.FindSubmatch(w.text.Bytes()); match != nil {
		w.sent = true
		w.found <- string(match[1])
	}
	return len(data), nil
}

// String returns the last lines.
func (w *outputWatcher) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for scanner := bufio.NewScanner(bytes.NewReader(w.text.Bytes())); scanner.Scan(); {
		lines = append(lines, scanner.Text())
	}
	text := ""
	for _, line := range lines[max(0, len(lines)-15):] {
		text += line + "\n"
	}
	return text
}
