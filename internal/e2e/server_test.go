package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/sse"
)

// server is continuo serve as a process of its own, with a folder of its own.
type server struct{ child }

// serve starts the program with a settings file and a database on disk.
func serve(t testing.TB, settings string) server {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return serveIn(t, t.TempDir(), path, settings)
}

// serveIn starts the program at path with a folder that may have a database.
func serveIn(t testing.TB, dir, path, settings string) server {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "continuo.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, "serve", "--listen", "127.0.0.1:0") //nolint:noctx // start ends it
	command.Dir = dir
	command.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	if limit := os.Getenv("GOMEMLIMIT"); limit != "" {
		command.Env = append(command.Env, "GOMEMLIMIT="+limit)
	}
	return server{start(t, command, `on (http://127\.0\.0\.1:\d+)`, "/readyz")}
}

// answer is what POST /chat answers, or a stream's last event: a turn's whole answer, or its error with
// what had come.
type answer struct {
	Response       string `json:"response"`
	ConversationID string `json:"conversation_id"`
	TurnID         string `json:"turn_id"`
	Error          *struct {
		Type           string                 `json:"type"`
		Code           string                 `json:"code"`
		Message        string                 `json:"message"`
		Reason         continuo.FailureReason `json:"reason"`
		Retryable      bool                   `json:"retryable"`
		ProviderStatus int                    `json:"provider_status"`
	} `json:"error"`
}

// seen is what a client saw of a turn.
type seen struct {
	status int      // of the HTTP answer
	events []string // names of a stream's events, each run of one name once
	text   string   // all deltas of a stream
	answer answer
}

// ask runs a turn and returns what a client sees of it.
func (s server) ask(t testing.TB, session, model, message string, streamed bool) seen {
	t.Helper()
	body, err := json.Marshal(map[string]any{"session_id": session, "model": model, "message": message, "stream": streamed})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/chat", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got := seen{status: response.StatusCode}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		err = got.read(response.Body)
	} else {
		err = json.NewDecoder(response.Body).Decode(&got.answer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// read reads a stream to its end.
func (s *seen) read(body io.Reader) error {
	for events := sse.NewReader(body, 0); ; {
		event, err := events.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n := len(s.events); n == 0 || s.events[n-1] != event.Type {
			s.events = append(s.events, event.Type)
		}
		var data struct {
			Text string `json:"text"`
		}
		switch event.Type {
		case "delta":
			err = json.Unmarshal(event.Data, &data)
			s.text += data.Text
		case "done", "error":
			err = json.Unmarshal(event.Data, &s.answer)
		}
		if err != nil {
			return err
		}
	}
}

// entries reads a conversation's log.
func (s server) entries(t testing.TB, session string) []continuo.Entry {
	t.Helper()
	var page struct {
		Data []continuo.Entry `json:"data"`
	}
	getJSON(t, s.url+"/api/conversations/"+session+"/entries", &page)
	return page.Data
}

func getJSON(t testing.TB, url string, value any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(value); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v", url, response.StatusCode, err)
	}
}
