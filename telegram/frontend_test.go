package telegram_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-log/continuo/telegram"
)

func TestNewRefuses(t *testing.T) {
	valid := telegram.Options{Token: "1:listener", ChatID: 5, RoleTokens: map[string]string{"ann": "2:ann"}}
	for name, test := range map[string]struct {
		change func(*telegram.Options)
		want   string
	}{
		"no token":         {func(o *telegram.Options) { o.Token = "" }, "the listener's token"},
		"no token's form":  {func(o *telegram.Options) { o.Token = "1:sec/ret" }, "the listener's token"},
		"a role's token":   {func(o *telegram.Options) { o.RoleTokens = map[string]string{"ann": "secret"} }, "the role ann"},
		"the same token":   {func(o *telegram.Options) { o.RoleTokens = map[string]string{"ann": "1:listener"} }, "the same token as the listener"},
		"no chat":          {func(o *telegram.Options) { o.ChatID = 0 }, "the id of the chat"},
		"short messages":   {func(o *telegram.Options) { o.MaxMessageLength = 10 }, "at least 100"},
		"long messages":    {func(o *telegram.Options) { o.MaxMessageLength = 4097 }, "at most 4096"},
		"no URL":           {func(o *telegram.Options) { o.URL = "api.telegram.org" }, "URL of the Bot API"},
		"long polls":       {func(o *telegram.Options) { o.PollTime = time.Minute }, "at most 50 s"},
		"a webhook's word": {func(o *telegram.Options) { o.Webhook = &telegram.Webhook{Secret: "ä"} }, "the webhook's secret"},
	} {
		options := valid
		test.change(&options)
		_, err := telegram.New(nil, options)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "sec") && !strings.Contains(name, "webhook") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := telegram.New(nil, valid); err != nil {
		t.Error(err)
	}
}

// Over a real connection, one that breaks in between too.
func TestOverTheNetwork(t *testing.T) {
	s := newScene(t)
	s.log.answer = func(text string) []telegram.Event { return []telegram.Event{answers("ann", "to "+text)} }
	server := httptest.NewServer(s.api)
	defer server.Close()
	options := s.options()
	options.URL, options.HTTP, options.PollTime = server.URL+"/", nil, time.Second
	front := s.start(&crew{crewLog: s.log}, options)
	s.api.Receive(group, "Eve", "one")
	s.await("to one")
	server.CloseClientConnections() // it may be that a send is not answered
	s.api.Receive(group, "Eve", "two")
	s.await("to two")
	if err := front.stop(); err != nil {
		t.Error(err)
	}
	s.expect("the crew heard", s.log.messages(), "Eve: one", "Eve: two")
	s.expect("sent was", slices.Compact(s.wrote(group)), "ann_bot: Ann\nto one", "ann_bot: Ann\nto two")
	s.check()
}

// await waits until a message that ends with a text was sent.
func (s *scene) await(text string) {
	s.t.Helper()
	for {
		changed := s.api.Changed()
		if slices.ContainsFunc(s.wrote(group), func(sent string) bool { return strings.HasSuffix(sent, text) }) {
			return
		}
		select {
		case <-changed:
		case <-s.t.Context().Done():
			s.t.Fatal("the message did not come")
		}
	}
}

// Whatever answers in Telegram's place, no token reaches an error or the log: not over a connection that is refused, nor
// with a redirect, nor in a description.
func TestTokensStaySecret(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, handler := range map[string]http.HandlerFunc{
		"gone": nil,
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, gone.URL+r.URL.Path, http.StatusFound)
		},
		"repeated": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, `{"ok":false,"error_code":400,"description":"`+r.URL.Path+`"}`, 400)
		},
		"a long body": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 9<<20)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			options := s.options()
			options.URL, options.HTTP = gone.URL, nil
			if handler != nil {
				server := httptest.NewServer(handler)
				defer server.Close()
				options.URL = server.URL
			}
			ctx, cancel := context.WithCancel(t.Context())
			options.Log = slog.New(&stopping{slog.NewTextHandler(s.logged, nil), cancel})
			front, err := telegram.New(&crew{crewLog: s.log}, options)
			if err != nil {
				t.Fatal(err)
			}
			if err := front.Run(ctx); err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("it ended with: %v", err)
			}
			s.check()
		})
	}
}

// stopping ends what logs something.
type stopping struct {
	slog.Handler
	stop context.CancelFunc
}

func (h *stopping) Handle(ctx context.Context, record slog.Record) error {
	h.stop()
	return h.Handler.Handle(ctx, record)
}
