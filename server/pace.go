package server

import (
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// paces bounds the requests of each API key in this process. It is safe for concurrent use.
type paces struct {
	perSecond int // 0: no bound

	mu    sync.Mutex
	byKey map[string]*rate.Limiter
}

// manyPaces is from how many keys on those are forgotten that have been silent: a new limiter is as theirs.
const manyPaces = 1024

// check counts a request, or refuses it. A key may ask for a second's worth at once.
func (p *paces) check(keyID string, now time.Time) error {
	if p.perSecond == 0 || keyID == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	limiter := p.byKey[keyID]
	if limiter == nil {
		p.forgetSilent(now)
		limiter = rate.NewLimiter(rate.Limit(p.perSecond), p.perSecond)
		p.byKey[keyID] = limiter
	}
	asked := limiter.ReserveN(now, 1)
	wait := asked.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	asked.CancelAt(now)
	return &problem{
		status: http.StatusTooManyRequests, kind: rateLimit, code: "rate_limited", retryAfter: int(math.Ceil(wait.Seconds())),
		message: "this API key has sent more requests than the server takes in a second; ask again later",
	}
}

// forgetSilent drops limiters that say nothing any more. Only good keys have one, so that their number is bounded.
func (p *paces) forgetSilent(now time.Time) {
	if p.byKey == nil {
		p.byKey = map[string]*rate.Limiter{}
	}
	if len(p.byKey) < manyPaces {
		return
	}
	for keyID, limiter := range p.byKey {
		if limiter.TokensAt(now) >= float64(p.perSecond) {
			delete(p.byKey, keyID)
		}
	}
}
