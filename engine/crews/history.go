package crews

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/durable"
)

// crewCycle is a cycle of a crew, as far as its log was read. It is the cycle's machine (crew_machine.go), and not
// safe for concurrent use.
type crewCycle struct {
	*durable.History[*crew.State]
	crews *Crews
	// updated is when the cycle's newest event was recorded.
	updated time.Time
	// superseded says that a newer cycle of the crew has begun: this one must not be changed.
	superseded bool
	// answers are the newest answer of each role, complete or not; failures count the failed attempts of its turn under
	// way, without interrupted ones, and causes are the reasons of the first failures.
	answers  map[string]*continuo.Entry
	failures map[string]int
	causes   map[string]string
}

func newCycle(cs *Crews, run continuo.Run) *crewCycle {
	c := &crewCycle{crews: cs, answers: map[string]*continuo.Entry{}, failures: map[string]int{}, causes: map[string]string{}}
	c.History = durable.NewHistory(cs.driver, run, c)
	return c
}

// speaker is the key of a role of the cycle in the session pool.
func (c *crewCycle) speaker(role *crew.Role) speakerKey {
	return speakerKey{c.Run.ConversationID, c.State.Crew.ID, role.Name}
}

// Branches are none: the roles of a crew speak one after another.
func (c *crewCycle) Branches() []string { return nil }

// Open makes the state of the cycle with the crew as it was when the cycle began.
func (c *crewCycle) Open(ctx context.Context, hash string) (*crew.State, error) {
	id, _ := continuo.CrewOf(c.Run.WorkflowID)
	found, err := c.crews.texts.Get(id+" "+hash, func() (*crew.Crew, error) { return c.crews.readCrew(ctx, id, hash) })
	if err != nil {
		return nil, err
	}
	return crew.NewState(found, c.Run.ID), nil
}

// readCrew parses the text of a crew.
func (cs *Crews) readCrew(ctx context.Context, id, hash string) (*crew.Crew, error) {
	text, err := cs.log.Text(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("its crew: %w", err)
	}
	found, err := crew.Parse(id+".yaml", text, crew.Known{Any: true})
	if err != nil {
		return nil, fmt.Errorf("its crew: %w", err)
	}
	return found, nil
}

// Observe records the role's answer, whether its turn is concluded, and whether a newer cycle has begun.
func (c *crewCycle) Observe(_ context.Context, entry *continuo.Entry) error {
	event := entry.RunEvent
	if entry.RunID != c.Run.ID {
		if event != nil && event.Kind == continuo.RunBegan && entry.WorkflowID == c.Run.WorkflowID {
			c.superseded = true
		}
		return nil
	}
	if entry.Role == continuo.Assistant && !entry.HasCalls() {
		c.answers[entry.NodeID] = entry
	}
	if entry.Error != nil && entry.Error.Reason != continuo.ReasonInterrupted {
		c.failures[entry.NodeID]++
		c.causes[entry.NodeID] = cmp.Or(c.causes[entry.NodeID], entry.Error.Message)
	}
	if event == nil {
		return nil
	}
	c.updated = entry.CreatedAt
	if event.Kind == continuo.RunNodeFinished || event.Kind == continuo.CrewRoleFailed {
		delete(c.failures, entry.NodeID)
		delete(c.causes, entry.NodeID)
	}
	return nil
}

// changeOnce appends what makes returns for the state of the cycle; see [durable.History.Change]. It fails with
// errSuperseded where a newer cycle has begun.
func (c *crewCycle) changeOnce(ctx context.Context, once durable.Once, makes func(*crew.State) ([]continuo.Entry, error)) error {
	return c.Change(ctx, once, func(s *crew.State) ([]continuo.Entry, error) {
		if c.superseded {
			return nil, errSuperseded
		}
		return makes(s)
	})
}

// errSuperseded says that a newer cycle of the crew has begun: the caller must use that one.
var errSuperseded = errors.New("another cycle has begun")
