package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// reader follows a turn from a program that does not run it.
type reader struct {
	events []receivedEvent
	err    error
}

// followed is a turn that is started in one program and received in another.
type followed struct {
	client      *chatClient
	turn        *attempt
	runner      *killable
	reader      *reader
	readerEnded sync.WaitGroup // the reader's
	logged      int            // how many entries the log had before a paused program woke
}

// follow begins a turn in one program, and a reader of it in the other, which passes each event to received if that is
// not nil.
func follow(ctx context.Context, c *chatClient, a *attempt, runs, reads *killable, running *sync.WaitGroup, received func(receivedEvent)) *followed {
	f := &followed{client: c, turn: a, runner: runs, reader: &reader{}}
	running.Go(func() { c.run(ctx, runs, a) })
	f.readerEnded.Go(func() {
		<-a.started
		if a.id != "" {
			_, f.reader.err = reads.listen(ctx, http.MethodGet, c.path("/turns/"+a.id+"/events"), nil, func(e receivedEvent) {
				f.reader.events = append(f.reader.events, e)
				if received != nil {
					received(e)
				}
			})
		}
	})
	return f
}

// check checks a turn that is over, in its own eyes and in its reader's.
func (f *followed) check(ctx context.Context, k *killable) *outcome {
	f.client.open = f.turn
	o := f.client.recoverTurn(ctx, k)
	if o == nil || len(f.reader.events) == 0 || o.id != f.turn.id {
		return o
	}
	f.client.checkAscending(o.id, 0, f.reader.events)
	live, last := f.turn.events, f.reader.events[len(f.reader.events)-1]
	if !last.isEnd() { // the reader's program was killed
		live = slices.DeleteFunc(slices.Clone(live), func(e receivedEvent) bool { return e.id > last.id })
	}
	f.client.checkSame(o.id, live, f.reader.events)
	return o
}

// TestTurnsAfterTheKillOfTheOtherReplica kills one of two programs with one database. The other one's readers receive
// the end of the turns of the killed one, its own turns continue, and both kinds can be resumed in it.
func TestTurnsAfterTheKillOfTheOtherReplica(t *testing.T) {
	t.Parallel()
	random := killTest(t)
	kills := rounds(5, 150)
	upstream := startScripted(t)
	h := newHome(t, upstream, "lease: "+killedLease.String())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	total := &losses{}
	survivor := h.launch(t)
	survivor.ready(t)
	var delays []time.Duration
	for kill := 0; kill < kills || len(delays) == 0 || !total.cutAny(); kill++ { // until the test shows something
		doomed := h.launch(t)
		total.starts = append(total.starts, doomed.ready(t))
		if random.IntN(2) == 0 {
			doomed, survivor = survivor, doomed
		}
		var all []*followed
		var running sync.WaitGroup
		for i := range 6 {
			c := newChatClient(t, upstream, total, random, fmt.Sprintf("n%d-%d", kill, i))
			runs, reads := doomed, survivor
			if i%3 == 2 {
				runs, reads = survivor, doomed
			}
			all = append(all, follow(ctx, c, c.begin("tell me", nil, false), runs, reads, &running, nil))
		}
		letRun(t, doomed, time.Duration(random.IntN(400))*time.Millisecond)
		at := doomed.kill(t)
		running.Wait()
		for _, f := range all {
			f.readerEnded.Wait()
			delays = append(delays, f.checkAfterKill(ctx, survivor, at)...)
		}
		if t.Failed() {
			t.Fatalf("after kill %d; the survivor said:\n%s", kill+1, survivor.output)
		}
	}
	total.report(t)
	t.Logf("readers in the other program heard the end after the kill: median %v, max %v of %d", share(delays, 0.5), slices.Max(delays), len(delays))
}

// killedLease is how long the turns of these programs would stay their own if no program noticed that a program was killed.
const killedLease = 2 * time.Minute

// checkAfterKill checks a turn after one of two programs was killed, and resumes it in the other. It
// returns how long after the kill a reader received its end.
func (f *followed) checkAfterKill(ctx context.Context, survivor *killable, killed time.Time) (delay []time.Duration) {
	if f.runner != survivor {
		f.turn.killed = killed
	}
	o := f.check(ctx, survivor)
	switch {
	case f.runner == survivor && (o == nil || o.failed):
		f.client.errorf("a turn of the program that lives on was not finished: %v, %s", f.turn.err, show(f.turn.end()))
	case f.runner != survivor && o != nil && o.id == f.turn.id && len(f.reader.events) > 0:
		f.client.checkEnd(o.id, f.reader.events, o)
		if f.reader.err != nil {
			f.client.errorf("the reader of turn %s: %v", o.id, f.reader.err)
		}
		if took := f.reader.events[len(f.reader.events)-1].at.Sub(killed); took > 0 {
			delay = append(delay, took)
			if took >= killedLease {
				f.client.errorf("a reader heard the end of turn %s only %v after its program was killed: when its lease had run out", o.id, took)
			}
		}
	}
	if o != nil && o.failed {
		f.client.finish(ctx, survivor, f.client.resumeTurn(o, true))
	}
	return delay
}
