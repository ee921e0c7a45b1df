package telegram_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-log/continuo/telegram"
	"github.com/continuo-log/continuo/telegram/telegramtest"
)

// doomed is a program that is killed at one of its steps: the beginnings and the ends of its calls of Telegram and of
// the crew. From then on nothing of it reaches either.
type doomed struct {
	cancel context.CancelFunc

	mu   sync.Mutex
	at   int // the step; 0 none
	done int
	name string // of the step
	dead bool
	// unsure says that a part was sent, or may have been, and could not be noted.
	unsure bool
}

var errKilled = errors.New("killed")

// step counts one, and says whether the program still lives behind it.
func (d *doomed) step(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.dead {
		if d.done++; d.done != d.at {
			return nil
		}
		d.dead, d.name = true, name
		d.cancel()
	}
	d.unsure = d.unsure || name == "sendMessage ends" || name == "SetDelivered begins"
	return errKilled
}

// transport calls Telegram until the program is killed.
func (d *doomed) transport(api *telegramtest.Server) *http.Client {
	return telegramtest.Client(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		if d.step(method+" begins") != nil {
			panic(http.ErrAbortHandler)
		}
		api.ServeHTTP(w, r)
		if d.step(method+" ends") != nil {
			panic(http.ErrAbortHandler)
		}
	}))
}

// killed plays a conversation with front ends that are killed, each at a step of its own, and one that comes after them. It
// returns how many steps the first one did, and checks that every message was taken once, and every answer sent in order.
func killed(t *testing.T, steps ...int) (done int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.log.answer = manyAnswers
		options := s.options()
		options.MaxMessageLength = 256
		var names []string
		unsure := 0
		for i, at := range steps {
			d := s.doom(at, options, func() { s.converse(i) })
			names = append(names, d.name)
			if d.unsure {
				unsure++
			}
			if i == 0 {
				done = d.done
			}
		}
		next := s.start(&crew{crewLog: s.log}, options)
		s.converse(len(steps))
		settle(2 * time.Minute)
		if err := next.stop(); err != nil {
			t.Error(err)
		}
		s.checkKilled(names, unsure)
		s.check()
	})
	return done
}

func manyAnswers(text string) []telegram.Event {
	return []telegram.Event{
		answers("ann", text+" "+longWords(22)+"\n\n"+longWords(18)), // two parts
		{Kind: telegram.EventPassed, Role: "bob"},
		answers("bob", "short to "+text),
		{Kind: telegram.EventFailed, Role: "ann", DisplayName: "Ann", Text: "at " + text},
		{Kind: telegram.EventEnded},
	}
}

func longWords(pairs int) string { return strings.TrimSpace(strings.Repeat("long words ", pairs)) }

// converse has a person write what is written while a program runs.
func (s *scene) converse(program int) {
	s.api.Receive(group, "Eve", fmt.Sprint(program, "a"))
	settle(2 * time.Second)
	s.api.Receive(group, "Eve", "/reset")
	s.api.Receive(group, "Eve", fmt.Sprint(program, "b"))
	settle(time.Minute)
}

// doom runs a program that is killed at a step.
func (s *scene) doom(at int, options telegram.Options, meanwhile func()) *doomed {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	d := &doomed{at: at, cancel: cancel}
	options.HTTP = d.transport(s.api)
	front, err := telegram.New(&crew{crewLog: s.log, step: d.step}, options)
	if err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- front.Run(ctx) }()
	meanwhile()
	cancel()
	if err := <-ended; err != nil {
		s.t.Errorf("the killed program ended with: %v", err)
	}
	return d
}

// checkKilled checks the outcome of programs that were killed at steps of these names. unsure is how many of them could not
// note what they had sent.
func (s *scene) checkKilled(names []string, unsure int) {
	s.t.Helper()
	where := "killed where " + strings.Join(names, ", then where ")
	var received, want []string
	for program := range len(names) + 1 {
		for _, text := range []string{fmt.Sprint(program, "a"), fmt.Sprint(program, "b")} {
			received = append(received, "Eve: "+text)
			want = append(want,
				"ann_bot: Ann\n"+text+" "+longWords(22), "ann_bot: "+longWords(18),
				"crew_bot: Bob\nshort to "+text, "crew_bot: Ann did not answer: at "+text)
		}
	}
	s.expect(where+", the crew heard", s.log.messages(), received...)
	if s.log.resets != len(names)+1 {
		s.t.Errorf("%s, it was reset %d times", where, s.log.resets)
	}
	if pending := s.api.Pending(s.listener); pending != 0 {
		s.t.Errorf("%s, %d updates are not confirmed", where, pending)
	}
	answers := slices.DeleteFunc(s.wrote(group), func(text string) bool { return strings.Contains(text, "All begin again.") })
	s.expect(where+", once each, sent was", slices.Compact(slices.Clone(answers)), want...)
	if twice := len(answers) - len(want); twice > unsure {
		s.t.Errorf("%s, %d parts stand twice", where, twice)
	}
}

// Killed at any step, and followed by another program, a front end takes every message once, loses no answer and sends none
// twice, but for the part that was sent and not noted. With CONTINUO_LONG=1 the next one is killed at each step too.
func TestKilledAtEveryStep(t *testing.T) {
	steps := killed(t, 0)
	if steps < 50 {
		t.Fatalf("there are only %d steps", steps)
	}
	for first := 1; first <= steps; first++ {
		killed(t, first)
		for second := 1; os.Getenv("CONTINUO_LONG") != "" && second <= steps; second++ {
			killed(t, first, second)
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d steps", steps)
}
