package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
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

// program is the program as a process of its own, with a home folder and a store of its own.
type program struct {
	*exec.Cmd
	t      *testing.T
	stderr *watched
	stdout *watched
}

// start runs the program with arguments; it is killed when the test ends.
func start(t *testing.T, dir string, env []string, args ...string) *program {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Args[0] = "continuo"
	cmd.Dir = dir
	cmd.Env = append([]string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "CONTINUO_STORE_PATH=" + filepath.Join(dir, "continuo.db"), "MAIN_KEY=secret-key",
	}, env...)
	p := &program{Cmd: cmd, t: t, stderr: newWatched(), stdout: newWatched()}
	cmd.Stderr, cmd.Stdout = p.stderr, p.stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return p
}

// end waits for the program and returns its exit code, -1 for one that a signal ended.
func (p *program) end() int {
	p.t.Helper()
	err := p.Wait()
	var failed *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failed):
		return failed.ExitCode()
	}
	p.t.Fatal(err)
	return 0
}

func (p *program) signal(s os.Signal) {
	p.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// watched collects what is written and lets a test wait for it.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newWatched() *watched { return &watched{more: make(chan struct{}, 1)} }

func (w *watched) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.more <- struct{}{}:
	default:
	}
	return w.text.Write(data)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// wait returns the first match's groups once there is one.
func (w *watched) wait(t *testing.T, pattern string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		if match := regexp.MustCompile(pattern).FindStringSubmatch(w.String()); match != nil {
			return match
		}
		select {
		case <-w.more:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s in:\n%s", pattern, w)
		}
	}
}

// startServer runs serve on a free port and returns its address.
func startServer(t *testing.T, dir string, args ...string) (p *program, address string) {
	t.Helper()
	p = start(t, dir, nil, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	return p, p.stderr.wait(t, `on (http://127\.0\.0\.1:\d+)`)[1]
}

func post(t *testing.T, url, body string) (status int, answer map[string]any) {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body)) //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer
}

// TestServe talks to the server twice and reads everything that it shows.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	p, address := startServer(t, dir)
	for _, want := range []string{"demo \\(built in, no real model\\)", "continuo.yaml", "curl -s http://127", "What did I say first", "inspector +http://127\\.0\\.0\\.1:\\d+/"} {
		p.stderr.wait(t, want)
	}
	if status, answer := post(t, address+"/chat", `{"session_id": "s1", "message": "Hello, I am Ada."}`); status != 200 {
		t.Fatalf("status %d: %v", status, answer)
	}
	_, answer := post(t, address+"/chat", `{"session_id": "s1", "message": "What did I say first?"}`)
	if shown, _ := answer["context"].(map[string]any); shown["entries"] != 3.0 {
		t.Errorf("the second request was built from %v entries, want 3", shown["entries"])
	}
	if text, _ := answer["response"].(string); !strings.Contains(text, "Ada") {
		t.Errorf("the second answer does not know the first message: %q", text)
	}
	for path, want := range map[string]string{
		"/healthz": "", "/readyz": "", "/metrics": "continuo_turns_total", "/openapi.json": `"/chat"`, "/": "",
	} {
		response, err := http.Get(address + path) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Errorf("%s: status %d, without %q", path, response.StatusCode, want)
		}
	}
	p.stderr.wait(t, "conversation_context_loaded .*session_id=.*total_messages_in_db=3.* trace_id=")
	if strings.Contains(p.stderr.String(), "I am Ada.\"") && strings.Contains(p.stderr.String(), "message=") {
		t.Error("the log holds the text of a message")
	}
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != 0 {
		t.Errorf("ended with %d:\n%s", code, p.stderr)
	}
	p.stderr.wait(t, "msg=stopped")
}

// A bucket that hangs does not hold up a server that gets a signal to stop.
func TestStopWhileTheBucketHangs(t *testing.T) {
	dir, put, over := t.TempDir(), make(chan struct{}, 100), make(chan struct{})
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `<?xml version="1.0"?><ListBucketResult><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>`)
			return
		}
		put <- struct{}{}
		<-over
	}))
	t.Cleanup(func() { close(over); bucket.Close() })
	p := start(t, dir, []string{
		"AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret", "CONTINUO_OBJECTS_LOCATION=s3://bucket?endpoint=" + bucket.URL,
	}, "serve", "--listen", "127.0.0.1:0", "--set", "server.shutdown_timeout=1s", "--set", "objects.inline_part_bytes=1")
	address := p.stderr.wait(t, `on (http://127\.0\.0\.1:\d+)`)[1]
	client := &http.Client{}
	var asked sync.WaitGroup
	defer asked.Wait()
	asked.Go(func() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/chat",
			strings.NewReader(`{"message": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}`))
		if err != nil {
			t.Error(err)
			return
		}
		if response, err := client.Do(request); err == nil { // the server hangs up or answers with an error
			_ = response.Body.Close()
		}
	})
	<-put
	p.signal(syscall.SIGTERM)
	began := time.Now()
	p.stderr.wait(t, "msg=stopped") // fails after 20 s
	if code := p.end(); code != 0 {
		t.Errorf("ended with %d after %s:\n%s", code, time.Since(began), p.stderr)
	}
}

// TestServeRefuses covers addresses that cannot be.
func TestServeRefuses(t *testing.T) {
	dir := t.TempDir()
	_, address := startServer(t, dir)
	for name, test := range map[string]struct {
		listen, want string
		code         int
	}{
		"taken port":      {strings.TrimPrefix(address, "http://"), "another program has this port", 1},
		"every interface": {"0.0.0.0:0", "there is no usable API key", 2},
		"no host":         {":0", "make one with continuo keys create", 2},
		"no port":         {"127.0.0.1", "listen", 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, t.TempDir(), nil, "serve", "--listen", test.listen)
			if code := p.end(); code != test.code || !strings.Contains(p.stderr.String(), test.want) {
				t.Errorf("ended with %d, want %d and %q:\n%s", code, test.code, test.want, p.stderr)
			}
		})
	}
}

// realModel writes settings with the fake upstream as the model.
func realModel(t *testing.T, dir string) {
	t.Helper()
	text := "model: main\nmodels:\n  main:\n    base_url: " + newUpstream(t).URL + "/v1\n    api_key_env: MAIN_KEY\n"
	if err := os.WriteFile(filepath.Join(dir, "continuo.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// lastEntry reads the newest entry of a conversation.
func lastEntry(t *testing.T, dir, session string) map[string]any {
	t.Helper()
	p := start(t, dir, nil, "conversations", "show", session, "--entries", "1", "--json")
	if code := p.end(); code != 0 {
		t.Fatalf("ended with %d:\n%s", code, p.stderr)
	}
	var shown struct {
		Entries []map[string]any `json:"entries"`
	}
	if err := json.Unmarshal([]byte(p.stdout.String()), &shown); err != nil || len(shown.Entries) != 1 {
		t.Fatalf("%v:\n%s", err, p.stdout)
	}
	return shown.Entries[0]
}

func wantBrokenOff(t *testing.T, entry map[string]any, reason string) {
	t.Helper()
	failure, _ := entry["error"].(map[string]any)
	if entry["role"] != "assistant" || entry["content"] != "the first half" || failure["reason"] != reason {
		t.Errorf("the newest entry is %v, want the first half with the reason %s", entry, reason)
	}
}

// TestServeInterrupts ends the server in the middle of an answer: the turn is closed with its partial text.
func TestServeInterrupts(t *testing.T) {
	dir := t.TempDir()
	realModel(t, dir)
	p, address := startServer(t, dir, "--set", "server.shutdown_timeout=50ms")
	response, err := http.Post(address+"/chat", "application/json", strings.NewReader(`{"session_id": "s1", "message": "half", "stream": true}`)) //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "the first half") {
	}
	p.signal(os.Interrupt)
	if code := p.end(); code != 0 {
		t.Errorf("ended with %d:\n%s", code, p.stderr)
	}
	rest, _ := io.ReadAll(response.Body)
	_ = rest
	wantBrokenOff(t, lastEntry(t, dir, "s1"), "interrupted")
}

// TestServeSecondSignal ends the program at once, whatever is in progress.
func TestServeSecondSignal(t *testing.T) {
	dir := t.TempDir()
	realModel(t, dir)
	p, address := startServer(t, dir, "--set", "server.shutdown_timeout=1h")
	response, err := http.Post(address+"/chat", "application/json", strings.NewReader(`{"session_id": "s1", "message": "half", "stream": true}`)) //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	p.signal(os.Interrupt)
	p.stderr.wait(t, "shutting_down")
	p.signal(os.Interrupt)
	if code := p.end(); code != -1 {
		t.Errorf("ended with %d, want the signal's own end", code)
	}
}

// TestChatStops stops an answer by a signal: its partial text is kept.
func TestChatStops(t *testing.T) {
	for name, test := range map[string]struct {
		signal os.Signal
		reason string
	}{
		"Ctrl-C":  {os.Interrupt, "cancelled"},
		"SIGTERM": {syscall.SIGTERM, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			realModel(t, dir)
			p := start(t, dir, nil, "chat", "s1", "--message", "half")
			p.stdout.wait(t, "the first half")
			p.signal(test.signal)
			if code := p.end(); code != 130 {
				t.Errorf("ended with %d, want 130:\n%s", code, p.stderr)
			}
			p.stderr.wait(t, "kept as entry 2")
			wantBrokenOff(t, lastEntry(t, dir, "s1"), test.reason)
		})
	}
}
