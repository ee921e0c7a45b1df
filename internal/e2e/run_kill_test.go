package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/continuo-log/continuo/internal/pgtest"
)

// The figures of the tests that kill programs with runs.
const (
	conversationsOfStage   = 3
	conversationsOfReplica = 4
	mostStages             = 20 // besides the planned ones, until all that the test is about has happened
)

// TestUndisturbedRuns executes each workflow once: what the other tests want is what comes of that.
func TestUndisturbedRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: runs take their time")
	}
	s := newRunHarness(t, rand.New(rand.NewPCG(1, 0)), "", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	s.play(ctx, "calm", len(workflowNames), 0)
	if found := s.check(ctx); found != (evidence{}) {
		t.Errorf("nothing happened to the runs, and yet: %+v", found)
	}
}

// TestKilledRuns kills the program again and again while it executes runs: in streams and in calls of tools, at the
// ends of steps, while a question waits, and while it starts. Nobody does anything for the runs but decide what they
// ask.
func TestKilledRuns(t *testing.T) {
	t.Parallel()
	random := killTest(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
	defer cancel()
	var found evidence
	var counting sync.Mutex
	stage := func(t *testing.T, name string, chances *rand.Rand) {
		s := newRunHarness(t, chances, "", 1)
		s.unproven = func() bool { return s.questionsOutlived() == 0 }
		s.play(ctx, name, conversationsOfStage, rounds(10, 300))
		own := s.check(ctx)
		counting.Lock()
		defer counting.Unlock()
		found.add(own)
	}
	t.Run("stages", func(t *testing.T) {
		for i := range rounds(2, 4) {
			chances := rand.New(rand.NewPCG(random.Uint64(), 0))
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				stage(t, fmt.Sprintf("s%d", i), chances)
			})
		}
	})
	lacks := func() bool { return found.cut == 0 || found.repeated == 0 || found.outlived == 0 }
	for i := 0; i < mostStages && lacks() && !t.Failed(); i++ { // where a kill hits is left to chance
		t.Run(fmt.Sprintf("more/%d", i), func(t *testing.T) {
			stage(t, fmt.Sprintf("m%d", i), rand.New(rand.NewPCG(random.Uint64(), 0)))
		})
	}
	if !t.Failed() && lacks() {
		t.Errorf("the test shows nothing of what did not happen: %+v", found)
	}
}

// TestKilledRunsOfReplicas kills one of two replicas that share a database: the other one continues.
func TestKilledRunsOfReplicas(t *testing.T) { testReplicas(t, false) }

// TestCrowdedRuns has both replicas resume the same runs, and kills them: whichever is faster, each step is executed
// once.
func TestCrowdedRuns(t *testing.T) { testReplicas(t, true) }

func testReplicas(t *testing.T, crowded bool) {
	t.Parallel()
	random := killTest(t)
	server := pgtest.Start(t, pgtest.Options{Durable: true})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
	defer cancel()
	s := newRunHarness(t, random, server.Database(t), 2)
	s.contended = crowded
	s.play(ctx, "r", conversationsOfReplica, rounds(7, 400))
	s.check(ctx)
}
