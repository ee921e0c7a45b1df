package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/continuo-log/continuo/internal/pgtest"
)

// TestPausedReplicaWritesNothingWhenItWakes stops one of two programs with one database for longer than its leases
// last, and wakes it then. The other one has closed its turns by then, and nothing that it still wants to write gets
// into the log.
func TestPausedReplicaWritesNothingWhenItWakes(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { paused(t, func(*testing.T) string { return "" }) })
	t.Run("postgresql", func(t *testing.T) {
		paused(t, func(t *testing.T) string { return pgtest.Start(t, pgtest.Options{}).Database(t) })
	})
}

func paused(t *testing.T, database func(*testing.T) string) {
	random := killTest(t)
	pauses := rounds(2, 60)
	upstream := startScripted(t)
	h := newHome(t, upstream, "lease: "+pauseLease.String())
	h.storeURL = database(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	one, other := h.launch(t), h.launch(t)
	one.ready(t)
	other.ready(t)
	var took []time.Duration
	for number := range pauses {
		var all []*followed
		var running sync.WaitGroup
		for i := range 4 {
			c := newChatClient(t, upstream, &losses{}, random, fmt.Sprintf("p%d-%d", number, i))
			a := c.begin("tell me", nil, false)
			a.playback = &playback{script: longScript(random, c.key)}
			all = append(all, follow(ctx, c, a, one, other, &running, nil))
		}
		letRun(t, one, time.Duration(50+random.IntN(400))*time.Millisecond)
		took = append(took, pauseAndWake(ctx, t, one, other, all))
		running.Wait()
		for _, f := range all {
			f.readerEnded.Wait()
			f.checkPaused(ctx, one, other)
		}
		if t.Failed() {
			t.Fatalf("after pause %d; the paused program said:\n%s\nthe other one:\n%s", number+1, one.output, other.output)
		}
		one, other = other, one
	}
	t.Logf("%d pauses; all turns were closed after: median %v, max %v", pauses, share(took, 0.5), slices.Max(took))
}

// pauseLease is how long a turn of these programs stays its own: so long that a program that only waits for a processor or a disk
// keeps its turns.
const pauseLease = 3 * time.Second

// longScript is a turn that takes longer than a lease.
func longScript(random *rand.Rand, tag string) script {
	s := slowScript(random, tag)
	s.pace = 2 * time.Millisecond
	for round := range 4 {
		name := fmt.Sprintf("%s-s%d", tag, round)
		s.rounds = append([]scriptedAnswer{{reasoning: prose(name+"-why", 50*s.piece), text: prose(name, 50*s.piece), calls: randomCalls(random, name, "fs_list", "fs_read")}}, s.rounds...)
	}
	return s
}

// pauseAndWake stops a program until all readers in the other have received the end of its turns, and something
// has come after some of them.
func pauseAndWake(ctx context.Context, t *testing.T, one, other *killable, all []*followed) time.Duration {
	t.Helper()
	pause(t, one)
	wake := sync.OnceFunc(func() { signal(t, one, syscall.SIGCONT) })
	defer wake() // a stopped program would keep its readers waiting
	begun := time.Now()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for _, f := range all {
			if isClosed(f.turn.started) {
				f.readerEnded.Wait()
			}
		}
	}()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Errorf("the turns of the program that was stopped are open after %v", time.Since(begun))
	}
	took := time.Since(begun)
	for i, f := range all {
		if t.Failed() || !isClosed(f.turn.started) {
			continue
		}
		if i%2 == 0 {
			f.client.finish(ctx, other, f.client.begin("continue", nil, true))
		} else if _, err := f.client.readLog(ctx, other); err != nil {
			t.Error(err)
		}
		f.logged = f.client.length()
	}
	wake()
	<-closed
	return took
}

// pause stops a program at a point at which it does not hold the database: as long as a stopped one does,
// no other can write.
func pause(t *testing.T, k *killable) {
	t.Helper()
	for {
		signal(t, k, syscall.SIGSTOP)
		for !stopped(t, k) {
			letRun(t, k, time.Millisecond)
		}
		if !writes(t, k) {
			return
		}
		signal(t, k, syscall.SIGCONT)
		letRun(t, k, 5*time.Millisecond)
	}
}

func signal(t *testing.T, k *killable, what syscall.Signal) {
	t.Helper()
	if err := k.command.Process.Signal(what); err != nil {
		t.Fatal(err)
	}
}

// stopped reports whether all threads of a program are stopped: the kernel first ends what they ask of it.
func stopped(t *testing.T, k *killable) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", k.command.Process.Pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("threads of the program: %v, %v", threads, err)
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if _, state, _ := strings.Cut(string(stat), ") "); err == nil && !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// writes reports whether a program has the lock of the one who writes, which is byte 120 of SQLite's shared
// memory file; see the format of the write-ahead log.
func writes(t *testing.T, k *killable) bool {
	t.Helper()
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(locks)) {
		fields := strings.Fields(line)
		if n := len(fields); n == 8 && fields[3] == "WRITE" && fields[4] == strconv.Itoa(k.command.Process.Pid) && fields[6] == "120" {
			return true
		}
	}
	return false
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// checkPaused checks that a turn has one end, which was written while its program was stopped.
func (f *followed) checkPaused(ctx context.Context, paused, other *killable) {
	if f.turn.id == "" { // it had not begun when its program was stopped
		return
	}
	if end := f.turn.end(); end == nil {
		f.client.errorf("turn %s: the client of the paused program received no end: %v", f.turn.id, f.turn.err)
	}
	o := f.check(ctx, other)
	if o == nil {
		return
	}
	if f.logged > 0 {
		f.client.checkEnd(o.id, f.reader.events, o)
		f.client.checkEnd(o.id, f.turn.events, o)
	}
	if entries, err := f.client.readLog(ctx, paused); err != nil || f.logged > 0 && len(entries) != f.logged {
		f.client.errorf("the log had %d entries while the program was stopped, and has %d: %v", f.logged, len(entries), err)
	}
	f.client.finish(ctx, paused, f.client.begin("again", nil, true))
}
