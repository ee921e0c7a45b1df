package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// killTest begins a test that kills programs, or skips it. It returns what the test's chances are drawn
// from: by CONTINUO_SEED, or new ones.
func killTest(t *testing.T) *rand.Rand {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: programs are not killed in short tests")
	}
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: only Linux tells at once that a program was killed; elsewhere its leases must run out first")
	}
	seed, err := strconv.ParseUint(os.Getenv("CONTINUO_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("CONTINUO_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// rounds is how often a test repeats what it does: a few times by default, many times with CONTINUO_LONG.
func rounds(short, long int) int {
	if os.Getenv("CONTINUO_LONG") != "" {
		return long
	}
	return short
}

// TestKilledPrograms kills the program again and again, while it streams several turns at once, runs tools,
// begins and ends turns, and while it recovers from the kill before.
func TestKilledPrograms(t *testing.T) {
	t.Parallel()
	random := killTest(t)
	kills := rounds(25, 2000)
	upstream := startScripted(t)
	h := newHome(t, upstream)
	group := &clientGroup{t: t, upstream: upstream, random: random, losses: &losses{}}
	for kill := range kills {
		k := h.launch(t)
		if random.IntN(8) == 0 { // while it starts
			letRun(t, k, time.Duration(random.IntN(100))*time.Millisecond)
			k.kill(t)
			continue
		}
		group.addStart(k.ready(t))
		group.runUntilKilled(t.Context(), k)
		if t.Failed() {
			t.Fatalf("after kill %d", kill+1)
		}
	}
	k := h.launch(t)
	group.addStart(k.ready(t))
	for _, client := range append(group.clients[:], group.retired...) {
		client.finishOpenTurn(t.Context(), k)
	}
	group.losses.report(t)
}

// clientGroup is some clients at once, each in a conversation of its own.
type clientGroup struct {
	t        *testing.T
	upstream *scripted
	losses   *losses
	clients  [6]*chatClient

	mu      sync.Mutex
	random  *rand.Rand
	retired []*chatClient // whose logs are not written any more
	named   int
}

func (c *clientGroup) addStart(took time.Duration) {
	c.t.Helper()
	c.losses.starts = append(c.losses.starts, took)
}

// maxTurns is how many turns one conversation has at most: enough for one log, few enough to be read
// again and again.
const maxTurns = 8

// runClient is a client that uses a program until it is killed. One whose conversation is long enough ends what
// is left of its turn, and begins another conversation.
func (c *clientGroup) runClient(ctx context.Context, k *killable, index int, begun func()) {
	client := c.clients[index]
	if client != nil && client.begun >= maxTurns {
		client.finishOpenTurn(ctx, k)
		c.mu.Lock()
		c.retired = append(c.retired, client)
		c.mu.Unlock()
		client = nil
	}
	if client == nil {
		c.mu.Lock()
		c.named++
		client = newChatClient(c.t, c.upstream, c.losses, c.random, fmt.Sprintf("k%d", c.named))
		c.mu.Unlock()
		c.clients[index] = client
	}
	client.runUntilKilled(ctx, k, begun)
}

// runUntilKilled lets the clients use a program, and kills it at some point.
func (c *clientGroup) runUntilKilled(ctx context.Context, k *killable) {
	var begun, ended sync.WaitGroup
	begun.Add(len(c.clients))
	for index := range c.clients {
		ended.Go(func() { c.runClient(ctx, k, index, begun.Done) })
	}
	begun.Wait()
	letRun(c.t, k, time.Duration(c.intN(450))*time.Millisecond)
	at := k.kill(c.t)
	ended.Wait()
	for _, client := range c.clients {
		if client.open != nil {
			client.open.killed = at
		}
	}
}

func (c *clientGroup) intN(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

// letRun lets a program run for a while.
func letRun(t *testing.T, k *killable, duration time.Duration) {
	t.Helper()
	select {
	case <-k.ended:
		t.Fatalf("the program ended by itself:\n%s", k.output)
	case <-time.After(duration):
	}
}
