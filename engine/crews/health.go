package crews

import (
	"context"
	"sync"
	"time"
)

// The reasons for which the program of a role ended.
const (
	endedExited   = "exited"   // by itself
	endedStale    = "stale"    // another process had run a turn of the role, or the crew was reset
	endedIdle     = "idle"     // no turn had used it for RoleDefaults.Idle
	endedShutdown = "shutdown" // this process shuts down
)

// endProcess ends the program of a role.
func (s *sessionPool) endProcess(sp *roleSpeaker, why string) {
	sp.session.Close()
	sp.session = nil
	s.metrics.RoleEnded(why)
}

// CheckSessions checks the programs of roles once.
func (cs *Crews) CheckSessions(ctx context.Context) { cs.sessions.check(ctx) }

// CloseSessions ends the programs of roles.
func (cs *Crews) CloseSessions() { cs.sessions.close() }

// WatchRoles checks the programs of roles at every interval, until ctx is done. [Engine.Watch] does so too.
func (cs *Crews) WatchRoles(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			cs.sessions.check(ctx)
		}
	}
}

// check inspects the programs that no turn uses: it forgets those that have ended, and ends those that have been idle
// too long. It returns how many had exited by themselves.
func (s *sessionPool) check(ctx context.Context) (ended int) {
	s.mu.Lock()
	known := make(map[speakerKey]*roleSpeaker, len(s.known))
	for key, sp := range s.known {
		known[key] = sp
	}
	s.mu.Unlock()
	for key, sp := range known {
		if !sp.using.TryLock() {
			continue // its turn notices the end
		}
		if sp.session != nil {
			alive := sp.session.Alive()
			if !alive {
				ended++
				s.logger.WarnContext(ctx, "role_process_ended", "conversation_id", key.conversationID, "crew", key.crew, "role", key.role)
			}
			switch {
			case !alive:
				s.endProcess(sp, endedExited)
			case time.Since(sp.used) > s.options.Idle:
				s.endProcess(sp, endedIdle)
			}
		}
		if sp.session == nil && sp.failures == 0 && sp.restarts == 0 {
			s.forget(key, sp)
		}
		sp.using.Unlock()
	}
	return ended
}

// forget removes a speaker without state that no turn uses.
func (s *sessionPool) forget(key speakerKey, sp *roleSpeaker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[key] == sp { // else another one was created meanwhile
		delete(s.known, key)
	}
}

// close ends all programs. No turn may be running.
func (s *sessionPool) close() {
	s.mu.Lock()
	known := s.known
	s.known, s.closed = nil, true
	s.mu.Unlock()
	var ending sync.WaitGroup
	for _, sp := range known {
		ending.Go(func() {
			sp.using.Lock()
			defer sp.using.Unlock()
			if sp.session != nil {
				s.endProcess(sp, endedShutdown)
			}
		})
	}
	ending.Wait()
}
