package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/chatscreen"
	"github.com/continuo-log/continuo/internal/term"
)

// run reads messages to the crew until the input ends.
func (t *crewChatSession) run(ctx context.Context, found *crew.Crew) error {
	t.openInput(ctx)
	t.converses = true
	defer t.watchRoles(ctx)()
	if err := t.welcome(ctx, found); err != nil {
		return err
	}
	for !t.leaving {
		line, err := t.next(t.lines)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, errLeave):
			t.print("") // the prompt is on this line
			return t.printExitNote(ctx)
		case err != nil:
			return err
		case strings.TrimSpace(line) == "":
			continue
		}
		if err := t.take(ctx, line); errors.Is(err, errLeave) {
			break
		} else if stopped := new(crewStopped); errors.As(err, &stopped) {
			t.printAside("Stopped. /resume or any message continues.")
		} else if err != nil {
			report(t.console, err)
		}
	}
	return t.printExitNote(ctx)
}

// watchRoles maintains the programs of the roles during the conversation, until stop. Unlike services.watch it
// recovers no work of other programs, whose output would not be visible here.
func (t *crewChatSession) watchRoles(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var looking sync.WaitGroup
	looking.Go(func() { t.services.engine.Crews.WatchRoles(ctx, t.settings.Turn.Lease/3) })
	return func() {
		cancel()
		looking.Wait()
	}
}

// welcome shows the crew's roles and its state.
func (t *crewChatSession) welcome(ctx context.Context, found *crew.Crew) error {
	name, roles := term.OneLine(found.Name, 60), make([]string, len(found.Roles))
	for i := range found.Roles {
		roles[i] = t.rolePaint(i)(term.OneLine(found.Roles[i].DisplayName, 40))
	}
	t.print("%s  %s", t.paint.Bold(name), term.Fit(strings.Join(roles, " · "), max(t.width-term.Width(name)-3, 20)))
	if t.conversation.ID == "" {
		t.printAside("Nothing has been said yet. /help lists commands, Ctrl-D leaves.")
		return nil
	}
	t.printAside("%s · %s. /help lists commands, Ctrl-D leaves.", term.OneLine(t.conversation.Title, 60), term.Count(t.conversation.LastSeq, "entry"))
	status, err := t.crews.Status(ctx, t.session)
	if errors.Is(err, continuo.ErrNotFound) {
		return nil
	}
	if err == nil && status.State != continuo.RunFinished {
		t.printAside("%s", t.cycleText(status))
	}
	return err
}

// cycleText describes the state of the newest cycle, and how to resume it.
func (t *crewChatSession) cycleText(status *engine.CrewStatus) string {
	switch {
	case status.State == continuo.RunRunning && status.Speaking != "":
		return fmt.Sprintf("A cycle is in progress: %s is speaking.", displayName(status, status.Speaking))
	case status.State == continuo.RunRunning:
		return fmt.Sprintf("A cycle is in progress, and it is the turn of %s. /resume continues it.", displayName(status, status.Next))
	}
	return fmt.Sprintf("The newest cycle is %s (%s). /resume continues it.", status.State, term.OneLine(status.Reason, 200))
}

// displayName is a role's name for people.
func displayName(status *engine.CrewStatus, role string) string {
	for i := range status.Roles {
		if status.Roles[i].Name == role {
			return term.OneLine(status.Roles[i].DisplayName, 64)
		}
	}
	return term.OneLine(role, 64)
}

// printExitNote says how to continue later.
func (t *crewChatSession) printExitNote(ctx context.Context) error {
	status, err := t.crews.Status(context.WithoutCancel(ctx), t.session)
	if err == nil {
		t.printAside("Continue with: continuo crew run %s", crewArgs(status))
	}
	return nil
}

// crewSlash is a command in a conversation with a crew.
type crewSlash struct {
	name, argument, help string
	after                bool // does nothing before the first message
	run                  func(*crewChatSession, context.Context, string) error
}

// crewSlashes lists them in the order of /help.
func crewSlashes() []crewSlash {
	return []crewSlash{
		{"/status", "", "the state of each role: its cursor, what is new to it, its messages", true, (*crewChatSession).showStatus},
		{"/roles", "", "who is in the crew, and who speaks for them", false, (*crewChatSession).showRoles},
		{"/context", "ROLE", "the text that a role would be shown now", true, (*crewChatSession).showContext},
		{"/history", "[N]", "the newest N entries of the log (default 20)", true, func(t *crewChatSession, ctx context.Context, argument string) error {
			return t.showHistory(ctx, argument)
		}},
		{"/resume", "", "continue with a cycle that failed or was stopped", true, func(t *crewChatSession, ctx context.Context, _ string) error { return t.resumeCycle(ctx) }},
		{"/stop", "", "stop a cycle that runs in another program", true, (*crewChatSession).stop},
		{"/reset", "", "reset the crew: the roles see no earlier messages", true, (*crewChatSession).reset},
		{"/restore", "", "take the newest reset back", true, (*crewChatSession).restore},
		{"/help", "", "this list", false, (*crewChatSession).help},
		{"/quit", "", "leave; Ctrl-D does too", false, func(*crewChatSession, context.Context, string) error { return errLeave }},
	}
}

// take executes a command or sends a message.
func (t *crewChatSession) take(ctx context.Context, line string) error {
	trimmed := strings.TrimSpace(line)
	switch {
	case strings.HasPrefix(trimmed, "//"):
		return t.send(ctx, trimmed[1:])
	case !strings.HasPrefix(trimmed, "/"):
		return t.send(ctx, line)
	}
	name, argument, _ := strings.Cut(trimmed, " ")
	for _, command := range crewSlashes() {
		if command.name == name {
			return t.runCommand(ctx, command, strings.TrimSpace(argument))
		}
	}
	return usage("there is no command %s: /help lists them; // at the beginning says a message that begins with /", term.OneLine(name, 40))
}

func (t *crewChatSession) runCommand(ctx context.Context, command crewSlash, argument string) error {
	if command.after {
		if err := t.refresh(ctx); err != nil {
			return err
		}
		if t.conversation.ID == "" {
			t.printAside("Nothing has been said yet.")
			return nil
		}
	}
	return command.run(t, ctx, argument)
}

func (t *crewChatSession) help(context.Context, string) error {
	list := t.table()
	for _, command := range crewSlashes() {
		list.Add(t.paint.Cyan(command.name+" "+command.argument), command.help)
	}
	t.printTable(list, t.tableWidth())
	t.printAside("Ctrl-C stops a cycle. Pasted lines stay together until Enter. // begins a message with a slash.")
	return nil
}

func (t *crewChatSession) showStatus(ctx context.Context, _ string) error {
	status, err := t.crews.Status(ctx, t.session)
	if err != nil {
		return t.explained(t.session, err)
	}
	t.measure()
	t.printCrewStatus(status, t.unreadOf(ctx, status))
	return nil
}

func (t *crewChatSession) showRoles(context.Context, string) error {
	found, err := t.crews.Get(t.session.Crew)
	if err != nil {
		return err
	}
	t.measure()
	t.printCrewFile(found, t.settings.DefaultModel)
	return nil
}

func (t *crewChatSession) showContext(ctx context.Context, role string) error {
	if role == "" {
		return usage("/context needs a role: /roles lists them")
	}
	t.measure()
	look := crewContexts{app: t.app, services: t.services, session: t.session, conversation: t.conversation}
	return look.show(ctx, engine.RoleContextQuery{Role: role})
}

func (t *crewChatSession) stop(ctx context.Context, _ string) error {
	status, err := t.crews.Stop(ctx, t.session, "a person stopped it")
	if err != nil {
		return t.explained(t.session, err)
	}
	t.printAside("The newest cycle is %s (%s).", status.State, term.OneLine(status.Reason, 200))
	return nil
}

func (t *crewChatSession) reset(ctx context.Context, _ string) error {
	status, err := t.crews.Reset(ctx, t.session, "")
	if err != nil {
		return t.explained(t.session, err)
	}
	t.printAside("The crew is reset. Messages up to entry %s are kept; /restore undoes this.", term.Number(status.Since))
	return nil
}

func (t *crewChatSession) restore(ctx context.Context, _ string) error {
	if _, err := t.crews.Restore(ctx, t.session, ""); err != nil {
		return t.explained(t.session, err)
	}
	t.printAside("The reset was undone: the roles see the earlier entries again.")
	return nil
}

// completions lists the commands, or the roles as their arguments.
func (t *crewChatSession) completions(_ context.Context, line string) (all []chatscreen.Completion) {
	add := func(text string) {
		if strings.HasPrefix(text, line) {
			all = append(all, chatscreen.Completion{Text: text})
		}
	}
	for _, command := range crewSlashes() {
		if !strings.Contains(line, " ") {
			add(command.name + " ")
		}
	}
	if found, err := t.crews.Get(t.session.Crew); err == nil && strings.Contains(line, " ") {
		for _, role := range found.Roles {
			add("/context " + role.Name)
		}
	}
	return all
}
