package main

import (
	"context"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
)

type crewStopCommand struct {
	crewChoice
	JSON bool `help:"Write the status as JSON."`
}

func (crewStopCommand) Help() string {
	return `Stops a cycle, in whichever process it runs, until a person resumes it or sends a message. The partial answer of the current role is kept.

Examples:

    continuo crew stop
    continuo crew stop garden --session s1`
}

// Run stops the cycle.
func (s *crewStopCommand) Run(ctx context.Context, a *app, w *services) error {
	return a.changeCrew(ctx, w, s.crewChoice, s.JSON, func(session engine.CrewSession) (*engine.CrewStatus, error) {
		return w.engine.Crews.Stop(ctx, session, "a person stopped it")
	}, func(status *engine.CrewStatus) {
		a.print("The newest cycle of %s is %s: %s", status.Crew, status.State, term.OneLine(status.Reason, 300))
		if next := nextForCrew(status); next != "" {
			a.note("%s", next)
		}
	})
}

type crewResetCommand struct {
	crewChoice
	JSON bool `help:"Write the status as JSON."`
}

func (crewResetCommand) Help() string {
	return `Resets a crew in its conversation: a running cycle is stopped, and no role is shown the entries before the reset. Nothing is deleted, and continuo crew restore undoes the reset.

Examples:

    continuo crew reset
    continuo crew reset garden --session s1`
}

// Run resets the crew.
func (r *crewResetCommand) Run(ctx context.Context, a *app, w *services) error {
	return a.changeCrew(ctx, w, r.crewChoice, r.JSON, func(session engine.CrewSession) (*engine.CrewStatus, error) {
		return w.engine.Crews.Reset(ctx, session, "")
	}, func(status *engine.CrewStatus) {
		a.print("%s is reset: its roles see nothing up to entry %s. All of it is kept.", status.Crew, term.Number(status.Since))
		a.note("Undo it with: continuo crew restore %s", crewArgs(status))
	})
}

type crewRestoreCommand struct {
	crewChoice
	JSON bool `help:"Write the status as JSON."`
}

func (crewRestoreCommand) Help() string {
	return `Undoes the newest reset: the roles are shown the entries before it again. Later entries stay.

Examples:

    continuo crew restore
    continuo crew restore garden --session s1`
}

// Run restores the crew.
func (r *crewRestoreCommand) Run(ctx context.Context, a *app, w *services) error {
	return a.changeCrew(ctx, w, r.crewChoice, r.JSON, func(session engine.CrewSession) (*engine.CrewStatus, error) {
		return w.engine.Crews.Restore(ctx, session, "")
	}, func(status *engine.CrewStatus) {
		seen := "everything that was said"
		if status.Since > 0 {
			seen = "what was said since entry " + term.Number(status.Since)
		}
		a.print("%s sees %s again.", status.Crew, seen)
		if status.Restorable {
			a.note("There was a reset before it: continuo crew restore %s takes that back too", crewArgs(status))
		}
	})
}

// changeCrew finds a crew, changes its state, and prints the new state.
func (a *app) changeCrew(ctx context.Context, w *services, choice crewChoice, asJSON bool, change func(engine.CrewSession) (*engine.CrewStatus, error), report func(*engine.CrewStatus)) error {
	session, err := w.crewSession(ctx, choice, false)
	if err != nil {
		return err
	}
	status, err := change(session)
	if err != nil {
		return w.explained(session, err)
	}
	return a.show(asJSON, status, func() { report(status) })
}
