package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// runHarness is where runs are executed: some slots with a program each, over one database, and an upstream and
// tools that outlive them.
type runHarness struct {
	t          *testing.T
	home       *home
	model      *stepModel
	toolServer *toolServer
	killPoints *killPoints
	random     *rand.Rand // of the goroutine that kills
	// contended makes several programs resume the same run now and then.
	contended bool
	// unproven reports whether what the test is about has not happened yet; nil for a test that needs nothing to happen.
	unproven func() bool

	mu       sync.Mutex
	slots    []*killable
	kills    int
	ending   bool // no run is started any more
	journeys []*runClient
	outlived int // questions that waited over a kill
}

// newRunHarness makes a harness without programs; more are settings besides.
func newRunHarness(t *testing.T, random *rand.Rand, storeURL string, places int) *runHarness {
	t.Helper()
	s := &runHarness{t: t, killPoints: &killPoints{}, random: rand.New(rand.NewPCG(random.Uint64(), random.Uint64())), slots: make([]*killable, places)}
	s.model, s.toolServer = startStepModel(t, s.killPoints), startToolServer(t, s.killPoints)
	workflows, err := filepath.Abs(filepath.Join("testdata", "run", "workflows"))
	if err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf(`model: main
models:
  main: {protocol: openai-chat, base_url: %q, model: scripted, api_key_env: SCRIPT_KEY}
tools: {allow: [desk.*], otherwise: deny}
mcp:
  servers:
    desk: {url: %q, headers: {%s: "${SCRIPT_KEY}"}}
agents:
  pilot: {persona: You are the pilot.}
  purser: {persona: You are the purser., tools: [desk.*]}
workflows: {dir: %q}
log: {level: warn}
context: {max_messages: 5000, max_chars: 10000000}
chat: {max_history_messages: 5000, max_context_tokens: 2000000}
`, s.model.url+"/v1", s.toolServer.url, programHeader, workflows) + turnSettings("retries: 0", "breaker_failures: 0", "lease: 3s")
	s.home = &home{dir: t.TempDir(), storeURL: storeURL}
	if err := os.WriteFile(filepath.Join(s.home.dir, "continuo.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// open starts a program in each slot.
func (s *runHarness) open() {
	s.t.Helper()
	for i := range s.slots {
		s.slots[i] = s.home.launch(s.t)
	}
	for _, k := range s.slots {
		k.ready(s.t)
	}
}

// any is a program that serves, or did so a moment ago.
func (s *runHarness) any() *killable {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots[rand.IntN(len(s.slots))] //nolint:gosec // whichever answers
}

// mostKills is how many times the planned number of kills there are at most, where a test has to show more.
const mostKills = 10

// killsAgain reports whether there is another kill after so many: as planned, or because what the test is about has not
// happened yet.
func (s *runHarness) killsAgain(kills, planned int) bool {
	return !s.t.Failed() && (kills < planned || kills < mostKills*planned && s.unproven != nil && s.unproven())
}

// killed is how often programs were killed until now.
func (s *runHarness) killed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kills
}

// addDecision records a decision, and whether its question had waited over a kill.
func (s *runHarness) addDecision(overKill bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if overKill {
		s.outlived++
	}
}

// questionsOutlived is how many questions have waited over a kill until now.
func (s *runHarness) questionsOutlived() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outlived
}

func (s *runHarness) isEnding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending || s.t.Failed()
}

// killPointTimeout is how long a kill point is waited for: longer than it takes until runs are resumed.
const killPointTimeout = 20 * time.Second

// killOne kills a program at a kill point, and returns its slot.
func (s *runHarness) killOne() (slot int) {
	s.t.Helper()
	slot = s.random.IntN(len(s.slots))
	late := time.Duration(0)
	switch chance := s.random.IntN(100); {
	case chance < 35:
		slot = s.waitForKillPoint(inStream, 1+s.random.IntN(150), slot)
	case chance < 65:
		slot = s.waitForKillPoint(inTool, 1+s.random.IntN(2), slot)
		late = time.Duration(s.random.Int64N(int64(toolCallTime)))
	case chance < 85:
		slot = s.waitForKillPoint(atEnd, 1+s.random.IntN(3), slot)
		late = time.Duration(s.random.IntN(40)) * time.Millisecond
	default: // soon after the kill before
		late = time.Duration(s.random.IntN(1000)) * time.Millisecond
	}
	letRun(s.t, s.slots[slot], late) // only this goroutine changes them
	s.slots[slot].kill(s.t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kills++
	return slot
}

// replace starts another program in the slot of one that was killed. Sometimes it is killed while it starts.
func (s *runHarness) replace(slot int) {
	s.t.Helper()
	for s.random.IntN(10) == 0 {
		starting := s.home.launch(s.t)
		letRun(s.t, starting, time.Duration(s.random.IntN(150))*time.Millisecond)
		starting.kill(s.t)
	}
	k := s.home.launch(s.t)
	k.ready(s.t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slots[slot] = k
}

// removeSlot leaves a slot empty: those in the others resume what was started there.
func (s *runHarness) removeSlot(slot int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slots = slices.Delete(slices.Clone(s.slots), slot, slot+1)
}

// waitForKillPoint waits for a kill point, and returns the slot of the program that reached it.
func (s *runHarness) waitForKillPoint(kind killPoint, n, fallback int) int {
	select {
	case program := <-s.killPoints.arm(kind, n):
		if slot := slices.IndexFunc(s.slots, func(k *killable) bool { return k.apiKey == program }); slot >= 0 {
			return slot
		}
	case <-time.After(killPointTimeout):
	}
	return fallback
}

// play executes runs in some conversations at once, kills programs meanwhile, the last of several for good, and
// waits until every run that was started has come to its end.
func (s *runHarness) play(ctx context.Context, name string, conversations, kills int) {
	s.t.Helper()
	s.open()
	var playing sync.WaitGroup
	for i := range conversations {
		playing.Go(func() {
			for n := 0; n == 0 || !s.isEnding(); n++ {
				j := newRunClient(s, fmt.Sprintf("%s-%d-%d", name, i, n), i+n)
				s.mu.Lock()
				s.journeys = append(s.journeys, j)
				s.mu.Unlock()
				j.executeRuns(ctx)
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
	playing.Wait()
}
