package retry

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// queue is the queue of the requests that wait because the upstream limits their rate.
//
// It paces requests as TCP paces packets (slow start, then additive increase, multiplicative decrease). A
// refusal closes the queue for as long as the upstream asks. Then one request is sent; each accepted one
// widens the window of requests in flight, quickly up to half of the refused window, then by one per window.
// A request is in flight until the upstream accepts it (its answer begins), refuses it, or has sent nothing
// for settleAfter: a limiter refuses at once, a model may think for minutes. A refused request goes back to
// its position in the queue.
type queue struct {
	random  func() float64 // as Options.Random
	onLimit func(wait time.Duration, waiting int)
	setting string // name of the setting of the waiting time, in messages

	mu        sync.Mutex
	limited   bool
	until     time.Time // nothing is sent before this time
	window    float64   // of requests in flight, while the rate is limited
	threshold float64   // below it the window grows by one per accepted request
	inFlight  int
	epoch     int // counts the windows that were refused
	refusals  int // consecutive windows without an accepted request
	arrived   int64
	waiting   []*ticket // in the order of arrival
	timer     *time.Timer
}

const (
	// settleAfter is the time without a refusal after which a request counts as accepted.
	settleAfter = time.Second
	// calm is how long after its end a limit is forgotten, when no request waits.
	calm = 10 * time.Second
	// openWait and maxOpenWait are the first and the longest wait if the upstream does not state one.
	openWait    = time.Second
	maxOpenWait = 30 * time.Second
)

// ticket is the position of one request in the queue, for all of its attempts.
type ticket struct {
	queue    *queue
	number   int64
	patience time.Duration // waiting time left
	total    time.Duration // the whole waiting time
	next     *pass         // the pass that it waits for
}

// pass admits one attempt of a request.
type pass struct {
	queue  *queue
	ready  chan struct{} // closed when the request may be sent
	epoch  int           // in which it was sent
	flies  bool
	settle *time.Timer
}

// arrive adds a request to the queue, where it waits for at most patience.
func (q *queue) arrive(patience time.Duration) *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.arrived++
	return &ticket{queue: q, number: q.arrived, patience: patience, total: patience}
}

// enter returns when the request may be sent. It fails with a *model.Error when the request would exceed its
// waiting time, or when ctx ends. Refused is the upstream's refusal of the previous attempt; nil for the
// first one.
func (p *ticket) enter(ctx context.Context, refused *model.Error) (*pass, error) {
	q := p.queue
	q.mu.Lock()
	if wait := time.Until(q.until); q.limited && tooLong(ctx, wait, p.patience) {
		q.mu.Unlock()
		return nil, p.rejected(refused, wait)
	}
	p.next = &pass{queue: q, ready: make(chan struct{})}
	at, _ := slices.BinarySearchFunc(q.waiting, p, func(a, b *ticket) int { return int(a.number - b.number) })
	q.waiting = slices.Insert(q.waiting, at, p)
	q.release()
	q.mu.Unlock()
	return p.wait(ctx, refused)
}

// tooLong reports whether a wait is longer than patience, or exceeds the deadline of ctx.
func tooLong(ctx context.Context, wait, patience time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return wait > patience || ok && wait > 0 && time.Until(deadline) <= wait
}

// wait returns when the request's turn has come, its patience is used up, or ctx ends.
func (p *ticket) wait(ctx context.Context, refused *model.Error) (*pass, error) {
	begin := time.Now()
	defer func() { p.patience -= time.Since(begin) }()
	timer := time.NewTimer(p.patience)
	defer timer.Stop()
	select {
	case <-p.next.ready:
		return p.next, nil
	case <-ctx.Done():
		if !p.quit() { // it was admitted at the same moment
			p.next.ended()
		}
		return nil, model.ContextError(ctx)
	case <-timer.C:
		if !p.quit() {
			return p.next, nil
		}
		return nil, p.rejected(refused, p.queue.closedFor())
	}
}

// quit removes a request from the queue; false if it is already admitted.
func (p *ticket) quit() bool {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.waiting, p)
	if at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
	return at >= 0
}

// closedFor returns how long nothing is sent, at least openWait.
func (q *queue) closedFor() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(time.Until(q.until), openWait)
}

// rejected is the error of a request that has waited, or would wait, too long.
func (p *ticket) rejected(refused *model.Error, wait time.Duration) *model.Error {
	failed := &model.Error{
		Reason: continuo.ReasonRateLimit, Status: http.StatusTooManyRequests, Retryable: true, RetryAfter: wait,
		Message: "the upstream limits the rate of requests, and this one was not sent",
	}
	if refused != nil {
		failed.Status, failed.Message = refused.Status, refused.Message
	}
	failed.Message = strings.TrimRight(failed.Message, ".") + fmt.Sprintf(": a request waits for at most %v until the limit has passed", p.total)
	if p.queue.setting != "" {
		failed.Message += " (" + p.queue.setting + ")"
	}
	return failed
}

// release admits the requests that may be sent now. The caller holds mu.
func (q *queue) release() {
	now := time.Now()
	if q.limited && q.inFlight == 0 && now.Sub(q.until) > calm {
		q.limited = false
	}
	if wait := q.until.Sub(now); q.limited && wait > 0 {
		q.releaseIn(wait)
		return
	}
	for len(q.waiting) > 0 && (!q.limited || q.inFlight < int(q.window)) {
		q.send(q.waiting[0].next)
		q.waiting = slices.Delete(q.waiting, 0, 1)
	}
}

// send admits an attempt. The caller holds mu.
func (q *queue) send(next *pass) {
	q.inFlight++
	next.flies, next.epoch = true, q.epoch
	next.settle = time.AfterFunc(settleAfter, next.accepted)
	close(next.ready)
}

// releaseIn calls release after a wait. The caller holds mu.
func (q *queue) releaseIn(wait time.Duration) {
	if q.timer != nil {
		q.timer.Stop()
	}
	q.timer = time.AfterFunc(wait, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.release()
	})
}

// lands removes an attempt from those in flight; false if it was not in flight. The caller holds mu.
func (p *pass) lands() bool {
	if !p.flies {
		return false
	}
	p.flies = false
	p.settle.Stop()
	p.queue.inFlight--
	return true
}

// accepted records that the upstream answers the request, or has not refused it for settleAfter.
func (p *pass) accepted() {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if !p.lands() {
		return
	}
	if q.limited && p.epoch == q.epoch {
		q.refusals = 0
		if q.window < q.threshold {
			q.window++
		} else {
			q.window += 1 / q.window
		}
	}
	q.release()
}

// ended records that the attempt ended for another reason than the rate.
func (p *pass) ended() {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.lands() {
		q.release()
	}
}

// refused records that the upstream refused the attempt because of the rate, and for how long it asks to
// wait; 0 if it does not say. It returns how long nothing is sent.
func (p *pass) refused(asked time.Duration) time.Duration {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	p.lands()
	if p.epoch == q.epoch { // attempts sent before it are refused for the same reason
		asked = q.shrink(asked)
		q.onLimit(asked, len(q.waiting)+1)
	}
	if until := time.Now().Add(asked); until.After(q.until) {
		q.until = until
	}
	q.release()
	return time.Until(q.until)
}

// shrink begins a new window and returns how long to wait before it. The caller holds mu.
func (q *queue) shrink(asked time.Duration) time.Duration {
	if !q.limited {
		q.window = float64(q.inFlight + 1)
	}
	q.limited, q.threshold, q.window = true, max(q.window/2, 1), 1
	q.epoch++
	q.refusals++
	if asked > 0 {
		return asked
	}
	wait := openWait
	for n := 1; n < q.refusals && wait < maxOpenWait; n++ {
		wait *= 2
	}
	wait = min(wait, maxOpenWait)
	return wait/2 + time.Duration(q.random()*float64(wait/2)) // so that replicas do not retry together
}
