package telegram_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/telegram"
	"github.com/continuo-log/continuo/telegram/telegramtest"
)

// TestCheck: each thing that keeps a chat from working is told, with what to do, and nothing is changed.
func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *scene, options *telegram.Options)
		fatal  []string
		others []string
	}{
		"all is well": {change: func(*scene, *telegram.Options) {}},
		"a listener that nobody knows": {
			change: func(s *scene, _ *telegram.Options) { s.api.RemoveBot(s.listener) },
			fatal:  []string{"knows no bot by the token of the listener"},
		},
		"a role's bot that nobody knows": {
			change: func(s *scene, _ *telegram.Options) { s.api.RemoveBot(s.ann) },
			others: []string{"knows no bot by the token of the bot of ann"},
		},
		"a listener that is not in the group": {
			change: func(s *scene, _ *telegram.Options) { s.api.Leave(group, s.listener) },
			fatal:  []string{"add it to the group"},
		},
		"another group": {
			change: func(_ *scene, options *telegram.Options) { options.ChatID = -5 },
			fatal:  []string{"@crew_bot sees no chat -5: add it to the group"},
		},
		"a person who never pressed Start": {
			change: func(_ *scene, options *telegram.Options) { options.ChatID = 5 },
			fatal:  []string{"must press Start"},
		},
		"a person": {
			change: func(s *scene, options *telegram.Options) {
				options.ChatID = 5
				s.api.AddChat(5, "private", "Eve", s.listener)
			},
			others: []string{"press Start in it, or the listener speaks"},
		},
		"a group that became a supergroup": {
			change: func(s *scene, _ *telegram.Options) { s.api.Promote(group, -1002) },
			fatal:  []string{"its id is now -1002"},
		},
		"privacy mode": {
			change: func(s *scene, _ *telegram.Options) { s.api.SetPrivacy(s.listener, true) },
			fatal:  []string{"/setprivacy"},
		},
		"privacy mode of a role's bot, which only speaks": {
			change: func(s *scene, _ *telegram.Options) { s.api.SetPrivacy(s.ann, true) },
		},
		"a listener that may not write": {
			change: func(s *scene, _ *telegram.Options) { s.api.Mute(group, s.listener) },
			fatal:  []string{"@crew_bot may not write in the chat"},
		},
		"a role's bot that may not write": {
			change: func(s *scene, _ *telegram.Options) { s.api.Mute(group, s.ann) },
			others: []string{"@ann_bot, the bot of ann, may not write"},
		},
		"a role's bot that is not in the group": {
			change: func(s *scene, _ *telegram.Options) { s.api.Leave(group, s.ann) },
			others: []string{"@ann_bot, the bot of ann, is not in the chat"},
		},
		"a webhook from before": {
			change: func(s *scene, _ *telegram.Options) { s.hookTo("https://old.test/hook") },
			others: []string{"posts what people write to https://old.test/hook"},
		},
		"a webhook that fails": {
			change: func(s *scene, options *telegram.Options) {
				options.Webhook = &telegram.Webhook{URL: "https://crew.test/hook", Secret: "a_good-1"}
				s.hookTo(options.Webhook.URL)
				s.api.Receive(group, "Eve", "hello?")
				s.api.SetWebhookError(s.listener, "Connection refused")
			},
			others: []string{"cannot post to the webhook (1 messages wait): Connection refused"},
		},
		"Telegram is away": {
			change: func(s *scene, _ *telegram.Options) {
				s.api.SetFaults(func(telegramtest.Call) telegramtest.Fault {
					return telegramtest.Fault{Status: http.StatusBadGateway, Plain: true}
				})
			},
			fatal:  []string{"the listener cannot be asked for: getMe: 502"},
			others: []string{"the bot of ann cannot be asked for"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			options := s.options()
			test.change(s, &options)
			before := s.calls()
			report, err := telegram.Check(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			var fatal, others []string
			for _, found := range report.Findings {
				if found.Fatal {
					fatal = append(fatal, found.Text)
				} else {
					others = append(others, found.Text)
				}
			}
			expectAll(t, "fatal", fatal, test.fatal)
			expectAll(t, "other", others, test.others)
			for _, call := range s.calls()[len(before):] {
				if !strings.HasPrefix(call, "get") || call == "getUpdates" {
					t.Errorf("the check called %s", call)
				}
			}
			if len(test.fatal) == 0 && (report.Chat == "" || report.Bots[0].Username != "crew_bot") {
				t.Errorf("the chat is %q (%s), the bots are %v", report.Chat, report.ChatType, report.Bots)
			}
			if text := fmt.Sprint(report); strings.Contains(text, "secret") {
				t.Errorf("a token is told: %s", text)
			}
			s.check()
		})
	}
}

// hookTo has Telegram post what the listener is told to an address.
func (s *scene) hookTo(address string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "https://bot.test/bot"+s.listener+"/setWebhook", strings.NewReader(`{"url":"`+address+`"}`))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.api.Client().Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = response.Body.Close()
}

// calls are the methods that were called.
func (s *scene) calls() (methods []string) {
	for _, call := range s.api.Calls() {
		methods = append(methods, call.Method)
	}
	return methods
}

// expectAll checks that there are as many texts as wanted, each with what is wanted of it.
func expectAll(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s findings are %q, want %q", what, got, want)
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("a %s finding is %q, want %q", what, got[i], want[i])
		}
	}
}
