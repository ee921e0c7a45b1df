package main

import (
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/continuo-log/continuo/telegram/telegramtest"
)

// TestTelegramCommand talks in a chat until it is stopped, and doctor says what is wrong with the chat.
func TestTelegramCommand(t *testing.T) {
	dir, api := t.TempDir(), telegramtest.New()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	token := api.AddBot(1, "crew_bot")
	api.AddChat(-7, "group", "Garden", token)
	env := []string{"BOT=" + token, "CONTINUO_TELEGRAM_CHAT_ID=-7", "CONTINUO_TELEGRAM_API_URL=" + server.URL}
	args := []string{"--set", "telegram.bot_token=${BOT}"}

	api.Receive(-7, "Ada", "Make a plan for a garden.")
	p := start(t, dir, env, append([]string{"telegram", "--crew=example"}, args...)...)
	for changed := api.Changed(); !slices.ContainsFunc(api.Sent(), isReviewers); changed = api.Changed() {
		select {
		case <-changed:
		case <-time.After(5 * time.Minute):
			t.Fatalf("the reviewer says nothing:\n%s", p.stderr)
		}
	}
	p.stderr.wait(t, `(crew example answers in chat -7)`)
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, p.stderr)
	}

	doctor := func(code int, want ...string) {
		t.Helper()
		p := start(t, dir, env, append([]string{"doctor", "--online", "--set", "telegram.crew=example"}, args...)...)
		if got := p.end(); got != code {
			t.Errorf("doctor ended with %d, want %d:\n%s", got, code, p.stdout)
		}
		for _, text := range want {
			if !strings.Contains(p.stdout.String(), text) {
				t.Errorf("doctor does not say %q:\n%s", text, p.stdout)
			}
		}
		if strings.Contains(p.stdout.String(), token) {
			t.Errorf("doctor prints a token:\n%s", p.stdout)
		}
	}
	doctor(0, "telegram: @crew_bot in Garden (group)")
	api.SetPrivacy(token, true)
	doctor(1, "telegram: @crew_bot receives only commands")
	api.RemoveBot(token)
	doctor(1, "Telegram knows no bot by the token of the listener")
	if problems := api.Problems(); len(problems) > 0 {
		t.Errorf("the Bot API was used wrongly: %q", problems)
	}

	refused := start(t, dir, env, append([]string{"telegram", "--crew=example"}, args...)...)
	if code := refused.end(); code != 1 || !strings.Contains(refused.stderr.String(), "refuses the listener's token") {
		t.Errorf("with an unknown token it ends with %d:\n%s", code, refused.stderr)
	}
	for what, test := range map[string][]string{
		"telegram.crew":        {"telegram"},
		"telegram.chat_id":     {"telegram", "--crew=example", "--chat=0"},
		"telegram.webhook_url": {"telegram", "--crew=example", "--set", "telegram.webhook_url=https://crew.test/hook", "--set", "telegram.webhook_secret=${BOT_SECRET}"},
	} {
		p := start(t, dir, slices.Concat(env, []string{"BOT_SECRET=a_good-1"}), append(test, args...)...)
		if code := p.end(); code != 2 || !strings.Contains(p.stderr.String(), what) {
			t.Errorf("%v ended with %d:\n%s", test, code, p.stderr)
		}
	}
}

func isReviewers(message telegramtest.Sent) bool {
	return strings.HasPrefix(message.Text, "Reviewer\n")
}
