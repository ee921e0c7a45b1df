package telegram_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-log/continuo/telegram"
	"github.com/continuo-log/continuo/telegram/telegramtest"
)

func TestWhichBotSends(t *testing.T) {
	play(t, func(s *scene) {
		s.log.emit(
			answers("ann", "By *ann*, v1.0"),
			telegram.Event{Kind: telegram.EventPassed, Role: "ann", Text: "....."},
			answers("bob", "By the listener"),
			telegram.Event{Kind: telegram.EventFailed, Role: "ann", DisplayName: "Ann", Text: "its *time*\nwas up"},
			telegram.Event{Kind: telegram.EventEnded},
			answers("ann", " \n"),
			telegram.Event{Kind: telegram.EventEnded, Text: "The limit of 10 rounds is reached."},
		)
		settle(time.Second)
		s.expect("sent was", s.wrote(group),
			"ann_bot: Ann\nBy ann, v1.0", "crew_bot: Bob\nBy the listener", "crew_bot: Ann did not answer: its *time* was up",
			"crew_bot: The limit of 10 rounds is reached.")
		if s.log.delivered != (telegram.Delivery{Seq: 7}) {
			t.Errorf("delivered is %+v", s.log.delivered)
		}
	})
}

// Where a role's bot cannot speak the listener does, answer for answer.
func TestTheListenerSendsForRolesWithoutABot(t *testing.T) {
	for name, test := range map[string]struct{ away, back func(*scene) }{
		"kicked":        {func(s *scene) { s.api.Leave(group, s.ann) }, func(s *scene) { s.api.Join(group, s.ann) }},
		"refused token": {func(s *scene) { s.api.RemoveBot(s.ann) }, func(s *scene) { s.api.AddBot(2, "ann_bot") }},
		"not found": {
			func(s *scene) { s.api.AddChat(group, "supergroup", "Team", s.listener) }, func(s *scene) { s.api.Join(group, s.ann) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *scene) {
				test.away(s)
				s.log.emit(answers("ann", strings.Repeat("long words ", 500)), answers("ann", "two"))
				settle(time.Second)
				test.back(s)
				s.log.emit(answers("ann", "three"))
				settle(time.Second)
				var by []string
				for _, sent := range s.api.Sent() {
					by = append(by, sent.Bot)
				}
				s.expect("the bots were", by, "crew_bot", "crew_bot", "crew_bot", "ann_bot")
				if lines := strings.Count(s.logged.String(), "telegram_role_bot_refused"); lines != 2 {
					t.Errorf("for two answers the log has %d lines", lines)
				}
			})
		})
	}
}

func TestFailuresOfSending(t *testing.T) {
	for name, test := range map[string]struct {
		fault telegramtest.Fault
		again int // how often an answer stands twice
	}{
		"too many":      {telegramtest.Fault{Status: http.StatusTooManyRequests, RetryAfter: 17}, 0},
		"too many, why": {telegramtest.Fault{Status: http.StatusTooManyRequests}, 0},
		"a bad gateway": {telegramtest.Fault{Status: http.StatusBadGateway, Plain: true}, 0},
		"no connection": {telegramtest.Fault{Dropped: true}, 0},
		"a lost answer": {telegramtest.Fault{Lost: true}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *scene) {
				s.api.SetFaults(failOn("sendMessage", 2, 3, test.fault))
				s.log.emit(answers("ann", "one"), answers("ann", "two"), answers("bob", "three"))
				settle(2 * time.Minute)
				got := s.wrote(group)
				s.expect("each once, sent was", slices.Compact(slices.Clone(got)), "ann_bot: Ann\none", "ann_bot: Ann\ntwo", "crew_bot: Bob\nthree")
				if len(got) != 3+test.again {
					t.Errorf("sent was %q", got)
				}
			})
		})
	}
}

// A bot that is told to wait does, while the others wait for it only because of the order.
func TestRetryAfterIsObeyed(t *testing.T) {
	play(t, func(s *scene) {
		settle(time.Second)
		s.api.SetFaults(failOn("sendMessage", 1, 1, telegramtest.Fault{Status: http.StatusTooManyRequests, RetryAfter: 45}))
		s.log.emit(answers("bob", "one"))
		begin := time.Now()
		settle(time.Second)
		s.api.Receive(group, "Eve", "/status") // the same bot replies, and waits too
		settle(time.Minute)
		for _, sent := range s.api.Sent() {
			if waited := sent.At.Sub(begin); waited < 45*time.Second || waited > 46*time.Second {
				t.Errorf("%q was sent after %v", sent.Text, waited)
			}
		}
		if got := s.wrote(group); len(got) != 2 {
			t.Errorf("sent was %q", got)
		}
	})
}

// What Telegram cannot read as Markdown is sent as plain text; what it takes in no way is told of.
func TestRefusedMessages(t *testing.T) {
	unreadable := telegramtest.Fault{Status: http.StatusBadRequest, Description: "Bad Request: can't parse entities: Character '.' is reserved"}
	for name, test := range map[string]struct {
		fault       telegramtest.Fault
		first, last int
		want        string
	}{
		"markdown":       {unreadable, 1, 1, "crew_bot: Bob\nsee `x.y`."},
		"in no way":      {telegramtest.Fault{Status: http.StatusBadRequest, Description: "Bad Request: TEXT_INVALID"}, 1, 1, "crew_bot: (A part of this answer cannot be shown here. The log has all of it.)"},
		"for some time":  {telegramtest.Fault{Status: http.StatusForbidden, Description: "Forbidden: bot was kicked"}, 1, 5, "crew_bot: Bob\nsee x.y."},
		"also the plain": {unreadable, 1, 2, "crew_bot: (A part of this answer cannot be shown here. The log has all of it.)"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *scene) {
				settle(time.Second)
				s.api.SetFaults(failOn("sendMessage", test.first, test.last, test.fault))
				s.log.emit(answers("bob", "see `x.y`."))
				settle(5 * time.Minute)
				s.expect("sent was", s.wrote(group), test.want)
				if s.log.delivered.Seq != 1 {
					t.Errorf("delivered is %+v", s.log.delivered)
				}
			})
		})
	}
}

// A front end continues with the part behind the newest one that was sent, and with all if the limit has changed.
func TestResumesWithinAnAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		delivered telegram.Delivery
		limit     int
		want      int // messages
	}{
		"from the beginning": {telegram.Delivery{}, 1000, 6}, "one part sent": {telegram.Delivery{Parts: 1}, 1000, 5},
		"all but the last": {telegram.Delivery{Parts: 5}, 1000, 1}, "more than there are": {telegram.Delivery{Parts: 5}, 4096, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t)
				s.log.emit(telegram.Event{Kind: telegram.EventPassed, Role: "bob"}, answers("ann", strings.Repeat("some words ", 500)))
				s.log.delivered = test.delivered
				options := s.options()
				options.MaxMessageLength = test.limit
				front := s.start(&crew{crewLog: s.log}, options)
				settle(time.Second)
				if sent := s.api.Sent(); len(sent) != test.want {
					t.Errorf("%d messages were sent, not %d", len(sent), test.want)
				}
				if s.log.delivered != (telegram.Delivery{Seq: 2}) {
					t.Errorf("delivered is %+v", s.log.delivered)
				}
				if err := front.stop(); err != nil {
					t.Error(err)
				}
				s.check()
			})
		})
	}
}

// A role that is speaking is seen writing until it has answered.
func TestTyping(t *testing.T) {
	play(t, func(s *scene) {
		s.log.emit(telegram.Event{Kind: telegram.EventSpeaking, Role: "ann"})
		settle(10 * time.Second)
		typed := s.api.Typed(s.ann)
		if typed < 2 || s.api.Typed(s.listener) != 0 {
			t.Errorf("in 10 s the role was seen writing %d times", typed)
		}
		s.log.emit(answers("ann", "done"))
		settle(time.Minute)
		if after := s.api.Typed(s.ann); after != typed {
			t.Errorf("it went on writing: %d", after-typed)
		}
		s.expect("sent was", s.wrote(group), "ann_bot: Ann\ndone")
	})
}

// A message that is being sent when the front end is to end is finished and noted, so that the next one does not send it
// again.
func TestEndsAfterTheCurrentMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		slow := make(chan struct{})
		options := s.options()
		options.HTTP = telegramtest.Client(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/sendMessage") {
				<-slow
			}
			s.api.ServeHTTP(w, r)
		}))
		front := s.start(&crew{crewLog: s.log}, options)
		s.log.emit(answers("ann", "one"), answers("ann", "two"))
		synctest.Wait()
		front.cancel()
		settle(time.Second)
		close(slow)
		if err := front.stop(); err != nil {
			t.Error(err)
		}
		s.expect("sent was", s.wrote(group), "ann_bot: Ann\none")
		if s.log.delivered != (telegram.Delivery{Seq: 1}) {
			t.Errorf("delivered is %+v", s.log.delivered)
		}
		s.check()
	})
}
