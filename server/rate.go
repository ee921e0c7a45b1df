package server

import (
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/continuo-log/continuo/api"
)

// rateLimits limits the request rate of each API key in this process. It is safe for concurrent use.
type rateLimits struct {
	perSecond int // 0: unlimited

	mu    sync.Mutex
	byKey map[string]*rate.Limiter
}

// maxLimiters is the number of limiters from which idle ones are dropped: a new limiter behaves the same.
const maxLimiters = 1024

// check counts a request, or refuses it. The burst of a key is one second's worth of requests.
func (p *rateLimits) check(keyID string, now time.Time) error {
	if p.perSecond == 0 || keyID == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	limiter := p.byKey[keyID]
	if limiter == nil {
		p.dropIdle(now)
		limiter = rate.NewLimiter(rate.Limit(p.perSecond), p.perSecond)
		p.byKey[keyID] = limiter
	}
	asked := limiter.ReserveN(now, 1)
	wait := asked.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	asked.CancelAt(now)
	return &api.Problem{
		Status: http.StatusTooManyRequests, Type: api.RateLimit, Code: "rate_limited", RetryAfter: int(math.Ceil(wait.Seconds())),
		Message: "this API key has sent more requests than the server takes in a second; ask again later",
	}
}

// dropIdle drops the limiters of idle keys. Only valid keys have one, so their number is bounded.
func (p *rateLimits) dropIdle(now time.Time) {
	if p.byKey == nil {
		p.byKey = map[string]*rate.Limiter{}
	}
	if len(p.byKey) < maxLimiters {
		return
	}
	for keyID, limiter := range p.byKey {
		if limiter.TokensAt(now) >= float64(p.perSecond) {
			delete(p.byKey, keyID)
		}
	}
}
