package main

import (
	"context"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/window"
)

type crewStatusCommand struct {
	crewChoice
	JSON bool `help:"Write JSON, as GET /api/crews/ID/status does."`
}

func (crewStatusCommand) Help() string {
	return `Shows how a crew stands in its conversation: its newest cycle, whose turn is next, and for each role the cursor (the entry up to which everything was shown to it and answered), how many messages are new to it ("1 + 71": one fits, 71 are summarized before its next turn), and how often it has answered.

Examples:

    continuo crew status
    continuo crew status garden --session s1
    continuo crew status --json | jq '.roles[] | {role_name, cursor}'`
}

// Run prints the status.
func (s *crewStatusCommand) Run(ctx context.Context, a *app) error {
	w, err := a.wire(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	session, err := w.crewSession(ctx, s.crewChoice, false)
	if err != nil {
		return err
	}
	status, err := w.engine.CrewStatus(ctx, session)
	if err != nil {
		return w.explained(session, err)
	}
	if s.JSON {
		return a.json(status)
	}
	a.printCrewStatus(status, w.newsOf(ctx, status))
	if next := nextForCrew(status); next != "" {
		a.note("%s", next)
	}
	return nil
}

// newsOf looks up what each role would see now, by its name. A role for which that is unknown is left out.
func (w *services) newsOf(ctx context.Context, status *engine.CrewStatus) map[string]*window.RolePlan {
	news := map[string]*window.RolePlan{}
	conversation, err := w.log.Conversation(ctx, status.ConversationID)
	if err != nil {
		return news
	}
	for _, role := range status.Roles {
		shown, err := w.engine.Context(ctx, conversation, engine.ContextRequest{View: engine.RoleView + role.Name, Crew: status.Crew})
		if err == nil && shown.Plan.Role != nil {
			news[role.Name] = shown.Plan.Role
		}
	}
	return news
}

// printCrewStatus prints the state of a crew.
func (a *app) printCrewStatus(status *engine.CrewStatus, news map[string]*window.RolePlan) {
	a.print("%s  %s", a.paint.bold(status.Crew), oneLine(status.Name, 60))
	facts := table{}
	fact := func(name, words string) { facts.add(cell{name, a.paint.dim}, plain(words)) }
	fact("session", oneLine(status.SessionID, 100))
	fact("cycle", a.cycleFact(status))
	if status.State == continuo.RunRunning {
		fact("turn", turnFact(status))
	} else {
		fact("next", displayName(status, status.Next))
	}
	fact("log", fmt.Sprintf("%s; the cycle began at entry %s, %s", count(status.LastSeq, "entry"), number(status.FirstSeq), when(status.StartedAt)))
	if status.Since > 0 {
		words := "the roles see nothing up to entry " + number(status.Since)
		if status.Restorable {
			words += "; continuo crew restore " + crewArgs(status) + " takes that back"
		}
		fact("reset", words)
	}
	for _, line := range facts.lines(a.width) {
		a.print("%s", line)
	}
	a.print("")
	a.printRoles(status, news)
}

// cycleFact describes the state of the newest cycle, with its reason.
func (a *app) cycleFact(status *engine.CrewStatus) string {
	paint := a.paint.green
	if status.State == continuo.RunFailed {
		paint = a.paint.red
	} else if status.State != continuo.RunFinished {
		paint = a.paint.yellow
	}
	words := paint(string(status.State))
	if status.Reason != "" {
		words += ": " + oneLine(status.Reason, 300)
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
func (a *app) printRoles(status *engine.CrewStatus, news map[string]*window.RolePlan) {
	t := table{right: []bool{false, false, false, false, true, true, true}}
	head := func(text string) cell { return cell{text, a.paint.dim} }
	t.add(head("role"), head("name"), head("speaks for it"), head("view"), head("cursor"), head("new"), head("answers"), head("session"), head("state"))
	for i, role := range status.Roles {
		t.add(
			cell{role.Name, a.rolePaint(i)}, plain(oneLine(role.DisplayName, 30)), plain(oneLine(role.Connector, 20)), plain(role.View), plain(number(role.Cursor)),
			plain(newsWords(role, news[role.Name])), plain(number(role.Answers)), plain(oneLine(role.Session, 20)), a.roleState(status, role),
		)
	}
	t.dropEmpty(7, 1)
	for _, line := range t.lines(a.width) {
		a.print("%s", line)
	}
	for _, role := range status.Roles {
		a.printTrouble(role)
	}
}

// printTrouble prints below the table, without truncation, why a role did not answer or that its answer is incomplete.
func (a *app) printTrouble(role engine.RoleStatus) {
	var words string
	switch {
	case role.Failed != "":
		words = role.DisplayName + " did not answer: " + oneLine(role.Failed, 1000)
	case role.FinishReason != "":
		words = "The newest answer of " + role.DisplayName + " " + finishWords(role.FinishReason)
	default:
		return
	}
	a.print("")
	for _, line := range wrapped(words, a.tableWidth()) {
		a.print("%s", a.paint.yellow(line))
	}
}

// newsWords describes how much is unread for a role: what it would see, and what remains after that.
func newsWords(role engine.RoleStatus, plan *window.RolePlan) string {
	switch {
	case plan == nil && role.HasNews:
		return "yes"
	case plan == nil:
		return "0"
	case plan.Waiting > 0:
		return number(plan.News) + " + " + number(plan.Waiting)
	}
	return number(plan.News)
}

// roleState describes the state of a role.
func (a *app) roleState(status *engine.CrewStatus, role engine.RoleStatus) cell {
	words, paint := "", a.paint.dim
	switch {
	case role.Name == status.Speaking:
		words, paint = "speaking", a.paint.green
	case role.Failed != "":
		words, paint = "failed", a.paint.yellow
	case !role.RestsUntil.IsZero():
		words, paint = "rests until "+role.RestsUntil.Local().Format(time.TimeOnly), a.paint.yellow
	case role.Name == status.Next:
		words = "next"
	}
	if role.FinishReason != "" && words == "" {
		words, paint = "its answer is cut", a.paint.yellow
	}
	if role.IsModerator {
		if words != "" {
			words += " · "
		}
		words += "moderates"
	}
	return cell{words, paint}
}

// nextForCrew is the command that resumes a crew; "" if a person has nothing to do except to send a message.
func nextForCrew(status *engine.CrewStatus) string {
	switch {
	case status.IsIdle():
		return ""
	case status.State == continuo.RunFailed || status.State == continuo.RunStopped:
		return "Go on with: continuo crew resume " + crewArgs(status)
	case status.State == continuo.RunRunning && status.Speaking == "":
		return "If no program carries it out any more, go on with: continuo crew resume " + crewArgs(status)
	}
	return ""
}
