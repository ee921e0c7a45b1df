package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/continuo-log/continuo/internal/sse"
)

// home is a folder with a database in which programs serve one after another, or side by side.
type home struct {
	dir      string
	upstream *scripted
	storeURL string // of a PostgreSQL database; "" for the file
	programs int
}

func newHome(t *testing.T, upstream *scripted, turn ...string) *home {
	t.Helper()
	h := &home{dir: t.TempDir(), upstream: upstream}
	project := filepath.Join(h.dir, "project")
	settings := fmt.Sprintf(`model: main
models:
  main: {protocol: openai-chat, base_url: %q, model: scripted, api_key_env: SCRIPT_KEY}
tools: {project_dir: %q, ask: [fs.search], ask_timeout: 5m}
log: {level: warn}
context: {max_messages: 1000, max_chars: 10000000}
chat: {max_history_messages: 1000, max_context_tokens: 2000000}
`, upstream.url+"/v1", project) + turnSettings(append(turn, "retries: 0", "breaker_failures: 0")...)
	err := errors.Join(
		os.Mkdir(project, 0o700),
		os.WriteFile(filepath.Join(project, "notes.txt"), []byte("the first line of the notes\nthe second line\nthe third\n"), 0o600),
		os.WriteFile(filepath.Join(h.dir, "continuo.yaml"), []byte(settings), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// killable is continuo serve as a process that is killed sooner or later.
type killable struct {
	apiKey  string // of this program's requests to the upstream
	url     string
	http    *http.Client
	command *exec.Cmd
	ended   chan struct{}
	output  *outputWatcher
	begun   time.Time
}

// launch starts a program in its home.
func (h *home) launch(t *testing.T) *killable {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	h.programs++
	k := &killable{
		apiKey: fmt.Sprintf("program-%d", h.programs), command: exec.Command(path, "serve", "--listen", "127.0.0.1:0"), //nolint:noctx // killed below
		output: &outputWatcher{pattern: regexp.MustCompile(`on (http://127\.0\.0\.1:\d+)`), found: make(chan string, 1)},
		http:   &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}, begun: time.Now(),
	}
	k.command.Dir, k.command.Stdout, k.command.Stderr = h.dir, k.output, k.output
	k.command.Env = []string{"HOME=" + h.dir, "PATH=" + os.Getenv("PATH"), "CONTINUO_STORE_PATH=" + filepath.Join(h.dir, "continuo.db"), "SCRIPT_KEY=" + k.apiKey}
	if h.storeURL != "" {
		k.command.Env = append(k.command.Env, "CONTINUO_STORE_URL="+h.storeURL)
	}
	k.ended = spawn(t, k.command)
	t.Cleanup(func() {
		_ = k.command.Process.Kill() // if it still runs
		<-k.ended
		k.http.CloseIdleConnections()
	})
	return k
}

// ready waits until the program serves, and returns how long that took from its start.
func (k *killable) ready(t *testing.T) time.Duration {
	t.Helper()
	select {
	case k.url = <-k.output.found:
	case <-k.ended:
		t.Fatalf("the program ended before it listened:\n%s", k.output)
	case <-time.After(startTime):
		t.Fatalf("the program does not listen:\n%s", k.output)
	}
	waitReady(t, k.url+"/readyz")
	return time.Since(k.begun)
}

// kill ends the program as a failing machine does, and returns when.
func (k *killable) kill(t *testing.T) time.Time {
	t.Helper()
	select {
	case <-k.ended:
		t.Errorf("the program ended by itself:\n%s", k.output)
	default:
	}
	at := time.Now()
	_ = k.command.Process.Kill() // it may have ended
	<-k.ended
	return at
}

// receivedEvent is one event as a client got it.
type receivedEvent struct {
	id   int64
	kind string
	data json.RawMessage
	at   time.Time
}

// isEnd reports whether no event follows.
func (h receivedEvent) isEnd() bool { return h.kind == "done" || h.kind == "error" }

// read decodes the event's data.
func (h receivedEvent) read(value any) error {
	if err := json.Unmarshal(h.data, value); err != nil {
		return fmt.Errorf("event %d, %s: %w", h.id, h.kind, err)
	}
	return nil
}

// do sends a request; the caller closes the answer's body.
func (k *killable) do(ctx context.Context, method, path string, body any, header ...string) (*http.Response, error) {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, k.url+path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	return k.http.Do(request)
}

// get reads JSON. Status tells of a refusal, which is no error.
func (k *killable) get(ctx context.Context, path string, value any) (status int, err error) {
	response, err := k.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.StatusCode, nil
	}
	return response.StatusCode, json.NewDecoder(response.Body).Decode(value)
}

// listen sends a request that is answered with events, and hands them over as they come. The error is
// how a stream broke off that has no last event. An answer that is no stream gives no event but its status.
func (k *killable) listen(ctx context.Context, method, path string, body any, each func(receivedEvent), header ...string) (status int, err error) {
	response, err := k.do(ctx, method, path, body, append(header, "Accept", "text/event-stream")...)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(response.Body)
		if response.StatusCode >= http.StatusBadRequest {
			return response.StatusCode, fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, said)
		}
		return response.StatusCode, nil
	}
	for events := sse.NewReader(response.Body, 0); ; {
		event, err := events.Next()
		if errors.Is(err, io.EOF) {
			return response.StatusCode, nil
		}
		if err != nil {
			return response.StatusCode, err
		}
		if event.Cut {
			return response.StatusCode, io.ErrUnexpectedEOF
		}
		id, err := strconv.ParseInt(event.ID, 10, 64)
		if err != nil {
			return response.StatusCode, fmt.Errorf("an event %s has the id %q", event.Type, event.ID)
		}
		each(receivedEvent{id, event.Type, bytes.Clone(event.Data), time.Now()})
	}
}
