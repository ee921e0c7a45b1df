package main

import (
	"context"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/window"
)

type crewStatusCommand struct {
	crewChoice
	JSON bool `help:"Write JSON, as GET /api/crews/ID/status does."`
}

func (crewStatusCommand) Help() string {
	return `Shows the status of a crew in its conversation: its newest cycle, whose turn is next, and for each role the cursor (the entry up to which everything was shown to it and answered), how many messages are new to it ("1 + 71": one fits, 71 are summarized before its next turn), and how often it has answered.

Examples:

    continuo crew status
    continuo crew status garden --session s1
    continuo crew status --json | jq '.roles[] | {role_name, cursor}'`
}

// Run prints the status.
func (s *crewStatusCommand) Run(ctx context.Context, a *app, w *services) error {
	session, err := w.crewSession(ctx, s.crewChoice, false)
	if err != nil {
		return err
	}
	status, err := w.engine.Crews.Status(ctx, session)
	if err != nil {
		return w.explained(session, err)
	}
	return a.show(s.JSON, status, func() {
		a.printCrewStatus(status, w.unreadOf(ctx, status))
		if next := nextForCrew(status); next != "" {
			a.note("%s", next)
		}
	})
}

// unreadOf looks up what each role would see now, by its name. A role for which that is unknown is left out.
func (w *services) unreadOf(ctx context.Context, status *engine.CrewStatus) map[string]*window.RolePlan {
	unread := map[string]*window.RolePlan{}
	conversation, err := w.engine.Conversations.Conversation(ctx, status.ConversationID)
	if err != nil {
		return unread
	}
	for _, role := range status.Roles {
		shown, err := w.engine.Contexts.Build(ctx, conversation, engine.ContextRequest{View: engine.RoleViewPrefix + role.Name, Crew: status.Crew})
		if err == nil && shown.Plan.Role != nil {
			unread[role.Name] = shown.Plan.Role
		}
	}
	return unread
}

// printCrewStatus prints the state of a crew.
func (a *app) printCrewStatus(status *engine.CrewStatus, unread map[string]*window.RolePlan) {
	a.print("%s  %s", a.paint.Bold(status.Crew), term.OneLine(status.Name, 60))
	facts := a.table()
	facts.Fact("session", term.OneLine(status.SessionID, 100))
	facts.Fact("cycle", a.cycleFact(status))
	if status.State == continuo.RunRunning {
		facts.Fact("turn", turnFact(status))
	} else {
		facts.Fact("next", displayName(status, status.Next))
	}
	facts.Fact("log", fmt.Sprintf("%s; the cycle began at entry %s, %s", term.Count(status.LastSeq, "entry"), term.Number(status.FirstSeq), term.Time(status.StartedAt)))
	if status.Since > 0 {
		words := "the roles see nothing up to entry " + term.Number(status.Since)
		if status.Restorable {
			words += "; continuo crew restore " + crewArgs(status) + " takes that back"
		}
		facts.Fact("reset", words)
	}
	a.printTable(facts, a.width)
	a.print("")
	a.printRoles(status, unread)
}

// cycleFact describes the state of the newest cycle, with its reason.
func (a *app) cycleFact(status *engine.CrewStatus) string {
	paint := a.paint.Green
	if status.State == continuo.RunFailed {
		paint = a.paint.Red
	} else if status.State != continuo.RunFinished {
		paint = a.paint.Yellow
	}
	words := paint(string(status.State))
	if status.Reason != "" {
		words += ": " + term.OneLine(status.Reason, 300)
	}
	return words
}

// turnFact names the role whose turn it is during a cycle.
func turnFact(status *engine.CrewStatus) string {
	if status.Speaking != "" {
		return displayName(status, status.Speaking) + " is speaking"
	}
	return displayName(status, status.Next) + " is next"
}

// printRoles prints a table of the roles.
func (a *app) printRoles(status *engine.CrewStatus, unread map[string]*window.RolePlan) {
	t := a.table("role", "name", "speaks for it", "view", ">cursor", ">new", ">answers", "session", "state")
	for i, role := range status.Roles {
		t.Add(
			a.rolePaint(i)(role.Name), term.OneLine(role.DisplayName, 30), term.OneLine(role.Connector, 20), role.View, term.Number(role.Cursor),
			unreadText(role, unread[role.Name]), term.Number(role.Answers), term.OneLine(role.Session, 20), a.roleState(status, role),
		)
	}
	t.DropEmpty(7)
	a.printTable(t, a.width)
	for _, role := range status.Roles {
		a.printTrouble(role)
	}
}

// printTrouble prints below the table, without truncation, why a role did not answer or that its answer is incomplete.
func (a *app) printTrouble(role engine.RoleStatus) {
	var words string
	switch {
	case role.Failed != "":
		words = role.DisplayName + " did not answer: " + term.OneLine(role.Failed, 1000)
	case role.FinishReason != "":
		words = "The newest answer of " + role.DisplayName + " " + finishText(role.FinishReason)
	default:
		return
	}
	a.print("")
	for _, line := range term.Wrap(words, a.tableWidth()) {
		a.print("%s", a.paint.Yellow(line))
	}
}

// unreadText describes how much is unread for a role: what it would see, and what remains after that.
func unreadText(role engine.RoleStatus, plan *window.RolePlan) string {
	switch {
	case plan == nil && role.HasNews:
		return "yes"
	case plan == nil:
		return "0"
	case plan.Waiting > 0:
		return term.Number(plan.News) + " + " + term.Number(plan.Waiting)
	}
	return term.Number(plan.News)
}

// roleState describes the state of a role.
func (a *app) roleState(status *engine.CrewStatus, role engine.RoleStatus) string {
	words, paint := "", a.paint.Dim
	switch {
	case role.Name == status.Speaking:
		words, paint = "speaking", a.paint.Green
	case role.Failed != "":
		words, paint = "failed", a.paint.Yellow
	case !role.RestsUntil.IsZero():
		words, paint = "rests until "+role.RestsUntil.Local().Format(time.TimeOnly), a.paint.Yellow
	case role.Name == status.Next:
		words = "next"
	}
	if role.FinishReason != "" && words == "" {
		words, paint = "its answer is cut", a.paint.Yellow
	}
	if role.IsModerator {
		if words != "" {
			words += " · "
		}
		words += "moderates"
	}
	return paint(words)
}

// nextForCrew is the command that resumes a crew; "" if a person has nothing to do except to send a message.
func nextForCrew(status *engine.CrewStatus) string {
	switch {
	case status.IsIdle():
		return ""
	case status.State == continuo.RunFailed || status.State == continuo.RunStopped:
		return "Continue with: continuo crew resume " + crewArgs(status)
	case status.State == continuo.RunRunning && status.Speaking == "":
		return "If no program runs it any more, continue with: continuo crew resume " + crewArgs(status)
	}
	return ""
}
