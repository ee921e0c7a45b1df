//go:build unix

package acp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/child/childtest"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/modeltest"
)

// agentOptions have a grace that no agent needs unless it has to be killed. Nothing is left when the test has ended.
func agentOptions(t *testing.T) func(*Options) {
	t.Helper()
	folder := t.TempDir()
	t.Cleanup(func() { noGoroutines(t) })
	return func(o *Options) { o.Dir, o.Grace = folder, 300*time.Millisecond }
}

// openSession opens a session that is closed when the test ends.
func openSession(t *testing.T, m *Model, id string) *session {
	t.Helper()
	opened, err := m.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Close)
	return opened.(*session)
}

func wantAnswer(t *testing.T, m model.Model, prompt, want string) {
	t.Helper()
	if got := ask(t.Context(), m, body(prompt)); got.text != want || got.finish != "stop" || got.err != nil {
		t.Errorf("%s: got %q, %q, %v, want %q", prompt, got.text, got.finish, got.err, want)
	}
}

// wantFailure prompts, and wants an error of that reason that says so.
func wantFailure(t *testing.T, m model.Model, prompt string, reason continuo.FailureReason, words string) {
	t.Helper()
	if got := ask(t.Context(), m, body(prompt)); reasonOf(got.err) != reason || !strings.Contains(got.err.Error(), words) {
		t.Errorf("%s: got %v, want %s: %s", prompt, got.err, reason, words)
	}
}

func TestASessionKeepsItsContext(t *testing.T) {
	w := childtest.NewWitness(t)
	s := openSession(t, of(w.Env("talker"), agentOptions(t)), "")
	if s.ID() == "" || s.Loaded() || !s.Alive() || s.Info() != of(nil, nil).Info() {
		t.Errorf("the session %q: loaded %v, alive %v", s.ID(), s.Loaded(), s.Alive())
	}
	wantAnswer(t, s, "one", "prompts: one")
	wantAnswer(t, s, "report", "prompts: one | report")
	if got := ask(t.Context(), s, body("two", "be brief")); got.text != "prompts: one | report | be brief\n\ntwo" {
		t.Errorf("with system messages: got %+v", got)
	}
	agent := w.Running()
	s.Close()
	w.Gone(agent)
	if s.Close(); s.Alive() {
		t.Error("a closed session is alive")
	}
	wantFailure(t, s, "three", continuo.ReasonUpstream, "the session of agent is closed")
}

func TestASessionIsAModel(t *testing.T) {
	options := agentOptions(t)
	s := openSession(t, of(childtest.Env("talker"), func(o *Options) { options(o); o.Grace = patient }), "")
	modeltest.RunModel(t, s, body("hello"))
	if !s.Alive() {
		t.Error("the session did not survive")
	}
	for _, bad := range []string{"", "{}"} {
		if got := ask(t.Context(), s, []byte(bad)); reasonOf(got.err) != continuo.ReasonUpstream || !s.Alive() {
			t.Errorf("%q: got %v", bad, got.err)
		}
	}
}

// What the agent repeats of a session while it loads it is no answer.
func TestASessionContinuesInAnotherProcess(t *testing.T) {
	for _, role := range []string{"talker", "resumer"} {
		t.Run(role, func(t *testing.T) {
			m := of(childtest.Env(role), agentOptions(t))
			first := openSession(t, m, "")
			wantAnswer(t, first, "one", "prompts: one")
			first.Close()
			second := openSession(t, m, first.ID())
			if !second.Loaded() || second.ID() != first.ID() {
				t.Errorf("%s: %q became %q, loaded %v", role, first.ID(), second.ID(), second.Loaded())
			}
			wantAnswer(t, second, "two", "prompts: one | two")
		})
	}
}

func TestASessionThatCannotBeLoadedIsReplaced(t *testing.T) {
	for _, role := range []string{"forgetful", "refuser", "load crash", "load garbage"} {
		t.Run(role, func(t *testing.T) {
			options := agentOptions(t)
			first := openSession(t, of(childtest.Env("talker"), options), "")
			wantAnswer(t, first, "one", "prompts: one")
			first.Close()
			s := openSession(t, of(childtest.Env(role), options), first.ID())
			if s.Loaded() || s.ID() == "" || s.ID() == first.ID() || !s.Alive() {
				t.Errorf("%s: the session is %q, loaded %v, alive %v", role, s.ID(), s.Loaded(), s.Alive())
			}
			if got := ask(t.Context(), s, body("two")); !strings.HasSuffix(got.text, "two") || got.err != nil {
				t.Errorf("%s: got %+v", role, got)
			}
		})
	}
	t.Run("never was", func(t *testing.T) {
		if s := openSession(t, of(childtest.Env("talker"), agentOptions(t)), "never-was"); s.Loaded() || s.ID() == "never-was" {
			t.Errorf("the session is %q, loaded %v", s.ID(), s.Loaded())
		}
	})
}

func TestOpenFails(t *testing.T) {
	w := childtest.NewWitness(t)
	open := func(ctx context.Context, role string, change func(*Options)) error {
		_, err := of(w.Env(role), change).Open(ctx, "")
		return err
	}
	if err := open(t.Context(), "crash", func(o *Options) { o.Grace = patient }); reasonOf(err) != continuo.ReasonUpstream || !strings.Contains(err.Error(), "exit status 4; its stderr: no key") {
		t.Errorf("crash: got %v", err)
	}
	if err := open(t.Context(), "deaf", func(o *Options) { o.Timeout = 100 * time.Millisecond }); reasonOf(err) != continuo.ReasonTimeout {
		t.Errorf("no time: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() { failed <- open(ctx, "stubborn", nil) }()
	cancel()
	if err := <-failed; err != nil && reasonOf(err) != continuo.ReasonCancelled {
		t.Errorf("cancelled: got %v", err)
	}
	if err := open(ctx, "talker", nil); reasonOf(err) != continuo.ReasonCancelled {
		t.Errorf("cancelled before: got %v", err)
	}
	noGoroutines(t)
}

func TestASessionSurvivesAgentErrors(t *testing.T) {
	for how, end := range map[string]func(*testing.T, *session) error{
		"cancelled": func(t *testing.T, s *session) error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var failed error
			for delta, err := range s.Stream(ctx, body("hang")) {
				if failed = err; delta.Text == "begun" {
					cancel()
				}
			}
			if reasonOf(failed) != continuo.ReasonCancelled {
				t.Errorf("got %v", failed)
			}
			return failed
		},
		"out of time": func(t *testing.T, s *session) error {
			s.options.Timeout = 50 * time.Millisecond
			got := ask(t.Context(), s, body("hang"))
			s.options.Timeout = time.Minute
			if reasonOf(got.err) != continuo.ReasonTimeout {
				t.Errorf("got %v", got.err)
			}
			return got.err
		},
		"left": func(t *testing.T, s *session) error {
			for range s.Stream(t.Context(), body("hang")) {
				break
			}
			return nil
		},
		"refused": func(t *testing.T, s *session) error { return ask(t.Context(), s, body("refuse")).err },
	} {
		t.Run(how, func(t *testing.T) {
			grace := time.Second
			options := agentOptions(t)
			open := func() *session {
				return openSession(t, of(childtest.NewWitness(t).Env("talker"), func(o *Options) { options(o); o.Grace = grace }), "")
			}
			s := open()
			process := ask(t.Context(), s, body("pid")).text
			ended := time.Now()
			err := end(t, s)
			for !s.Alive() && grace < time.Minute { // an agent has to obey within it on a busy machine too
				grace *= 2
				s = open()
				process = ask(t.Context(), s, body("pid")).text
				ended = time.Now()
				err = end(t, s)
			}
			if (err == nil) != (how == "left") || !s.Alive() {
				t.Errorf("%s: got %v, alive %v", how, err, s.Alive())
			}
			wantAnswer(t, s, "pid", process)
			for how == "cancelled" && time.Since(ended) < grace+grace/4 { // what bounded the cancelling is over
				wantAnswer(t, s, "pid", process)
			}
			if got := ask(t.Context(), s, body("ask")); got.text != "no" { // no longer that the turn is cancelled
				t.Errorf("it asked for a permission and got %q, %v", got.text, got.err)
			}
			wantAnswer(t, s, "more", "prompts: more")
		})
	}
}

// An agent's error may repeat what it was given to log in with.
func TestSecretsOfAnAgentAreNotInItsErrors(t *testing.T) {
	const secret = "correct horse battery"
	env := append(childtest.NewWitness(t).Env("talker"), "AGENT_SECRET="+secret)
	s := openSession(t, of(env, agentOptions(t)), "")
	got := ask(t.Context(), s, body("refuse with its secret"))
	if got.err == nil || strings.Contains(got.err.Error(), secret[:8]) || !strings.Contains(got.err.Error(), "[redacted] is refused") {
		t.Errorf("got %v", got.err)
	}
}

func TestASessionEndsWithWhatAgentsDo(t *testing.T) {
	soon := func(s *session) { s.options.Timeout = 50 * time.Millisecond }
	for prompt, c := range map[string]struct {
		prepare func(*session)
		grace   time.Duration // default that of agentOptions
		reason  continuo.FailureReason
		words   string
	}{
		"flood":         {nil, 0, continuo.ReasonTurnLimit, "agent sent more than the maximum of 1000 bytes"},
		"garbage":       {nil, 0, continuo.ReasonUpstream, "cannot be read"},
		"hang for good": {soon, 0, continuo.ReasonTimeout, "agent did not end within 50ms"},
		"crash":         {nil, patient, continuo.ReasonUpstream, "agent could not answer: " + `"` + os.Args[0] + `" ended with exit status 3`},
	} {
		t.Run(prompt, func(t *testing.T) {
			w := childtest.NewWitness(t)
			options := agentOptions(t)
			s := openSession(t, of(w.Env("talker"), func(o *Options) { options(o); o.MaxOutput, o.Grace = 1000, cmp.Or(c.grace, o.Grace) }), "")
			wantAnswer(t, s, "report", "prompts: report")
			agent := w.Running()
			if c.prepare != nil {
				c.prepare(s)
			}
			wantFailure(t, s, prompt, c.reason, c.words)
			if s.Alive() {
				t.Errorf("%s: the session is alive", prompt)
			}
			w.Gone(agent)
			wantFailure(t, s, "more", continuo.ReasonUpstream, "closed")
		})
	}
}

// When the client does not read an answer, the end of the agent is still noticed, and what it leaves is ended.
func TestAnAgentThatEndsBetweenPrompts(t *testing.T) {
	for prompt, words := range map[string]string{
		"die later":               "ended with exit status 3",
		"die later, with a child": "ended with exit status 3",
		"close later":             "agent could not answer: ",
		"flood later":             "without a request",
	} {
		t.Run(prompt, func(t *testing.T) {
			w := childtest.NewWitness(t)
			s := openSession(t, of(w.Env("talker"), agentOptions(t)), "")
			wantAnswer(t, s, prompt, "prompts: "+prompt)
			processes := []net.Conn{w.Running()}
			if strings.Contains(prompt, "child") {
				processes = append(processes, w.Running())
			}
			if !s.Alive() {
				t.Errorf("%s: it is dead too early", prompt)
			}
			for _, process := range processes {
				_, _ = process.Write([]byte("x"))
			}
			<-s.process.Ended()
			for _, process := range processes {
				if _, err := io.ReadAll(process); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: a process is still there", prompt)
				}
			}
			if s.Alive() {
				t.Errorf("%s: the session is alive", prompt)
			}
			wantFailure(t, s, "more", continuo.ReasonUpstream, words)
		})
	}
}

// What an agent writes between two prompts neither blocks it nor gets into the next answer.
func TestAnAgentThatWritesBetweenPrompts(t *testing.T) {
	w := childtest.NewWitness(t)
	s := openSession(t, of(w.Env("talker"), agentOptions(t)), "")
	wantAnswer(t, s, "write later", "prompts: write later")
	agent := w.Running()
	_, _ = agent.Write([]byte("x"))
	if _, err := io.ReadFull(agent, make([]byte, 4)); err != nil {
		t.Fatalf("it could not write: %v", err)
	}
	if !s.Alive() {
		t.Error("the session is dead")
	}
	// What it has written last may still be on its way, and cannot be distinguished from the answer then.
	if got := ask(t.Context(), s, body("more")); !strings.HasSuffix(got.text, "prompts: write later | more") || got.err != nil {
		t.Errorf("got %.100q, %v", got.text, got.err)
	}
}

func TestAnAgentThatSendsUpdatesAfterItsResult(t *testing.T) {
	s := openSession(t, of(childtest.Env("late"), agentOptions(t)), "")
	for range 100 {
		wantAnswer(t, s, "go", "hello")
	}
}

func TestAnAgentThatAsksBetweenPrompts(t *testing.T) {
	for allow, want := range map[bool]string{false: "no done", true: "yes done"} {
		t.Run(want, func(t *testing.T) {
			w := childtest.NewWitness(t)
			options := agentOptions(t)
			s := openSession(t, of(w.Env("talker"), func(o *Options) { options(o); o.Allow = allow }), "")
			wantAnswer(t, s, "ask later", "prompts: ask later")
			agent := w.Running()
			_, _ = agent.Write([]byte("x"))
			got := make([]byte, len(want))
			if _, err := io.ReadFull(agent, got); string(got) != want || err != nil {
				t.Errorf("allow %v: the agent says %q, %v", allow, got, err)
			}
		})
	}
}

func TestCloseEndsAllThatWasStarted(t *testing.T) {
	w := childtest.NewWitness(t)
	options := agentOptions(t)
	s := openSession(t, of(w.Env("stays"), func(o *Options) { options(o); o.Grace = 50 * time.Millisecond }), "")
	heir := w.Running()
	wantAnswer(t, s, "report", "prompts: report")
	agent := w.Running()
	var closing sync.WaitGroup
	for range 3 {
		closing.Go(s.Close)
	}
	closing.Wait()
	w.Gone(agent)
	w.Gone(heir)
}

// A listener may close the session, and so may others.
func TestCloseInTheMiddleOfAnAnswer(t *testing.T) {
	w := childtest.NewWitness(t)
	m := of(w.Env("talker"), agentOptions(t))
	s := openSession(t, m, "")
	var failed error
	for delta, err := range s.Stream(t.Context(), body("hang for good")) {
		if failed = err; delta.Text == "begun" {
			s.Close()
		}
	}
	w.Gone(w.Running())
	if reasonOf(failed) != continuo.ReasonUpstream {
		t.Errorf("closed by the listener: got %v", failed)
	}
	s = openSession(t, m, "")
	var closing sync.WaitGroup
	for delta, err := range s.Stream(t.Context(), body("hang for good")) {
		if failed = err; delta.Text == "begun" {
			closing.Go(s.Close)
		}
	}
	closing.Wait()
	w.Gone(w.Running())
	if reasonOf(failed) != continuo.ReasonUpstream {
		t.Errorf("closed by another: got %v", failed)
	}
}

func TestManySessionsLeaveNothing(t *testing.T) {
	const sessions, atOnce = 50, 5
	w := childtest.NewWitness(t)
	m := of(w.Env("talker"), agentOptions(t))
	before := files()
	places := make(chan struct{}, atOnce)
	var using sync.WaitGroup
	for range sessions {
		places <- struct{}{}
		using.Go(func() {
			defer func() { <-places }()
			s, err := m.Open(t.Context(), "")
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			wantAnswer(t, s, "report", "prompts: report")
		})
		w.Running() // which is broken off by the end of the agent only
	}
	using.Wait()
	noGoroutines(t)
	if after := files(); after > before+sessions { // the witness holds one for each
		t.Errorf("%d files were open, and %d are", before, after)
	}
}

func files() int {
	entries, _ := os.ReadDir("/proc/self/fd") // elsewhere there are none to count
	return len(entries)
}
