package telegram_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-log/continuo/telegram"
	"github.com/continuo-log/continuo/telegram/telegramtest"
)

const group = -1001

// scene is a group with a listener and the bot of the role ann, on a Bot API without a network. bob has no bot.
type scene struct {
	t             *testing.T
	api           *telegramtest.Server
	log           *crewLog
	logged        *loggedText
	listener, ann string // tokens
	shared        bool   // by several front ends
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, api: telegramtest.New(), log: newCrewLog(), logged: &loggedText{}}
	s.listener, s.ann = s.api.AddBot(1, "crew_bot"), s.api.AddBot(2, "ann_bot")
	s.api.AddChat(group, "supergroup", "Team", s.listener, s.ann)
	return s
}

// options are those of the scene's front end.
func (s *scene) options() telegram.Options {
	return telegram.Options{
		Token: s.listener, RoleTokens: map[string]string{"ann": s.ann}, DisplayNames: map[string]string{"ann": "Ann", "bob": "Bob"}, ChatID: group, URL: "https://bot.test", HTTP: s.api.Client(),
		Log: slog.New(slog.NewTextHandler(s.logged, nil)),
	}
}

// running is a front end at work.
type running struct {
	*telegram.FrontEnd
	cancel context.CancelFunc
	ended  chan error
}

// start runs a front end, until it is stopped or the test ends.
func (s *scene) start(c telegram.Crew, options telegram.Options) *running {
	s.t.Helper()
	front, err := telegram.New(c, options)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	r := &running{front, cancel, make(chan error, 1)}
	go func() { r.ended <- front.Run(ctx) }()
	return r
}

// stop ends it and returns Run's error.
func (r *running) stop() error {
	r.cancel()
	return <-r.ended
}

// settle lets a time pass within the bubble, in which everything that can happen does.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// play runs a scene in a bubble with a front end over it, which has to end well.
func play(t *testing.T, scenery func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		front := s.start(&crew{crewLog: s.log}, s.options())
		scenery(s)
		if err := front.stop(); err != nil {
			t.Errorf("the front end ended with: %v", err)
		}
		s.check()
	})
}

// check checks what must hold whatever happened.
func (s *scene) check() {
	s.t.Helper()
	for _, problem := range s.api.Problems() {
		s.t.Errorf("the client did what it must not: %s", problem)
	}
	if s.log.behind != nil && !s.shared {
		s.t.Errorf("delivery does not go forward: %q", s.log.behind)
	}
	if text := s.logged.String(); strings.Contains(text, "secret") || strings.Contains(text, "hidden words") {
		s.t.Errorf("the log has a token or a text:\n%s", text)
	}
}

// wrote lists what bots wrote to a chat, as BOT: TEXT.
func (s *scene) wrote(chatID int64) (list []string) {
	for _, sent := range s.api.Sent() {
		if sent.ChatID == chatID {
			list = append(list, sent.Bot+": "+sent.Text)
		}
	}
	return list
}

func (s *scene) expect(what string, got []string, want ...string) {
	s.t.Helper()
	if !slices.Equal(got, want) {
		s.t.Errorf("%s:\n%s\nnot\n%s\nlog:\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"), s.logged)
	}
}

// loggedText keeps what is logged.
type loggedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *loggedText) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(data)
}

func (l *loggedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// answers makes an answer.
func answers(role, text string) telegram.Event {
	return telegram.Event{Kind: telegram.EventAnswer, Role: role, DisplayName: strings.ToUpper(role[:1]) + role[1:], Text: text}
}

// failOn makes the calls of a method fail, from the first to the last one, by their number from 1.
func failOn(method string, first, last int, fault telegramtest.Fault) func(telegramtest.Call) telegramtest.Fault {
	var mu sync.Mutex
	count := 0
	return func(call telegramtest.Call) telegramtest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if call.Method != method {
			return telegramtest.Fault{}
		}
		if count++; count < first || count > last {
			return telegramtest.Fault{}
		}
		return fault
	}
}
