package crews

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/engine/internal/logtext"
	"github.com/continuo-log/continuo/engine/metrics"
	"github.com/continuo-log/continuo/internal/backoff"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/turn"
)

// sessionPool keeps the programs that answer for the roles of crews, and the failures of each role. It is safe for
// concurrent use.
type sessionPool struct {
	options RoleDefaults
	logger  *slog.Logger
	metrics *metrics.Metrics

	mu     sync.Mutex
	known  map[speakerKey]*roleSpeaker
	closed bool
}

// speakerKey identifies a role of a crew in a conversation.
type speakerKey struct{ conversationID, crew, role string }

// roleSpeaker is the state of a role in this process. One turn at a time uses it, because a turn has the
// conversation's lease.
type roleSpeaker struct {
	using   sync.Mutex // held while a turn or a check uses it
	session model.Session
	// cursor is the role's cursor up to which the session remembers the conversation. Where another process has run a
	// turn of the role since, the session is behind the role's cursor.
	cursor int64
	used   time.Time

	failures int       // attempts in a row that failed
	why      string    // the error of the newest one
	until    time.Time // the role is not asked before then; zero when it may be asked
	restarts int       // of its program in a row, without an answer since
}

// roleModel is a role's model for one turn.
type roleModel struct {
	model.Model
	speaker *roleSpeaker
	session model.Session // nil for a model that does not remember
	whole   bool          // it must be shown the whole history
}

// sessionID is the id of its session; "" for a model that does not remember.
func (v *roleModel) sessionID() string {
	if v.session == nil {
		return ""
	}
	return v.session.ID()
}

// acquire returns a role's model, or a session of its agent that remembers what the role was shown up to its cursor.
// The caller calls release when the turn is over. It fails during the role's cooldown, and where the role's program
// cannot be started in time with one retry after a wait.
func (s *sessionPool) acquire(ctx context.Context, key speakerKey, m model.Model, role crew.RoleState, until time.Time) (v *roleModel, err error) {
	sp, err := s.use(key)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			sp.using.Unlock()
		}
	}()
	if left := time.Until(sp.until); left > 0 {
		return nil, fmt.Errorf("it is paused for %s after %d failed attempts in a row: %s", left.Round(time.Second), sp.failures, sp.why)
	}
	if v, err = s.open(ctx, sp, key, m, role, until); err != nil && ctx.Err() == nil {
		s.count(sp, err.Error())
	}
	return v, err
}

// use finds or makes a role's speaker, and waits until no other turn or check uses it.
func (s *sessionPool) use(key speakerKey) (*roleSpeaker, error) {
	for {
		sp, err := s.speaker(key)
		if err != nil {
			return nil, err
		}
		sp.using.Lock()
		if again, err := s.speaker(key); err == nil && again == sp {
			return sp, nil
		}
		sp.using.Unlock() // another goroutine removed it meanwhile
	}
}

// speaker finds or makes a role's speaker.
func (s *sessionPool) speaker(key speakerKey) (*roleSpeaker, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, lifecycle.ErrClosing
	}
	if s.known == nil {
		s.known = map[speakerKey]*roleSpeaker{}
	}
	sp := s.known[key]
	if sp == nil {
		sp = &roleSpeaker{}
		s.known[key] = sp
	}
	return sp, nil
}

// open prepares a speaker for a turn.
func (s *sessionPool) open(ctx context.Context, sp *roleSpeaker, key speakerKey, m model.Model, role crew.RoleState, until time.Time) (*roleModel, error) {
	agent, ok := m.(model.Sessions)
	if !ok {
		return &roleModel{Model: m, speaker: sp}, nil
	}
	if sp.session != nil && sp.session.Alive() && sp.session.ID() == role.Session && sp.cursor == role.Cursor {
		return &roleModel{Model: sp.session, speaker: sp, session: sp.session}, nil
	}
	if sp.session != nil {
		why := endedStale
		if !sp.session.Alive() {
			why = endedExited
		}
		s.logger.WarnContext(ctx, "role_restarted", "conversation_id", key.conversationID, "crew", key.crew, "role", key.role, "alive", why == endedStale)
		s.endProcess(sp, why)
	}
	session, err := s.start(ctx, sp, agent, role.Session, until)
	if err != nil {
		return nil, err
	}
	sp.session = session
	s.metrics.RoleStarted()
	return &roleModel{Model: session, speaker: sp, session: session, whole: !session.Loaded()}, nil
}

// maxRestartWait bounds the wait before a role's program is started again.
const maxRestartWait = 30 * time.Second

// start starts a role's program. Where that fails and there is time it retries once, without the session, whose
// loading may be the cause. The wait grows with the number of failures in a row.
func (s *sessionPool) start(ctx context.Context, sp *roleSpeaker, agent model.Sessions, id string, until time.Time) (session model.Session, err error) {
	for range maxRoleAttempts {
		left := time.Until(until)
		if left <= 0 {
			return nil, cmp.Or(err, errNoTime)
		}
		if !s.restartWait(ctx, sp.restarts, left/2) {
			return nil, cmp.Or(err, context.Cause(ctx))
		}
		sp.restarts++
		if left = time.Until(until); id != "" {
			left /= 2 // so that a session that cannot be loaded leaves time for a new one
		}
		if session, err = opened(ctx, agent, id, left); err == nil || ctx.Err() != nil {
			return session, err
		}
		id = ""
	}
	return nil, err
}

// opened opens a session within a time limit.
func opened(ctx context.Context, agent model.Sessions, id string, limit time.Duration) (model.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	session, err := agent.Open(ctx, id)
	if err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return nil, fmt.Errorf("%s did not begin a session within %s; raise the role's timeout, or crew.agent_timeout", agent.Info().Name, limit.Round(time.Millisecond))
	}
	return session, err
}

// restartWait waits before a restart of a program that has ended restarts times in a row, but no longer than most,
// which leaves time for the start itself. It reports whether ctx is still alive.
func (s *sessionPool) restartWait(ctx context.Context, restarts int, most time.Duration) bool {
	if restarts == 0 {
		return ctx.Err() == nil
	}
	return backoff.Wait(ctx, min(backoff.Doubled(s.options.RestartWait, maxRestartWait, restarts), most)) == nil
}

// release records how a role's turn ended, by its last event, and frees the speaker for the next turn. A turn that
// this process or a user stopped does not count as a failure.
func (s *sessionPool) release(v *roleModel, last turn.Event) {
	sp := v.speaker
	defer sp.using.Unlock()
	sp.used = time.Now()
	switch {
	case last.Kind == turn.Finished:
		sp.restarts = 0
		sp.cursor = cursorOf(last.Entry)
		sp.failures, sp.until = 0, time.Time{}
	case last.Kind == turn.Failed && !logtext.IsStopped(last.Entry.Error.Reason):
		s.count(sp, last.Entry.Error.Message)
	}
	if v.session != nil && !v.session.Alive() {
		s.endProcess(sp, endedExited)
	}
}

// recordPass records that a role's cursor moved from one seq to another without a turn, because nothing was new to
// the role. The session of a role at the old cursor remains complete; a session that was behind remains behind.
func (s *sessionPool) recordPass(key speakerKey, from, to int64) {
	s.mu.Lock()
	sp := s.known[key]
	s.mu.Unlock()
	if sp == nil {
		return
	}
	sp.using.Lock()
	defer sp.using.Unlock()
	if sp.cursor == from {
		sp.cursor = max(from, to)
	}
}

// maxCooldowns bounds how often a role's cooldown doubles.
const maxCooldowns = 3

// count counts a failed attempt.
func (s *sessionPool) count(sp *roleSpeaker, why string) {
	sp.failures, sp.why = sp.failures+1, why
	if over := sp.failures - s.options.Failures; over >= 0 {
		s.metrics.RolePaused()
		sp.until = time.Now().Add(s.options.Cooldown << min(over, maxCooldowns))
	}
}

// status returns the role's state in this process: whether its program runs, and until when the role is not asked.
func (s *sessionPool) status(key speakerKey) (running bool, until time.Time) {
	s.mu.Lock()
	sp := s.known[key]
	s.mu.Unlock()
	if sp == nil {
		return false, time.Time{}
	}
	if !sp.using.TryLock() {
		return true, time.Time{} // its turn is running
	}
	defer sp.using.Unlock()
	return sp.session != nil && sp.session.Alive(), sp.until
}
