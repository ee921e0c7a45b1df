package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrTooManyTurns says that a project has as many turns in progress as Options.MaxTurns allows.
var ErrTooManyTurns = errors.New("too many turns are in progress")

// Quota bounds the turns of each project in this process.
type Quota struct {
	Most int // 0: no bound

	mu         sync.Mutex
	inProgress map[string]int // by project; projects without turns have no key
	left       chan struct{}  // closed when a turn leaves; nil without waiters
}

// quotaGrace is how long AwaitPlace waits for a turn to leave: a client that has received a turn's end must not be refused
// because the turn is still being counted, which takes a moment on a busy machine.
const quotaGrace = time.Second

// AwaitPlace returns nil when a project may begin a turn, else an error after quotaGrace.
func (q *Quota) AwaitPlace(ctx context.Context, project string) error {
	grace := time.NewTimer(quotaGrace)
	defer grace.Stop()
	for {
		left, err := q.look(project)
		if err == nil {
			return nil
		}
		select {
		case <-left:
		case <-grace.C:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// look returns nil if there is a place, else an error and a channel that is closed when a turn leaves.
func (q *Quota) look(project string) (left <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err = q.check(project); err != nil && q.left == nil {
		q.left = make(chan struct{})
	}
	return q.left, err
}

func (q *Quota) check(project string) error {
	if q.Most > 0 && q.inProgress[project] >= q.Most {
		return fmt.Errorf("%w: the project may have %d at once; wait until one has ended", ErrTooManyTurns, q.Most)
	}
	return nil
}

// Enter counts a turn, or refuses it.
func (q *Quota) Enter(project string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.check(project); err != nil {
		return err
	}
	if q.inProgress == nil {
		q.inProgress = map[string]int{}
	}
	q.inProgress[project]++
	return nil
}

// Leave ends the count of a turn.
func (q *Quota) Leave(project string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.inProgress[project]--; q.inProgress[project] == 0 {
		delete(q.inProgress, project)
	}
	if q.left != nil {
		close(q.left)
		q.left = nil
	}
}
