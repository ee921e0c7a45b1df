package engine

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

// crewCycle is a cycle of a crew as far as its log was read. It is the cycle's machine (crew_machine.go), and for one
// goroutine.
type crewCycle struct {
	*durable.History[*crew.State]
	engine *Engine
	// updated is when the cycle's newest event was recorded.
	updated time.Time
	// superseded says that another cycle of the crew has begun since: nothing may be changed in this one.
	superseded bool
	// answers are the newest answer of each role, whole or not; failures count those of its turn under way that failed
	// for another reason than that a program ended, and causes say why the first one did.
	answers  map[string]*continuo.Entry
	failures map[string]int
	causes   map[string]string
}

func newCrewCycle(e *Engine, run continuo.Run) *crewCycle {
	c := &crewCycle{engine: e, answers: map[string]*continuo.Entry{}, failures: map[string]int{}, causes: map[string]string{}}
	c.History = durable.NewHistory(e.runs, run, c)
	return c
}

// speaker is the key of a role of the cycle among the programs that speak for roles.
func (c *crewCycle) speaker(role *crew.Role) speakerKey {
	return speakerKey{c.Run.ConversationID, c.State.Crew.ID, role.Name}
}

// Branches are none: the roles of a crew speak in turn.
func (c *crewCycle) Branches() []string { return nil }

// Open makes the state of the cycle with the crew that it was begun with, as it was then.
func (c *crewCycle) Open(ctx context.Context, hash string) (*crew.State, error) {
	id, _ := continuo.CrewOf(c.Run.WorkflowID)
	found, err := c.engine.crewTexts.get(id+" "+hash, func() (*crew.Crew, error) { return c.engine.readCrew(ctx, id, hash) })
	if err != nil {
		return nil, err
	}
	return crew.NewState(found, c.Run.ID), nil
}

// readCrew reads the text of a crew.
func (e *Engine) readCrew(ctx context.Context, id, hash string) (*crew.Crew, error) {
	text, err := e.Log.Text(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("its crew: %w", err)
	}
	found, err := crew.Parse(id+".yaml", text, crew.Known{Any: true})
	if err != nil {
		return nil, fmt.Errorf("its crew: %w", err)
	}
	return found, nil
}

// Observe notes what a role said, whether its turn is concluded, and whether another cycle has begun.
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
// errSuperseded where another cycle has begun.
func (c *crewCycle) changeOnce(ctx context.Context, once durable.Once, makes func(*crew.State) ([]continuo.Entry, error)) error {
	return c.Change(ctx, once, func(s *crew.State) ([]continuo.Entry, error) {
		if c.superseded {
			return nil, errSuperseded
		}
		return makes(s)
	})
}

// errSuperseded says that another cycle of the crew has begun: that one is to be looked at.
var errSuperseded = errors.New("another cycle has begun")
