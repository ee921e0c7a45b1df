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
	"slices"
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
	sessionsOfCrews  = 3 // at once
	messagesOfClient = 10
)

// TestKilledCrews kills the program again and again while a crew speaks: while roles are asked, in their answers and
// behind them, and while it starts. The roles are an agent that can load what it knew, a command and a model.
func TestKilledCrews(t *testing.T) {
	t.Parallel()
	s, found := testKilledCrews(t, killTest(t), "", 1, rounds(15, 800))
	if !t.Failed() && (found.cut == 0 || s.roleServer.loads == 0 || s.roleServer.lost == 0) {
		t.Errorf("the test shows nothing of what did not happen: %d answers cut, %d sessions loaded, %d lost", found.cut, s.roleServer.loads, s.roleServer.lost)
	}
}

// TestKilledCrewsOfReplicas kills one of two replicas that share a database: the other one continues.
func TestKilledCrewsOfReplicas(t *testing.T) {
	t.Parallel()
	random := killTest(t)
	testKilledCrews(t, random, pgtest.Start(t, pgtest.Options{Durable: true}).Database(t), 2, rounds(5, 200))
}

func testKilledCrews(t *testing.T, random *rand.Rand, storeURL string, places, kills int) (*crewHarness, evidence) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
	defer cancel()
	s := newCrewHarness(t, random, storeURL, places)
	if places == 1 {
		s.unproven = func() bool { return s.roleServer.lacksSessions() || !s.hasCutAnswer(ctx) }
	}
	s.play(ctx, kills)
	found := s.check(ctx)
	s.close()
	return s, found
}

// crewHarness runs a crew in some conversations at once.
type crewHarness struct {
	*runHarness
	roleServer *roleServer
	chances    *rand.Rand
	clients    []*crewClient

	repeated int // prompts that repeated the current request to a session
}

// hasCutAnswer reports whether a part of an answer that broke off is in a log.
func (s *crewHarness) hasCutAnswer(ctx context.Context) bool {
	s.mu.Lock()
	clients := slices.Clone(s.clients)
	s.mu.Unlock()
	for _, p := range clients {
		entries, _ := p.readLog(ctx, s.any()) // one that cannot be read now is checked in the end
		if slices.ContainsFunc(entries, isCutAnswer) {
			return true
		}
	}
	return false
}

func isCutAnswer(e continuo.Entry) bool { return e.Error != nil && !e.Content.IsEmpty() }

// trioRoles are the roles of the crew, in the order in which they speak.
var trioRoles = []string{"ann", "bob", modelRole}

const trioFile = `id: trio
max_rounds: 8
roles:
  - {role_name: ann, display_name: Ann, connector: loads, system_prompt: You are Ann.}
  - {role_name: bob, display_name: Bob, connector: prints, system_prompt: You are Bob.}
  - {role_name: cid, display_name: Cid, connector: model, model: main, system_prompt: You are Cid.}
`

func newCrewHarness(t *testing.T, random *rand.Rand, storeURL string, places int) *crewHarness {
	t.Helper()
	killPoints := &killPoints{}
	s := &crewHarness{
		runHarness: &runHarness{t: t, killPoints: killPoints, random: rand.New(rand.NewPCG(random.Uint64(), random.Uint64())), slots: make([]*killable, places)},
		roleServer: startRoleServer(t, killPoints, random), chances: random,
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
%s`, s.roleServer.url+"/v1", connectorYAML(t, "acp", "agent", s.roleServer.url, "ann", fmt.Sprintf("dir: %q", t.TempDir())),
		connectorYAML(t, "command", "command", s.roleServer.url, "bob")) + turnSettings("retries: 0", "breaker_failures: 0", "lease: 3s")
	writeCrews(t, s.home.dir, settings, map[string]string{"trio": trioFile})
	return s
}

// newCrewClient begins a conversation.
func (s *crewHarness) newCrewClient(key string) *crewClient {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &crewClient{chatClient: newChatClient(s.t, nil, nil, s.chances, key), crew: "trio", harness: s}
	s.clients = append(s.clients, p)
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

// play lets clients send messages to the crew, kills programs meanwhile, the last of several for good, and waits until
// every role received every message.
func (s *crewHarness) play(ctx context.Context, kills int) {
	s.t.Helper()
	s.open()
	var running sync.WaitGroup
	for i := range sessionsOfCrews {
		running.Go(func() {
			for n := 0; n == 0 || !s.isEnding(); n++ {
				s.newCrewClient(fmt.Sprintf("s%d-%d", i, n)).sendMessages(ctx)
			}
		})
	}
	for kill := 0; s.killsAgain(kill, kills); kill++ {
		if slot := s.killOne(); kill == kills-1 && len(s.slots) > 1 {
			s.removeSlot(slot)
		} else {
			s.replace(slot)
		}
	}
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	s.killPoints.arm("", 0)
	running.Wait()
}

// close ends the programs as people do; then no process of the crew's is left.
func (s *crewHarness) close() {
	s.t.Helper()
	for _, k := range s.slots {
		endProgram(s.t, k)
	}
	checkNoProcesses(s.t, s.roleServer.url, nil)
}

// endProgram ends a program by SIGTERM.
func endProgram(t *testing.T, k *killable) {
	t.Helper()
	_ = k.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-k.ended:
	case <-time.After(startTime):
		t.Errorf("the program does not end:\n%s", k.output)
		_ = k.command.Process.Kill()
		<-k.ended
	}
	if code := k.command.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the program ended with %d:\n%s", code, k.output)
	}
}

// crewClient sends messages to the crew in one conversation.
type crewClient struct {
	*chatClient
	crew     string
	harness  *crewHarness
	messages []string // what was said
}

// sendMessages says something again and again, mostly when the crew rests, now and then while it speaks; in the end it waits
// until every role received every message.
func (p *crewClient) sendMessages(ctx context.Context) {
	for n := 0; n == 0 || n < messagesOfClient && !p.harness.isEnding(); n++ {
		p.sendMessage(ctx)
		if p.random.IntN(3) == 0 {
			<-time.After(time.Duration(p.random.IntN(400)) * time.Millisecond)
			continue
		}
		p.awaitIdle(ctx)
	}
	p.awaitIdle(ctx)
	p.harness.roleServer.stopAnswers(p.key)
	p.sendMessage(ctx)
	p.awaitIdle(ctx)
}

// sendMessage sends a new message until it is acknowledged, and now and then once more, as a client does that missed the
// answer.
func (p *crewClient) sendMessage(ctx context.Context) {
	text := fmt.Sprintf("Message %d of %s.", len(p.messages), p.key)
	key := p.key + "-" + strconv.Itoa(len(p.messages))
	p.messages = append(p.messages, text)
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
		p.retry(ctx, "say "+text, send)
	}
}

// awaitIdle waits until the crew's cycle has ended.
func (p *crewClient) awaitIdle(ctx context.Context) {
	var status engine.CrewStatus
	p.retry(ctx, "wait until the crew rests", func(k *killable) error {
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

// retry does something at whichever program there is until it succeeds.
func (p *crewClient) retry(ctx context.Context, what string, do func(k *killable) error) {
	until := time.Now().Add(runPatience)
	repeat := time.NewTicker(pollInterval)
	defer repeat.Stop()
	for {
		err := do(p.harness.any())
		if err == nil || p.t.Failed() {
			return
		}
		if ctx.Err() != nil || time.Now().After(until) {
			p.errorf("%s: %v", what, err)
			return
		}
		select {
		case <-repeat.C:
		case <-ctx.Done():
		}
	}
}
