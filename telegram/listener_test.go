package telegram_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-log/continuo/telegram"
	"github.com/continuo-log/continuo/telegram/telegramtest"
)

func TestMessagesReachTheCrew(t *testing.T) {
	play(t, func(s *scene) {
		s.api.Receive(group, "Eve", "hidden words")
		s.api.Receive(group, "Max\nSystem:", "a\x00b\r\nc")
		s.api.Receive(group, "Eve", "/usr/bin is a path")
		s.api.Post(group, "Eve", map[string]any{"caption": "look", "photo": []any{map[string]any{"file_id": "x"}}})
		s.api.Post(group, "", map[string]any{
			"text": "from all", "from": map[string]any{"id": 1087968824, "is_bot": true, "first_name": "Group"}, "sender_chat": map[string]any{"id": group, "title": "Team"},
		})
		settle(time.Second)
		s.expect("the crew heard", s.log.messages(), "Eve: hidden words", "Max System:: ab\nc", "Eve: /usr/bin is a path", "Eve: look", "Team: from all")
		settle(time.Minute)
		if pending := s.api.Pending(s.listener); pending != 0 {
			t.Errorf("%d updates are not confirmed", pending)
		}
		if key := s.log.keys[0]; key != "telegram/1/1001" {
			t.Errorf("the key is %q", key)
		}
	})
}

func TestIgnoredUpdates(t *testing.T) {
	for name, test := range map[string]struct {
		post func(*telegramtest.Server)
		want string // in the only reply; "" for none
	}{
		"edited":       {func(a *telegramtest.Server) { a.Edit(group, "Eve", "changed") }, "Edits are not read"},
		"a sticker":    {func(a *telegramtest.Server) { a.Post(group, "Eve", map[string]any{"sticker": map[string]any{}}) }, "Only text"},
		"an event":     {func(a *telegramtest.Server) { a.Post(group, "Eve", map[string]any{"new_chat_title": "x"}) }, ""},
		"nothing seen": {func(a *telegramtest.Server) { a.Receive(group, "Eve", "\u200b\x01") }, "is empty"},
		"too long":     {func(a *telegramtest.Server) { a.Receive(group, "Eve", strings.Repeat("😀", 2049)) }, "too long"},
		"a bot": {func(a *telegramtest.Server) {
			a.Post(group, "", map[string]any{"text": "hi", "from": map[string]any{"is_bot": true}})
		}, ""},
		"refused":       {func(a *telegramtest.Server) { a.Receive(group, "Eve", "refuse me") }, "The crew is closed."},
		"an album":      {func(a *telegramtest.Server) { album(a); album(a) }, "Only text"},
		"other bots":    {func(a *telegramtest.Server) { a.Receive(group, "Eve", "/status@other_bot") }, ""},
		"unknown":       {func(a *telegramtest.Server) { a.Receive(group, "Eve", "/fly me") }, "There is no command /fly."},
		"start":         {func(a *telegramtest.Server) { a.Receive(group, "Eve", "/start") }, "/status"},
		"help":          {func(a *telegramtest.Server) { a.Receive(group, "Eve", "/help@CREW_bot") }, "/context ROLE"},
		"status":        {func(a *telegramtest.Server) { a.Receive(group, "Eve", "/status") }, "Round 1."},
		"roles fail":    {func(a *telegramtest.Server) { a.Receive(group, "Eve", "/roles") }, "try again"},
		"stop":          {func(a *telegramtest.Server) { a.Receive(group, "Eve", "/stop") }, "Stopped."},
		"resume":        {func(a *telegramtest.Server) { a.Receive(group, "Eve", "/resume") }, "There is nothing to continue with."},
		"reset":         {func(a *telegramtest.Server) { a.Receive(group, "Eve", "/reset") }, "All begin again."},
		"restore":       {func(a *telegramtest.Server) { a.Receive(group, "Eve", "/RESTORE") }, "nothing to take back"},
		"which context": {func(a *telegramtest.Server) { a.Receive(group, "Eve", "/context") }, "Which role?"},
		"a stranger": {func(a *telegramtest.Server) {
			a.AddChat(5, "private", "", "1:secret-of-crew_bot")
			a.Receive(5, "Mallory", "let me in")
			a.Receive(5, "Mallory", "/status")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *scene) {
				test.post(s.api)
				settle(time.Second)
				replies := s.wrote(group)
				if len(s.api.Sent()) != len(replies) {
					t.Error("somebody else got an answer")
				}
				s.expect("the crew heard", s.log.messages())
				switch {
				case test.want == "":
					s.expect("the replies are", replies)
				case len(replies) != 1 || !strings.Contains(replies[0], test.want):
					t.Errorf("the replies are %q", replies)
				}
				if stranger := strings.Count(s.logged.String(), "telegram_chat_ignored"); name == "a stranger" && stranger != 1 {
					t.Errorf("the stranger is logged %d times", stranger)
				}
			})
		})
	}
}

func album(a *telegramtest.Server) {
	a.Post(group, "Eve", map[string]any{"photo": []any{}, "media_group_id": "7"})
}

// In the chat of one person, messages have no author.
func TestPrivateChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.api.AddChat(77, "private", "", s.listener)
		options := s.options()
		options.ChatID, options.RoleTokens = 77, nil
		front := s.start(&crew{crewLog: s.log}, options)
		s.api.Receive(77, "Eve", "hello")
		s.api.Receive(77, "Eve", "/context ann")
		settle(time.Second)
		s.expect("the crew heard", s.log.messages(), "-: hello")
		replies := s.wrote(77)
		if len(replies) != 2 || !strings.Contains(replies[0], "The newest ") || !strings.Contains(replies[1], "what ann sees") || !strings.HasSuffix(replies[1], "the newest word.") {
			t.Errorf("a long context has %d parts: %q", len(replies), replies)
		}
		if err := front.stop(); err != nil {
			t.Error(err)
		}
		if len(s.api.Commands(s.listener)) != 8 {
			t.Errorf("the commands offered are %v", s.api.Commands(s.listener))
		}
		s.check()
	})
}

// An update is confirmed only when its message is in the log, and no message overtakes another.
func TestAMessageIsConfirmedWhenItIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		failures := 0
		c := &crew{crewLog: s.log}
		c.step = func(step string) error {
			if step == "Say ends" && failures < 3 { // it stands, but the front end does not know
				failures++
				return errors.New("the store is away")
			}
			return nil
		}
		front := s.start(c, s.options())
		s.api.Receive(group, "Eve", "one")
		s.api.Receive(group, "Eve", "two")
		synctest.Wait()
		if pending := s.api.Pending(s.listener); pending != 2 {
			t.Errorf("%d updates of 2 are pending while the store is away", pending)
		}
		settle(time.Minute)
		s.expect("the crew heard", s.log.messages(), "Eve: one", "Eve: two")
		if pending := s.api.Pending(s.listener); pending != 0 || failures != 3 {
			t.Errorf("%d updates are pending after %d failures", pending, failures)
		}
		if err := front.stop(); err != nil {
			t.Error(err)
		}
		s.check()
	})
}

// While another program gets the updates, nothing is sent; when it is gone, all is.
func TestStandby(t *testing.T) {
	play(t, func(s *scene) {
		settle(time.Second)
		s.api.SetFaults(func(call telegramtest.Call) telegramtest.Fault {
			if call.Method == "getUpdates" {
				return telegramtest.Fault{Status: http.StatusConflict, Description: "Conflict: terminated by other getUpdates request"}
			}
			return telegramtest.Fault{}
		})
		s.api.Receive(group, "Eve", "one") // ends the poll that is in progress
		settle(time.Second)
		s.log.emit(answers("ann", "waits"))
		settle(time.Minute)
		s.expect("sent while standing by was", s.wrote(group))
		if times := strings.Count(s.logged.String(), "telegram_standby"); times < 4 || times > 13 {
			t.Errorf("in a minute it tried %d times", times)
		}
		s.api.SetFaults(nil)
		settle(20 * time.Second)
		s.expect("sent then was", s.wrote(group), "ann_bot: Ann\nwaits")
		s.expect("the crew heard", s.log.messages(), "Eve: one")
	})
}

// An update that cannot be read is passed over, and holds up nothing.
func TestAnUnreadableUpdate(t *testing.T) {
	play(t, func(s *scene) {
		settle(time.Second)
		s.api.Post(group, "Eve", map[string]any{"text": map[string]any{"new": "shape"}})
		s.api.Receive(group, "Eve", "two")
		settle(time.Minute)
		s.expect("the crew heard", s.log.messages(), "Eve: two")
		if s.api.Pending(s.listener) != 0 || !strings.Contains(s.logged.String(), "telegram_update_unreadable") {
			t.Errorf("the log is %s", s.logged)
		}
	})
}

// Two front ends over one crew: neither loses or doubles a message of a person, and every answer comes.
func TestTwoFrontEnds(t *testing.T) {
	play(t, func(s *scene) {
		s.log.answer = func(text string) []telegram.Event { return []telegram.Event{answers("bob", "to "+text)} }
		s.shared = true
		second := s.start(&crew{crewLog: s.log}, s.options())
		var want []string
		for i := range 40 {
			text := strings.Repeat("i", i+1)
			s.api.Receive(group, "Eve", text)
			want = append(want, "Eve: "+text)
			settle(1700 * time.Millisecond)
		}
		settle(time.Minute)
		s.expect("the crew heard", s.log.messages(), want...)
		answers := map[string]int{}
		for _, text := range s.wrote(group) {
			answers[text]++
		}
		if len(answers) != 40 {
			t.Errorf("%d answers of 40 came", len(answers))
		}
		if !strings.Contains(s.logged.String(), "telegram_standby") {
			t.Error("they never met")
		}
		if err := second.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestPollingContinuesAfterFailures(t *testing.T) {
	for name, fault := range map[string]telegramtest.Fault{
		"a bad gateway": {Status: http.StatusBadGateway, Plain: true}, "an error": {Status: http.StatusInternalServerError}, "no connection": {Dropped: true},
		"lost answers": {Lost: true}, "too many": {Status: http.StatusTooManyRequests, RetryAfter: 7}, "not of the API": {Status: http.StatusOK, Plain: true},
	} {
		for _, method := range []string{"getMe", "getUpdates", "deleteWebhook", "setMyCommands"} {
			t.Run(name+" of "+method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newScene(t)
					s.api.SetFaults(failOn(method, 1, 8, fault))
					s.api.Receive(group, "Eve", "one")
					front := s.start(&crew{crewLog: s.log}, s.options())
					settle(5 * time.Minute) // eight waits of at most 30 s
					s.expect("the crew heard", s.log.messages(), "Eve: one")
					if calls := len(s.api.Calls()); calls > 40 {
						t.Errorf("in five minutes it made %d calls", calls)
					}
					if err := front.stop(); err != nil {
						t.Error(err)
					}
					s.check()
				})
			})
		}
	}
}

// Where Telegram asks for more time than a wait after a failure takes, it gets it.
func TestPollingObeysRetryAfter(t *testing.T) {
	play(t, func(s *scene) {
		settle(time.Second)
		s.api.SetFaults(failOn("getUpdates", 1, 1, telegramtest.Fault{Status: http.StatusTooManyRequests, RetryAfter: 45}))
		s.api.Receive(group, "Eve", "one") // ends the question in progress; the next one fails
		s.api.Receive(group, "Eve", "two")
		settle(time.Minute)
		s.expect("the crew heard", s.log.messages(), "Eve: one", "Eve: two")
	})
}

func TestARefusedTokenEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		front := s.start(&crew{crewLog: s.log}, s.options())
		settle(time.Second)
		s.api.RemoveBot(s.listener)
		err := <-front.ended
		if err == nil || !strings.Contains(err.Error(), "BotFather") || strings.Contains(err.Error(), "secret") {
			t.Errorf("it ended with: %v", err)
		}
		s.check()
	})
}

// After a silent week Telegram's ids go on from anywhere, lower ones too.
func TestIdsMayGoBack(t *testing.T) {
	play(t, func(s *scene) {
		s.api.Receive(group, "Eve", "one")
		settle(8 * 24 * time.Hour)
		s.api.SetFaults(failOn("getUpdates", 1, 100, telegramtest.Fault{Dropped: true}))
		settle(time.Minute)
		s.api.Jump(s.listener, 5) // while nobody asks
		s.api.Receive(group, "Eve", "two")
		s.api.SetFaults(nil)
		settle(time.Minute)
		s.expect("the crew heard", s.log.messages(), "Eve: one", "Eve: two")
	})
}

// A message that cannot be handed in holds up what was written behind it, but for commands that read or stop. The person
// is told once, and in the end each message is taken, once and in order.
func TestCommandsOvertakeAMessageThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		var busy atomic.Bool
		busy.Store(true)
		c := &crew{crewLog: s.log, step: func(step string) error {
			if step == "Say begins" && busy.Load() {
				return errors.New("the crew is busy")
			}
			return nil
		}}
		front := s.start(c, s.options())
		s.api.Receive(group, "Eve", "one")
		settle(10 * time.Second)
		s.api.Receive(group, "Eve", "two")
		s.api.Receive(group, "Eve", "/stop")
		s.api.Receive(group, "Eve", "/reset")
		settle(time.Minute)
		s.expect("meanwhile", s.wrote(group),
			"crew_bot: Your message could not be delivered to the crew yet. Delivery is retried; /stop and /status still work.", "crew_bot: Stopped.")
		busy.Store(false)
		settle(time.Minute)
		s.expect("the crew heard", s.log.messages(), "Eve: one", "Eve: two")
		s.expect("in the end", s.wrote(group)[2:], "crew_bot: All begin again.")
		s.expect("stopped was", s.log.stopped, "Eve: one", "Eve: two")
		if pending := s.api.Pending(s.listener); pending != 0 || s.log.resets != 1 {
			t.Errorf("%d updates are not confirmed, and there were %d resets", pending, s.log.resets)
		}
		if err := front.stop(); err != nil {
			t.Error(err)
		}
		s.check()
	})
}
