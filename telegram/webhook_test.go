package telegram_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-log/continuo/telegram"
	"github.com/continuo-log/continuo/telegram/telegramtest"
)

// hooked runs a scene with a front end that Telegram posts updates to.
func hooked(t *testing.T, c *crew, scenery func(s *scene, front *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		c.crewLog = s.log
		options := s.options()
		options.Webhook = &telegram.Webhook{URL: "https://crew.test/hook", Secret: "a_good-1"}
		front := s.start(c, options)
		settle(time.Second)
		scenery(s, front)
		if err := front.stop(); err != nil {
			t.Error(err)
		}
		s.check()
	})
}

// deliver has Telegram post the next update.
func (s *scene) deliver(front *running) (status int) {
	s.t.Helper()
	status, err := s.api.Deliver(s.t.Context(), s.listener, telegramtest.Client(front.Handler()))
	if err != nil {
		s.t.Fatal(err)
	}
	return status
}

func TestWebhook(t *testing.T) {
	c := &crew{}
	hooked(t, c, func(s *scene, front *running) {
		s.log.answer = func(text string) []telegram.Event { return []telegram.Event{answers("bob", "to "+text)} }
		s.api.Receive(group, "Eve", "one")
		away := true
		c.step = func(step string) error {
			if step == "Say ends" && away {
				return errors.New("the store is away")
			}
			return nil
		}
		if status := s.deliver(front); status != http.StatusServiceUnavailable {
			t.Errorf("while the store is away the status is %d", status)
		}
		away = false
		if status := s.deliver(front); status != http.StatusOK || s.api.Pending(s.listener) != 0 {
			t.Errorf("then it is %d", status)
		}
		settle(time.Second)
		s.expect("the crew heard", s.log.messages(), "Eve: one")
		s.expect("sent was", s.wrote(group), "crew_bot: Bob\nto one")
	})
}

// Two programs with one store have one webhook: Telegram posts to either, and one of them sends.
func TestWebhookOfTwoPrograms(t *testing.T) {
	c := &crew{}
	hooked(t, c, func(s *scene, first *running) {
		s.log.turn = make(chan struct{}, 1)
		s.log.answer = func(text string) []telegram.Event { return []telegram.Event{answers("bob", "to "+text)} }
		if err := first.stop(); err != nil { // it began before there were two
			t.Error(err)
		}
		options := s.options()
		options.Webhook = &telegram.Webhook{URL: "https://crew.test/hook", Secret: "a_good-1"}
		both := []*running{s.start(c, options), s.start(c, options)}
		settle(time.Second)
		for i, text := range []string{"one", "two", "three"} {
			s.api.Receive(group, "Eve", text)
			if status := s.deliver(both[i%2]); status != http.StatusOK {
				t.Errorf("%s: the status is %d", text, status)
			}
			settle(time.Second)
		}
		if err := both[0].stop(); err != nil {
			t.Error(err)
		}
		s.api.Receive(group, "Eve", "four")
		s.deliver(both[1])
		settle(time.Second)
		if err := both[1].stop(); err != nil {
			t.Error(err)
		}
		first.ended <- nil
		s.expect("sent was", s.wrote(group), "crew_bot: Bob\nto one", "crew_bot: Bob\nto two", "crew_bot: Bob\nto three", "crew_bot: Bob\nto four")
	})
}

func TestWebhookRefuses(t *testing.T) {
	hooked(t, &crew{}, func(s *scene, front *running) {
		valid := `{"update_id":9,"message":{"text":"x","chat":{"id":-1001,"type":"private"}}}`
		for name, test := range map[string]struct {
			method, secret, body string
			status               int
		}{
			"no secret":    {http.MethodPost, "", valid, http.StatusUnauthorized},
			"wrong secret": {http.MethodPost, "a_good-2", valid, http.StatusUnauthorized},
			"GET":          {http.MethodGet, "a_good-1", "", http.StatusMethodNotAllowed},
			"no JSON":      {http.MethodPost, "a_good-1", "{", http.StatusBadRequest},
			"no update":    {http.MethodPost, "a_good-1", "{}", http.StatusBadRequest},
			"a new shape":  {http.MethodPost, "a_good-1", `{"update_id":9,"message":{"text":{"x":1}}}`, http.StatusOK}, // or it would come for ever
			"too large":    {http.MethodPost, "a_good-1", `{"update_id":9,"x":"` + strings.Repeat("x", 1<<20) + `"}`, http.StatusRequestEntityTooLarge},
		} {
			request, err := http.NewRequestWithContext(s.t.Context(), test.method, "https://crew.test/hook", strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("X-Telegram-Bot-Api-Secret-Token", test.secret)
			response, err := telegramtest.Client(front.Handler()).Do(request)
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != test.status {
				t.Errorf("%s: the status is %d", name, response.StatusCode)
			}
			_ = response.Body.Close()
		}
		s.expect("the crew heard", s.log.messages())
	})
}

// Without a webhook there is no handler, and one that is left from before is taken away.
func TestNoWebhook(t *testing.T) {
	hooked(t, &crew{}, func(s *scene, front *running) {
		if err := front.stop(); err != nil {
			t.Error(err)
		}
		front.ended <- nil
		again := s.start(&crew{crewLog: s.log}, s.options())
		s.api.Receive(group, "Eve", "one")
		settle(time.Minute)
		s.expect("the crew heard", s.log.messages(), "Eve: one")
		response, err := telegramtest.Client(again.Handler()).Get("https://crew.test/hook") //nolint:noctx // calls a handler
		if err != nil || response.StatusCode != http.StatusNotFound {
			t.Errorf("the handler answers %v, %v", response, err)
		}
		_ = response.Body.Close()
		if err := again.stop(); err != nil {
			t.Error(err)
		}
	})
}
