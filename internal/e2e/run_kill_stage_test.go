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

// stage is where runs are carried out: some places with a program each, over one database, and an upstream and
// tools that outlive them.
type stage struct {
	t      *testing.T
	home   *home
	actor  *actor
	desk   *desk
	traps  *traps
	random *rand.Rand // of the goroutine that kills
	// crowded makes several programs go on with the same run now and then.
	crowded bool
	// lacks reports whether what the test is about has not happened yet; nil for a test that needs nothing to happen.
	lacks func() bool

	mu       sync.Mutex
	places   []*killable
	kills    int
	ending   bool // no run is begun any more
	journeys []*journey
	outlived int // questions that waited over a kill
}

// newStage makes a stage without programs; more are settings besides.
func newStage(t *testing.T, random *rand.Rand, storeURL string, places int) *stage {
	t.Helper()
	s := &stage{t: t, traps: &traps{}, random: rand.New(rand.NewPCG(random.Uint64(), random.Uint64())), places: make([]*killable, places)}
	s.actor, s.desk = startActor(t, s.traps), startDesk(t, s.traps)
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
`, s.actor.url+"/v1", s.desk.url, programHeader, workflows) + turnSettings("retries: 0", "breaker_failures: 0", "lease: 3s")
	s.home = &home{dir: t.TempDir(), storeURL: storeURL}
	if err := os.WriteFile(filepath.Join(s.home.dir, "continuo.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// open starts a program in each place.
func (s *stage) open() {
	s.t.Helper()
	for i := range s.places {
		s.places[i] = s.home.launch(s.t)
	}
	for _, k := range s.places {
		k.ready(s.t)
	}
}

// any is a program that serves, or did so a moment ago.
func (s *stage) any() *killable {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[rand.IntN(len(s.places))] //nolint:gosec // whichever answers
}

// mostKills is how many times the planned number of kills there are at most, where a test has to show more.
const mostKills = 10

// killsAgain reports whether there is another kill after so many: as planned, or because what the test is about has not
// happened yet.
func (s *stage) killsAgain(kills, planned int) bool {
	return !s.t.Failed() && (kills < planned || kills < mostKills*planned && s.lacks != nil && s.lacks())
}

// killed is how often programs were killed until now.
func (s *stage) killed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kills
}

// waited tells of a decision, and whether its question had waited over a kill.
func (s *stage) waited(overKill bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if overKill {
		s.outlived++
	}
}

// questionsOutlived is how many questions have waited over a kill until now.
func (s *stage) questionsOutlived() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outlived
}

func (s *stage) isEnding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending || s.t.Failed()
}

// longestTrap is how long a moment is waited for: longer than it takes until runs are gone on with.
const longestTrap = 20 * time.Second

// killOne kills a program at some moment, and returns its place.
func (s *stage) killOne() (place int) {
	s.t.Helper()
	place = s.random.IntN(len(s.places))
	late := time.Duration(0)
	switch chance := s.random.IntN(100); {
	case chance < 35:
		place = s.trapped(inStream, 1+s.random.IntN(150), place)
	case chance < 65:
		place = s.trapped(inTool, 1+s.random.IntN(2), place)
		late = time.Duration(s.random.Int64N(int64(deskWork)))
	case chance < 85:
		place = s.trapped(atEnd, 1+s.random.IntN(3), place)
		late = time.Duration(s.random.IntN(40)) * time.Millisecond
	default: // soon after the kill before
		late = time.Duration(s.random.IntN(1000)) * time.Millisecond
	}
	await(s.t, s.places[place], late) // only this goroutine changes them
	s.places[place].kill(s.t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kills++
	return place
}

// replace starts another program in the place of one that was killed. Sometimes it is killed while it starts.
func (s *stage) replace(place int) {
	s.t.Helper()
	for s.random.IntN(10) == 0 {
		starting := s.home.launch(s.t)
		await(s.t, starting, time.Duration(s.random.IntN(150))*time.Millisecond)
		starting.kill(s.t)
	}
	k := s.home.launch(s.t)
	k.ready(s.t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[place] = k
}

// leave leaves a place empty: those in the others go on with what was begun there.
func (s *stage) leave(place int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places = slices.Delete(slices.Clone(s.places), place, place+1)
}

// trapped waits for a moment, and returns the place of the program that has come to it.
func (s *stage) trapped(kind moment, n, otherwise int) int {
	select {
	case program := <-s.traps.set(kind, n):
		if place := slices.IndexFunc(s.places, func(k *killable) bool { return k.apiKey == program }); place >= 0 {
			return place
		}
	case <-time.After(longestTrap):
	}
	return otherwise
}

// play carries out runs in some conversations at once, kills programs meanwhile, the last of several for good, and
// waits until every run that was begun has come to its end.
func (s *stage) play(ctx context.Context, name string, conversations, kills int) {
	s.t.Helper()
	s.open()
	var playing sync.WaitGroup
	for i := range conversations {
		playing.Go(func() {
			for n := 0; n == 0 || !s.isEnding(); n++ {
				j := newJourney(s, fmt.Sprintf("%s-%d-%d", name, i, n), i+n)
				s.mu.Lock()
				s.journeys = append(s.journeys, j)
				s.mu.Unlock()
				j.live(ctx)
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
	playing.Wait()
}
