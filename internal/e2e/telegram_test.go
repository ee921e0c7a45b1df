package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/telegram"
)

// botAPI is a Bot API from a third party: telegram-test-api from npm. It forgets an update when it has
// shown it, holds no question open, and knows neither limits nor the commands of a bot.
type botAPI struct {
	t *testing.T
	child
}

// startBotAPI starts it, or skips the test, loudly.
func startBotAPI(t *testing.T) botAPI {
	t.Helper()
	modules := filepath.Dir(filepath.Dir(npmFile(t, "telegram-test-api", "package.json")))
	command := func(port string) *exec.Cmd {
		script := `const T = require("telegram-test-api"); const s = new (T.default ?? T)({port: ` + port + `, host: "127.0.0.1", storeTimeout: 600});
s.start().then(() => console.log("bot api " + s.config.apiURL));`
		c := exec.Command(node(t), keepOpen, "-e", script) //nolint:noctx // start ends it
		c.Env = append(os.Environ(), "NODE_PATH="+modules)
		return c
	}
	return botAPI{t, startOnPort(t, command, `bot api (http://127\.0\.0\.1:\d+)`, "/bot1:x/getMe")}
}

// through puts a proxy before it that makes calls fail as planned, and refuses long messages; or skips the test, loudly.
func (b botAPI) through(plan string) child {
	b.t.Helper()
	script := clientsFile(b.t, "telegram", "tg-fault-proxy.mjs")
	var last string // the port of the one that runs
	command := func(port string) *exec.Cmd {
		last = port
		return exec.Command(node(b.t), keepOpen, script, "--port", port, "--to", b.url, "--plan", plan) //nolint:noctx // start ends it
	}
	// It says where it listens without the scheme; the rest of the line is the address behind it.
	proxy := startOnPort(b.t, command, `proxy on \d+ -> (http://127\.0\.0\.1:\d+)`, "/bot1:x/getMe")
	proxy.url = "http://127.0.0.1:" + last
	return proxy
}

// post calls the side of it that people use.
func (b botAPI) post(path string, body, into any) {
	b.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		b.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+path, bytes.NewReader(data))
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		b.t.Fatal(err)
	}
}

// write has a person write to the listener.
func (b botAPI) write(token, text string) {
	b.t.Helper()
	var answer struct{ OK bool }
	b.post("/sendMessage", map[string]any{
		"botToken": token, "text": text, "date": 1, "from": map[string]any{"id": 5, "first_name": "Eve", "is_bot": false},
		"chat": map[string]any{"id": 5, "type": "private", "first_name": "Eve"},
	}, &answer)
	if !answer.OK {
		b.t.Fatalf("the message %q was not taken", text)
	}
}

// botMessage is what a bot has sent.
type botMessage struct {
	Text      string `json:"text"`
	ParseMode string `json:"parse_mode"`
	ChatID    int64  `json:"chat_id"`
}

// await waits until a bot has sent so many messages, and returns them.
func (b botAPI) await(token string, count int) (sent []botMessage) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Minute)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		var history struct {
			Result []struct{ Message botMessage }
		}
		b.post("/getUpdatesHistory", map[string]any{"token": token}, &history)
		sent = nil
		for _, one := range history.Result {
			if one.Message.ChatID != 0 { // else a person's
				sent = append(sent, one.Message)
			}
		}
		if len(sent) >= count {
			return sent
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			b.t.Fatalf("%d messages of %d came: %+v", len(sent), count, sent)
		}
	}
}

// smallCrew is a crew of one role that answers each message at length.
type smallCrew struct {
	mu        sync.Mutex
	changed   chan struct{}
	keys      []string
	answers   []telegram.Event
	delivered telegram.Delivery
}

func (c *smallCrew) Send(_ context.Context, key string, message continuo.Content, _ *continuo.Author) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.keys, key) {
		return nil
	}
	c.keys = append(c.keys, key)
	text := "On “" + message.String() + "”: v1.0 (it's *new*!)\n\n```go\nx := `a` + \"\\\\\"\n```\n" + strings.Repeat("😀 and more. ", 500)
	c.answers = append(c.answers, telegram.Event{Seq: int64(len(c.answers) + 1), Kind: telegram.EventAnswer, Role: "ann", DisplayName: "Ann", Text: text})
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

// RunExclusive implements [telegram.Crew].
func (c *smallCrew) RunExclusive(ctx context.Context, do func(ctx context.Context) error) error {
	return do(ctx)
}

func (c *smallCrew) Events(ctx context.Context, after int64) iter.Seq2[telegram.Event, error] {
	return func(yield func(telegram.Event, error) bool) {
		for {
			c.mu.Lock()
			answers, changed := slices.Clone(c.answers), c.changed
			c.mu.Unlock()
			for ; after < int64(len(answers)); after++ {
				if !yield(answers[after], nil) {
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (c *smallCrew) Delivered(context.Context) (telegram.Delivery, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.delivered, nil
}

func (c *smallCrew) SetDelivered(_ context.Context, d telegram.Delivery) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delivered = d
	return nil
}

func (c *smallCrew) Reset(context.Context, string) (string, error)   { return "Reset.", nil }
func (c *smallCrew) Stop(context.Context) (string, error)            { return "Stopped.", nil }
func (c *smallCrew) Resume(context.Context) (string, error)          { return "It goes on.", nil }
func (c *smallCrew) Restore(context.Context, string) (string, error) { return "Restored.", nil }
func (c *smallCrew) Status(context.Context) (string, error)          { return "All is well.", nil }
func (c *smallCrew) Roles(context.Context) (string, error)           { return "ann", nil }

func (c *smallCrew) Context(_ context.Context, role string) (string, error) {
	return "What " + role + " sees.", nil
}

// The Telegram front end works with a Bot API of others, also where calls of it fail: messages come once, answers whole
// and in order, from the role's own bot, and commands are answered.
func TestTelegram(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		plan  string
		twice int // how many parts come twice
	}{
		"as it is":    {"", 0},
		"with faults": {"sendMessage:2=429/1,sendMessage:4=502,sendMessage:7=lost,getUpdates:2=502,getUpdates:4=409", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := startBotAPI(t)
			url := api.url
			if test.plan != "" {
				url = api.through(test.plan).url
			}
			crew := &smallCrew{changed: make(chan struct{})}
			front, err := telegram.New(crew, telegram.Options{
				Token: "1:listener", RoleTokens: map[string]string{"ann": "2:ann"}, ChatID: 5, URL: url, PollTime: time.Second,
				Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- front.Run(ctx) }()
			defer func() {
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}()
			askAnn(t, api, test.twice)
			if keys := crew.receivedUpdates(); !slices.IsSorted(keys) || len(keys) != 3 {
				t.Errorf("the messages' keys are %q", keys)
			}
		})
	}
}

func (c *smallCrew) receivedUpdates() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.keys)
}

// askAnn has a person write three messages, each of which is answered in two parts.
func askAnn(t *testing.T, api botAPI, twice int) {
	t.Helper()
	var want []string
	for i := range 3 {
		text := fmt.Sprintf("question %d", i)
		api.write("1:listener", text)
		want = append(want, text)
		api.await("2:ann", 2*i+2)
	}
	var questions []string
	answers := slices.CompactFunc(api.await("2:ann", 6+twice), func(a, b botMessage) bool { return a.Text == b.Text })
	if len(answers) != 6 {
		t.Errorf("%d parts came, not 6", len(answers))
	}
	for _, sent := range answers {
		if length := len(utf16.Encode([]rune(sent.Text))); length > 4096 || sent.ParseMode != "MarkdownV2" || sent.ChatID != 5 {
			t.Errorf("%d units in the mode %q to the chat %d", length, sent.ParseMode, sent.ChatID)
		}
		if rest, ok := strings.CutPrefix(sent.Text, "*__Ann__*\nOn “"); ok {
			question, answer, _ := strings.Cut(rest, "”")
			questions = append(questions, question)
			if !strings.HasPrefix(answer, ": v1\\.0 \\(it's _new_\\!\\)\n\n```go\nx := \\`a\\` + \"\\\\\\\\\"\n```\n") {
				t.Errorf("the answer begins with %.80q", answer)
			}
		}
	}
	if !slices.Equal(questions, want) {
		t.Errorf("answered were %q", questions)
	}
	api.write("1:listener", "/status")
	if reply := api.await("1:listener", 1)[0]; reply.Text != "All is well\\." {
		t.Errorf("the reply is %+v", reply)
	}
}
