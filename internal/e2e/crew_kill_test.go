//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/pgtest"
)

// The figures of the tests that kill programs with crews.
const (
	sessionsOfCrews = 3 // at once
	wordsOfPerson   = 10
)

// TestKilledCrews kills the program again and again while a crew speaks: while roles are asked, in their answers and
// behind them, and while it starts. The roles are an agent that can load what it knew, a command and a model.
func TestKilledCrews(t *testing.T) {
	t.Parallel()
	s, found := testKilledCrews(t, killTest(t), "", 1, rounds(15, 800))
	if !t.Failed() && (found.cut == 0 || s.cast.loads == 0 || s.cast.lost == 0) {
		t.Errorf("the test shows nothing of what did not happen: %d answers cut, %d sessions loaded, %d lost", found.cut, s.cast.loads, s.cast.lost)
	}
}

// TestKilledCrewsOfReplicas kills one of two replicas that share a database: the other one goes on.
func TestKilledCrewsOfReplicas(t *testing.T) {
	t.Parallel()
	random := killTest(t)
	testKilledCrews(t, random, pgtest.Start(t, pgtest.Options{Durable: true}).Database(t), 2, rounds(5, 200))
}

func testKilledCrews(t *testing.T, random *rand.Rand, storeURL string, places, kills int) (*crewStage, evidence) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
	defer cancel()
	s := newCrewStage(t, random, storeURL, places)
	if places == 1 {
		s.lacks = s.cast.lacksSessions
	}
	s.play(ctx, kills)
	found := s.check(ctx)
	s.close()
	return s, found
}

// crewStage is a stage on which a crew speaks in some conversations at once.
type crewStage struct {
	*stage
	cast    *cast
	chances *rand.Rand
	people  []*person

	repeated int // prompts that repeated the current request to a session
}

// trioRoles are the roles of the crew, in the order in which they speak.
var trioRoles = []string{"ann", "bob", castModel}

const trioFile = `id: trio
max_rounds: 8
roles:
  - {role_name: ann, display_name: Ann, connector: loads, system_prompt: You are Ann.}
  - {role_name: bob, display_name: Bob, connector: prints, system_prompt: You are Bob.}
  - {role_name: cid, display_name: Cid, connector: model, model: main, system_prompt: You are Cid.}
`

func newCrewStage(t *testing.T, random *rand.Rand, storeURL string, places int) *crewStage {
	t.Helper()
	traps := &traps{}
	s := &crewStage{
		stage: &stage{t: t, traps: traps, random: rand.New(rand.NewPCG(random.Uint64(), random.Uint64())), places: make([]*killable, places)},
		cast:  startCast(t, traps, random), chances: random,
	}
	s.home = &home{dir: t.TempDir(), storeURL: storeURL}
	settings := fmt.Sprintf(`model: main
models:
  main: {protocol: openai-chat, base_url: %q, model: scripted, api_key_env: SCRIPT_KEY}
log: {level: warn}
context: {max_messages: 100000, max_chars: 100000000}
connectors:
  loads:
%s  prints:
%s`, s.cast.url+"/v1", partCommand(t, "acp", "agent", s.cast.url, "ann", fmt.Sprintf("dir: %q", t.TempDir())),
		partCommand(t, "command", "command", s.cast.url, "bob")) + turnSettings("retries: 0", "breaker_failures: 0", "lease: 3s")
	writeCrews(t, s.home.dir, settings, map[string]string{"trio": trioFile})
	return s
}

// newPerson begins a conversation.
func (s *crewStage) newPerson(key string) *person {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &person{talk: newTalk(s.t, nil, nil, s.chances, key), crew: "trio", stage: s}
	s.people = append(s.people, p)
	return p
}

// writeCrews writes the settings and the crews of a home.
func writeCrews(t *testing.T, dir, settings string, crews map[string]string) {
	t.Helper()
	err := errors.Join(os.WriteFile(filepath.Join(dir, "continuo.yaml"), []byte(settings), 0o600), os.Mkdir(filepath.Join(dir, "crews"), 0o700))
	for id, text := range crews {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "crews", id+".yaml"), []byte(text), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// play lets people talk to the crew, kills programs meanwhile, the last of several for good, and waits until everybody
// has heard everything.
func (s *crewStage) play(ctx context.Context, kills int) {
	s.t.Helper()
	s.open()
	var talking sync.WaitGroup
	for i := range sessionsOfCrews {
		talking.Go(func() {
			for n := 0; n == 0 || !s.isEnding(); n++ {
				s.newPerson(fmt.Sprintf("s%d-%d", i, n)).live(ctx)
			}
		})
	}
	for kill := 0; s.killsAgain(kill, kills); kill++ {
		if place := s.killOne(); kill == kills-1 && len(s.places) > 1 {
			s.leave(place)
		} else {
			s.replace(place)
		}
	}
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	s.traps.set("", 0)
	talking.Wait()
}

// close ends the programs as people do; then no process of the crew's is left.
func (s *crewStage) close() {
	s.t.Helper()
	for _, k := range s.places {
		endProgram(s.t, k)
	}
	checkNoParts(s.t, s.cast.url, nil)
}

// endProgram ends a program by SIGTERM.
func endProgram(t *testing.T, k *killable) {
	t.Helper()
	_ = k.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-k.ended:
	case <-time.After(startTime):
		t.Errorf("the program does not end:\n%s", k.said)
		_ = k.command.Process.Kill()
		<-k.ended
	}
	if code := k.command.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the program ended with %d:\n%s", code, k.said)
	}
}

// person talks to the crew in one conversation.
type person struct {
	*talk
	crew  string
	stage *crewStage
	words []string // what was said
}

// live says something again and again, mostly when the crew rests, now and then while it speaks; in the end it waits
// until everybody has heard everything.
func (p *person) live(ctx context.Context) {
	for n := 0; n == 0 || n < wordsOfPerson && !p.stage.isEnding(); n++ {
		p.say(ctx)
		if p.random.IntN(3) == 0 {
			<-time.After(time.Duration(p.random.IntN(400)) * time.Millisecond)
			continue
		}
		p.awaitRest(ctx)
	}
	p.awaitRest(ctx)
	p.stage.cast.hush(p.key)
	p.say(ctx)
	p.awaitRest(ctx)
}

// say says something new, until it is known to stand in the log, and now and then once more: as somebody does who has
// not heard of that.
func (p *person) say(ctx context.Context) {
	text := fmt.Sprintf("Message %d of %s.", len(p.words), p.key)
	key := p.key + "-" + strconv.Itoa(len(p.words))
	p.words = append(p.words, text)
	send := func(k *killable) error {
		response, err := k.do(ctx, http.MethodPost, "/api/crews/"+p.crew+"/messages", map[string]string{"session_id": p.key, "message": text}, "Idempotency-Key", key)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusAccepted {
			return fmt.Errorf("status %d", response.StatusCode)
		}
		return nil
	}
	for times := 1 + p.random.IntN(3)/2; times > 0; times-- {
		p.eventually(ctx, "say "+text, send)
	}
}

// awaitRest waits until the crew's cycle has ended.
func (p *person) awaitRest(ctx context.Context) {
	var status engine.CrewStatus
	p.eventually(ctx, "wait until the crew rests", func(k *killable) error {
		status = engine.CrewStatus{}
		code, err := k.get(ctx, "/api/crews/"+p.crew+"/status?session_id="+url.QueryEscape(p.key), &status)
		switch {
		case err != nil:
			return err
		case status.State != continuo.RunFinished:
			return fmt.Errorf("status %d, it is %q: %s; next is %s, %s is speaking", code, status.State, status.Reason, status.Next, status.Speaking)
		}
		return nil
	})
}

// eventually does something at whichever program there is until it succeeds.
func (p *person) eventually(ctx context.Context, what string, do func(k *killable) error) {
	until := time.Now().Add(runPatience)
	again := time.NewTicker(journeyPoll)
	defer again.Stop()
	for {
		err := do(p.stage.any())
		if err == nil || p.t.Failed() {
			return
		}
		if ctx.Err() != nil || time.Now().After(until) {
			p.errorf("%s: %v", what, err)
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
}
